//! The line of an event of a firehose.

use atproto::event::{Action, Commit, Event, RepoOp};
use codec::cid::CidRef;
use delivery::RecordEffects;
use net::firehose::{DeliveredEvent, FrameKind, Verdict};
use verify::InvalidRecord;
use verify::sync::{Chain, Outcome};

use super::super::condition::{Condition, Subject};
use super::super::selection::Filter;
use super::object::Object;
use super::{LineContent, LineHeader, NOT_ASKED, ProofForm, write_deletion};
use crate::json::RecordPath;

/// The line of an event.
pub struct EventLine<'e, 'a> {
    /// The host that sent it.
    pub host: &'e str,
    /// The event, with its verdict.
    pub event: &'e DeliveredEvent<'a>,
    pub(crate) filter: &'e Filter,
    /// What is delivered of each operation, if a condition decides that.
    matches: Option<Vec<OpMatch>>,
    content: LineContent,
}

impl<'e, 'a> EventLine<'e, 'a> {
    pub(crate) fn new(
        host: &'e str,
        event: &'e DeliveredEvent<'a>,
        filter: &'e Filter,
        content: LineContent,
    ) -> Self {
        let mut line = Self { host, event, filter, matches: None, content };
        if let (Some(condition), Some(commit)) = (&filter.condition, line.commit())
            && has_ops(&event.verdict)
        {
            let of_op = |op: &RepoOp<'_>| OpMatch::of(filter, condition, commit, op);
            line.matches = Some(commit.ops.iter().map(of_op).collect());
        }
        line
    }

    /// Whether the event has operations in selected collections, or is no commit: others have no line.
    pub(crate) fn is_selected(&self) -> bool {
        if let Some(matches) = &self.matches {
            return matches.iter().any(|of| *of != OpMatch::None);
        }
        let has_any =
            |commit: &Commit<'_>| self.filter.has_any(commit.ops.iter().map(|op| op.path));
        self.commit().is_none_or(has_any)
    }

    /// Appends the line, and returns the offset in it of the operations, or 0: what is before them can differ when the
    /// commit is received again.
    pub(crate) fn write(&self, line: &mut Vec<u8>, header: LineHeader<'_>) -> usize {
        let mut ops_at = 0;
        let event = self.event;
        let mut object = Object::begin_line(line);
        header.write(&mut object);
        object.text("host", self.host);
        if let Some(seq) = event.seq {
            object.number("seq", seq);
        }
        if matches!(header, LineHeader::Printed { is_repeated: true }) {
            object.json("repeated", &true);
        }
        object.text("kind", event.kind.name());
        if let Some(did) = event.did {
            object.text("did", did);
        }
        if let Some(claimed) = event.event {
            claims(&mut object, claimed);
        }
        verdict(&mut object, event);
        object.optional("verified_against", self.content.level.mark());
        if let Some(commit) = self.commit().filter(|_| has_ops(&event.verdict)) {
            ops_at = object.escape();
            self.write_ops(&mut object, commit);
        }
        if let Some(form) = self.content.proof.filter(|_| event.verdict.is_verified()) {
            match (form, event.event) {
                (ProofForm::Blocks, Some(Event::Commit(commit))) => {
                    object.proof("blocks", commit.car);
                }
                _ => object.proof("frame", event.frame),
            }
        }
        if matches!(event.kind, FrameKind::Unknown | FrameKind::Undecodable)
            || matches!(event.verdict, Verdict::Undecodable(_))
        {
            object.bytes("frame", event.frame);
        }
        object.end();
        ops_at
    }

    /// The changes of the records that the line has.
    pub(crate) fn effects(&self) -> Option<RecordEffects> {
        let commit = self.commit().filter(|_| self.event.verdict.is_verified())?;
        let mut effects = RecordEffects::of_commit();
        for (op, of_op) in self.delivered_ops(commit) {
            let is_put = op.action != Action::Delete && of_op == OpMatch::Whole;
            let cid = op.cid.filter(|_| is_put);
            match cid.and_then(CidRef::sha256) {
                Some(hash) => effects.put(op.path, hash),
                None => effects.delete(op.path),
            }
        }
        Some(effects)
    }

    fn commit(&self) -> Option<&'e Commit<'a>> {
        match self.event.event {
            Some(Event::Commit(commit)) => Some(commit),
            _ => None,
        }
    }

    fn write_ops(&self, object: &mut Object<'_>, commit: &Commit<'_>) {
        object.key("ops");
        object.line.push(b'[');
        for (number, (op, of_op)) in self.delivered_ops(commit).enumerate() {
            if number > 0 {
                object.line.push(b',');
            }
            match of_op {
                OpMatch::Deletion => write_deletion(object.line, op.path, true),
                _ => write_op(object.line, op),
            }
        }
        object.line.push(b']');
    }

    /// The operations that the line has.
    fn delivered_ops<'c>(
        &'c self,
        commit: &'c Commit<'a>,
    ) -> impl Iterator<Item = (&'c RepoOp<'a>, OpMatch)> {
        let of_op = move |number: usize, op: &RepoOp<'_>| match &self.matches {
            Some(matches) => matches.get(number).copied().unwrap_or(OpMatch::None),
            None if self.filter.has_path(op.path) => OpMatch::Whole,
            None => OpMatch::None,
        };
        let ops = commit.ops.iter().enumerate().map(move |(number, op)| (op, of_op(number, op)));
        ops.filter(|(_, of_op)| *of_op != OpMatch::None)
    }
}

/// Writes the fields that the event claims, verified or not.
pub fn claims(object: &mut Object<'_>, event: &Event<'_>) {
    match event {
        Event::Commit(commit) => {
            object.text("time", commit.time);
            object.text("rev", commit.rev);
            object.plain("commit", commit.commit);
        }
        Event::Sync(sync) => {
            object.text("time", sync.time);
            object.text("rev", sync.rev);
        }
        Event::Identity(identity) => {
            object.text("time", identity.time);
            object.optional("handle", identity.handle);
        }
        Event::Account(account) => {
            object.text("time", account.time);
            object.json("active", &account.active);
            object.optional("status", account.status);
        }
        Event::Info(info) => {
            object.text("name", info.name);
            object.optional("message", info.message);
        }
        Event::Error(error) => {
            object.text("name", error.error);
            object.optional("message", error.message);
        }
        Event::Unknown(unknown) => object.optional("type", unknown.header.kind),
    }
}

fn verdict(object: &mut Object<'_>, event: &DeliveredEvent<'_>) {
    object.text("verdict", verdict_name(&event.verdict));
    object.text("code", event.verdict.code());
    match &event.verdict {
        Verdict::Judged(Outcome::Rejected(why)) => object.message(why),
        Verdict::Judged(Outcome::Ignored(why)) => object.message(why),
        Verdict::Judged(Outcome::Commit(_, Chain::Broken(why))) => object.message(why),
        Verdict::UnknownKey(why) => object.message(why),
        Verdict::Undecodable(why) => object.message(why),
        _ => {}
    }
}

fn verdict_name(verdict: &Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Judged(outcome) => outcome.verdict(),
        Verdict::Undecodable(_) => "refused",
        Verdict::UnknownKey(_) => "unknown-key",
        Verdict::NotVerified => NOT_ASKED,
    }
}

/// Whether the line has the operations: they are verified, or verification is off.
fn has_ops(verdict: &Verdict<'_>) -> bool {
    verdict.is_verified() || matches!(verdict, Verdict::NotVerified)
}

/// What is delivered of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpMatch {
    None,
    Whole,
    /// An update whose record does not match: a consumer may have the record before it, which matched.
    Deletion,
}

impl OpMatch {
    fn of(filter: &Filter, condition: &Condition, commit: &Commit<'_>, op: &RepoOp<'_>) -> Self {
        if !filter.has_path(op.path) {
            return Self::None;
        }
        let block = op.record.as_ref().filter(|_| InvalidRecord::of_op(op).is_none());
        let record = block.and_then(|block| Some((block.value.as_ref()?, block.data.len())));
        let subject = Subject {
            did: commit.repo,
            rev: commit.rev,
            live: true,
            action: op.action,
            path: op.path,
            record,
        };
        match op.action {
            Action::Delete => Self::Whole,
            _ if condition.matches(&subject) => Self::Whole,
            Action::Update => Self::Deletion,
            Action::Create => Self::None,
        }
    }
}

/// Appends an operation of a commit.
pub fn write_op(line: &mut Vec<u8>, op: &RepoOp<'_>) {
    let RecordPath { collection, rkey } = RecordPath::split(op.path);
    let mut object = Object::begin(line);
    object.text("action", op.action.as_str());
    object.text("collection", collection);
    object.text("rkey", rkey);
    let is_there = op.action != Action::Delete;
    if let Some(cid) = op.cid.filter(|_| is_there) {
        object.plain("cid", cid);
    }
    if let Some(block) = op.record.filter(|_| is_there) {
        match (InvalidRecord::of_op(op), &block.value) {
            (Some(invalid), _) => object.invalid(&invalid, block.data),
            (None, Some(value)) => object.record(value, block.data),
            (None, None) => {}
        }
    }
    object.close();
}
