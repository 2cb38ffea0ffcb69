//! The events of a stream in the order of their sequence numbers: proofs, chains of accounts, and the conduct of
//! `#sync` and `#account`.
//!
//! Everything here is a function of the messages and the keys: no clock, no connection.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use atproto::event::{self, Event};
use codec::Cid;
use crypto::CompressedKey;
use net::firehose::FrameKind;
use verify::sync::{
    AccountKey, AccountState, Chain, Ignored, Judge, MemoryState, Outcome, SyncRejection, SyncState,
};

use crate::finding::Finding;
use crate::rule::{self, Kind};
use crate::sequence::{self, Arrival, Frame, METHOD};

/// The keys of the accounts of a stream.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Keys by DID, the current one first.
    pub keys: HashMap<String, Vec<CompressedKey>>,
    /// Accounts that another server hosts, and since when in microseconds since 1970; empty for a relay.
    pub elsewhere: HashMap<String, u64>,
    /// Whether the host is a relay: it leaves out what its hosts prove wrong, so that a gap need not be its fault.
    pub is_relay: bool,
}

/// The judgement of a stream.
#[derive(Debug, Default)]
pub struct StreamJudgement {
    /// The findings, in no order.
    pub findings: Vec<Finding>,
    /// Events by their verdict.
    pub counts: StreamCounts,
    /// Accounts whose commits are signed by none of the given keys: earlier keys may help.
    pub unfitting: BTreeSet<String>,
    /// The accounts, with the last status that the stream states.
    pub(crate) accounts: BTreeMap<String, SeenAccount>,
}

/// Numbers of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StreamCounts {
    /// Live messages.
    pub live: u64,
    /// Messages of the oldest events.
    pub oldest: u64,
    /// Commits and syncs that are proved.
    pub proved: u64,
    /// Commits and syncs of accounts without a key.
    pub without_key: u64,
}

/// An account of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenAccount {
    /// The last `#account`: its number, and whether it is active.
    pub(crate) stated: Option<(i64, bool)>,
    /// The number of its last event.
    pub(crate) last_seq: i64,
    /// Whether its newest commit was last sent by a `#sync`.
    head_is_sync: bool,
}

/// The messages of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream<'s> {
    /// The oldest events that the host has.
    pub oldest: &'s [Arrival],
    /// The live stream.
    pub live: &'s [Arrival],
    /// Its replay, if there is one.
    pub replay: Option<&'s [Arrival]>,
}

/// Judges a stream.
pub fn judge_stream(stream: &Stream<'_>, keys: &Keys) -> StreamJudgement {
    let (mut live, oldest) = (sequence::read(stream.live), sequence::read(stream.oldest));
    let mut judge = EventJudge::new(keys);
    for replay in [stream.replay.map(sequence::read).as_ref(), Some(&oldest)].into_iter().flatten()
    {
        live.compare_with_replay(replay);
        judge.judgement.findings.extend(replay.findings.iter().cloned());
        replay.others.iter().for_each(|frame| judge.unnumbered(frame));
    }
    judge.judgement.findings.append(&mut live.findings);
    live.others.iter().for_each(|frame| judge.unnumbered(frame));
    let first = live.ends().map_or(i64::MAX, |(first, _)| first);
    oldest.numbered.range(..first).for_each(|(_, frame)| judge.numbered(frame));
    if oldest.ends().is_none_or(|(_, last)| last < first) {
        // Events between the oldest ones and the live ones were not read.
        judge.state = MemoryState::default();
        judge.judgement.accounts.clear();
    }
    judge.is_live = true;
    live.numbered.values().for_each(|frame| judge.numbered(frame));
    let mut judgement = judge.judgement;
    judgement.counts.live = stream.live.len() as u64;
    judgement.counts.oldest = stream.oldest.len() as u64;
    // Events that are no longer served may be left out of a replay.
    let accounts = &judgement.accounts;
    let is_excused = |finding: &Finding| {
        let account = finding.account.as_ref().and_then(|did| accounts.get(did));
        finding.code == rule::REPLAY_MISSING.code
            && account.is_some_and(|account| account.stated.is_some_and(|(_, active)| !active))
    };
    judgement.findings.retain(|finding| !is_excused(finding));
    judgement
}

struct EventJudge<'k> {
    judge: Judge,
    state: MemoryState,
    keys: &'k Keys,
    judgement: StreamJudgement,
    /// Whether events are as they arrive: where their accounts are is known.
    is_live: bool,
}

/// The verdict on a frame, without the frame.
enum Verdict {
    /// Proved, and whether it leaves a gap: code and text.
    Proved(Option<(&'static str, String)>),
    /// A `#sync`, and the length of its blocks in bytes.
    Synced(usize),
    /// The revision is not newer, and whether it is the newest commit again.
    Stale {
        is_same: bool,
        is_sync: bool,
        blocks_len: usize,
        text: String,
    },
    Inactive(String),
    WithoutKey {
        lacks_prev_data: bool,
    },
    Rejected {
        code: &'static str,
        text: String,
        is_unfitting: bool,
    },
    Account {
        active: bool,
        status: Option<String>,
    },
    Other,
}

impl<'k> EventJudge<'k> {
    fn new(keys: &'k Keys) -> Self {
        let judge = Judge::builder().key_cache_bytes(KEY_CACHE_BYTES).build();
        let (state, judgement) = (MemoryState::default(), StreamJudgement::default());
        Self { judge, state, keys, judgement, is_live: false }
    }

    /// A frame without a sequence number: an `#info`, an error, or bytes that are no frame.
    fn unnumbered(&mut self, frame: &Frame) {
        match frame.kind {
            // The reader of the stream judges these.
            FrameKind::Error | FrameKind::Info => {}
            FrameKind::Unknown => {
                let text = "a frame of an unknown operation or type";
                self.add(Finding::of(&rule::UNKNOWN_FRAME, METHOD, text));
            }
            _ => {
                if let Verdict::Rejected { code, text, .. } = self.verdict(frame, None) {
                    self.add(Finding::of_data(code, METHOD, text));
                }
            }
        }
    }

    /// An event.
    fn numbered(&mut self, frame: &Frame) {
        let seq = frame.seq.unwrap_or_default();
        let did = frame.did.clone().unwrap_or_default();
        let verdict = self.best_verdict(frame, &did);
        let is_commit = frame.kind == FrameKind::Commit;
        let seen = self.judgement.accounts.entry(did.clone()).or_default();
        seen.last_seq = seq;
        let head_is_sync = seen.head_is_sync;
        match frame.kind {
            FrameKind::Sync => seen.head_is_sync = true,
            FrameKind::Commit => seen.head_is_sync = false,
            _ => {}
        }
        let found = match verdict {
            Verdict::Proved(gap) => {
                self.judgement.counts.proved += 1;
                self.synchronize(&did);
                let since = self.keys.elsewhere.get(&did);
                if self.is_live && since.is_some_and(|since| *since + MOVE_MICROS < frame.at_micros)
                {
                    let text = "the DID document names another server";
                    self.add(Finding::of(&rule::OTHER_HOST, METHOD, text).about(&did).at(seq));
                }
                gap.map(|(code, text)| self.gap(code, text))
            }
            Verdict::Synced(len) => {
                self.judgement.counts.proved += 1;
                self.synchronize(&did);
                large_sync(len)
            }
            // A `#sync` repeats the newest commit, and a server may send it before the commit.
            Verdict::Stale { is_same: true, is_sync, blocks_len, .. }
                if is_sync || head_is_sync =>
            {
                is_sync.then(|| large_sync(blocks_len)).flatten()
            }
            Verdict::Stale { is_sync: true, text, .. } => {
                Some(Finding::of(&rule::STALE_SYNC, METHOD, text))
            }
            Verdict::Stale { text, .. } => Some(Finding::of_data("event/stale-rev", METHOD, text)),
            Verdict::Inactive(text) => {
                is_commit.then(|| Finding::of(&rule::INACTIVE_COMMIT, METHOD, text))
            }
            Verdict::WithoutKey { lacks_prev_data } => {
                self.judgement.counts.without_key += 1;
                let text = "the event lacks `prevData`, and follows another commit".to_owned();
                lacks_prev_data.then(|| Finding::of_data("event/prev-data-missing", METHOD, text))
            }
            Verdict::Rejected { code, text, is_unfitting } => {
                if is_unfitting {
                    self.judgement.unfitting.insert(did.clone());
                }
                // What follows cannot continue the state before it.
                self.forget_head(&did);
                Some(Finding::of_data(code, METHOD, text))
            }
            Verdict::Account { active, status } => {
                self.judgement.accounts.entry(did.clone()).and_modify(|seen| {
                    seen.stated = Some((seq, active));
                });
                self.account(&did, active, status.as_deref())
            }
            Verdict::Other => None,
        };
        if let Some(finding) = found {
            let finding = if did.is_empty() { finding } else { finding.about(&did) };
            self.add(finding.at(seq));
        }
    }

    /// The verdict under the first key that fits.
    fn best_verdict(&mut self, frame: &Frame, did: &str) -> Verdict {
        let keys = self.keys.keys.get(did).map(Vec::as_slice).unwrap_or_default();
        let first = self.verdict(frame, keys.first().copied());
        if !matches!(first, Verdict::Rejected { is_unfitting: true, .. }) {
            return first;
        }
        for key in &keys[1..] {
            let next = self.verdict(frame, Some(*key));
            if !matches!(next, Verdict::Rejected { is_unfitting: true, .. }) {
                return next;
            }
        }
        first
    }

    fn verdict(&mut self, frame: &Frame, key: Option<CompressedKey>) -> Verdict {
        let stored = frame.did.as_deref().map_or(AccountState::UNKNOWN, |did| self.state.get(did));
        let source = |_: &str| AccountKey::from(key);
        let judged = self.judge.judge(&frame.bytes, &source, &mut self.state, frame.at_micros);
        let judged = match judged {
            Ok(judged) => judged,
            Err(never) => match never as Infallible {},
        };
        match judged.outcome {
            Outcome::Commit(_, Chain::Broken(gap)) => {
                Verdict::Proved(Some((gap.code(), gap.to_string())))
            }
            Outcome::Commit(..) => Verdict::Proved(None),
            Outcome::Sync(sync, _) => Verdict::Synced(sync.car.len()),
            Outcome::Ignored(Ignored::Inactive) => {
                Verdict::Inactive("the account is inactive by its last #account".to_owned())
            }
            Outcome::Ignored(stale) => {
                let commit = judged.event.and_then(commit_of);
                let is_same = stored.head.is_some_and(|head| Some(head.commit) == commit);
                let is_sync = frame.kind == FrameKind::Sync;
                let blocks_len = match judged.event {
                    Some(Event::Sync(sync)) => sync.car.len(),
                    _ => 0,
                };
                Verdict::Stale { is_same, is_sync, blocks_len, text: stale.to_string() }
            }
            Outcome::Rejected(SyncRejection::NoKey) => {
                let lacks = |event: &Event<'_>| match event {
                    Event::Commit(commit) => commit.prev_data.is_none() && commit.since.is_some(),
                    _ => false,
                };
                Verdict::WithoutKey { lacks_prev_data: judged.event.is_some_and(lacks) }
            }
            Outcome::Rejected(why) => rejected(&why, &stored),
            Outcome::Unjudged(Event::Account(event::Account { active, status, .. })) => {
                Verdict::Account { active: *active, status: status.map(str::to_owned) }
            }
            _ => Verdict::Other,
        }
    }

    /// A gap is reported once: the next commit continues from here.
    fn synchronize(&mut self, did: &str) {
        let account = self.state.get(did);
        if account.sync != SyncState::Synchronized {
            self.state.put(did, AccountState { sync: SyncState::Synchronized, ..account });
        }
    }

    fn forget_head(&mut self, did: &str) {
        let account = self.state.get(did);
        if account.head.is_some() {
            self.state.put(did, AccountState { head: None, ..account });
        }
    }

    fn account(&mut self, did: &str, active: bool, status: Option<&str>) -> Option<Finding> {
        let account = self.state.get(did);
        // While it was inactive, or at another host, changes need not have been announced here.
        self.state.put(did, AccountState { head: None, is_active: active, ..account });
        let is_contradiction = active && status.is_some_and(|status| INACTIVE.contains(&status));
        let text = format!("active, with the status {}", status.unwrap_or_default());
        is_contradiction.then(|| Finding::of(&rule::CONTRADICTION, METHOD, text))
    }

    fn gap(&self, code: &'static str, text: String) -> Finding {
        let finding = Finding::of_data(code, METHOD, text);
        if self.keys.is_relay { Finding { kind: Kind::Note, ..finding } } else { finding }
    }

    fn add(&mut self, finding: Finding) {
        self.judgement.findings.push(finding);
    }
}

/// A commit that does not lead back to `prevData` either names another tree or leaves out operations: the tree that is
/// known decides.
fn rejected(why: &SyncRejection<'_>, stored: &AccountState) -> Verdict {
    let known = stored.head.map(|head| head.data);
    let (code, is_unfitting) = match why {
        SyncRejection::Inversion { found, .. } if Some(*found) == known => {
            ("event/prev-data", false)
        }
        _ => (why.code(), why.may_be_stale_key()),
    };
    Verdict::Rejected { code, text: why.to_string(), is_unfitting }
}

fn large_sync(len: usize) -> Option<Finding> {
    let text = format!("{len} bytes of blocks");
    (len > MAX_SYNC_BYTES).then(|| Finding::of(&rule::LARGE_SYNC, METHOD, text))
}

fn commit_of(event: &Event<'_>) -> Option<Cid> {
    match event {
        Event::Commit(commit) => Some(commit.commit),
        Event::Sync(sync) => sync.root.and_then(|root| root.to_cid()),
        _ => None,
    }
}

/// The statuses that an active account does not have.
const INACTIVE: [&str; 4] = ["takendown", "suspended", "deleted", "deactivated"];
/// Time in which events of a move may be under way.
const MOVE_MICROS: u64 = 10 * 60 * 1_000_000;
/// By the lexicon of `#sync`.
const MAX_SYNC_BYTES: usize = 10_000;
const KEY_CACHE_BYTES: usize = 4 << 20;
