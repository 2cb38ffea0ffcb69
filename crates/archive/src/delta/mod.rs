//! The manifest of a table: a Delta Lake log of protocol versions 1 (reader) and 2 (writer).
//!
//! Source: the Delta transaction log protocol, <https://github.com/delta-io/delta/blob/master/PROTOCOL.md>.

mod action;
mod entry_hash;
mod log;
mod schema;

pub(crate) use action::{Add, Format, MetaData, Remove, Stats};
pub(crate) use log::{Change, Committed, Log, Snapshot, now_ms, uuid};
pub(crate) use schema::schema_string;
