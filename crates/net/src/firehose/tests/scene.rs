//! Accounts that write, a stream that tells what a test says, and a handler that remembers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use atproto::commit::UnsignedCommit;
use atproto::event::{self, Event};
use atproto::syntax::Tid;
use bytes::Bytes;
use codec::{Cid, car, cid::Codec};
use crypto::{CompressedKey, Curve, SecretKey};
use verify::sync::{Head, MemoryState};

use super::super::arrival::ReceivedFrame;
use super::super::feed::Item;
use super::super::source::Source;
use super::super::*;
use crate::dns::LoopbackDns;
use crate::egress::EgressPolicy;
use crate::hosts::HostId;
use crate::http;

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

    pub(super) fn key(&self) -> CompressedKey {
        *self.key.public_key().as_compressed()
    }

    /// Signs with another key from now on.
    pub(super) fn rotate(&mut self) {
        self.key = SecretKey::from_bytes(Curve::K256, &[200; 32]).unwrap();
    }

    pub(super) fn rev(&self) -> Option<Tid> {
        self.rev
    }

    /// Where its repository is, after its first commit.
    pub(super) fn head(&self) -> Head {
        let commit = Cid::of(Codec::DagCbor, b"a name that nobody looks at");
        Head { rev: self.rev.unwrap(), data: self.data, commit }
    }

    /// Has another tree from now on.
    pub(super) fn replant(&mut self) {
        self.data = Cid::of(Codec::DagCbor, b"another tree");
    }

    /// A commit.
    pub(super) fn commit(&mut self, seq: u64) -> Vec<u8> {
        let since = self.rev.map(|rev| rev.to_string());
        let (commit, car, rev) = self.next(&[(self.data, EMPTY_TREE)]);
        let (repo, root, time) = (&*self.did, None, TIME);
        Event::Commit(event::Commit {
            seq: seq as i64,
            repo,
            commit,
            rev: &rev,
            since: since.as_deref(),
            car: &car,
            root,
            blocks: &[],
            ops: &[],
            prev_data: since.is_some().then_some(self.data),
            time,
            blobs: None,
            rebase: None,
            too_big: None,
        })
        .to_frame()
    }

    /// A commit that nobody is told of.
    pub(super) fn skip(&mut self) -> &mut Self {
        self.next(&[]);
        self
    }

    /// A `#sync` of another commit.
    pub(super) fn sync(&mut self, seq: u64) -> Vec<u8> {
        let (_, car, rev) = self.next(&[]);
        let (seq, did, root, time) = (seq as i64, &*self.did, None, TIME);
        let blocks = &[];
        Event::Sync(event::Sync { seq, did, car: &car, root, blocks, rev: &rev, time }).to_frame()
    }

    pub(super) fn identity(&self, seq: u64) -> Vec<u8> {
        let (seq, did, time) = (seq as i64, &*self.did, TIME);
        Event::Identity(event::Identity { seq, did, time, handle: None }).to_frame()
    }

    pub(super) fn account(&self, seq: u64, active: bool) -> Vec<u8> {
        let (seq, did, time) = (seq as i64, &*self.did, TIME);
        Event::Account(event::Account { seq, did, time, active, status: None }).to_frame()
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

/// The keys of these accounts, as they are now.
pub(super) fn keys<'w>(writers: impl IntoIterator<Item = &'w Writer>) -> Arc<dyn KeyProvider> {
    let keys = writers.into_iter().map(|writer| (writer.did.clone(), writer.key()));
    let keys: HashMap<String, CompressedKey> = keys.collect();
    Arc::new(FixedKeys(move |did: &str| keys.get(did).copied()))
}

pub(super) fn arrival(frame: impl Into<Bytes>) -> ReceivedFrame {
    ReceivedFrame::new(HOST, frame.into(), SystemTime::now())
}

/// Tells what it was given, and then no more.
#[derive(Default)]
pub(super) struct Script(VecDeque<Item>);

impl Script {
    pub(super) fn new(frames: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(frames.into_iter().map(|frame| Item::Frame(arrival(frame))).collect())
    }
}

impl Source for &mut Script {
    async fn next(&mut self) -> Result<Item, RunError> {
        match self.0.pop_front() {
            Some(told) => Ok(told),
            None => std::future::pending().await,
        }
    }

    fn try_next(&mut self) -> Result<Option<Item>, RunError> {
        Ok(self.0.pop_front())
    }

    async fn close(self) {}
}

/// What a handler was told of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) did: String,
    pub(super) seq: u64,
    pub(super) code: &'static str,
}

/// Remembers what it is told, and asks to stop when that is enough.
pub(super) struct Recorder {
    seen: Mutex<Vec<Seen>>,
    enough: usize,
    stop: StopSignal,
    manner: Manner,
    kept: Mutex<Vec<Ack>>,
}

/// What a recorder does with the words that it is to give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Gives them at once.
    Prompt,
    /// Keeps them.
    Miserly,
    /// Drops the one of this number.
    Careless(u64),
    /// Panics at this number.
    Nervous(u64),
    /// Gives them at once, and lets nothing take the places of even numbers.
    Frugal,
}

impl Recorder {
    pub(super) fn new(enough: usize, manner: Manner) -> Arc<Self> {
        let (seen, stop, kept) = Default::default();
        Arc::new(Self { seen, enough, stop, manner, kept })
    }

    pub(super) fn stop(&self) -> StopSignal {
        self.stop.clone()
    }

    /// What was seen, of all accounts.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What was seen of an account, in order.
    pub(super) fn of(&self, writer: &Writer) -> Vec<(u64, &'static str)> {
        let seen = self.seen().into_iter().filter(|seen| seen.did == writer.did);
        seen.map(|seen| (seen.seq, seen.code)).collect()
    }

    /// How many words are kept.
    pub(super) fn kept(&self) -> usize {
        self.kept.lock().unwrap().len()
    }

    /// Gives the words that were kept.
    pub(super) fn give(&self) {
        self.kept.lock().unwrap().drain(..).for_each(Ack::done);
    }
}

impl Handler for Recorder {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        let seq = event.seq.unwrap_or_default();
        assert_ne!(self.manner, Manner::Nervous(seq), "as the test wants it");
        let did = event.did.unwrap_or_default().to_owned();
        let mut seen = self.seen.lock().unwrap();
        seen.push(Seen { did, seq, code: event.verdict.code() });
        if seen.len() >= self.enough {
            self.stop.request();
        }
        drop(seen);
        match self.manner {
            Manner::Miserly => self.kept.lock().unwrap().push(ack),
            Manner::Careless(careless) if careless == seq => drop(ack),
            Manner::Frugal if seq.is_multiple_of(2) => ack.narrowing().done(),
            _ => ack.done(),
        }
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        let did = resynced.did.clone().into();
        self.seen.lock().unwrap().push(Seen { did, seq: RESYNCED, code: "resynced" });
        ack.done();
    }
}

/// In the place of a number where there is none.
pub(super) const RESYNCED: u64 = 0;

/// A journal that keeps what it is given in memory.
#[derive(Default)]
pub(super) struct Paper(pub(super) Mutex<Sheet>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) cursors: HashMap<String, u64>,
    pub(super) accounts: HashMap<Box<str>, verify::sync::AccountState>,
    /// Whether there is no room left.
    pub(super) is_full: bool,
}

impl Journal for Paper {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        Ok(self.0.lock().unwrap().cursors.get(stream).copied())
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, verify::sync::AccountState)],
    ) -> Result<(), JournalError> {
        let mut sheet = self.0.lock().unwrap();
        if sheet.is_full {
            return Err(JournalError::new("no space left on device"));
        }
        sheet
            .cursors
            .extend(cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor)));
        sheet.accounts.extend(accounts.iter().cloned());
        Ok(())
    }
}

/// Two workers, with these keys.
pub(super) fn options(keys: Arc<dyn KeyProvider>) -> Options {
    Options { workers: 2, ..Options::new(vec![], keys) }
}

fn http() -> http::Client {
    let names = Arc::new(LoopbackDns);
    http::Client::new(EgressPolicy::Loopback, names).unwrap()
}

/// Runs until the recorder has enough, or something fails.
pub(super) async fn run(
    options: Options,
    script: &mut Script,
    recorder: &Arc<Recorder>,
    paper: &Arc<Paper>,
) -> Result<RunSummary, RunError> {
    let cursor = paper.cursor(STREAM).unwrap();
    let streams = vec![(STREAM.to_owned(), cursor)];
    let states = |_| MemoryState::new([7; 16]);
    let (handler, journal, stop) = (recorder.clone(), paper.clone(), recorder.stop());
    Firehose::new(&http(), options).drive(script, streams, handler, journal, states, stop).await
}

pub(super) const STREAM: &str = "wss://relay.test/subscribe";

const EMPTY_TREE: &[u8] = b"\xa2\x61e\x80\x61l\xf6";
const TIME: &str = "2026-07-01T00:00:00Z";

/// 2026-07-01T00:00:00Z.
const BEGAN_MICROS: u64 = 1_782_864_000_000_000;
