//! Commit frames, judged against the keys and the known states of their accounts.

use std::collections::HashMap;

use atproto::event::{Action, Event, RepoOp, Values, peek};
use codec::cbor::{KeyOrder, Reader};
use crypto::{CompressedKey, SeededState};
use serde::Deserialize;
use serde_json::{Value, json};
use verify::InvalidRecord;
use verify::sync::{AccountState, Chain, Judge, Judged, MemoryState, Outcome, Policy, SyncEffect};

use crate::fault::Fault;
use crate::slice::place;
use crate::state;

/// The options of a judge, as JSON has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyFields {
    /// Seconds that a revision may be ahead of the clock.
    pub future_window: Option<f64>,
    /// Maximum size of a frame in bytes.
    pub max_frame_bytes: Option<usize>,
    /// Maximum size of the blocks of a `#commit` in bytes.
    pub max_blocks_bytes: Option<usize>,
    /// Maximum size of the blocks of a `#sync` in bytes.
    pub max_sync_blocks_bytes: Option<usize>,
    /// Maximum number of operations of a commit.
    pub max_ops: Option<usize>,
    /// Maximum size of a record in bytes.
    pub max_record_bytes: Option<usize>,
    /// Refuses an event with an invalid record.
    pub strict_records: bool,
    /// Accepts a commit without `prevData`.
    pub accept_missing_prev_data: bool,
    /// Accepts updates and deletes that do not say what they replaced.
    pub accept_ops_without_prev: bool,
    /// Accepts a commit whose operations do not lead back to `prevData`.
    pub accept_failed_inversion: bool,
    /// Accepts the operations of a signed commit without the tree.
    pub accept_unproved_operations: bool,
    /// Accepts a commit whose `since` is not the known revision, if `prevData` is the known tree.
    pub accept_since_mismatch: bool,
    /// Accepts a delete whose path the blocks do not show.
    pub accept_unproved_deletes: bool,
    /// Accepts a commit that says `tooBig`.
    pub accept_too_big: bool,
    /// Accepts a commit that says `rebase`.
    pub accept_rebase: bool,
    /// Accepts an event whose `time` is not a datetime.
    pub accept_any_time: bool,
}

impl PolicyFields {
    fn policy(&self) -> Result<Policy, Fault> {
        let default = Policy::default();
        let mut policy = default;
        policy.values = Values::ValidateOnly;
        if let Some(seconds) = self.future_window {
            if !(0.0..=1e9).contains(&seconds) {
                return Err(Fault::argument("futureWindow", "expected 0 to 1,000,000,000 seconds"));
            }
            policy.future_window_micros = (seconds * 1e6) as u64;
        }
        policy.max_frame_bytes = self.max_frame_bytes.unwrap_or(default.max_frame_bytes);
        policy.max_blocks_bytes = self.max_blocks_bytes.unwrap_or(default.max_blocks_bytes);
        policy.max_sync_blocks_bytes =
            self.max_sync_blocks_bytes.unwrap_or(default.max_sync_blocks_bytes);
        policy.max_ops = self.max_ops.unwrap_or(default.max_ops);
        policy.max_record_bytes = self.max_record_bytes.unwrap_or(default.max_record_bytes);
        policy.strict_records = self.strict_records;
        policy.accept_missing_prev_data = self.accept_missing_prev_data;
        policy.accept_ops_without_prev = self.accept_ops_without_prev;
        policy.accept_failed_inversion = self.accept_failed_inversion;
        policy.accept_unproved_operations = self.accept_unproved_operations;
        policy.accept_since_mismatch = self.accept_since_mismatch;
        policy.accept_unproved_deletes = self.accept_unproved_deletes;
        policy.accept_too_big = self.accept_too_big;
        policy.accept_rebase = self.accept_rebase;
        policy.accept_any_time = self.accept_any_time;
        Ok(policy)
    }
}

/// A judge with its accounts: their keys, and the state after their last commits.
#[derive(Debug)]
pub struct FrameJudge {
    judge: Judge,
    state: MemoryState,
    keys: HashMap<String, CompressedKey, SeededState>,
}

impl FrameJudge {
    /// A judge of these options. The seed places accounts in tables, and must not be known to who sends frames.
    ///
    /// # Errors
    /// If there is no such option, or it has a value that is not allowed.
    pub fn new(options: &str, seed: [u8; 16]) -> Result<Self, Fault> {
        let fields: PolicyFields =
            serde_json::from_str(options).map_err(|error| Fault::argument("options", error))?;
        let builder = Judge::builder().policy(fields.policy()?).key_cache_bytes(KEY_CACHE_BYTES);
        Ok(Self {
            judge: builder.seed(seed).build(),
            state: MemoryState::new(seed),
            keys: HashMap::with_hasher(SeededState::new(seed)),
        })
    }

    /// Sets the key of an account as did:key; `None` forgets it.
    ///
    /// # Errors
    /// If it is not a did:key.
    pub fn set_key(&mut self, did: &str, key: Option<&str>) -> Result<(), Fault> {
        let Some(key) = key else {
            self.keys.remove(did);
            return Ok(());
        };
        let key =
            CompressedKey::from_did_key(key).map_err(|error| Fault::argument("key", error))?;
        self.keys.insert(did.to_owned(), key);
        Ok(())
    }

    /// Whether the key of an account is known.
    #[must_use]
    pub fn has_key(&self, did: &str) -> bool {
        self.keys.contains_key(did)
    }

    /// Judges frames in their order at `now_micros` since 1970, and returns the outcomes as a JSON array.
    #[must_use]
    pub fn judge(&mut self, frames: &[&[u8]], now_micros: u64) -> String {
        let mut outcomes = Vec::with_capacity(frames.len());
        let mut rest = frames;
        while !rest.is_empty() {
            let (part, others) = rest.split_at(part_len(rest));
            rest = others;
            let Self { judge, state, keys } = self;
            let key_of = |did: &str| keys.get(did).copied();
            let judged = match judge.judge_batch(part, &key_of, state, now_micros) {
                Ok(judged) => judged,
                Err(impossible) => match impossible {},
            };
            outcomes.extend(part.iter().zip(&judged).map(|(frame, judged)| outcome(frame, judged)));
            if let Some(Judged { outcome: Outcome::Unjudged(Event::Account(event)), .. }) =
                judged.last()
                // Nothing is stored for accounts without a key: anyone can invent them.
                && key_of(event.did).is_some()
            {
                let account = AccountState { is_active: event.active, ..state.get(event.did) };
                state.put(event.did, account);
            }
        }
        Value::Array(outcomes).to_string()
    }

    /// The states of all accounts, as [`state::export`].
    #[must_use]
    pub fn export_state(&self) -> String {
        state::export(&self.state)
    }

    /// Adds states, as [`state::import`].
    ///
    /// # Errors
    /// If the text is of another form or version.
    pub fn import_state(&mut self, json: &str) -> Result<(), Fault> {
        state::import(&mut self.state, json)
    }
}

/// The account that a frame names, and whether it is an `#account`.
#[must_use]
pub fn account_of(frame: &[u8]) -> Option<&str> {
    let (header, at) = peek(frame).ok()?;
    match header.kind? {
        "#commit" => text_field(&frame[at..], "repo"),
        "#sync" | "#account" | "#identity" => text_field(&frame[at..], "did"),
        _ => None,
    }
}

/// The text of a field of a map.
fn text_field<'f>(map: &'f [u8], name: &str) -> Option<&'f str> {
    let (mut reader, mut keys) = (Reader::new(map), KeyOrder::new());
    for _ in 0..reader.map().ok()? {
        if reader.key(&mut keys).ok()? == name {
            return reader.text().ok();
        }
        reader.skip().ok()?;
    }
    None
}

/// Number of frames of the next part: an `#account` is the last of its part, as it decides about the commits after it.
fn part_len(frames: &[&[u8]]) -> usize {
    let frames = &frames[..frames.len().min(MAX_PART)];
    let is_account =
        |frame: &&[u8]| peek(frame).is_ok_and(|(header, _)| header.kind == Some("#account"));
    frames.iter().position(is_account).map_or(frames.len(), |at| at + 1)
}

/// An outcome, with the places of records in their frame.
fn outcome(frame: &[u8], judged: &Judged<'_>) -> Value {
    let Judged { event, outcome, .. } = judged;
    let (did, rev, time) = claims(*event);
    let ops = match outcome {
        Outcome::Commit(commit, _) => commit.ops.iter().map(|op| operation(frame, op)).collect(),
        _ => Vec::new(),
    };
    let (rule, offset) = rule(outcome);
    json!({
        "code": outcome.code(),
        "verdict": outcome.verdict(),
        "verified": outcome.is_accepted(),
        "kind": event.map_or("undecodable", Event::kind_name),
        "chain": chain(outcome),
        "gap": gap(outcome),
        "rule": rule,
        "offset": offset,
        "seq": event.and_then(Event::seq),
        "did": did,
        "rev": rev,
        "time": time,
        "ops": ops,
    })
}

/// The broken rule or the gap, and the place in the frame where it is known.
fn rule(outcome: &Outcome<'_>) -> (Option<String>, Option<u64>) {
    use verify::sync::SyncRejection::{Archive, Frame, Limit};
    match outcome {
        Outcome::Commit(_, Chain::Broken(gap)) => (Some(gap.to_string()), None),
        Outcome::Ignored(why) => (Some(why.to_string()), None),
        Outcome::Rejected(Frame(error) | Limit(error) | Archive(error)) => {
            (Some(error.fault.to_string()), Some(error.offset as u64))
        }
        Outcome::Rejected(why) => (Some(why.to_string()), None),
        _ => (None, None),
    }
}

/// Account, revision and time that an event states, proved or not.
fn claims<'a>(event: Option<&Event<'a>>) -> (Option<&'a str>, Option<&'a str>, Option<&'a str>) {
    match event {
        Some(Event::Commit(commit)) => (Some(commit.repo), Some(commit.rev), Some(commit.time)),
        Some(Event::Sync(sync)) => (Some(sync.did), Some(sync.rev), Some(sync.time)),
        Some(Event::Identity(identity)) => (Some(identity.did), None, Some(identity.time)),
        Some(Event::Account(account)) => (Some(account.did), None, Some(account.time)),
        _ => (None, None, None),
    }
}

/// How a verified event continues the known chain of its account.
#[must_use]
pub fn chain(outcome: &Outcome<'_>) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Commit(_, Chain::Intact) | Outcome::Sync(_, SyncEffect::Unchanged) => "intact",
        Outcome::Commit(_, Chain::FirstSeen) | Outcome::Sync(_, SyncEffect::FirstSeen) => {
            "first-seen"
        }
        Outcome::Commit(_, Chain::Broken(_)) | Outcome::Sync(_, SyncEffect::Desynchronized) => {
            "broken"
        }
        Outcome::Commit(_, Chain::StillDesynchronized) => "still-desynchronized",
        Outcome::Commit(_, Chain::Unproved(_)) => "unproved",
        Outcome::Ignored(_) | Outcome::Rejected(_) | Outcome::Unjudged(_) => return None,
    })
}

/// The code of the gap between a verified commit and the known state.
fn gap(outcome: &Outcome<'_>) -> Option<&'static str> {
    match outcome {
        Outcome::Commit(_, Chain::Broken(gap)) => Some(gap.code()),
        _ => None,
    }
}

/// An operation of a verified commit.
fn operation(frame: &[u8], op: &RepoOp<'_>) -> Value {
    let is_there = op.action != Action::Delete;
    let record = op.record.filter(|_| is_there);
    json!({
        "action": op.action.as_str(),
        "path": op.path,
        "cid": op.cid.filter(|_| is_there).map(|cid| cid.to_string()),
        "record": record.map(|block| [place(frame, block.data), block.data.len()]),
        "invalid": InvalidRecord::of_op(op).map(|invalid| Fault::from(invalid.error).to_value()),
    })
}

/// Frames that are judged together: enough to share the work, few enough to stay in the cache.
const MAX_PART: usize = 512;

/// Size of the cache of prepared keys in bytes.
const KEY_CACHE_BYTES: usize = 8 << 20;
