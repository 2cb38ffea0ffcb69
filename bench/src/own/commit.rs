//! Verifies commit frames as any caller does, one at a time or in batches, with an empty state before every pass.

use std::collections::HashMap;
use std::hint::black_box;

use atproto::corpus;
use atproto::event::{Decoder, Event, Options, Values, peek};
use atproto::syntax::Datetime;
use crypto::{CompressedKey, KeyCache};
use protocol::{Accounts, BoxError, CommitCounts, Counts, Loaded, Parts, Proof, Work, checks};
use verify::sync::{AccountKey, Chain, Judge, Judged, KeySource, MemoryState, Outcome, Policy};

use super::Variants;

pub(super) fn variants() -> Variants {
    ["full", "full/batch"].map(|name| (name.to_owned(), check_names())).into()
}

/// The checks of a verdict on one commit. Nodes reached twice, absent records and values are not checked.
pub(super) fn check_names() -> Vec<&'static str> {
    let mut names = checks::names(&checks::of_task("commit"));
    names.retain(|name| !["mst-once", "complete", "record-cbor"].contains(name));
    names
}

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let [frames, accounts] = files else { return Err("not frames and accounts".into()) };
    let frames = corpus::read(frames)?;
    let accounts: Accounts = serde_json::from_slice(accounts)?;
    let batch = match variant {
        "full" => 1,
        "full/batch" => BATCH,
        _ => return Ok(None),
    };
    Ok(Some(Box::new(Commits {
        now_micros: day_after_newest(&frames),
        frames,
        keys: Keys::of(&accounts),
        batch,
        judge: judge(),
    })))
}

/// The reference counts of a file: from our own verdicts, one frame at a time.
pub(crate) fn counts(frames: &[&[u8]], accounts: &Accounts) -> Counts {
    let mut judge = judge();
    let mut state = empty_state();
    let keys = Keys::of(accounts);
    let now = day_after_newest(frames);
    let mut counts = CommitCounts::default();
    for frame in frames {
        let Ok(judged) = judge.judge(frame, &keys, &mut state, now);
        add(&mut counts, frame, &judged);
    }
    counts.into()
}

fn add(counts: &mut CommitCounts, frame: &[u8], judged: &Judged<'_>) {
    counts.frames += 1;
    if !peek(frame).is_ok_and(|(header, _)| header.kind == Some("#commit")) {
        return;
    }
    counts.commits += 1;
    let Outcome::Commit(commit, chain) = &judged.outcome else {
        counts.refused += 1;
        return;
    };
    counts.ops += commit.ops.len() as u64;
    *match chain {
        Chain::Intact | Chain::Unproved(_) => &mut counts.accepted,
        Chain::FirstSeen => &mut counts.first_sighting,
        Chain::Broken(_) | Chain::StillDesynchronized => &mut counts.chain_broken,
    } += 1;
}

/// Why a frame is rejected, beginning with the rule's code; `None` if it is accepted or nothing is verified.
///
/// A valid commit after a gap is accepted: relays pass it on, and captures begin with gaps.
pub(super) fn rejection(outcome: &Outcome<'_>) -> Option<String> {
    match outcome {
        Outcome::Rejected(rejection) => Some(format!("{}: {rejection}", rejection.code())),
        Outcome::Ignored(ignored) => Some(format!("{}: {ignored}", ignored.code())),
        Outcome::Commit(..) | Outcome::Sync(..) | Outcome::Unjudged(_) => None,
    }
}

/// The gap before a valid commit, beginning with the rule's code.
pub(super) fn gap(outcome: &Outcome<'_>) -> Option<String> {
    match outcome {
        Outcome::Commit(_, Chain::Broken(gap)) => Some(format!("{}: {gap}", gap.code())),
        _ => None,
    }
}

/// The parsed keys of accounts.
#[derive(Clone, Debug)]
pub(super) struct Keys(HashMap<String, CompressedKey>);

impl Keys {
    /// The keys of `accounts`, without unparsable ones.
    pub(super) fn of(accounts: &Accounts) -> Self {
        let parse = |(did, key): (&String, &String)| {
            Some((did.clone(), CompressedKey::from_did_key(key).ok()?))
        };
        Self(accounts.iter().filter_map(parse).collect())
    }
}

impl KeySource for Keys {
    fn key(&self, did: &str) -> AccountKey {
        self.0.get(did).copied().into()
    }
}

/// A verifier that validates records without building values, as a relay does.
pub(super) fn judge() -> Judge {
    let mut policy = Policy::default();
    policy.values = Values::ValidateOnly;
    // A fixed seed is fine: no input is chosen to collide.
    Judge::new(policy, KeyCache::new(CACHE_BYTES, [0; 16]))
}

/// A state without accounts.
pub(super) fn empty_state() -> MemoryState {
    MemoryState::new([0; 16])
}

/// The time of verification: one day after the newest `time` in the frames, in microseconds since 1970.
pub(super) fn day_after_newest(frames: &[&[u8]]) -> u64 {
    let mut options = Options::default();
    (options.values, options.trust_hashes) = (Values::ValidateOnly, true);
    let mut decoder = Decoder::new(options);
    let mut time_of = |frame: &&[u8]| unix_micros(time(&decoder.decode(frame).ok()?)?);
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
pub(super) fn unix_micros(datetime: &str) -> Option<u64> {
    u64::try_from(Datetime::parse(datetime).ok()?.unix_micros()).ok()
}

struct Commits<'f> {
    frames: Vec<&'f [u8]>,
    keys: Keys,
    now_micros: u64,
    /// Frames per call.
    batch: usize,
    /// Kept over passes with its memory and its cache of keys.
    judge: Judge,
}

impl Work for Commits<'_> {
    fn loaded(&self) -> Loaded {
        Loaded::of(self.frames.iter().map(|frame| frame.len()))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = CommitCounts::default();
        let mut state = empty_state();
        for batch in self.frames.chunks(self.batch) {
            let Ok(all) = self.judge.judge_batch(batch, &self.keys, &mut state, self.now_micros);
            batch.iter().zip(&all).for_each(|(frame, judged)| add(&mut counts, frame, judged));
        }
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let Self { frames, keys, judge, now_micros, batch } = self;
        let mut state = empty_state();
        if *batch == 1 {
            for frame in frames {
                let _ = black_box(judge.judge(frame, keys, &mut state, *now_micros));
            }
            return Ok(Parts::default());
        }
        for batch in frames.chunks(*batch) {
            let _ = black_box(judge.judge_batch(batch, keys, &mut state, *now_micros));
        }
        Ok(Parts::default())
    }
}

/// Frames per call, as in a relay that catches up.
const BATCH: usize = 256;

const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// Memory for 6,000 keys: more than the default corpus has, and about half of the keys in the corpus of many
/// accounts.
const CACHE_BYTES: usize = 11 << 20;
