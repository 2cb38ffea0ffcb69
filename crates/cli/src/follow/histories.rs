//! Histories of accounts during a run: the awaited ones are announced, and requested a few at a time for each source.
//!
//! ```text
//! outbox: awaited accounts ── by source ── permit ── request ── resync ── lines, complete in the outbox
//!                                            ▲                     │
//!                                            └── ended, delayed ───┘
//! ```
//!
//! An account whose event comes before its turn is fetched at that event, which waits. A history that fails is repeated by
//! the firehose, and does not delay others.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use wireproof::atproto::syntax::Did;
use wireproof::delivery::{self, Outbox, OutboxError};
use wireproof::net::firehose::{ResyncRequests, StopSignal};
use wireproof::net::http::Url;
use wireproof::net::identity::Resolver;

use super::history_progress::HistoryProgress;
use super::listing::Listing;
use super::selection::Selection;
use super::status::Status;
use crate::network;

/// The histories of a run.
pub(super) struct Histories {
    outbox: Outbox,
    requests: ResyncRequests,
    resolver: Resolver,
    selection: Selection,
    status: Status,
    progress: Arc<HistoryProgress>,
    /// The requested accounts; those that are delayed have no permit.
    requested: Mutex<HashMap<Box<str>, Option<OwnedSemaphorePermit>>>,
    known: Mutex<delivery::Histories>,
    /// The origins of the servers whose accounts are listed.
    servers: Vec<String>,
    added: UnboundedSender<Vec<String>>,
}

/// What the histories of a run need.
pub(super) struct HistoryParts {
    pub(super) outbox: Outbox,
    pub(super) requests: ResyncRequests,
    pub(super) resolver: Resolver,
    pub(super) selection: Selection,
    pub(super) status: Status,
    pub(super) progress: Arc<HistoryProgress>,
}

/// Accounts of one source, which are requested together.
struct Group {
    /// The server that lists them as its own.
    server: Option<Url>,
    /// Whether they are requested although their histories are complete: what happened since is not known.
    are_lost: bool,
    dids: Vec<Box<str>>,
}

/// Requests the histories of a run.
pub(super) struct HistoryQueue {
    histories: Arc<Histories>,
    groups: Vec<Group>,
    added: UnboundedReceiver<Vec<String>>,
}

impl Histories {
    /// The awaited histories of the selected accounts and of these lists, and of `lost` accounts, whose state is not known.
    /// All are announced.
    pub(super) fn new(
        parts: HistoryParts,
        listings: &[Listing],
        lost: Vec<Box<str>>,
    ) -> Result<(Arc<Self>, HistoryQueue), OutboxError> {
        let HistoryParts { outbox, requests, resolver, selection, status, progress } = parts;
        let (sender, added) = unbounded_channel();
        let (requested, known) = (Mutex::default(), outbox.histories()?);
        let servers = listings.iter().filter_map(Listing::server).map(network::origin).collect();
        let histories = Arc::new(Self {
            outbox,
            requests,
            resolver,
            selection,
            status,
            progress,
            requested,
            known: Mutex::new(known),
            servers,
            added: sender,
        });
        let groups = histories.awaited(listings, lost)?;
        groups.iter().for_each(|group| histories.announce(&group.dids));
        let queue = HistoryQueue { histories: histories.clone(), groups, added };
        Ok((histories, queue))
    }

    /// The awaited accounts by source. Those of a list that is no longer named are left out.
    fn awaited(
        &self,
        listings: &[Listing],
        lost: Vec<Box<str>>,
    ) -> Result<Vec<Group>, OutboxError> {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        let known = self.outbox.histories()?;
        let mut dids = Vec::new();
        for did in lost {
            if known.is_complete(&did)? {
                dids.push(did);
            }
        }
        let lost = Group { server: None, are_lost: true, dids };
        let new = |server| Group { server, are_lost: false, dids: Vec::new() };
        groups.insert(String::new(), new(None));
        for listing in listings {
            let server = listing.server().cloned();
            groups.insert(listing.name(), new(server));
        }
        for awaited in known.awaited()? {
            let group = groups.get_mut(&*awaited.source);
            if let Some(group) = group.filter(|_| self.selection.has_account(Some(&awaited.did))) {
                group.dids.push(awaited.did);
            }
        }
        let groups = groups.into_values().chain([lost]);
        Ok(groups.filter(|group| !group.dids.is_empty()).collect())
    }

    fn announce(&self, dids: &[Box<str>]) {
        self.progress.add(dids.len());
        dids.iter().for_each(|did| self.requests.announce(did));
    }

    /// Adds accounts that are selected from now on.
    pub(super) fn add(&self, dids: Vec<String>) {
        // The queue lives as long as the run.
        let _ = self.added.send(dids);
    }

    /// The repository of an account was delivered.
    pub(super) fn is_done(&self, did: &str) {
        if self.lock().remove(did).is_some() {
            self.progress.is_done();
        }
    }

    /// The resync of an account failed, and is not repeated during the run.
    pub(super) fn has_failed(&self, did: &str) {
        if self.lock().remove(did).is_some() {
            self.progress.has_failed();
        }
    }

    /// The resync of an account failed, and is repeated: others go on.
    pub(super) fn is_delayed(&self, did: &str) {
        if let Some(permit) = self.lock().get_mut(did) {
            drop(permit.take());
        }
    }

    /// Requests a history, unless `server` lists the account and neither it nor another of the listed servers has it.
    async fn request(&self, did: Box<str>, server: Option<&Url>, permit: OwnedSemaphorePermit) {
        if let Some(server) = server
            && let Some(other) = self.other_server(&did).await
        {
            return self.leave_out(&did, server, &other);
        }
        self.lock().insert(did.clone(), Some(permit));
        self.requests.request(&did);
    }

    /// Whether the history of an account is complete.
    fn is_complete(&self, did: &str) -> bool {
        let found = self.known.lock().unwrap_or_else(PoisonError::into_inner).is_complete(did);
        // What cannot be read ends the run at its next line.
        found.unwrap_or(false)
    }

    /// The server that the account's document names, if it is none of the listed ones. A document that cannot be resolved
    /// fails the resync.
    async fn other_server(&self, did: &str) -> Option<String> {
        let account = self.resolver.account(Did::parse(did).ok()?).await.ok()?;
        let host = account.host.as_ref().map(network::origin).unwrap_or_default();
        (!self.servers.contains(&host)).then_some(host)
    }

    fn leave_out(&self, did: &str, server: &Url, other: &str) {
        self.progress.has_failed();
        self.status.warn("history-elsewhere", || {
            let server = network::origin(server);
            format!("{server} lists {did}, whose document names {other:?}: its history is left out")
        });
        if let Err(error) = self.outbox.forget_history(did) {
            self.status.warn("outbox", || error.to_string());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Option<OwnedSemaphorePermit>>> {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryQueue {
    /// Requests all histories, and those of added accounts, until a stop is requested.
    pub(super) async fn run(mut self, stop: StopSignal) {
        let mut running = JoinSet::new();
        for group in self.groups.drain(..) {
            running.spawn(request_all(self.histories.clone(), group));
        }
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return,
                Some(_) = running.join_next() => {}
                Some(dids) = self.added.recv() => {
                    let group = add(self.histories.clone(), dids).await;
                    running.spawn(request_all(self.histories.clone(), group));
                }
            }
        }
    }
}

/// Requests the accounts of a group, a few at a time.
async fn request_all(histories: Arc<Histories>, group: Group) {
    let window = Arc::new(Semaphore::new(WINDOW));
    let mut running = JoinSet::new();
    for did in group.dids {
        let Ok(permit) = window.clone().acquire_owned().await else { return };
        if histories.selection.has_account(Some(&did)) {
            // An event of the account may have come before its turn.
            if !group.are_lost && histories.is_complete(&did) {
                histories.progress.is_done();
                continue;
            }
            let (histories, server) = (histories.clone(), group.server.clone());
            running.spawn(async move { histories.request(did, server.as_ref(), permit).await });
        }
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}

/// The added accounts whose histories are not complete.
async fn add(histories: Arc<Histories>, dids: Vec<String>) -> Group {
    let adding = histories.clone();
    let add = move || -> Result<Vec<Box<str>>, OutboxError> {
        adding.outbox.await_histories(dids.iter().map(String::as_str))?;
        let known = adding.outbox.histories()?;
        let mut awaited = Vec::new();
        for did in dids {
            if !known.is_complete(&did)? {
                awaited.push(did.into());
            }
        }
        Ok(awaited)
    };
    let added = tokio::task::spawn_blocking(add).await.unwrap_or_else(|_| Ok(Vec::new()));
    let dids = added.unwrap_or_else(|error| {
        histories.status.warn("outbox", || error.to_string());
        Vec::new()
    });
    histories.announce(&dids);
    Group { server: None, are_lost: false, dids }
}

/// Histories of one source that are requested at a time. The rate at each host is the firehose's.
const WINDOW: usize = 32;
