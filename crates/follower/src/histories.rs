//! Histories of accounts during a run: the awaited ones are announced, and requested a few at a time per source.
//!
//! ```text
//! outbox: awaited accounts ── by source ── permit ── request ── resync ── lines, complete in the outbox
//!                                            ▲                     │
//!                                            └── ended, delayed ───┘
//! ```
//!
//! An account whose event comes before its turn is fetched at that event, which waits. A history that fails is repeated by
//! the firehose, and does not delay others. Lists are read again at an interval. Complete histories that are outdated, as
//! more is selected or events were lost, are compared again, and consumers are told before.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use atproto::syntax::{CollectionPatternBuf, Did};
use delivery::{self, AwaitedHistory, EventId, NewEvent, Outbox, OutboxError};
use events::Code;
use net::firehose::{ResyncRequests, StopSignal};
use net::http::Url;
use net::identity::Resolver;
use net::xrpc;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::history_progress::HistoryProgress;
use super::line;
use super::listing::Listing;
use super::selection::Selection;
use super::stats::micros;
use super::status::Status;
use super::stored_selection::StoredSelection;
use crate::network;

/// The histories of a run.
pub(super) struct Histories {
    outbox: Outbox,
    requests: ResyncRequests,
    resolver: Resolver,
    selection: Selection,
    status: Status,
    progress: Arc<HistoryProgress>,
    /// The requested accounts; delayed ones have no permit.
    requested: Mutex<HashMap<Box<str>, Option<OwnedSemaphorePermit>>>,
    known: Mutex<delivery::Histories>,
    /// The origins of the servers whose accounts are listed.
    servers: Vec<String>,
    /// The lists of accounts, and the interval at which they are read again.
    listings: Vec<Listing>,
    client: xrpc::Client,
    list_interval: Duration,
    /// Notified when histories are outdated.
    outdated: Arc<Notify>,
    /// Whether all awaited histories are requested, or only outdated ones.
    backfills: bool,
    /// The accounts whose consumers know that their history is outdated, and in which collections it is not.
    told: Mutex<HashMap<Box<str>, Arc<[CollectionPatternBuf]>>>,
    /// Permits of lookups of documents.
    lookups: Semaphore,
    added: UnboundedSender<Vec<String>>,
}

/// The parts that the histories of a run need.
pub(super) struct HistoryParts {
    pub(super) outbox: Outbox,
    pub(super) requests: ResyncRequests,
    pub(super) resolver: Resolver,
    pub(super) selection: Selection,
    pub(super) status: Status,
    pub(super) progress: Arc<HistoryProgress>,
    pub(super) client: xrpc::Client,
    pub(super) list_interval: Duration,
    pub(super) outdated: Arc<Notify>,
    /// Whether all awaited histories are requested, or only outdated ones.
    pub(super) backfills: bool,
}

/// Accounts of one source, which are requested together.
struct Group {
    /// The server that lists them as its own.
    server: Option<Url>,
    /// Whether they are requested although their histories are complete: later events are not known.
    are_lost: bool,
    dids: Vec<Box<str>>,
    /// The accounts that lack only collections.
    widened: HashSet<Box<str>>,
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
        listings: Vec<Listing>,
        lost: Vec<Box<str>>,
    ) -> Result<(Arc<Self>, HistoryQueue), OutboxError> {
        let HistoryParts { outbox, requests, resolver, selection, status, progress, .. } = parts;
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
            listings,
            client: parts.client,
            list_interval: parts.list_interval,
            outdated: parts.outdated,
            backfills: parts.backfills,
            told: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
            added: sender,
        });
        let groups = histories.groups(lost)?;
        groups.iter().for_each(|group| histories.announce(&group.dids));
        let queue = HistoryQueue { histories: histories.clone(), groups, added };
        Ok((histories, queue))
    }

    /// The awaited accounts, and the complete ones among `lost`.
    fn groups(&self, lost: Vec<Box<str>>) -> Result<Vec<Group>, OutboxError> {
        let known = self.outbox.histories()?;
        let mut dids = Vec::new();
        for did in lost {
            if known.is_complete(&did)? {
                dids.push(did);
            }
        }
        let mut groups = self.awaited(|of| self.backfills || of.is_outdated)?;
        groups.push(Group { server: None, are_lost: true, dids, widened: HashSet::new() });
        Ok(groups)
    }

    /// The awaited accounts by source. Accounts of a list that is no longer named are left out. A history that was
    /// complete once belongs to an account of the run, wherever its server is now.
    fn awaited(
        &self,
        is_wanted: impl Fn(&AwaitedHistory) -> bool,
    ) -> Result<Vec<Group>, OutboxError> {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        let new =
            |server| Group { server, are_lost: false, dids: Vec::new(), widened: HashSet::new() };
        groups.insert(String::new(), new(None));
        for listing in &self.listings {
            let server = listing.server().cloned();
            groups.insert(listing.name(), new(server));
        }
        for awaited in self.outbox.histories()?.awaited()?.into_iter().filter(is_wanted) {
            let source = if awaited.is_outdated { "" } else { &*awaited.source };
            let group = groups.get_mut(source);
            if let Some(group) = group.filter(|_| self.selection.has_account(Some(&awaited.did))) {
                if awaited.is_widened {
                    group.widened.insert(awaited.did.clone());
                }
                group.dids.push(awaited.did);
            }
        }
        Ok(groups.into_values().collect())
    }

    /// Groups that were found, whose accounts are announced.
    fn announced(&self, found: Result<Result<Vec<Group>, OutboxError>, JoinError>) -> Vec<Group> {
        let groups = found.unwrap_or_else(|_| Ok(Vec::new())).unwrap_or_else(|error| {
            self.status.warn("outbox", || error.to_string());
            Vec::new()
        });
        groups.iter().for_each(|group| self.announce(&group.dids));
        groups
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

    /// Leaves accounts out that are selected no longer: their events are not delivered.
    pub(super) fn leave(&self, dids: Vec<String>) {
        if let Err(error) = self.outbox.outdate_histories_of(dids.iter().map(String::as_str)) {
            self.status.warn("outbox", || error.to_string());
        }
        self.outdated.notify_one();
    }

    /// The repository of an account was delivered, and more collections are selected meanwhile: it is compared again.
    pub(super) fn is_outdated(&self, did: &str) {
        self.requests.request(did);
    }

    /// The stream calls an account active. If its history is awaited, as it could not be fetched before, it is requested.
    pub(super) fn is_back(&self, did: &str) {
        let is_awaited = self.lock_known().is_awaited(did);
        // A state that cannot be read ends the run at its next line.
        if is_awaited.unwrap_or(false) && !self.lock().contains_key(did) {
            self.requests.request(did);
        }
    }

    /// Tells consumers of accounts of which fewer collections are selected, and of accounts whose history is outdated, selected or not.
    /// Returns the groups of the selected outdated ones.
    fn find_outdated(&self) -> Result<Vec<Group>, OutboxError> {
        self.tell_narrowed()?;
        let outdated = self.outbox.histories()?.awaited()?.into_iter().filter(|of| of.is_outdated);
        let selection = StoredSelection::read(&self.outbox)?.map(|(selection, _)| selection);
        let base: Arc<[_]> = selection.iter().flat_map(|of| of.base()).cloned().collect();
        for AwaitedHistory { did, is_widened, .. } in outdated {
            let complete = if is_widened { base.clone() } else { [].into() };
            if lock(&self.told).insert(did.clone(), complete.clone()).as_ref() != Some(&complete) {
                self.tell(&did, Code::HistoryOutdated, &complete)?;
                // If its repository was delivered before that line, consumers wait for another one.
                if self.is_complete(&did) {
                    self.outbox.outdate_histories_of([&*did])?;
                }
            }
        }
        self.awaited(|of| of.is_outdated && !self.lock().contains_key(&of.did))
    }

    /// Tells consumers of complete accounts of which fewer collections are selected. After a kill they are told again.
    fn tell_narrowed(&self) -> Result<(), OutboxError> {
        let narrowed = self.outbox.histories()?.narrowed()?;
        let Some((selection, text)) = StoredSelection::read(&self.outbox)? else { return Ok(()) };
        let Some(collections) = selection.collections() else { return Ok(()) };
        for did in &narrowed {
            self.tell(did, Code::HistoryNarrowed, collections)?;
        }
        self.outbox.narrowed_are_told(narrowed.iter().map(|did| &**did), &text)
    }

    fn tell(
        &self,
        did: &str,
        code: Code<'static>,
        complete: &[CollectionPatternBuf],
    ) -> Result<(), OutboxError> {
        let id = EventId::of_message(did, code.as_str(), micros(SystemTime::now()));
        let mut line = Vec::new();
        line::write_history(&mut line, &id, code, did, complete);
        line.pop();
        // It is short, and one line.
        let Ok(event) = NewEvent::new(id, did, line) else { return Ok(()) };
        self.outbox.append_all([event])
    }

    /// The repository of an account was delivered.
    pub(super) fn is_done(&self, did: &str) {
        lock(&self.told).remove(did);
        self.selection.resyncs.forget(did);
        if self.lock().remove(did).is_some() {
            self.progress.is_done();
            self.status.finished_history(did, self.progress.all());
        }
    }

    /// The resync of an account failed, and is not repeated during the run.
    pub(super) fn has_failed(&self, did: &str) {
        self.selection.resyncs.forget(did);
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
        let found = self.lock_known().is_complete(did);
        // A state that cannot be read ends the run at its next line.
        found.unwrap_or(false)
    }

    /// The server that the account's document names, if it is not listed. A document that cannot be resolved
    /// fails the resync.
    async fn other_server(&self, did: &str) -> Option<String> {
        let permit = self.lookups.acquire().await;
        let account = self.resolver.account(Did::parse(did).ok()?).await.ok()?;
        drop(permit);
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

    fn lock_known(&self) -> MutexGuard<'_, delivery::Histories> {
        lock(&self.known)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Option<OwnedSemaphorePermit>>> {
        lock(&self.requested)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HistoryQueue {
    /// Requests all histories, and histories of added accounts, until a stop is requested.
    pub(super) async fn run(mut self, stop: StopSignal) {
        let (mut running, mut reading) = (JoinSet::new(), JoinSet::new());
        let every = self.histories.list_interval;
        let mut tick = interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let has_lists = !self.histories.listings.is_empty();
        // Tell consumers of outdated histories before these are requested.
        let histories = self.histories.clone();
        tokio::select! {
            () = stop.requested() => return,
            _ = spawn_blocking(move || histories.find_outdated().map(drop)) => {}
        }
        let mut found = std::mem::take(&mut self.groups);
        loop {
            for group in found.drain(..) {
                running.spawn(request_all(self.histories.clone(), group));
            }
            tokio::select! {
                biased;
                () = stop.requested() => return,
                Some(_) = running.join_next() => {}
                Some(read) = reading.join_next() => found = self.histories.announced(read),
                _ = tick.tick(), if has_lists && reading.is_empty() => {
                    let histories = self.histories.clone();
                    reading.spawn(read_lists(histories));
                }
                () = self.histories.outdated.notified() => {
                    let histories = self.histories.clone();
                    reading.spawn_blocking(move || histories.find_outdated());
                }
                Some(dids) = self.added.recv() => {
                    let group = add(self.histories.clone(), dids).await;
                    running.spawn(request_all(self.histories.clone(), group));
                }
            }
        }
    }
}

/// Reads the lists on, and returns the accounts that are new.
async fn read_lists(histories: Arc<Histories>) -> Result<Vec<Group>, OutboxError> {
    let of_known = histories.clone();
    let known = spawn_blocking(move || of_known.outbox.histories()?.awaited()).await;
    let known = known.unwrap_or_else(|_| Ok(Vec::new()))?;
    let known: HashSet<Box<str>> = known.into_iter().map(|of| of.did).collect();
    for listing in &histories.listings {
        listing.read_on(&histories.client, &histories.outbox).await?;
    }
    let is_new = move |of: &AwaitedHistory| !of.source.is_empty() && !known.contains(&of.did);
    spawn_blocking(move || histories.awaited(is_new)).await.unwrap_or_else(|_| Ok(Vec::new()))
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
            if group.widened.contains(&did) {
                histories.selection.resyncs.widen(&did);
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
    let added = spawn_blocking(add).await.unwrap_or_else(|_| Ok(Vec::new()));
    let dids = added.unwrap_or_else(|error| {
        histories.status.warn("outbox", || error.to_string());
        Vec::new()
    });
    histories.announce(&dids);
    Group { server: None, are_lost: false, dids, widened: HashSet::new() }
}

/// Histories of one source that are requested at a time. The firehose limits the rate per host.
const WINDOW: usize = 32;

/// Concurrent lookups of documents, of all sources: every lookup takes a connection to the directory.
const LOOKUPS: usize = 16;
