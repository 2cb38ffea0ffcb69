//! The line of an event of a firehose.

use atproto::event::{Action, Commit, Event, RepoOp};
use codec::cid::CidRef;
use delivery::RecordEffects;
use events::{
    self, Body, Claims, EventBody, InvalidContent, Kind, Line, LineWriter, NewContent, NewOp, Proof,
};
use net::firehose::{DeliveredEvent, FrameKind, Verdict};
use verify::InvalidRecord;
use verify::sync::{Chain, Outcome};

use super::super::condition::{Condition, Subject};
use super::super::selection::Filter;
use super::{LineContent, LineHeader, ProofForm, deletion};

/// The line of an event.
pub struct EventLine<'e, 'a> {
    /// The host that sent it.
    pub host: &'e str,
    /// The event, with its verdict.
    pub event: &'e DeliveredEvent<'a>,
    pub(crate) filter: &'e Filter,
    /// The delivered form of every operation, if a condition decides.
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

    /// Appends the line, and returns the offset in it of the operations, or 0: the part before them can differ when the
    /// commit is received again.
    pub(crate) fn write(&self, lines: &mut Vec<u8>, header: LineHeader<'_>) -> usize {
        let line = self.line(header);
        let mut writer = LineWriter::begin(lines, &line);
        let mut ops_at = 0;
        if let Some(commit) = self.commit().filter(|_| has_ops(&self.event.verdict)) {
            ops_at = writer.begin_ops();
            self.write_ops(&mut writer, commit);
        }
        writer.end(&line);
        ops_at
    }

    /// The line without its operations.
    fn line<'s>(&'s self, header: LineHeader<'s>) -> Line<'s> {
        let event = self.event;
        let claims = event.event.map_or_else(|| Claims::undecoded(kind(event.kind)), Claims::from);
        let is_undecoded = matches!(event.kind, FrameKind::Unknown | FrameKind::Undecodable)
            || matches!(event.verdict, Verdict::Undecodable(_));
        let body = EventBody {
            arrival: None,
            host: self.host.into(),
            seq: event.seq.and_then(|seq| i64::try_from(seq).ok()),
            repeated: matches!(header, LineHeader::Printed { is_repeated: true }),
            did: event.did.map(Into::into),
            claims,
            key: None,
            message: message(&event.verdict).map(Into::into),
            verified_against: self.content.level.mark(),
            ops: None,
            proof: self.proof(),
            frame: is_undecoded.then(|| (&event.frame[..]).into()),
        };
        let (id, live) = header.id_and_live();
        let (verdict, code) = (verdict(&event.verdict), event.verdict.code().into());
        Line { id, live, verdict, code, body: Body::Event(body) }
    }

    fn proof(&self) -> Option<Proof<'static>> {
        let form = self.content.proof.filter(|_| self.event.verdict.is_verified())?;
        Some(match (form, self.event.event) {
            (ProofForm::Blocks, Some(Event::Commit(commit))) => Proof::Blocks(commit.car.into()),
            _ => Proof::Frame((&self.event.frame[..]).into()),
        })
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

    fn write_ops(&self, writer: &mut LineWriter<'_>, commit: &Commit<'_>) {
        for (op, of_op) in self.delivered_ops(commit) {
            match of_op {
                OpMatch::Deletion => writer.op(&deletion(op.path, true)),
                _ => write_op(writer, op),
            }
        }
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

/// The explanation of a verdict, for a person.
fn message(verdict: &Verdict<'_>) -> Option<String> {
    match verdict {
        Verdict::Judged(Outcome::Rejected(why)) => Some(why.to_string()),
        Verdict::Judged(Outcome::Ignored(why)) => Some(why.to_string()),
        Verdict::Judged(Outcome::Commit(_, Chain::Broken(why))) => Some(why.to_string()),
        Verdict::UnknownKey(why) => Some(why.to_string()),
        Verdict::Undecodable(why) => Some(why.to_string()),
        _ => None,
    }
}

fn verdict(verdict: &Verdict<'_>) -> events::Verdict {
    match verdict {
        Verdict::Judged(Outcome::Commit(..) | Outcome::Sync(..)) => events::Verdict::Verified,
        Verdict::Judged(Outcome::Ignored(_)) => events::Verdict::Ignored,
        Verdict::Judged(Outcome::Rejected(_)) | Verdict::Undecodable(_) => events::Verdict::Refused,
        Verdict::Judged(Outcome::Unjudged(_)) => events::Verdict::Unchecked,
        Verdict::UnknownKey(_) => events::Verdict::UnknownKey,
        Verdict::NotVerified => events::Verdict::NotAsked,
    }
}

fn kind(kind: FrameKind) -> Kind {
    match kind {
        FrameKind::Commit => Kind::Commit,
        FrameKind::Sync => Kind::Sync,
        FrameKind::Identity => Kind::Identity,
        FrameKind::Account => Kind::Account,
        FrameKind::Info => Kind::Info,
        FrameKind::Error => Kind::Error,
        FrameKind::Unknown => Kind::Unknown,
        FrameKind::Undecodable => Kind::Undecodable,
    }
}

/// Whether the line has the operations: they are verified, or verification is off.
fn has_ops(verdict: &Verdict<'_>) -> bool {
    verdict.is_verified() || matches!(verdict, Verdict::NotVerified)
}

/// The delivered form of an operation.
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
pub fn write_op(writer: &mut LineWriter<'_>, op: &RepoOp<'_>) {
    if op.action == Action::Delete {
        return writer.op(&deletion(op.path, false));
    }
    let put =
        NewOp { action: op.action, path: op.path, cid: op.cid, content: None, filtered: false };
    let Some(block) = op.record else { return writer.op(&put) };
    match (InvalidRecord::of_op(op), &block.value) {
        (Some(invalid), _) => write_invalid(writer, put, &invalid, block.data),
        (None, Some(value)) => {
            writer.op(&NewOp { content: Some(NewContent::Record(value, block.data)), ..put });
        }
        (None, None) => writer.op(&put),
    }
}

/// Writes an operation whose record is invalid: the broken rule and the bytes.
pub(super) fn write_invalid(
    writer: &mut LineWriter<'_>,
    put: NewOp<'_>,
    invalid: &InvalidRecord,
    bytes: &[u8],
) {
    let (message, error) = (invalid.error.to_string(), &invalid.error);
    let (code, offset) = (error.code(), error.offset);
    let content = NewContent::Invalid(InvalidContent { code, offset, message: &message, bytes });
    writer.op(&NewOp { content: Some(content), ..put });
}
