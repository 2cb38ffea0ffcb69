//! The manifest of a table: a Delta Lake log of protocol versions 1 (reader) and 2 (writer).
//!
//! ```text
//! listing ── which files there are ──> plan: newest checkpoint, entries after it ──> snapshot
//! commit ──> entry ──> every 50 versions a checkpoint ──> head: the newest version, remembered outside the log
//! ```
//!
//! Source: the Delta transaction log protocol, <https://github.com/delta-io/delta/blob/master/PROTOCOL.md>.

mod action;
mod checkpoint;
mod entry_hash;
mod head;
mod listing;
mod log;
mod schema;
mod snapshot;

pub(crate) use action::{Add, Format, MetaData, Remove, Stats};
pub(crate) use log::{Change, Committed, Log, now_ms};
pub(crate) use schema::schema_string;
pub(crate) use snapshot::{Snapshot, is_table_file};
