//! Messages of `com.atproto.sync.subscribeRepos`: their fields, their operations, and their verdicts.

use atproto::event::{Block, Event, RepoOp};
use crypto::CompressedKey;
use serde::Serialize;
use verify::InvalidRecord;
use verify::sync::{AccountState, Chain, Judge, Judged, MemoryState, Outcome, SyncRejection};
use wireproof_js::state;

use crate::{Refusal, Result, find, offset_in};

/// Messages in their order, and the states of their accounts after them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Messages {
    /// The messages.
    pub messages: Vec<View>,
    /// The states.
    pub states: States,
}

/// The states of accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct States {
    /// The number of accounts.
    pub accounts: usize,
    /// The JSON that the npm package exports and imports.
    pub json: String,
}

/// A message and its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The type of the message, without `#`.
    pub kind: String,
    /// Texts of fields, by name.
    pub fields: Vec<(&'static str, String)>,
    /// The operations of a commit.
    pub ops: Vec<Op>,
    /// The blocks of its CAR slice.
    pub blocks: Vec<BlockPlace>,
    /// The verdict in one word.
    pub verdict: String,
    /// Its code.
    pub code: String,
    /// How a verified message continues the chain of its account.
    pub chain: Option<&'static str>,
    /// The broken rule, unless the message is verified or has no proof.
    pub refusal: Option<Refusal>,
    /// The first record that is signed and invalid.
    pub invalid: Option<Refusal>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Op {
    /// `create`, `update` or `delete`.
    pub action: &'static str,
    /// The path.
    pub path: String,
    /// The CID of the record.
    pub cid: Option<String>,
    /// The CID of the record before.
    pub prev: Option<String>,
    /// Offset and length of the record in the frame.
    pub record: Option<(usize, usize)>,
}

/// A block in the frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockPlace {
    /// The CID.
    pub cid: String,
    /// Offset in the frame.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
}

/// Judges the messages at these places of the input as [`Judge`] does, at `now_micros` since 1970, each after the one before it.
/// Without states, the first valid message of an account is accepted.
///
/// # Errors
/// If the states are of another form.
pub fn view(
    input: &[u8],
    places: &[(usize, usize)],
    key_of: &dyn Fn(&str) -> Option<CompressedKey>,
    states: Option<&str>,
    now_micros: u64,
) -> Result<Messages> {
    let (mut judge, mut state) = (Judge::default(), read(states)?);
    let mut messages = Vec::with_capacity(places.len());
    for (at, len) in places {
        let frame = &input[*at..at + len];
        let Ok(judged) = judge.judge(frame, &key_of, &mut state, now_micros);
        if let Outcome::Unjudged(Event::Account(event)) = &judged.outcome
            // Nothing is kept for accounts without a key: anyone can invent them.
            && key_of(event.did).is_some()
        {
            let account = AccountState { is_active: event.active, ..state.get(event.did) };
            state.put(event.did, account);
        }
        messages.push(verdict(frame, &judged).shifted(*at));
    }
    Ok(Messages { messages, states: states_of(&state) })
}

/// Reads states that were saved.
///
/// # Errors
/// If they are of another form.
pub fn read_states(json: &[u8]) -> Result<States> {
    Ok(states_of(&read(Some(&String::from_utf8_lossy(json)))?))
}

fn read(states: Option<&str>) -> Result<MemoryState> {
    let mut state = MemoryState::default();
    let read = states.map_or(Ok(()), |json| state::import(&mut state, json));
    read.map_err(|fault| Refusal::new("argument", fault.message()))?;
    Ok(state)
}

fn states_of(state: &MemoryState) -> States {
    States { accounts: state.iter().count(), json: state::export(state) }
}

fn verdict(frame: &[u8], judged: &Judged<'_>) -> View {
    let mut view = judged.event.map(|event| fields(frame, event)).unwrap_or_default();
    view.verdict = judged.outcome.verdict().to_owned();
    view.code = judged.outcome.code().to_owned();
    view.chain = wireproof_js::judge::chain(&judged.outcome);
    if let (true, Some(Event::Commit(commit))) = (judged.outcome.is_accepted(), judged.event) {
        view.invalid = commit.ops.iter().find_map(|op| invalid(frame, op));
    }
    view.refusal = match &judged.outcome {
        Outcome::Rejected(why) => Some(refusal(frame, judged.event, why)),
        Outcome::Ignored(why) => Some(Refusal::new(why.code(), why)),
        Outcome::Commit(_, Chain::Broken(why)) => Some(Refusal::new(why.code(), why)),
        _ => None,
    };
    view
}

impl View {
    /// Counts every place from an earlier start.
    fn shifted(mut self, by: usize) -> Self {
        let records = self.ops.iter_mut().filter_map(|op| op.record.as_mut());
        records.for_each(|(at, _)| *at += by);
        self.blocks.iter_mut().for_each(|block| block.offset += by);
        self.refusal = self.refusal.map(|refusal| refusal.shifted(by));
        self.invalid = self.invalid.map(|refusal| refusal.shifted(by));
        self
    }
}

fn fields(frame: &[u8], event: &Event<'_>) -> View {
    let kind = event.kind_name().to_owned();
    let mut fields = Vec::new();
    let mut push = |name, text: &dyn ToString| fields.push((name, text.to_string()));
    let (mut ops, mut blocks) = (&[][..], &[][..]);
    match event {
        Event::Commit(commit) => {
            push("seq", &commit.seq);
            push("repo", &commit.repo);
            push("rev", &commit.rev);
            push("since", &commit.since.unwrap_or("none"));
            push("commit", &commit.commit);
            push("prevData", &commit.prev_data.map_or("none".to_owned(), |cid| cid.to_string()));
            push("time", &commit.time);
            (ops, blocks) = (commit.ops, commit.blocks);
        }
        Event::Sync(sync) => {
            push("seq", &sync.seq);
            push("did", &sync.did);
            push("rev", &sync.rev);
            push("time", &sync.time);
            blocks = sync.blocks;
        }
        Event::Identity(identity) => {
            push("seq", &identity.seq);
            push("did", &identity.did);
            push("handle", &identity.handle.unwrap_or("none"));
            push("time", &identity.time);
        }
        Event::Account(account) => {
            push("seq", &account.seq);
            push("did", &account.did);
            push("active", &account.active);
            push("status", &account.status.unwrap_or("none"));
            push("time", &account.time);
        }
        Event::Info(info) => {
            push("name", &info.name);
            push("message", &info.message.unwrap_or("none"));
        }
        Event::Error(error) => {
            push("error", &error.error);
            push("message", &error.message.unwrap_or("none"));
        }
        _ => {}
    }
    let ops = ops.iter().map(|op| op_of(frame, op)).collect();
    let blocks = blocks.iter().map(|block| place(frame, block)).collect();
    View { kind, fields, ops, blocks, ..View::default() }
}

fn op_of(frame: &[u8], op: &RepoOp<'_>) -> Op {
    Op {
        action: op.action.as_str(),
        path: op.path.to_owned(),
        cid: op.cid.map(|cid| cid.to_string()),
        prev: op.prev.map(|cid| cid.to_string()),
        record: op.record.map(|block| (offset_in(frame, block.data), block.data.len())),
    }
}

fn place(frame: &[u8], block: &Block<'_>) -> BlockPlace {
    let (offset, length) = (offset_in(frame, block.data), block.data.len());
    BlockPlace { cid: block.cid.to_string(), offset, length }
}

/// The record that an operation writes, if it is invalid, and its place.
fn invalid(frame: &[u8], op: &RepoOp<'_>) -> Option<Refusal> {
    let record = InvalidRecord::of_op(op)?;
    let at = op.record.map_or(0, |block| offset_in(frame, block.data));
    let refusal =
        Refusal::new(record.error.code(), record.error.fault).at(at + record.error.offset);
    let (cid, path) = (Some(record.cid.to_string()), Some(record.path.to_string()));
    Some(Refusal { cid, path, ..refusal })
}

fn refusal(frame: &[u8], event: Option<&Event<'_>>, why: &SyncRejection<'_>) -> Refusal {
    let refusal = Refusal::new(why.code(), why);
    let blocks = event.map_or(&[][..], Event::blocks);
    let data = |cid: &[u8]| {
        let block = blocks.iter().find(|block| block.cid.as_bytes() == cid);
        block.map(|block| offset_in(frame, block.data))
    };
    let commit = match event {
        Some(Event::Commit(commit)) => Some(commit.root),
        Some(Event::Sync(sync)) => Some(sync.root),
        _ => None,
    };
    let commit = commit.flatten().and_then(|root| data(root.as_bytes()));
    let find = |text: &str, place| refusal.clone().or_find(frame, text.as_bytes(), place);
    match why {
        SyncRejection::Frame(error)
        | SyncRejection::Limit(error)
        | SyncRejection::Archive(error) => {
            Refusal { rule: error.fault.to_string(), ..refusal.at(error.offset) }
        }
        SyncRejection::Commit(error) => match commit {
            Some(at) => refusal.at(at + error.offset),
            None => refusal,
        },
        SyncRejection::Signature(_) => match commit.and_then(|at| signature_at(frame, at)) {
            Some(at) => {
                Refusal { length: SIGNATURE, place: Some("the signature"), ..refusal.at(at) }
            }
            None => refusal,
        },
        SyncRejection::Tree(error) => match error.cid.and_then(|cid| data(cid.as_bytes())) {
            Some(at) => refusal.at(at + error.offset),
            None => refusal,
        },
        SyncRejection::PartialTree(cid) | SyncRejection::CommitMissing(cid) => {
            refusal.or_find(frame, cid.as_bytes(), "the link to the missing block")
        }
        SyncRejection::CommitCid { claimed, .. } => {
            refusal.or_find(frame, claimed.as_bytes(), "the commit that the message names")
        }
        SyncRejection::Inversion { prev_data, .. } => {
            refusal.or_find(frame, prev_data.as_bytes(), "the tree that the message starts from")
        }
        SyncRejection::Did(text) => find(text, "the account"),
        SyncRejection::DidMismatch(text) => find(text, "the account that the commit names"),
        SyncRejection::RevMismatch(text) => find(text, "the revision of the commit"),
        SyncRejection::Time(text) => find(text, "the time"),
        SyncRejection::Handle { text, .. } => find(text, "the handle"),
        SyncRejection::FutureRev { rev, .. } => find(&rev.to_string(), "the revision"),
        SyncRejection::RevSyntax { field, .. } => find(field, "the field"),
        SyncRejection::Path { path, .. }
        | SyncRejection::DuplicatePath(path)
        | SyncRejection::Op { path, .. }
        | SyncRejection::RecordMissing(path)
        | SyncRejection::RecordCid(path)
        | SyncRejection::Record { path, .. } => find(path, "the path of the operation"),
        SyncRejection::Seq(_) => find("seq", "the field"),
        SyncRejection::TooBig => find("tooBig", "the field"),
        SyncRejection::Rebase => find("rebase", "the field"),
        _ => refusal,
    }
}

/// The place of the signature in the commit block that begins at `at`.
fn signature_at(frame: &[u8], at: usize) -> Option<usize> {
    let inside = find(frame.get(at..)?, SIGNATURE_HEAD)?;
    Some(at + inside + SIGNATURE_HEAD.len())
}

/// The key `sig` and the head of 64 bytes, in DAG-CBOR.
const SIGNATURE_HEAD: &[u8] = b"\x63sig\x58\x40";
const SIGNATURE: usize = 64;
