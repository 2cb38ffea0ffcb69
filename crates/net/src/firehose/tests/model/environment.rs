//! The surroundings of the follower, scripted: lookups that wait for an answer, a handler that acknowledges on
//! request, a journal in memory, and the connection. All of them report to the model.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use atproto::did_document::{self, DidDocument};
use atproto::syntax::Did;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use verify::sync::{AccountKey, AccountState, SyncState};

use super::reference::{Delivery, DeliveryNumber, Key, Known, Model};
use super::schedule::Step;
use super::world::{self, KeyNumber, World};
use crate::firehose::feed::FeedSource;
use crate::firehose::resync::{AccountLookup, RepoFetch, RepoSource};
use crate::firehose::*;
use crate::hosts::HostId;
use crate::http::Url;
use crate::identity::{self, IdentityError, IdentityFault};
use crate::reconnecting_socket::SocketEvent;
use crate::websocket::SocketMessage;
use crate::xrpc::{FetchError, FetchedRepo, XrpcError, XrpcFault};

/// The surroundings, shared by all parts of the follower.
#[derive(Clone, Debug)]
pub(super) struct Environment(Arc<Mutex<Surroundings>>);

#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) world: World,
    pub(super) model: Model,
    pub(super) checks_host: bool,
    /// The number of the run: answers to an earlier one have no effect.
    pub(super) run: u64,
    /// Whether everything is answered at once, and rightly.
    pub(super) is_calm: bool,
    key_cache: BTreeMap<usize, Key>,
    pub(super) keys: Vec<Request<bool, Result<AccountKey, KeyError>>>,
    pub(super) statuses: Vec<Request<(), Result<bool, StatusError>>>,
    pub(super) repos: Vec<Request<(), Option<Vec<u8>>>>,
    answers: u64,
    /// Whether acknowledgements are held.
    pub(super) holds: bool,
    pub(super) held: Vec<(DeliveryNumber, Ack)>,
    pub(super) stored: BTreeMap<String, u64>,
    pub(super) stored_accounts: BTreeMap<Box<str>, AccountState>,
    /// The fault of the next checkpoint, if any: it fails, stored or not.
    pub(super) checkpoint_fault: Option<bool>,
    /// The next event to send on the connection: its host, and its place in the stream.
    pub(super) position: Option<(usize, usize)>,
    pub(super) counts: Counts,
}

/// The numbers of steps and outcomes, by name.
pub(super) type Counts = BTreeMap<&'static str, u64>;

/// A lookup that waits for its answer.
#[derive(Debug)]
pub(super) struct Request<Q, A> {
    pub(super) account: usize,
    pub(super) question: Q,
    reply: oneshot::Sender<A>,
}

impl Environment {
    pub(super) fn new(accounts: usize, hosts: usize, checks_host: bool) -> Self {
        let model = Model::new(accounts, hosts, checks_host);
        let world = World::new(accounts, hosts);
        let (key_cache, keys, statuses, repos, held) = Default::default();
        let (stored, stored_accounts, counts) = Default::default();
        Self(Arc::new(Mutex::new(Surroundings {
            world,
            model,
            checks_host,
            run: 0,
            is_calm: false,
            key_cache,
            keys,
            statuses,
            repos,
            answers: 0,
            holds: false,
            held,
            stored,
            stored_accounts,
            checkpoint_fault: None,
            position: None,
            counts,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Surroundings> {
        self.0.lock().unwrap()
    }
}

/// The name of a host's stream.
pub(super) fn stream_name(host: usize) -> String {
    format!("wss://host{host}.test/subscribe")
}

impl Surroundings {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// A step begins.
    pub(super) fn begin_step(&mut self, step: Step) {
        self.count(step.name());
        self.model.note(format!("{step:?}"));
    }

    /// A new run: waiting lookups are gone.
    pub(super) fn begin_run(&mut self, keeps_keys: bool) {
        self.run += 1;
        self.count("runs");
        self.forget_waiting();
        self.held.clear();
        self.checkpoint_fault = None;
        self.position = None;
        if !keeps_keys {
            self.key_cache.clear();
        }
        self.model.begin();
    }

    /// Forgets the lookups that the follower no longer waits for.
    pub(super) fn forget_waiting(&mut self) {
        self.keys.retain(|request| !request.reply.is_closed());
        self.statuses.retain(|request| !request.reply.is_closed());
        self.repos.retain(|request| !request.reply.is_closed());
    }

    /// The key in the documents of now.
    fn current_key(&self, account: usize) -> Key {
        let of = &self.world.accounts[account];
        if self.checks_host && !of.is_hosted { Key::OtherHost } else { Key::Number(of.key) }
    }

    fn account_key(account: usize, key: Key) -> AccountKey {
        match key {
            Key::Number(number) => AccountKey::Known(world::compressed_key(account, number)),
            Key::OtherHost => AccountKey::OtherHost,
        }
    }

    /// The answer of a key lookup, which the provider keeps.
    fn key_answer(
        &mut self,
        account: usize,
        is_refresh: bool,
        answer: KeyAnswer,
    ) -> Result<AccountKey, KeyError> {
        let key = match (answer, self.current_key(account)) {
            (KeyAnswer::Stale, Key::Number(number)) => Ok(Key::Number(number.saturating_sub(1))),
            (KeyAnswer::Current | KeyAnswer::Stale, key) => Ok(key),
            (KeyAnswer::Unavailable, _) => {
                let (subject, host) = ("an account".into(), None);
                let fault = IdentityFault::Status(503);
                Err(KeyError::Identity(Box::new(IdentityError { subject, host, fault })))
            }
            (KeyAnswer::None, _) => Err(KeyError::NoKey),
        };
        self.answers += u64::from(answer != KeyAnswer::Unavailable);
        let observed = key.as_ref().map(|key| *key).map_err(KeyError::is_temporary);
        self.model.key_answered(account, observed, is_refresh);
        let key = key?;
        self.key_cache.insert(account, key);
        Ok(Self::account_key(account, key))
    }

    pub(super) fn answer_key(&mut self, at: usize, answer: KeyAnswer) {
        let Request { account, question, reply } = self.keys.remove(at);
        // The follower may no longer wait.
        let _ = reply.send(self.key_answer(account, question, answer));
    }

    pub(super) fn answer_status(&mut self, at: usize, answer: Option<bool>) {
        let Request { account, reply, .. } = self.statuses.remove(at);
        if answer.is_some() {
            // Without an answer, the follower reports a warning.
            self.model.status_answered(account, answer);
        }
        let _ = reply.send(answer.ok_or(StatusError::NoHost));
    }

    pub(super) fn answer_repo(&mut self, at: usize, answer: RepoAnswer) {
        let Request { account, reply, .. } = self.repos.remove(at);
        self.count(answer.name());
        if let RepoAnswer::New(by) = answer {
            // The host sends these commits later.
            (0..by).for_each(|_| self.world.step(Step::Commit(account)));
        }
        let _ = reply.send(self.repo(account, answer));
    }

    /// A repository as a server sends it; `None` for an error.
    fn repo(&self, account: usize, answer: RepoAnswer) -> Option<Vec<u8>> {
        let of = &self.world.accounts[account];
        let newest = of.commits.checked_sub(1)?;
        Some(match answer {
            RepoAnswer::Current | RepoAnswer::New(_) => world::archive(account, newest, of.key),
            RepoAnswer::Old(by) => world::archive(account, newest.saturating_sub(by), of.key),
            RepoAnswer::Forged => world::archive(account, newest, world::FORGER),
            RepoAnswer::OtherAccount => {
                world::archive((account + 1) % world::MAX_ACCOUNTS, newest, of.key)
            }
            RepoAnswer::CutOff => {
                let archive = world::archive(account, newest, of.key);
                archive[..archive.len() * 2 / 3].to_vec()
            }
            RepoAnswer::Unavailable => return None,
        })
    }

    /// Acknowledges a held delivery.
    pub(super) fn ack_held(&mut self, at: usize) {
        let (number, ack) = self.held.remove(at);
        self.model.acked(number);
        ack.done();
    }

    fn deliver(&mut self, number: DeliveryNumber, ack: Ack) {
        if self.holds && !self.is_calm {
            self.held.push((number, ack));
        } else {
            self.model.acked(number);
            ack.done();
        }
    }
}

/// How a key lookup ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAnswer {
    Current,
    /// The key before the last rotation.
    Stale,
    Unavailable,
    /// The document has no key.
    None,
}

/// How the fetch of a repository ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepoAnswer {
    Current,
    /// Older by this number of commits.
    Old(usize),
    /// Newer than the stream by this number of commits.
    New(usize),
    Forged,
    OtherAccount,
    CutOff,
    Unavailable,
}

impl RepoAnswer {
    /// The name under which it is counted.
    fn name(self) -> &'static str {
        match self {
            Self::Current => "repository: current",
            Self::Old(_) => "repository: old",
            Self::New(_) => "repository: new",
            Self::Forged => "repository: forged",
            Self::OtherAccount => "repository: of another account",
            Self::CutOff => "repository: cut off",
            Self::Unavailable => "repository: unavailable",
        }
    }
}

impl KeyProvider for Environment {
    fn cached(&self, did: &str) -> AccountKey {
        let of = self.lock();
        let key =
            of.world.account(did).and_then(|account| Some((account, *of.key_cache.get(&account)?)));
        key.map_or(AccountKey::Unknown, |(account, key)| Surroundings::account_key(account, key))
    }

    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a> {
        let mut of = self.lock();
        let account = of.world.account(did).expect("an account of the world");
        of.count("key lookups");
        if of.is_calm {
            let key = of.key_answer(account, refresh, KeyAnswer::Current);
            return Box::pin(std::future::ready(key));
        }
        let (reply, answer) = oneshot::channel();
        of.keys.push(Request { account, question: refresh, reply });
        Box::pin(async move { answer.await.unwrap_or(Err(KeyError::UnknownAccount)) })
    }

    fn invalidate(&self, did: &str) {
        let mut of = self.lock();
        if let Some(account) = of.world.account(did) {
            of.key_cache.remove(&account);
        }
    }

    fn checks_host(&self) -> bool {
        self.lock().checks_host
    }

    fn directory_answers(&self) -> u64 {
        self.lock().answers
    }
}

impl StatusProvider for Environment {
    fn look_up<'a>(&'a self, did: &'a str) -> StatusLookup<'a> {
        let mut of = self.lock();
        let account = of.world.account(did).expect("an account of the world");
        of.count("status lookups");
        of.model.status_asked(account);
        if of.is_calm {
            let is_active = of.world.accounts[account].is_active;
            of.model.status_answered(account, Some(is_active));
            return Box::pin(std::future::ready(Ok(is_active)));
        }
        let (reply, answer) = oneshot::channel();
        of.statuses.push(Request { account, question: (), reply });
        Box::pin(async move { answer.await.unwrap_or(Err(StatusError::NoHost)) })
    }
}

impl RepoSource for Environment {
    fn account<'a>(&'a self, did: Did<'a>, refresh: bool) -> AccountLookup<'a> {
        let of = self.lock();
        let account = of.world.account(did.as_str()).expect("an account of the world");
        let current = of.world.accounts[account].key;
        let key = match of.key_cache.get(&account) {
            Some(Key::Number(cached)) if !refresh => *cached,
            _ => current,
        };
        Box::pin(std::future::ready(Ok(Arc::new(document(account, key, did)))))
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Url,
        did: Did<'a>,
        out: &'a mut (dyn Write + Send),
    ) -> RepoFetch<'a> {
        let mut of = self.lock();
        let account = of.world.account(did.as_str()).expect("an account of the world");
        of.count("fetches of repositories");
        let (reply, answer) = oneshot::channel();
        if of.is_calm {
            let _ = reply.send(of.repo(account, RepoAnswer::Current));
        } else {
            of.repos.push(Request { account, question: (), reply });
        }
        Box::pin(async move {
            let host: Box<str> = host.as_str().into();
            let unavailable = || XrpcError {
                host: host.clone(),
                method: "getRepo",
                fault: XrpcFault::Status(503),
            };
            let archive =
                answer.await.ok().flatten().ok_or_else(|| FetchError::Remote(unavailable()))?;
            out.write_all(&archive)?;
            let bytes = archive.len() as u64;
            Ok(FetchedRepo { host, bytes, wire_bytes: bytes })
        })
    }
}

fn document(account: usize, key: KeyNumber, did: Did<'_>) -> identity::Account {
    let json = format!("{{\"id\":\"{}\"}}", did.as_str());
    let document = DidDocument::parse(json.as_bytes(), &did_document::Options::default()).unwrap();
    let host = Some(format!("https://pds{account}.test").parse().unwrap());
    identity::Account { key: Some(world::public_key(account, key)), host, document }
}

/// The handler of one run.
#[derive(Debug)]
pub(super) struct ScriptedHandler {
    pub(super) environment: Environment,
    pub(super) run: u64,
}

impl ScriptedHandler {
    /// The surroundings, if the run is the current one.
    fn lock(&self) -> Option<MutexGuard<'_, Surroundings>> {
        Some(self.environment.lock()).filter(|of| of.run == self.run)
    }
}

impl Handler for ScriptedHandler {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        let Some(mut of) = self.lock() else { return };
        let account = event.did.and_then(|did| of.world.account(did));
        let code = event.verdict.code();
        let key_error = match event.verdict {
            Verdict::UnknownKey(why) => Some(why),
            _ => None,
        };
        let is_unavailable = key_error.is_some_and(KeyError::is_temporary);
        let is_limit = is_unavailable && !matches!(key_error, Some(KeyError::Identity(_)));
        let cached = account.and_then(|account| of.key_cache.get(&account).copied());
        let host = event.host.0;
        let seq = event.seq;
        let frame = event.frame;
        let delivery = Delivery { host, seq, frame, code, is_unavailable, is_limit, cached };
        of.count(code);
        let number = of.model.delivered(account, delivery);
        of.deliver(number, ack);
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        let Some(mut of) = self.lock() else { return };
        of.count("resynced");
        let account = of.world.account(&resynced.did).expect("an account of the world");
        let head = resynced.head;
        let keys = 0..=of.world.accounts[account].key;
        let indexes = 0..of.world.accounts[account].commits;
        let is_commit = |index: usize| {
            world::rev_and_data(account, index) == (head.rev, head.data)
                && keys.clone().any(|key| world::commit_cid(account, index, key) == head.commit)
        };
        let is_genuine = indexes.into_iter().any(is_commit);
        let number = of.model.resynced(account, (head.rev, head.data, head.commit), is_genuine);
        of.deliver(number, ack);
    }

    fn resync_failed(&self, did: &str, error: &ResyncError) {
        if let Some(mut of) = self.lock() {
            of.model.note(format!("{did}: {error}"));
            of.count("failed resyncs");
            if let Some(account) = of.world.account(did) {
                of.model.resync_failed(account);
            }
        }
    }

    fn warning(&self, warning: &Warning<'_>) {
        let Some(mut of) = self.lock() else { return };
        of.count(warning.code());
        if let Warning::StatusNotConfirmed { did, .. } = warning
            && let Some(account) = of.world.account(did)
        {
            of.model.status_answered(account, None);
        }
    }
}

/// The journal of one run.
#[derive(Debug)]
pub(super) struct ScriptedJournal(pub(super) Environment);

impl Journal for ScriptedJournal {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        Ok(self.0.lock().stored.get(stream).copied())
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        let mut of = self.0.lock();
        let fault = of.checkpoint_fault.take();
        let host = |stream: &str| (0..).find(|host| stream_name(*host) == stream).expect("a host");
        let by_host = cursors.iter().map(|(stream, cursor)| (host(stream), *cursor)).collect();
        let account = |(did, state): &(Box<str>, AccountState)| {
            (of.world.account(did).expect("an account of the world"), Known::of(state))
        };
        let mut known: Vec<(usize, Known)> = accounts.iter().map(account).collect();
        known.sort_unstable_by_key(|(account, _)| *account);
        let is_stored = fault != Some(false);
        if fault.is_some() {
            of.count(if is_stored { "checkpoint failed, stored" } else { "checkpoint failed" });
        }
        of.model.checkpoint(&by_host, &known, is_stored);
        of.count("checkpoints");
        if is_stored {
            of.stored
                .extend(cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor)));
            of.stored_accounts.extend(accounts.iter().cloned());
        }
        match fault {
            Some(_) => Err(JournalError::new("no space left on device")),
            None => Ok(()),
        }
    }
}

impl Surroundings {
    /// The accounts that the journal has as desynchronized.
    pub(super) fn desynchronized(&self) -> Vec<Box<str>> {
        let accounts = self.stored_accounts.iter();
        let of = accounts.filter(|(_, state)| state.sync != SyncState::Synchronized);
        of.map(|(did, _)| did.clone()).collect()
    }
}

/// An event of the connection.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A connection to a host begins.
    Connect(HostId),
    Frame(HostId, Bytes),
    Event(HostId, SocketEvent),
}

/// The feed, on a scripted connection.
pub(super) struct ScriptedFeed {
    pub(super) feed: Feed,
    pub(super) incoming: mpsc::UnboundedReceiver<Incoming>,
    pub(super) environment: Environment,
}

impl ScriptedFeed {
    fn handle(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Connect(host) => {
                let cursor = self.feed.hosts[host.0].request_cursor();
                self.feed.handle(host, SocketEvent::Connected);
                let mut of = self.environment.lock();
                let stream = &of.world.streams[host.0];
                let is_new = |event: &world::SimEvent| {
                    event.seq.is_some_and(|seq| cursor.is_some_and(|cursor| seq > cursor))
                };
                let at = stream.iter().position(is_new).unwrap_or(stream.len());
                of.position = Some((host.0, at));
            }
            Incoming::Frame(host, frame) => {
                let message = SocketEvent::Message(SocketMessage::Binary(frame));
                self.feed.handle(host, message);
            }
            Incoming::Event(host, event) => self.feed.handle(host, event),
        }
    }

    fn report(&self, item: FeedItem) -> FeedItem {
        if let FeedItem::Frame(received) = &item {
            self.environment.lock().model.arrived(received.host.0, &received.frame);
        }
        item
    }
}

impl FeedSource for ScriptedFeed {
    async fn next(&mut self) -> Result<FeedItem, RunError> {
        loop {
            if let Some(item) = self.feed.next_ready()? {
                return Ok(self.report(item));
            }
            match self.incoming.recv().await {
                Some(incoming) => self.handle(incoming),
                None => std::future::pending().await,
            }
        }
    }

    fn try_next(&mut self) -> Result<Option<FeedItem>, RunError> {
        loop {
            if let Some(item) = self.feed.next_ready()? {
                return Ok(Some(self.report(item)));
            }
            match self.incoming.try_recv() {
                Ok(incoming) => self.handle(incoming),
                Err(_) => return Ok(None),
            }
        }
    }

    async fn close(self) {}
}
