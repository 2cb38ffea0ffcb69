//! The tables of an archive and their columns.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A table of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Every event as received, with its verdict.
    Events,
    /// The operations of verified commits.
    Ops,
    /// The signed heads of whole repositories.
    Snapshots,
    /// The records of whole repositories.
    Records,
    /// The proofs of collections whose repositories were not fetched whole.
    Parts,
    /// The records of these collections.
    PartRecords,
    /// The accounts and records that readers leave out.
    Hidden,
    /// The operations of did:plc accounts, which decide about their keys.
    PlcOps,
    /// The blobs that are stored for accounts.
    Blobs,
    /// Every label as received, with its verdict.
    Labels,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 10] = [
        Self::Events,
        Self::Ops,
        Self::Snapshots,
        Self::Records,
        Self::Parts,
        Self::PartRecords,
        Self::Hidden,
        Self::PlcOps,
        Self::Blobs,
        Self::Labels,
    ];

    /// The name, and the folder within the archive.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Ops => "ops",
            Self::Snapshots => "snapshots",
            Self::Records => "records",
            Self::Parts => "parts",
            Self::PartRecords => "part_records",
            Self::Hidden => "hidden",
            Self::PlcOps => "plc_ops",
            Self::Blobs => "blobs",
            Self::Labels => "labels",
        }
    }

    /// The columns of its files; `day` is in the log alone.
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; Table::ALL.len()]> =
            LazyLock::new(|| Table::ALL.map(|table| Arc::new(Schema::new(table.fields()))));
        SCHEMAS[self as usize].clone()
    }

    /// The columns by which its files are sorted.
    pub(crate) fn sorting(self) -> &'static [&'static str] {
        match self {
            Self::Events => &["did", "arrival"],
            Self::Ops => &["did", "arrival", "idx"],
            Self::Snapshots => &["did", "rev"],
            // Records follow in the order of the tree, whose keys are whole paths.
            Self::Records => &["did", "rev"],
            Self::Parts | Self::PartRecords => &["did", "rev", "collections"],
            Self::Hidden => &["at", "did"],
            Self::PlcOps => &["did", "fetched", "seq"],
            Self::Blobs => &["did", "fetched", "cid"],
            // Labels that were received together follow in the order of their messages.
            Self::Labels => &["did", "received"],
        }
    }

    /// The columns with accounts of which a row is: all of them are shown, or the row is left out.
    pub fn account_columns(self) -> &'static [&'static str] {
        match self {
            Self::Labels => &["did", "src"],
            _ => &["did"],
        }
    }

    /// The columns whose least and greatest values the log states.
    pub(crate) fn bounded(self) -> &'static [&'static str] {
        match self {
            Self::Labels => &["did", "received", "src"],
            _ => &self.sorting()[..2],
        }
    }

    fn fields(self) -> Vec<Field> {
        match self {
            Self::Events => vec![
                optional("did", DataType::Utf8),
                required("arrival", DataType::Int64),
                required("host", DataType::Utf8),
                optional("seq", DataType::Int64),
                required("kind", DataType::Utf8),
                required("received", time()),
                optional("time", DataType::Utf8),
                optional("rev", DataType::Utf8),
                optional("since", DataType::Utf8),
                optional("commit", DataType::Binary),
                optional("data", DataType::Binary),
                optional("prev_data", DataType::Binary),
                required("verdict", DataType::Utf8),
                optional("key", DataType::Utf8),
                optional("plc_cid", DataType::Binary),
                required("judge", DataType::Utf8),
                required("form", DataType::Utf8),
                optional("frame", DataType::Binary),
                optional("sig", DataType::Binary),
                optional("commit_block", DataType::Binary),
            ],
            Self::Ops => vec![
                required("did", DataType::Utf8),
                required("arrival", DataType::Int64),
                required("idx", DataType::Int16),
                required("action", DataType::Utf8),
                required("collection", DataType::Utf8),
                required("rkey", DataType::Utf8),
                optional("prev", DataType::Binary),
                optional("cid", DataType::Binary),
                optional("record", DataType::Binary),
            ],
            Self::Snapshots => vec![
                required("did", DataType::Utf8),
                required("host", DataType::Utf8),
                required("fetched", time()),
                required("rev", DataType::Utf8),
                required("sig", DataType::Binary),
                required("data", DataType::Binary),
                optional("commit_block", DataType::Binary),
                required("records", DataType::Int64),
                required("verdict", DataType::Utf8),
                optional("key", DataType::Utf8),
                optional("plc_cid", DataType::Binary),
                required("judge", DataType::Utf8),
            ],
            Self::Records => vec![
                required("did", DataType::Utf8),
                required("rev", DataType::Utf8),
                required("collection", DataType::Utf8),
                required("rkey", DataType::Utf8),
                optional("cid", DataType::Binary),
                required("record", DataType::Binary),
            ],
            Self::Parts => vec![
                required("did", DataType::Utf8),
                required("rev", DataType::Utf8),
                required("collections", DataType::Utf8),
                required("host", DataType::Utf8),
                required("fetched", time()),
                required("proof", DataType::Binary),
                required("records", DataType::Int64),
                required("key", DataType::Utf8),
                required("judge", DataType::Utf8),
            ],
            Self::PartRecords => vec![
                required("did", DataType::Utf8),
                required("rev", DataType::Utf8),
                required("collections", DataType::Utf8),
                required("collection", DataType::Utf8),
                required("rkey", DataType::Utf8),
                optional("cid", DataType::Binary),
                required("record", DataType::Binary),
            ],
            Self::Hidden => vec![
                required("at", time()),
                required("action", DataType::Utf8),
                optional("did", DataType::Utf8),
                optional("collection", DataType::Utf8),
                optional("rkey", DataType::Utf8),
                optional("account", DataType::Binary),
                required("reason", DataType::Utf8),
            ],
            Self::PlcOps => vec![
                required("did", DataType::Utf8),
                required("fetched", time()),
                required("seq", DataType::Int64),
                required("cid", DataType::Binary),
                required("created", time()),
                required("nullified", DataType::Boolean),
                required("op", DataType::Binary),
            ],
            Self::Blobs => vec![
                required("did", DataType::Utf8),
                required("fetched", time()),
                required("cid", DataType::Binary),
                required("size", DataType::Int64),
                required("host", DataType::Utf8),
            ],
            Self::Labels => vec![
                optional("did", DataType::Utf8),
                required("received", time()),
                required("service", DataType::Utf8),
                required("host", DataType::Utf8),
                required("seq", DataType::Int64),
                required("idx", DataType::Int16),
                optional("src", DataType::Utf8),
                optional("uri", DataType::Utf8),
                optional("cid", DataType::Utf8),
                optional("val", DataType::Utf8),
                optional("neg", DataType::Boolean),
                optional("cts", DataType::Utf8),
                optional("exp", DataType::Utf8),
                optional("ver", DataType::Int64),
                optional("sig", DataType::Binary),
                required("verdict", DataType::Utf8),
                optional("key", DataType::Utf8),
                required("judge", DataType::Utf8),
                optional("label", DataType::Binary),
            ],
        }
    }
}

fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn optional(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

/// Microseconds since 1970, UTC.
fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The day of a time in microseconds since 1970, UTC. A time that no calendar has is of the first day.
pub(crate) fn day_of(micros: i64) -> Date {
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    TimeZone::UTC.to_datetime(time).date()
}

/// The column by which tables are partitioned: the day of `received`, `fetched` or `at`, UTC.
pub(crate) const DAY: &str = "day";
