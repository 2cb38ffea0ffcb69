//! Tests of archives as a whole, in one program: a program for each would link Parquet and Arrow fourteen times.

mod blobs;
mod common;
mod compact_form;
mod crashes;
mod decode_limits;
mod derived;
mod erasures;
mod kept_segments;
mod key_history;
mod labels;
mod ledgers;
mod logs;
mod newest_repository;
mod parts;
mod plain_proof;
mod replays;
mod rewritten;
mod rows;
#[cfg(feature = "serve")]
mod serve;
mod stored_revisions;
mod stores;
mod streams;
