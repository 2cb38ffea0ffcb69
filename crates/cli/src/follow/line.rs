//! The line of JSON for an event of a firehose or a Jetstream, written straight into a buffer.
//!
//! `docs/formats/follow-lines.md` lists the keys, and `docs/formats/schemas/follow` has a JSON Schema of each kind.

use std::cmp::Ordering;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

use bumpalo::Bump;
use clap::ValueEnum;
use serde::Serialize;
use wireproof::atproto::event::{Action, Commit, Event, RepoOp};
use wireproof::atproto::mst::canonical;
use wireproof::atproto::repo::{Record, Records, RepoError, Repository};
use wireproof::atproto::syntax::DatetimeBuf;
use wireproof::codec::cbor::Value;
use wireproof::codec::cid::CidRef;
use wireproof::codec::json::{Json, append, append_text};
use wireproof::codec::printable::escape_json;
use wireproof::delivery::{DeliveredRecord, DeliveredRecords, EventId, RecordEffects};
use wireproof::net::firehose::{DeliveredEvent, FrameKind, ResyncedRepo, Verdict};
use wireproof::net::jetstream::{self, EventBody, Operation, Unrecognized};
use wireproof::verify::sync::{Chain, Outcome};
use wireproof::verify::{InvalidRecord, repository};

use super::condition::{Condition, Subject};
use super::repository_slice::Slice;
use super::selection::Filter;
use super::verify_level::VerifyLevel;
use crate::json::{self, InvalidBytes, RecordPath};

/// The form of the proof of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProofForm {
    /// The frame as received.
    Frame,
    /// A slice of the repository: the commit, the nodes on the paths of the operations, and the records.
    Blocks,
}

/// What the lines of a run have beside their events.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineContent {
    pub(super) proof: Option<ProofForm>,
    /// What is proved of events; lines name what is less than all.
    pub(super) level: VerifyLevel,
}

/// What a line has beside its event or repository.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineHeader<'h> {
    /// Straight to standard output: marked if an earlier run may have printed it.
    Printed { is_repeated: bool },
    /// An event for the outbox.
    Live { id: &'h EventId },
    /// A part of a repository for the outbox, and when it was fetched, in microseconds since 1970: it is another line
    /// when the same repository is fetched again for a new destination.
    History { id: &'h EventId, fetched_micros: u64 },
}

impl LineHeader<'_> {
    fn write(self, object: &mut Object<'_>) {
        match self {
            Self::Printed { .. } => {}
            Self::Live { id } => {
                object.text("id", id.as_str());
                object.json("live", &true);
            }
            Self::History { id, fetched_micros } => {
                object.text("id", id.as_str());
                object.json("live", &false);
                let time =
                    i64::try_from(fetched_micros).ok().and_then(DatetimeBuf::from_unix_micros);
                object.optional("time", time.as_ref().map(|time| time.as_str()));
            }
        }
    }
}

/// The line of an event.
pub(super) struct EventLine<'e, 'a> {
    pub(super) host: &'e str,
    pub(super) event: &'e DeliveredEvent<'a>,
    pub(super) filter: &'e Filter,
    /// What is delivered of each operation, if a condition decides that.
    matches: Option<Vec<OpMatch>>,
    content: LineContent,
}

impl<'e, 'a> EventLine<'e, 'a> {
    pub(super) fn new(
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
    pub(super) fn is_selected(&self) -> bool {
        if let Some(matches) = &self.matches {
            return matches.iter().any(|of| *of != OpMatch::None);
        }
        let has_any =
            |commit: &Commit<'_>| self.filter.has_any(commit.ops.iter().map(|op| op.path));
        self.commit().is_none_or(has_any)
    }

    /// Appends the line.
    pub(super) fn write(&self, line: &mut Vec<u8>, header: LineHeader<'_>) {
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
    }

    /// The changes of the records that the line has.
    pub(super) fn effects(&self) -> Option<RecordEffects> {
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

/// Writes the line of an account that its own server calls inactive.
pub(super) fn write_status(line: &mut Vec<u8>, id: &EventId, did: &str, status: Option<&str>) {
    let mut object = Object::begin_line(line);
    object.text("id", id.as_str());
    object.json("live", &false);
    object.text("kind", "status");
    object.text("did", did);
    object.json("active", &false);
    object.optional("status", status);
    object.text("verdict", "unchecked");
    object.text("code", CONFIRMED_CODE);
    object.end();
}

/// The lines of a resynced repository: its selected records in pieces, in order of their paths, or their difference to
/// those that the reader has.
pub(super) struct ResyncLines<'r, 'a> {
    resynced: &'r ResyncedRepo,
    repository: &'r Repository<'a>,
    filter: &'r Filter,
    has_proofs: bool,
    records: Records<'r, 'a>,
    /// The next selected record.
    next: Option<Record<'a>>,
    /// The records that the reader has; `None` where they are not known.
    delivered: Option<DeliveredRecords>,
    next_delivered: Option<DeliveredRecord>,
    pieces: u64,
}

/// A change that a line of a repository has.
#[derive(Debug)]
enum RepositoryChange<'a> {
    Put(Action, Record<'a>),
    /// `filtered`: the repository has the record, which does not match any more.
    Delete {
        path: Box<str>,
        filtered: bool,
    },
}

impl<'r, 'a> ResyncLines<'r, 'a> {
    pub(super) fn new(
        resynced: &'r ResyncedRepo,
        repository: &'r Repository<'a>,
        filter: &'r Filter,
        has_proofs: bool,
    ) -> Result<Self, RepoError> {
        let mut lines = Self {
            resynced,
            repository,
            filter,
            has_proofs,
            records: repository.records(),
            next: None,
            delivered: None,
            next_delivered: None,
            pieces: 0,
        };
        lines.advance()?;
        Ok(lines)
    }

    /// Leaves out what the reader has, if that is complete, and adds deletions of what it has and the repository has not.
    pub(super) fn compare_with(&mut self, delivered: DeliveredRecords) -> io::Result<()> {
        self.delivered = Some(delivered);
        self.advance_delivered()
    }

    /// Whether the lines have all records.
    pub(super) fn is_whole(&self) -> bool {
        self.delivered.as_ref().is_none_or(|delivered| !delivered.is_complete())
    }

    /// The repository.
    pub(super) fn repository(&self) -> &'r ResyncedRepo {
        self.resynced
    }

    /// Number of the next line.
    pub(super) fn next_piece(&self) -> u64 {
        self.pieces
    }

    /// Writes the next line, and adds its changes to `effects`. Whether it is the last; there is at least one, also without
    /// records.
    pub(super) fn write_next(
        &mut self,
        line: &mut Vec<u8>,
        header: LineHeader<'_>,
        mut effects: Option<&mut RecordEffects>,
    ) -> io::Result<bool> {
        let mut object = Object::begin_line(line);
        header.write(&mut object);
        object.text("host", &self.resynced.host);
        object.text("kind", "resync");
        object.text("did", &self.resynced.did);
        object.plain("rev", self.resynced.head.rev);
        object.plain("commit", self.resynced.head.commit);
        object.text("verdict", "verified");
        object.text("code", VERIFIED_CODE);
        object.number("records", self.resynced.records);
        object.number("invalid_records", self.resynced.invalid_records);
        object.number("bytes", self.resynced.bytes);
        object.number("piece", self.pieces);
        object.json("whole", &self.is_whole());
        object.key("ops");
        object.line.push(b'[');
        let mut slice = self.has_proofs.then(|| Slice::new(self.repository)).transpose()?;
        let mut count = 0;
        while count < MAX_PIECE_RECORDS
            && object.line.len() - object.start < MAX_PIECE_BYTES
            && let Some(change) = self.next_change()?
        {
            if count > 0 {
                object.line.push(b',');
            }
            if let Some(effects) = &mut effects {
                change.add_to(effects);
            }
            change.write(object.line);
            if let Some(slice) = &mut slice {
                slice.add(change.path())?;
            }
            count += 1;
        }
        object.line.push(b']');
        // What the reader has at the end is skipped or deleted.
        let is_last = !self.has_change()?;
        object.json("last", &is_last);
        if let Some(slice) = slice {
            object.proof("blocks", &slice.finish());
        }
        object.end();
        self.pieces += 1;
        Ok(is_last)
    }

    /// Whether another change follows, after skipping equal records.
    fn has_change(&mut self) -> io::Result<bool> {
        while self.is_unchanged() {
            self.advance().map_err(io::Error::other)?;
            self.advance_delivered()?;
        }
        Ok(self.next.is_some() || self.next_delivered.is_some())
    }

    /// Whether the next record needs no line: the reader has it, and all that the lines before brought.
    fn is_unchanged(&self) -> bool {
        let (Some(record), Some(delivered)) = (&self.next, &self.next_delivered) else {
            return false;
        };
        !self.is_whole()
            && *record.path == *delivered.path
            && delivered.has_hash(record.cid.digest())
    }

    /// The next change.
    fn next_change(&mut self) -> io::Result<Option<RepositoryChange<'a>>> {
        if !self.has_change()? {
            return Ok(None);
        }
        let delivered = self.next_delivered.as_ref().map(|delivered| delivered.path.clone());
        let order = match (&self.next, &delivered) {
            (Some(record), Some(path)) => (*record.path).cmp(path),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        if order != Ordering::Less {
            self.advance_delivered()?;
        }
        let change = match (order, self.next.take(), delivered) {
            (Ordering::Greater, next, Some(path)) => {
                self.next = next;
                let filtered = self.filter.condition.is_some() && self.has_record(&path)?;
                return Ok(Some(RepositoryChange::Delete { path, filtered }));
            }
            (order, record, _) => record.map(|record| {
                let is_update = order == Ordering::Equal && !self.is_whole();
                let action = if is_update { Action::Update } else { Action::Create };
                RepositoryChange::Put(action, record)
            }),
        };
        self.advance().map_err(io::Error::other)?;
        Ok(change)
    }

    /// Whether the repository has a record, selected or not.
    fn has_record(&self, path: &str) -> io::Result<bool> {
        let data = self.repository.commit().data;
        let found = canonical::search(data, self.repository, path.as_bytes());
        Ok(found.map_err(io::Error::other)?.value.is_some())
    }

    fn advance_delivered(&mut self) -> io::Result<()> {
        let Some(delivered) = &mut self.delivered else { return Ok(()) };
        self.next_delivered = loop {
            match delivered.next_record().map_err(io::Error::other)? {
                Some(record) if !self.filter.has_path(&record.path) => {}
                next => break next,
            }
        };
        Ok(())
    }

    fn advance(&mut self) -> Result<(), RepoError> {
        let selected = |record: &Result<Record<'a>, RepoError>| {
            record.as_ref().map_or(true, |record| is_selected(self.filter, self.resynced, record))
        };
        self.next = self.records.find(selected).transpose()?;
        Ok(())
    }
}

impl RepositoryChange<'_> {
    fn path(&self) -> &str {
        match self {
            Self::Put(_, record) => &record.path,
            Self::Delete { path, .. } => path,
        }
    }

    fn add_to(&self, effects: &mut RecordEffects) {
        match self {
            Self::Put(_, record) => effects.put(&record.path, record.cid.digest()),
            Self::Delete { path, .. } => effects.delete(path),
        }
    }

    /// Writes the operation.
    fn write(&self, line: &mut Vec<u8>) {
        match self {
            Self::Put(action, record) => write_record(line, *action, record),
            Self::Delete { path, filtered } => write_deletion(line, path, *filtered),
        }
    }
}

/// Whether a record of a repository is delivered.
fn is_selected(filter: &Filter, resynced: &ResyncedRepo, record: &Record<'_>) -> bool {
    let Some(condition) = filter.condition.as_ref().filter(|_| filter.has_path(&record.path))
    else {
        return filter.has_path(&record.path);
    };
    let (arena, rev) = (Bump::new(), resynced.head.rev.to_string());
    let max_bytes = repository::Options::default().max_record_bytes;
    let value = match InvalidRecord::of_record(record, max_bytes) {
        Some(_) => None,
        None => record.value(&arena).ok(),
    };
    condition.matches(&Subject {
        did: &resynced.did,
        rev: &rev,
        live: false,
        action: Action::Create,
        path: &record.path,
        record: value.as_ref().map(|value| (value, record.block.len())),
    })
}

/// Writes a record in the form of an operation.
fn write_record(line: &mut Vec<u8>, action: Action, record: &Record<'_>) {
    let RecordPath { collection, rkey } = RecordPath::split(&record.path);
    let arena = Bump::new();
    let mut object = Object::begin(line);
    object.text("action", action.as_str());
    object.text("collection", collection);
    object.text("rkey", rkey);
    object.plain("cid", record.cid);
    let max_bytes = repository::Options::default().max_record_bytes;
    if let Some(invalid) = InvalidRecord::of_record(record, max_bytes) {
        object.invalid(&invalid, record.block);
    } else if let Ok(value) = record.value(&arena) {
        object.record(&value);
    }
    object.close();
}

/// Writes the fields that the event claims, verified or not.
fn claims(object: &mut Object<'_>, event: &Event<'_>) {
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
        Verdict::Judged(outcome) => json::verdict(outcome),
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

/// Writes a deletion; `filtered` if the record is there and does not match any more.
fn write_deletion(line: &mut Vec<u8>, path: &str, filtered: bool) {
    let RecordPath { collection, rkey } = RecordPath::split(path);
    let mut object = Object::begin(line);
    object.text("action", Action::Delete.as_str());
    object.text("collection", collection);
    object.text("rkey", rkey);
    if filtered {
        object.json("filtered", &true);
    }
    object.close();
}

fn write_op(line: &mut Vec<u8>, op: &RepoOp<'_>) {
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
            (None, Some(value)) => object.record(value),
            (None, None) => {}
        }
    }
    object.close();
}

/// Writes the line of an event of a Jetstream.
pub(super) fn write_jetstream(line: &mut Vec<u8>, host: &str, event: &jetstream::Event) {
    let mut object = Object::begin_line(line);
    object.text("host", host);
    object.number("seq", event.cursor);
    object.text("kind", event.kind().name());
    object.text("did", event.did.as_str());
    match &event.body {
        EventBody::Commit(commit) => {
            let micros = i64::try_from(event.micros).unwrap_or(i64::MAX);
            let time = DatetimeBuf::from_unix_micros(micros);
            object.optional("time", time.as_ref().map(|time| time.as_str()));
            object.plain("rev", commit.rev);
        }
        EventBody::Sync(sync) => {
            object.text("time", &sync.time);
            object.plain("rev", sync.rev);
        }
        EventBody::Identity(identity) => {
            object.text("time", &identity.time);
            object.optional("handle", identity.handle.as_deref());
        }
        EventBody::Account(account) => {
            object.text("time", &account.time);
            object.json("active", &account.active);
            object.optional("status", account.status.as_deref());
        }
    }
    object.text("verdict", NOT_ASKED);
    object.text("code", NOT_ASKED_CODE);
    if let EventBody::Commit(commit) = &event.body {
        write_jetstream_op(&mut object, commit);
    }
    object.end();
}

fn write_jetstream_op(object: &mut Object<'_>, commit: &jetstream::Commit) {
    object.key("ops");
    object.line.push(b'[');
    let mut op = Object::begin(object.line);
    let action = match commit.operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    };
    op.text("action", action);
    op.text("collection", commit.collection.as_str());
    op.text("rkey", commit.rkey.as_str());
    op.optional("cid", commit.cid.as_ref().map(|cid| cid.as_str()));
    if let Some(record) = &commit.record {
        op.key("record");
        // Line ends can only be white space here: in text they are escaped.
        let one_line = |byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
        op.line.extend(record.get().bytes().map(one_line));
    }
    op.close();
    object.line.push(b']');
}

/// Writes the line of a Jetstream message that is no event.
pub(super) fn write_unrecognized(line: &mut Vec<u8>, host: &str, message: &Unrecognized) {
    let mut object = Object::begin_line(line);
    object.text("host", host);
    object.text("kind", UNDECODABLE);
    object.text("verdict", "refused");
    object.text("code", UNREADABLE_CODE);
    object.text("message", &message.reason);
    object.bytes("frame", &message.bytes);
    object.end();
}

/// A JSON object that is being written.
struct Object<'l> {
    line: &'l mut Vec<u8>,
    /// The offset of its brace: other lines may be before it.
    start: usize,
    is_first: bool,
}

impl<'l> Object<'l> {
    fn begin(line: &'l mut Vec<u8>) -> Self {
        let start = line.len();
        line.push(b'{');
        Self { line, start, is_first: true }
    }

    /// Begins a line, with the version of its format.
    fn begin_line(line: &'l mut Vec<u8>) -> Self {
        let mut object = Self::begin(line);
        object.number("v", VERSION);
        object
    }

    /// Writes a key, which needs no escapes, and its colon.
    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        append_text(self.line, text);
    }

    fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    fn number(&mut self, key: &str, number: u64) {
        self.json(key, &number);
    }

    /// Writes a text that needs no escapes, such as a CID.
    fn plain(&mut self, key: &str, text: impl Display) {
        self.key(key);
        write!(self.line, "\"{text}\"").expect("writing to memory does not fail");
    }

    fn proof(&mut self, form: &str, bytes: &[u8]) {
        self.key("proof");
        let mut object = Object::begin(self.line);
        object.bytes(form, bytes);
        object.close();
    }

    fn bytes(&mut self, key: &str, bytes: &[u8]) {
        self.json(key, &Json(&Value::Bytes(bytes)));
    }

    fn message(&mut self, why: impl Display) {
        let mut text = String::new();
        write!(text, "{why}").expect("writing to memory does not fail");
        self.text("message", &text);
    }

    fn json(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.key(key);
        serde_json::to_writer(&mut *self.line, value).expect("text and numbers have a JSON form");
    }

    /// Writes a record, or the reason why it has no JSON form.
    fn record(&mut self, value: &Value<'_>) {
        let start = (self.line.len(), self.is_first);
        self.key("record");
        if let Err(error) = append(self.line, value) {
            self.line.truncate(start.0);
            self.is_first = start.1;
            self.text("record_error", &error.to_string());
        }
    }

    /// Writes the broken rule and the bytes of a record that is no valid one.
    fn invalid(&mut self, invalid: &InvalidRecord, bytes: &[u8]) {
        self.json("invalid", &InvalidBytes::new(&invalid.error, bytes));
    }

    fn close(self) {
        self.line.push(b'}');
    }

    /// Ends the line, with the invisible characters of all its texts escaped.
    fn end(self) {
        escape_json(self.line, self.start);
        self.line.extend_from_slice(b"}\n");
    }
}

/// Version of the lines: another one when a key changes its meaning or is removed.
const VERSION: u64 = 1;
/// Number of records, and size in bytes, at which the line of a resync ends.
const MAX_PIECE_RECORDS: usize = 100;
const MAX_PIECE_BYTES: usize = 1 << 20;
/// Verdict of events that are not verified, and its code.
const NOT_ASKED: &str = "not-asked";
pub(super) const NOT_ASKED_CODE: &str = "not-asked";
const VERIFIED_CODE: &str = "verified";
/// Code of a status that the account's own server confirms.
const CONFIRMED_CODE: &str = "status/confirmed";
/// Kind of a message that cannot be decoded.
pub(super) const UNDECODABLE: &str = "undecodable";
/// Code of a Jetstream message that cannot be decoded.
pub(super) const UNREADABLE_CODE: &str = "message";

#[cfg(test)]
mod tests {
    use wireproof::codec::json as codec_json;

    use super::*;

    fn object(fill: impl FnOnce(&mut Object<'_>)) -> String {
        let mut line = Vec::new();
        let mut object = Object::begin(&mut line);
        fill(&mut object);
        object.end();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn untrusted_text_is_escaped() {
        let line = object(|object| {
            object.text("a", "x\"\n\u{1b}[2J\\\u{9b}\u{202e}\u{200b}");
            object.number("b", u64::MAX);
        });
        let text = r#""x\"\n\u001b[2J\\\u009b\u202e\u200b""#;
        assert_eq!(line, format!("{{\"a\":{text},\"b\":18446744073709551615}}\n"));
    }

    #[test]
    fn a_record_has_the_json_form_of_the_data_model() {
        let arena = Bump::new();
        let text = r#"{"n":[1,{"$bytes":"aGkhPw"}],"text":"\u0007"}"#;
        let value = codec_json::decode(text, &arena).unwrap();
        assert_eq!(object(|object| object.record(&value)), format!("{{\"record\":{text}}}\n"));
    }

    #[test]
    fn a_record_without_a_json_form_is_replaced_by_the_error() {
        let values = [Value::Boolean(true), Value::Float(f64::NAN)];
        for (before, comma) in [(false, ""), (true, "\"a\":1,")] {
            let line = object(|object| {
                if before {
                    object.number("a", 1);
                }
                object.record(&Value::Array(&values));
            });
            assert!(line.starts_with(&format!("{{{comma}\"record_error\":\"")), "{line}");
            assert!(line.ends_with("\"}\n") && !line.contains("true"), "{line}");
        }
    }
}
