//! Test accounts, a scripted feed, a recording handler, and a journal in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use atproto::commit::UnsignedCommit;
use atproto::event::{self, Event};
use atproto::mst::Tree;
use atproto::syntax::Tid;
use bytes::Bytes;
use codec::{Cid, car, cid::Codec};
use crypto::{CompressedKey, Curve, SecretKey};
use verify::sync::{Head, MemoryState};

use super::super::feed::FeedSource;
use super::super::*;
use crate::dns::LoopbackDns;
use crate::egress::EgressPolicy;
use crate::hosts::HostId;
use crate::{http, identity, xrpc};

pub(super) const HOST: HostId = HostId(0);

/// An account that commits without changing anything, which is legal.
pub(super) struct Writer {
    pub(super) did: String,
    key: SecretKey,
    rev: Option<Tid>,
    data: Cid,
}

impl Writer {
    pub(super) fn new(number: u8) -> Self {
        let message = char::from(b'a' + number % 26);
        let did = format!("did:plc:{}{message}", "a".repeat(23));
        let key = SecretKey::from_bytes(Curve::K256, &[number + 1; 32]).unwrap();
        Self { did, key, rev: None, data: Cid::of(Codec::DagCbor, EMPTY_TREE) }
    }

    /// An account whose DID document is at a host of its own.
    pub(super) fn at_host(number: u8) -> Self {
        Self { did: format!("did:web:account{number}.test"), ..Self::new(number) }
    }

    pub(super) fn key(&self) -> CompressedKey {
        *self.key.public_key().as_compressed()
    }

    /// Switches to another signing key.
    pub(super) fn rotate(&mut self) {
        self.key = SecretKey::from_bytes(Curve::K256, &[200; 32]).unwrap();
    }

    pub(super) fn rev(&self) -> Option<Tid> {
        self.rev
    }

    /// The head of its repository, after the first commit.
    pub(super) fn head(&self) -> Head {
        let commit = Cid::of(Codec::DagCbor, b"an unused CID");
        Head { rev: self.rev.unwrap(), data: self.data, commit }
    }

    /// Switches to another tree.
    pub(super) fn change_tree(&mut self) {
        self.data = Cid::of(Codec::DagCbor, b"another tree");
    }

    /// A commit.
    pub(super) fn commit(&mut self, seq: u64) -> Vec<u8> {
        self.commit_of(seq, self.data, &[], &[(self.data, EMPTY_TREE)])
    }

    /// A commit that creates a record in an empty tree.
    pub(super) fn create(&mut self, seq: u64, path: &str, record: &[u8]) -> Vec<u8> {
        let cid = Cid::of(Codec::DagCbor, record);
        let mut tree = Tree::from_sorted([(path, cid)]).unwrap();
        let (prev, data) = (self.data, tree.root());
        self.data = data;
        let (action, cid_ref) = (event::Action::Create, Some(cid.as_cid_ref()));
        let op = event::RepoOp { action, path, cid: cid_ref, prev: None, record: None };
        let nodes = tree.collect_blocks();
        self.commit_of(seq, prev, &[op], &[(data, &nodes[0].1), (cid, record)])
    }

    /// A commit after the tree `prev`, with these operations and blocks.
    fn commit_of(
        &mut self,
        seq: u64,
        prev: Cid,
        ops: &[event::RepoOp<'_>],
        blocks: &[(Cid, &[u8])],
    ) -> Vec<u8> {
        let since = self.rev.map(|rev| rev.to_string());
        let (commit, car, rev) = self.next(blocks);
        let repo = &*self.did;
        let root = None;
        let time = TIME;
        Event::Commit(event::Commit {
            seq: seq as i64,
            repo,
            commit,
            rev: &rev,
            since: since.as_deref(),
            car: &car,
            root,
            blocks: &[],
            ops,
            prev_data: since.is_some().then_some(prev),
            time,
            blobs: None,
            rebase: None,
            too_big: None,
        })
        .to_frame()
    }

    /// Makes a commit without an event.
    pub(super) fn skip(&mut self) -> &mut Self {
        self.next(&[]);
        self
    }

    /// Makes a commit without an event at this time.
    pub(super) fn skip_to(&mut self, time: SystemTime) {
        let micros = time.duration_since(UNIX_EPOCH).unwrap().as_micros();
        self.rev = Some(Tid::new(micros as u64, 0));
    }

    /// The repository after a commit without an event.
    pub(super) fn archive(&mut self) -> Vec<u8> {
        self.next(&[(self.data, EMPTY_TREE)]).1
    }

    /// The archive of a commit alone, whose tree is withheld.
    pub(super) fn archive_without_tree(&mut self) -> Vec<u8> {
        self.next(&[]).1
    }

    /// A `#sync` of another commit.
    pub(super) fn sync(&mut self, seq: u64) -> Vec<u8> {
        let (_, car, rev) = self.next(&[]);
        let seq = seq as i64;
        let did = &*self.did;
        let root = None;
        let time = TIME;
        let blocks = &[];
        Event::Sync(event::Sync { seq, did, car: &car, root, blocks, rev: &rev, time }).to_frame()
    }

    pub(super) fn identity(&self, seq: u64) -> Vec<u8> {
        let seq = seq as i64;
        let did = &*self.did;
        let time = TIME;
        Event::Identity(event::Identity { seq, did, time, handle: None }).to_frame()
    }

    pub(super) fn account(&self, seq: u64, active: bool) -> Vec<u8> {
        let seq = seq as i64;
        let did = &*self.did;
        let time = TIME;
        Event::Account(event::Account { seq, did, time, active, status: None }).to_frame()
    }

    /// The claim that the account is active, with a status.
    pub(super) fn limited(&self, seq: u64, status: &str) -> Vec<u8> {
        let seq = seq as i64;
        let did = &*self.did;
        let time = TIME;
        let status = Some(status);
        Event::Account(event::Account { seq, did, time, active: true, status }).to_frame()
    }

    fn next(&mut self, beside: &[(Cid, &[u8])]) -> (Cid, Vec<u8>, String) {
        let micros = self.rev.map_or(BEGAN_MICROS, |rev| rev.micros() + 1);
        let rev = Tid::new(micros, 0);
        self.rev = Some(rev);
        let rev = rev.to_string();
        let unsigned = UnsignedCommit { did: &self.did, rev: &rev, data: self.data, prev: None };
        let block = unsigned.with_signature(&self.key.sign(&unsigned.to_bytes()));
        let root = Cid::of(Codec::DagCbor, &block);
        let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
        writer.block(&root, &block).unwrap();
        beside.iter().for_each(|(cid, data)| writer.block(cid, data).unwrap());
        (root, writer.into_inner(), rev)
    }
}

/// The current keys of these accounts.
pub(super) fn keys<'w>(writers: impl IntoIterator<Item = &'w Writer>) -> Arc<dyn KeyProvider> {
    let keys = writers.into_iter().map(|writer| (writer.did.clone(), writer.key()));
    let keys: HashMap<String, CompressedKey> = keys.collect();
    Arc::new(FixedKeys(move |did: &str| keys.get(did).copied()))
}

pub(super) fn received(frame: impl Into<Bytes>) -> ReceivedFrame {
    ReceivedFrame::new(HOST, frame.into(), SystemTime::now())
}

/// A feed of given items, which then stays silent.
#[derive(Default)]
pub(super) struct Script(VecDeque<FeedItem>);

impl Script {
    pub(super) fn new(frames: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(frames.into_iter().map(|frame| FeedItem::Frame(received(frame))).collect())
    }
}

impl FeedSource for Script {
    async fn next(&mut self) -> Result<FeedItem, RunError> {
        match self.0.pop_front() {
            Some(item) => Ok(item),
            None => std::future::pending().await,
        }
    }

    fn try_next(&mut self) -> Result<Option<FeedItem>, RunError> {
        Ok(self.0.pop_front())
    }

    async fn close(self) {}
}

/// An event as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedEvent {
    pub(super) did: String,
    pub(super) seq: u64,
    pub(super) code: &'static str,
}

/// Records events, and requests a stop after a number of them.
pub(super) struct Recorder {
    events: Mutex<Vec<RecordedEvent>>,
    stop_after: usize,
    stop: StopSignal,
    ack_mode: AckMode,
    deferred: Mutex<Vec<Ack>>,
    /// The accounts whose revisions go back, as they were reported.
    pub(super) going_back: Mutex<Vec<String>>,
}

/// A recorder's use of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckMode {
    /// Acknowledges at once.
    Immediate,
    /// Keeps them for [`Recorder::ack_deferred`].
    Deferred,
    /// Drops the one of this sequence number.
    DropAt(u64),
    /// Panics at this sequence number.
    PanicAt(u64),
    /// Acknowledges even sequence numbers at once, and skips odd ones.
    SkipOdd,
}

impl Recorder {
    pub(super) fn new(stop_after: usize, ack_mode: AckMode) -> Arc<Self> {
        let (events, stop, deferred, going_back) = Default::default();
        Arc::new(Self { events, stop_after, stop, ack_mode, deferred, going_back })
    }

    pub(super) fn stop(&self) -> StopSignal {
        self.stop.clone()
    }

    /// All events.
    pub(super) fn events(&self) -> Vec<RecordedEvent> {
        self.events.lock().unwrap().clone()
    }

    /// The events of an account, in order: sequence numbers and codes.
    pub(super) fn of(&self, writer: &Writer) -> Vec<(u64, &'static str)> {
        let events = self.events().into_iter().filter(|events| events.did == writer.did);
        events.map(|events| (events.seq, events.code)).collect()
    }

    /// The number of deferred acknowledgements.
    pub(super) fn deferred(&self) -> usize {
        self.deferred.lock().unwrap().len()
    }

    /// Acknowledges the deferred events.
    pub(super) fn ack_deferred(&self) {
        self.deferred.lock().unwrap().drain(..).for_each(Ack::done);
    }
}

impl Handler for Recorder {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        let seq = event.seq.unwrap_or_default();
        assert_ne!(self.ack_mode, AckMode::PanicAt(seq), "the panic of the test");
        let did = event.did.unwrap_or_default().to_owned();
        let mut events = self.events.lock().unwrap();
        events.push(RecordedEvent { did, seq, code: event.verdict.code() });
        if events.len() >= self.stop_after {
            self.stop.request();
        }
        drop(events);
        match self.ack_mode {
            AckMode::Deferred => self.deferred.lock().unwrap().push(ack),
            AckMode::DropAt(dropped) if dropped == seq => drop(ack),
            AckMode::SkipOdd if !seq.is_multiple_of(2) => ack.skip(),
            _ => ack.done(),
        }
    }

    fn warning(&self, warning: &Warning<'_>) {
        if let Warning::RevisionsGoBack { did, .. } = warning {
            self.going_back.lock().unwrap().push((*did).to_owned());
        }
        if let Warning::StatusNotConfirmed { did, .. } = warning {
            let did = (*did).to_owned();
            let seq = RESYNCED;
            let code = warning.code();
            self.events.lock().unwrap().push(RecordedEvent { did, seq, code });
        }
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        let did = resynced.did.clone().into();
        self.events.lock().unwrap().push(RecordedEvent { did, seq: RESYNCED, code: "resynced" });
        ack.done();
    }
}

/// Waits until the recorder has this many events.
pub(super) async fn recorded(recorder: &Recorder, count: usize) {
    while recorder.events().len() < count {
        tokio::task::yield_now().await;
    }
}

/// The sequence number of a resynced repository.
pub(super) const RESYNCED: u64 = 0;

/// A journal in memory.
#[derive(Default)]
pub(super) struct TestJournal(pub(super) Mutex<JournalContent>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JournalContent {
    pub(super) cursors: HashMap<String, u64>,
    pub(super) accounts: HashMap<Box<str>, verify::sync::AccountState>,
    /// Whether writing fails.
    pub(super) is_full: bool,
}

impl Journal for TestJournal {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        Ok(self.0.lock().unwrap().cursors.get(stream).copied())
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, verify::sync::AccountState)],
    ) -> Result<(), JournalError> {
        let mut content = self.0.lock().unwrap();
        if content.is_full {
            return Err(JournalError::new("no space left on device"));
        }
        content
            .cursors
            .extend(cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor)));
        content.accounts.extend(accounts.iter().cloned());
        Ok(())
    }
}

/// Two workers, with these keys.
pub(super) fn options(keys: Arc<dyn KeyProvider>) -> Options {
    Options { workers: 2, ..Options::new(vec![], keys) }
}

pub(super) fn firehose(options: Options) -> Firehose {
    Firehose::new(&http_client(), options)
}

/// A client that reaches this machine alone.
pub(super) fn http_client() -> http::Client {
    static CLIENT: LazyLock<http::Client> =
        LazyLock::new(|| http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap());
    CLIENT.clone()
}

/// Resyncs from this machine.
pub(super) fn resync_options() -> ResyncOptions {
    let (http, dns) = (http_client(), Arc::new(LoopbackDns));
    let resolver = identity::Resolver::new(http.clone(), dns, identity::Options::default());
    ResyncOptions::new(xrpc::Client::new(http), resolver)
}

/// Runs until the recorder has recorded its events, or the run fails.
pub(super) async fn run(
    options: Options,
    script: Script,
    recorder: &Arc<Recorder>,
    journal: &Arc<TestJournal>,
) -> Result<RunSummary, RunError> {
    let cursor = journal.cursor(STREAM).unwrap();
    let streams = vec![(STREAM.to_owned(), cursor)];
    let states = |_| MemoryState::new([7; 16]);
    let handler = recorder.clone();
    let journal = journal.clone();
    let stop = recorder.stop();
    firehose(options).run_source(script, streams, handler, journal, states, stop).await
}

pub(super) const STREAM: &str = "wss://relay.test/subscribe";

const EMPTY_TREE: &[u8] = b"\xa2\x61e\x80\x61l\xf6";
const TIME: &str = "2026-07-01T00:00:00Z";

/// 2026-07-01T00:00:00Z.
const BEGAN_MICROS: u64 = 1_782_864_000_000_000;
