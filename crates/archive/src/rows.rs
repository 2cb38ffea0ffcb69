//! Turns archived events into rows of the tables `events` and `ops`.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int16Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use atproto::event::{Commit, Decoder, Event, Options, Values};

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

impl RowBuilder {
    pub(crate) fn new() -> Self {
        let mut options = Options::default();
        (options.trust_hashes, options.values) = (true, Values::ValidateOnly);
        Self { decoder: Decoder::new(options) }
    }

    /// The rows of these events, in their order, with frames in full.
    pub(crate) fn build(&mut self, events: &[ArchivedEvent<'_>]) -> Rows {
        let frames: Vec<&[u8]> = events.iter().map(|event| event.frame).collect();
        let decoded = self.decoder.decode_batch(&frames);
        let (mut event_columns, mut op_columns) = (EventColumns::default(), OpColumns::default());
        for (event, decoded) in events.iter().zip(decoded) {
            let decoded = decoded.as_ref().ok();
            event_columns.push(event, decoded);
            if let (Some(did), Some(Event::Commit(commit)), true) =
                (event.did, decoded, event.is_verified())
            {
                op_columns.push(did, event.arrival, commit);
            }
        }
        Rows { events: event_columns.finish(), ops: op_columns.finish() }
    }
}

#[derive(Default)]
struct EventColumns {
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

impl EventColumns {
    fn push(&mut self, event: &ArchivedEvent<'_>, decoded: Option<&Event<'_>>) {
        let fields = Fields::of(decoded);
        self.did.append_option(event.did);
        self.arrival.append_value(event.arrival);
        self.host.append_value(event.host);
        self.seq.append_option(event.seq);
        self.kind.append_value(event.kind);
        self.received.append_value(event.received);
        self.time.append_option(fields.time);
        self.rev.append_option(fields.rev);
        self.since.append_option(fields.since);
        // What the frame holds is not stored twice.
        self.commit.append_null();
        self.data.append_null();
        self.prev_data.append_null();
        self.verdict.append_value(event.verdict);
        self.key.append_option(event.key);
        self.plc_cid.append_null();
        self.judge.append_value(event.judge);
        self.form.append_value(FULL);
        self.frame.append_value(event.frame);
        self.sig.append_null();
        self.commit_block.append_null();
    }

    fn finish(mut self) -> RecordBatch {
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

#[derive(Default)]
struct OpColumns {
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

impl OpColumns {
    fn push(&mut self, did: &str, arrival: i64, commit: &Commit<'_>) {
        for (idx, op) in commit.ops.iter().enumerate() {
            let (collection, rkey) = op.path.split_once('/').unwrap_or((op.path, ""));
            self.did.append_value(did);
            self.arrival.append_value(arrival);
            self.idx.append_value(idx as i16);
            self.action.append_value(op.action.as_str());
            self.collection.append_value(collection);
            self.rkey.append_value(rkey);
            // The frame holds these.
            self.prev.append_null();
            self.cid.append_null();
            self.record.append_null();
        }
    }

    fn finish(mut self) -> RecordBatch {
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
struct Fields<'a> {
    time: Option<&'a str>,
    rev: Option<&'a str>,
    since: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn of(event: Option<&Event<'a>>) -> Self {
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
