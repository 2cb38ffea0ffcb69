//! Records that break a rule of the data model in otherwise valid repositories and events.
//!
//! A float, a link under another hash function or a missing `$type` invalidates neither an event nor a
//! repository: the account signed it, and relays forward it without looking inside. Readers may still
//! want to know. No verification calls this module or pays for it. A record that is not canonical, or not a map, is
//! not flagged: it is an [invalid](super::InvalidRecord) one.
//!
//! ```
//! use wireproof::atproto::event::Event;
//! use wireproof::verify::Flagged;
//! use wireproof::verify::sync::Outcome;
//!
//! fn warn(outcome: &Outcome<'_>) {
//!     if let Outcome::Commit(commit, _) = outcome
//!         && let Some(first) = Flagged::of_commit(commit).first
//!     {
//!         println!("{} has a record that readers may reject: {first}", commit.repo);
//!     }
//! }
//! ```

use std::fmt;

use atproto::data_model::{self, DataError, DataFault};
use atproto::event::{Commit, RepoOp};
use atproto::repo::Repository;

/// The number of records that break a rule of the [data model](data_model), and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flagged {
    /// Number of such records.
    pub records: u64,
    /// The first, in the order of paths, or of operations.
    pub first: Option<FlaggedRecord>,
}

/// A record that breaks a rule of the [data model](data_model).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlaggedRecord {
    /// Path of the record.
    pub path: Box<str>,
    /// The broken rule, and the place in the record.
    pub error: DataError,
}

impl Flagged {
    /// Flags the records of a repository, as far as its tree can be walked: all, if it is whole.
    pub fn of_repository(repository: &Repository<'_>) -> Self {
        let mut flagged = Self::default();
        for record in repository.records().flatten() {
            flagged.add(&record.path, check_block(record.block, &record.path));
        }
        flagged
    }

    /// Flags the records that an event creates or updates.
    pub fn of_commit(commit: &Commit<'_>) -> Self {
        let mut flagged = Self::default();
        for op in commit.ops {
            flagged.add(op.path, check_op(op));
        }
        flagged
    }

    /// Flags a single record.
    pub fn of_record(path: &str, record: &[u8]) -> Self {
        let mut flagged = Self::default();
        flagged.add(path, check_block(record, path));
        flagged
    }

    fn add(&mut self, path: &str, checked: Result<(), DataError>) {
        let Err(error) = checked else { return };
        if matches!(error.fault, DataFault::Cbor(_) | DataFault::Shape) {
            return;
        }
        self.records += 1;
        self.first.get_or_insert_with(|| FlaggedRecord { path: path.into(), error });
    }
}

fn check_op(op: &RepoOp<'_>) -> Result<(), DataError> {
    let Some(record) = op.record else { return Ok(()) };
    match &record.value {
        Some(value) => data_model::check_record(value, collection_of(op.path)),
        None => check_block(record.data, op.path),
    }
}

fn check_block(record: &[u8], path: &str) -> Result<(), DataError> {
    data_model::check_block(record, collection_of(path))
}

fn collection_of(path: &str) -> &str {
    path.split_once('/').map_or(path, |(collection, _)| collection)
}

impl fmt::Display for FlaggedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.path, self.error)
    }
}

#[cfg(test)]
mod tests {
    use atproto::data_model::DataFault;
    use codec::cbor::Encoder;

    use super::*;
    use crate::repository::tests::{Parts, path, record, secret};
    use crate::repository::{Options, verify};

    /// A record whose only fault is a missing `$type`.
    fn untyped() -> Vec<u8> {
        let mut out = Encoder::new();
        out.map(1).text("text").text("whose");
        out.into_bytes()
    }

    fn with_a_float() -> Vec<u8> {
        [&b"\xa2\x61n\xfb\x3f\xf8\0\0\0\0\0\0\x65$type\x6f"[..], b"app.test.record"].concat()
    }

    #[test]
    fn an_invalid_record_is_not_flagged() {
        for block in [&b"\xa1\x61a\x18\x01"[..], b"\x80", b""] {
            assert_eq!(Flagged::of_record(&path(1), block), Flagged::default());
        }
        assert_eq!(Flagged::of_record(&path(1), &untyped()).records, 1);
    }

    #[test]
    fn a_repository_with_flagged_records_is_valid_and_they_are_counted() {
        let mut parts = Parts::of(3);
        let flagged = |parts: &Parts| {
            let export = parts.export();
            let key = secret().public_key();
            Flagged::of_repository(&verify(&export, None, &key, &Options::default()).unwrap())
        };
        assert_eq!(flagged(&parts), Flagged::default());
        parts.put(&path(7), untyped());
        parts.put(&path(5), with_a_float());
        parts.put("app.test.other/self", record("in another collection"));
        let found = flagged(&parts);
        assert_eq!(found.records, 3);
        assert_eq!(Flagged::of_record(&path(7), &record("typed")), Flagged::default());
        assert_eq!(Flagged::of_record(&path(5), &with_a_float()).records, 1);
        let first = found.first.unwrap();
        assert_eq!(&*first.path, "app.test.other/self");
        assert_eq!(first.error.fault, DataFault::OtherCollection);
        assert_eq!(
            first.to_string(),
            r#""app.test.other/self": a record's $type must be its collection, at "/$type""#
        );
    }
}
