//! Turns archived events into rows of the tables `events` and `ops`.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int16Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use atproto::event::{Commit, Decoder, Event, Options, RepoOp, Values};
use codec::Cid;
use codec::cid::Codec;

use crate::event::ArchivedEvent;
use crate::table::Table;

/// The rows of a few events.
pub(crate) struct Rows {
    pub(crate) events: RecordBatch,
    pub(crate) ops: RecordBatch,
}

/// Builds rows. Frames are decoded for their fields, and not verified again.
pub(crate) struct RowBuilder {
    decoder: Decoder,
}

/// A decoder of stored frames, for their fields.
pub(crate) fn field_decoder() -> Decoder {
    let mut options = Options::default();
    (options.trust_hashes, options.values) = (true, Values::ValidateOnly);
    Decoder::new(options)
}

impl RowBuilder {
    pub(crate) fn new() -> Self {
        Self { decoder: field_decoder() }
    }

    /// The rows of these events, in their order, with frames in full.
    pub(crate) fn build(&mut self, events: &[ArchivedEvent<'_>]) -> Rows {
        let frames: Vec<&[u8]> = events.iter().map(|event| event.frame).collect();
        let decoded = self.decoder.decode_batch(&frames);
        let (mut event_rows, mut op_rows) = (EventRows::default(), OpRows::default());
        for (event, decoded) in events.iter().zip(decoded) {
            let decoded = decoded.as_ref().ok();
            event_rows.push(event, &Fields::of(decoded), &Form::Full);
            if let (Some(did), Some(Event::Commit(commit)), true) =
                (event.did, decoded, event.is_verified())
            {
                op_rows.push(did, event.arrival, commit);
            }
        }
        Rows { events: event_rows.finish(), ops: op_rows.finish() }
    }
}

/// The stored form of a frame.
pub(crate) enum Form<'a> {
    /// The frame as it came.
    Full,
    /// The parts that operations lack: the signature of the commit, and its block if its fields do not give it.
    Compact { sig: &'a [u8; 64], commit_block: Option<&'a [u8]> },
}

/// Builders of the columns of `events`.
#[derive(Default)]
pub(crate) struct EventRows {
    did: StringBuilder,
    arrival: Int64Builder,
    host: StringBuilder,
    seq: Int64Builder,
    kind: StringBuilder,
    received: TimestampMicrosecondBuilder,
    time: StringBuilder,
    rev: StringBuilder,
    since: StringBuilder,
    commit: BinaryBuilder,
    data: BinaryBuilder,
    prev_data: BinaryBuilder,
    verdict: StringBuilder,
    key: StringBuilder,
    plc_cid: BinaryBuilder,
    judge: StringBuilder,
    form: StringBuilder,
    frame: BinaryBuilder,
    sig: BinaryBuilder,
    commit_block: BinaryBuilder,
}

impl EventRows {
    pub(crate) fn push(&mut self, event: &ArchivedEvent<'_>, fields: &Fields<'_>, form: &Form<'_>) {
        self.did.append_option(event.did);
        self.arrival.append_value(event.arrival);
        self.host.append_value(event.host);
        self.seq.append_option(event.seq);
        self.kind.append_value(event.kind);
        self.received.append_value(event.received);
        self.time.append_option(fields.time);
        self.rev.append_option(fields.rev);
        self.since.append_option(fields.since);
        // The frame or the operations give these.
        self.commit.append_null();
        self.data.append_null();
        self.prev_data.append_null();
        self.verdict.append_value(event.verdict);
        self.key.append_option(event.key);
        self.plc_cid.append_null();
        self.judge.append_value(event.judge);
        match *form {
            Form::Full => {
                self.form.append_value(FULL);
                self.frame.append_value(event.frame);
                self.sig.append_null();
                self.commit_block.append_null();
            }
            Form::Compact { sig, commit_block } => {
                self.form.append_value(COMPACT);
                self.frame.append_null();
                self.sig.append_value(sig);
                self.commit_block.append_option(commit_block);
            }
        }
    }

    /// The rows so far; later rows start a new batch.
    pub(crate) fn finish(&mut self) -> RecordBatch {
        batch(
            Table::Events,
            vec![
                Arc::new(self.did.finish()),
                Arc::new(self.arrival.finish()),
                Arc::new(self.host.finish()),
                Arc::new(self.seq.finish()),
                Arc::new(self.kind.finish()),
                Arc::new(self.received.finish().with_timezone("UTC")),
                Arc::new(self.time.finish()),
                Arc::new(self.rev.finish()),
                Arc::new(self.since.finish()),
                Arc::new(self.commit.finish()),
                Arc::new(self.data.finish()),
                Arc::new(self.prev_data.finish()),
                Arc::new(self.verdict.finish()),
                Arc::new(self.key.finish()),
                Arc::new(self.plc_cid.finish()),
                Arc::new(self.judge.finish()),
                Arc::new(self.form.finish()),
                Arc::new(self.frame.finish()),
                Arc::new(self.sig.finish()),
                Arc::new(self.commit_block.finish()),
            ],
        )
    }
}

/// Builders of the columns of `ops`.
#[derive(Default)]
pub(crate) struct OpRows {
    did: StringBuilder,
    arrival: Int64Builder,
    idx: Int16Builder,
    action: StringBuilder,
    collection: StringBuilder,
    rkey: StringBuilder,
    prev: BinaryBuilder,
    cid: BinaryBuilder,
    record: BinaryBuilder,
}

impl OpRows {
    /// The operations of a commit whose frame is stored.
    fn push(&mut self, did: &str, arrival: i64, commit: &Commit<'_>) {
        for (idx, op) in commit.ops.iter().enumerate() {
            self.push_path(did, arrival, idx, op);
            // The frame holds these.
            self.cid.append_null();
            self.record.append_null();
        }
    }

    /// The operations of a commit whose frame is not stored, with the records.
    pub(crate) fn push_records(&mut self, did: &str, arrival: i64, commit: &Commit<'_>) {
        for (idx, op) in commit.ops.iter().enumerate() {
            self.push_path(did, arrival, idx, op);
            let record = op.record.map(|block| block.data);
            let usual = record.map(|record| Cid::of(Codec::DagCbor, record));
            let unusual = op.cid.filter(|cid| usual.is_none_or(|usual| usual.as_cid_ref() != *cid));
            self.cid.append_option(unusual.map(|cid| cid.as_bytes()));
            self.record.append_option(record);
        }
    }

    fn push_path(&mut self, did: &str, arrival: i64, idx: usize, op: &RepoOp<'_>) {
        let (collection, rkey) = op.path.split_once('/').unwrap_or((op.path, ""));
        self.did.append_value(did);
        self.arrival.append_value(arrival);
        self.idx.append_value(idx as i16);
        self.action.append_value(op.action.as_str());
        self.collection.append_value(collection);
        self.rkey.append_value(rkey);
        // The frame holds it, or the operations before give it.
        self.prev.append_null();
    }

    /// The rows so far; later rows start a new batch.
    pub(crate) fn finish(&mut self) -> RecordBatch {
        batch(
            Table::Ops,
            vec![
                Arc::new(self.did.finish()),
                Arc::new(self.arrival.finish()),
                Arc::new(self.idx.finish()),
                Arc::new(self.action.finish()),
                Arc::new(self.collection.finish()),
                Arc::new(self.rkey.finish()),
                Arc::new(self.prev.finish()),
                Arc::new(self.cid.finish()),
                Arc::new(self.record.finish()),
            ],
        )
    }
}

fn batch(table: Table, columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(table.schema(), columns).expect("the columns of the table")
}

/// The fields of an event that have columns.
#[derive(Default)]
pub(crate) struct Fields<'a> {
    pub(crate) time: Option<&'a str>,
    pub(crate) rev: Option<&'a str>,
    pub(crate) since: Option<&'a str>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(event: Option<&Event<'a>>) -> Self {
        match event {
            Some(Event::Commit(commit)) => {
                Self { time: Some(commit.time), rev: Some(commit.rev), since: commit.since }
            }
            Some(Event::Sync(sync)) => {
                Self { time: Some(sync.time), rev: Some(sync.rev), since: None }
            }
            Some(Event::Identity(identity)) => {
                Self { time: Some(identity.time), ..Self::default() }
            }
            Some(Event::Account(account)) => Self { time: Some(account.time), ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// A column of one time in microseconds since 1970.
pub(crate) fn timestamps(micros: i64) -> TimestampMicrosecondArray {
    TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC")
}

/// The form of an event whose frame is stored.
pub(crate) const FULL: &str = "full";

/// The form of a commit of which the signature and the operations are stored.
pub(crate) const COMPACT: &str = "compact";
