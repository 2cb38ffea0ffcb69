//! The rows of `events`.

use arrow_array::{
    Array, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};

use crate::event::ArchivedEvent;
use crate::signed_commit::StoredCommit;
use crate::table::Table;
use crate::table_rows::{
    Columns, Key, Row, bytes, integers, optional, optional_bytes, text, times,
};

/// A row of `events`. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct EventRow(pub(crate) Row<EventColumns>);

impl EventRow {
    /// The event. A row without a frame has an empty one.
    pub fn event(&self) -> ArchivedEvent<'_> {
        self.0.columns().event(self.0.index())
    }

    /// The form in which the event is stored: `full`, `compact` or `erased`.
    pub fn form(&self) -> &str {
        self.0.columns().form.value(self.0.index())
    }

    /// The path of its file within the archive, and the row in it from 0.
    pub fn place(&self) -> (&str, u64) {
        self.0.place()
    }

    /// The revision, as the event states it.
    pub(crate) fn rev(&self) -> Option<&str> {
        optional(&self.0.columns().rev, self.0.index())
    }

    /// The revision before, as the event states it.
    pub(crate) fn since(&self) -> Option<&str> {
        optional(&self.0.columns().since, self.0.index())
    }

    /// Columns that are derived from the frame, other than the revisions.
    pub(crate) fn derived(&self) -> Derived<'_> {
        let (columns, index) = (self.0.columns(), self.0.index());
        let cids = [&columns.commit, &columns.data, &columns.prev_data];
        Derived {
            time: optional(&columns.time, index),
            has_cids: cids.iter().any(|column| column.is_valid(index)),
        }
    }

    /// A commit in compact form; `None` without an account or a revision.
    pub(crate) fn commit(&self) -> Option<StoredCommit<'_>> {
        let (columns, index) = (self.0.columns(), self.0.index());
        Some(StoredCommit {
            did: optional(&columns.did, index)?,
            rev: optional(&columns.rev, index)?,
            sig: columns.sig.value(index),
            block: optional_bytes(&columns.commit_block, index),
        })
    }
}

/// Columns of an event that its frame gives.
pub(crate) struct Derived<'a> {
    /// The time, as the event states it.
    pub(crate) time: Option<&'a str>,
    /// Whether there are CIDs, which a frame holds.
    pub(crate) has_cids: bool,
}

/// The columns of `events`.
#[derive(Debug)]
pub(crate) struct EventColumns {
    did: StringArray,
    arrival: Int64Array,
    host: StringArray,
    seq: Int64Array,
    kind: StringArray,
    received: TimestampMicrosecondArray,
    time: StringArray,
    rev: StringArray,
    since: StringArray,
    commit: BinaryArray,
    data: BinaryArray,
    prev_data: BinaryArray,
    verdict: StringArray,
    key: StringArray,
    judge: StringArray,
    form: StringArray,
    frame: BinaryArray,
    sig: BinaryArray,
    commit_block: BinaryArray,
}

impl Columns for EventColumns {
    const TABLE: Table = Table::Events;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            arrival: integers(rows, "arrival"),
            host: text(rows, "host"),
            seq: integers(rows, "seq"),
            kind: text(rows, "kind"),
            received: times(rows, "received"),
            time: text(rows, "time"),
            rev: text(rows, "rev"),
            since: text(rows, "since"),
            commit: bytes(rows, "commit"),
            data: bytes(rows, "data"),
            prev_data: bytes(rows, "prev_data"),
            verdict: text(rows, "verdict"),
            key: text(rows, "key"),
            judge: text(rows, "judge"),
            form: text(rows, "form"),
            frame: bytes(rows, "frame"),
            sig: bytes(rows, "sig"),
            commit_block: bytes(rows, "commit_block"),
        }
    }

    fn key(&self, row: usize) -> Key {
        Key {
            did: optional(&self.did, row).map(Box::from),
            number: self.arrival.value(row),
            text: None,
        }
    }

    fn is_one_place(&self, a: usize, b: usize) -> bool {
        self.arrival.value(a) == self.arrival.value(b)
            && optional(&self.did, a) == optional(&self.did, b)
    }
}

impl EventColumns {
    fn event(&self, row: usize) -> ArchivedEvent<'_> {
        ArchivedEvent {
            did: optional(&self.did, row),
            arrival: self.arrival.value(row),
            host: self.host.value(row),
            seq: self.seq.is_valid(row).then(|| self.seq.value(row)),
            kind: self.kind.value(row),
            received: self.received.value(row),
            verdict: self.verdict.value(row),
            key: optional(&self.key, row),
            judge: self.judge.value(row),
            frame: self.frame.value(row),
        }
    }
}
