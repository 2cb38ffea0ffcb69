//! Which commits are there to judge, by which keys and at what time, and what came of it? The units of
//! the task `commit`.

use std::collections::HashMap;

use wireproof::atproto::event::{Decoder, Event, Options, Values, peek};
use wireproof::atproto::syntax::Datetime;
use wireproof::crypto::{CompressedKey, KeyCache};
use wireproof::verify::sync::{
    AccountKey, Chain, Judge, Judged, KeySource, MemoryState, Outcome, Policy,
};

use super::beside::Accounts;
use crate::counts::Counts;

/// The keys of accounts, read.
#[derive(Clone, Debug)]
pub(crate) struct Keys(HashMap<String, CompressedKey>);

impl Keys {
    /// The keys of `accounts`; an account whose key is none is left out.
    pub(crate) fn of(accounts: &Accounts) -> Self {
        let read = |(did, key): (&String, &String)| {
            Some((did.clone(), CompressedKey::from_did_key(key).ok()?))
        };
        Self(accounts.iter().filter_map(read).collect())
    }
}

impl KeySource for Keys {
    fn key(&self, did: &str) -> AccountKey {
        self.0.get(did).copied().into()
    }
}

/// A judge that looks at records but does not build them, as a relay does.
pub(crate) fn judge() -> Judge {
    let mut policy = Policy::default();
    policy.values = Values::ValidateOnly;
    // Nobody chooses keys against us here.
    Judge::new(policy, KeyCache::new(CACHE_BYTES, [0; 16]))
}

/// A state that knows no account.
pub(crate) fn nobody() -> MemoryState {
    MemoryState::new([0; 16])
}

/// When the frames are judged: one day after the newest `time` in them, in microseconds.
pub(crate) fn now_micros(frames: &[&[u8]]) -> u64 {
    let mut decoder = Decoder::new(Options {
        values: Values::ValidateOnly,
        trust_hashes: true,
        ..Options::default()
    });
    let mut time_of = |frame: &&[u8]| micros(time(&decoder.decode(frame).ok()?)?);
    frames.iter().filter_map(&mut time_of).max().unwrap_or_default() + DAY_MICROS
}

fn time<'a>(event: &Event<'a>) -> Option<&'a str> {
    match event {
        Event::Commit(commit) => Some(commit.time),
        Event::Sync(sync) => Some(sync.time),
        Event::Identity(identity) => Some(identity.time),
        Event::Account(account) => Some(account.time),
        _ => None,
    }
}

/// A datetime in microseconds since 1970.
pub(crate) fn micros(datetime: &str) -> Option<u64> {
    u64::try_from(Datetime::parse(datetime).ok()?.unix_micros()).ok()
}

/// Why a frame is not accepted, by the rule's name; `None` if it is, or if nothing is to be judged.
///
/// A valid commit behind a gap is accepted: relays pass it on, and captures begin with gaps.
pub(crate) fn refusal(outcome: &Outcome<'_>) -> Option<String> {
    match outcome {
        Outcome::Rejected(rejection) => Some(format!("{}: {rejection}", rejection.code())),
        Outcome::Ignored(ignored) => Some(format!("{}: {ignored}", ignored.code())),
        Outcome::Commit(..) | Outcome::Sync(..) | Outcome::Unjudged(_) => None,
    }
}

/// What is missing before a valid commit, by the rule's name.
pub(crate) fn gap(outcome: &Outcome<'_>) -> Option<String> {
    match outcome {
        Outcome::Commit(_, Chain::Broken(gap)) => Some(format!("{}: {gap}", gap.code())),
        _ => None,
    }
}

/// The counts of the task so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    frames: u64,
    commits: u64,
    accepted: u64,
    refused: u64,
    ops: u64,
}

impl Tally {
    /// Judges all `frames`, one at a time.
    pub(crate) fn of(frames: &[&[u8]], accounts: &Accounts) -> Self {
        let (mut judge, mut state, keys) = (judge(), nobody(), Keys::of(accounts));
        let now = now_micros(frames);
        let mut tally = Self::default();
        for frame in frames {
            let Ok(judged) = judge.judge(frame, &keys, &mut state, now);
            tally.note(frame, &judged);
        }
        tally
    }

    /// Counts what came of one frame.
    pub(crate) fn note(&mut self, frame: &[u8], judged: &Judged<'_>) {
        self.frames += 1;
        if !peek(frame).is_ok_and(|(header, _)| header.kind == Some("#commit")) {
            return;
        }
        self.commits += 1;
        match (judged.event, refusal(&judged.outcome)) {
            (Some(Event::Commit(commit)), None) => {
                self.accepted += 1;
                self.ops += commit.ops.len() as u64;
            }
            _ => self.refused += 1,
        }
    }
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        Self::from_iter([
            ("frames", tally.frames),
            ("commits", tally.commits),
            ("accepted", tally.accepted),
            ("refused", tally.refused),
            ("ops", tally.ops),
        ])
    }
}

const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// Room for 13,000 keys.
const CACHE_BYTES: usize = 16 << 20;
