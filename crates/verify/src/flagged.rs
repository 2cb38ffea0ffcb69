//! Records that break a rule of the data model, and updates that change nothing, in otherwise valid repositories and events.
//!
//! A float, a link under another hash function or a missing `$type` invalidates neither an event nor a
//! repository: the account signed it, and relays forward it without looking inside. Readers may still
//! want to know. An update whose record is the one before is valid too, and some verifiers reject it. No verification calls this module or pays for it. A record that is not canonical, or not a map, is
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

use std::collections::HashMap;
use std::fmt;

use atproto::data_model::{self, CheckedRecord, DataError, DataFault};
use atproto::event::{Action, Commit, RepoOp};
use atproto::repo::{Record, Repository};
use codec::Cid;

/// The number of flagged records, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flagged {
    /// Number of flagged records.
    pub records: u64,
    /// The first, in the order of paths, or of operations.
    pub first: Option<FlaggedRecord>,
}

/// A valid record that readers may reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlaggedRecord {
    /// Path of the record.
    pub path: Box<str>,
    /// Why it is flagged.
    pub flag: RecordFlag,
}

/// Why a record is flagged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFlag {
    /// It breaks a rule of the [data model](data_model): the rule, and the place in the record.
    DataModel(DataError),
    /// An update of it does not change it.
    UnchangedUpdate,
}

impl RecordFlag {
    /// A broken rule of the data model, unless the record is an invalid one.
    pub(crate) fn of(error: DataError) -> Option<Self> {
        let is_invalid = matches!(error.fault, DataFault::Cbor(_) | DataFault::Shape);
        (!is_invalid).then_some(Self::DataModel(error))
    }

    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DataModel(error) => error.code(),
            Self::UnchangedUpdate => "event/unchanged-update",
        }
    }
}

impl Flagged {
    /// Flags the records of a repository, as far as its tree can be walked: all, if it is whole.
    pub fn of_repository(repository: &Repository<'_>) -> Self {
        let mut flagged = Self::default();
        // Any number of paths can have the same record, so a long one is read once.
        let mut long: HashMap<Cid, CheckedRecord> = HashMap::new();
        for Record { path, cid, block } in repository.records().flatten() {
            let checked = match block.len() {
                LONG_BYTES.. => {
                    let checked = long.entry(cid).or_insert_with(|| CheckedRecord::of_block(block));
                    checked.in_collection(collection_of(&path))
                }
                _ => check_block(block, &path),
            };
            flagged.add(&path, checked);
        }
        flagged
    }

    /// Flags the records that an event creates or updates, and its updates that change nothing.
    pub fn of_commit(commit: &Commit<'_>) -> Self {
        let mut flagged = Self::default();
        for op in commit.ops {
            flagged.add(op.path, check_op(op));
            if op.action == Action::Update && op.prev.is_some() && op.prev == op.cid {
                flagged.push(op.path, RecordFlag::UnchangedUpdate);
            }
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
        if let Some(flag) = checked.err().and_then(RecordFlag::of) {
            self.push(path, flag);
        }
    }

    fn push(&mut self, path: &str, flag: RecordFlag) {
        self.records += 1;
        self.first.get_or_insert_with(|| FlaggedRecord { path: path.into(), flag });
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

/// Size in bytes from which the result of reading a record is kept.
const LONG_BYTES: usize = 1_024;

impl fmt::Display for FlaggedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.path, self.flag)
    }
}

impl fmt::Display for RecordFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataModel(error) => error.fmt(f),
            Self::UnchangedUpdate => f.write_str("an update must change its record"),
        }
    }
}

#[cfg(test)]
mod tests {
    use codec::cbor::Encoder;
    use codec::cid::Codec;

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
    fn an_update_is_flagged_if_it_names_the_record_before_and_only_then() {
        let [one, other] = [1, 2].map(|byte| Cid::from_digest(Codec::DagCbor, &[byte; 32]));
        let flagged = |action, prev: Option<&Cid>| {
            let (cid, prev) = (Some(one.as_cid_ref()), prev.map(Cid::as_cid_ref));
            let ops = [RepoOp { action, path: "app.test.record/1", cid, prev, record: None }];
            Flagged::of_commit(&Commit {
                seq: 1,
                repo: "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
                commit: other,
                rev: "3kyz4iq2q2k2a",
                since: None,
                car: &[],
                root: None,
                blocks: &[],
                ops: &ops,
                prev_data: None,
                time: "2026-11-22T10:00:00Z",
                blobs: None,
                rebase: None,
                too_big: None,
            })
        };
        let found = flagged(Action::Update, Some(&one));
        assert_eq!((found.records, found.first.unwrap().flag), (1, RecordFlag::UnchangedUpdate));
        for (action, prev) in [
            (Action::Update, Some(&other)),
            (Action::Update, None),
            (Action::Create, None),
            (Action::Create, Some(&one)),
        ] {
            assert_eq!(flagged(action, prev), Flagged::default(), "{action:?} {prev:?}");
        }
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
        assert_eq!(first.flag.code(), "data/record-type");
        assert_eq!(
            first.to_string(),
            r#""app.test.other/self": a record's $type must be its collection, at "/$type""#
        );
    }
}
