//! The files of a log, as they are listed, and which of them give the newest version.
//!
//! A log is listed and never guessed: that an entry cannot be read says nothing about whether later ones are there.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::ArchiveFault;
use crate::walk::StoredObject;

/// The files of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// The versions with an entry, and its size in bytes.
    pub(super) commits: BTreeMap<u64, u64>,
    /// The complete checkpoints: the names of their files, by version.
    checkpoints: BTreeMap<u64, Vec<String>>,
    /// The parts of checkpoints by version and number of parts: part number and file.
    parts: BTreeMap<(u64, u32), BTreeMap<u32, String>>,
    /// Whether `_last_checkpoint` is there.
    pub(super) has_last_checkpoint: bool,
}

/// The files to read to get from a version to the newest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadPlan {
    /// The checkpoint to begin with, and its files by name; `None` to go on from the version that was read.
    pub(super) checkpoint: Option<(u64, Vec<String>)>,
    /// The entries that follow.
    pub(super) commits: Range<u64>,
}

impl Listing {
    /// The files in the folder of a log.
    pub(super) fn of(objects: &[StoredObject], folder: &str) -> Self {
        let mut listing = Self::default();
        for object in objects {
            let name = object.path.strip_prefix(folder).and_then(|name| name.strip_prefix('/'));
            listing.add(name.unwrap_or_default(), object.size);
        }
        for ((version, count), parts) in std::mem::take(&mut listing.parts) {
            // If a writer ended early, some parts are missing.
            if (1..=count).all(|part| parts.contains_key(&part)) {
                listing.checkpoints.entry(version).or_insert_with(|| parts.into_values().collect());
            }
        }
        listing
    }

    fn add(&mut self, name: &str, size: u64) {
        if name == LAST_CHECKPOINT {
            self.has_last_checkpoint = true;
        }
        let Some((version, rest)) = version_of(name) else { return };
        let parts: Vec<&str> = rest.split('.').collect();
        match parts[..] {
            ["", "json"] => drop(self.commits.insert(version, size)),
            ["", "checkpoint", "parquet"] => {
                self.checkpoints.insert(version, vec![name.to_owned()]);
            }
            ["", "checkpoint", uuid, "json" | "parquet"] if uuid.len() == UUID_LEN => {
                self.checkpoints.entry(version).or_insert_with(|| vec![name.to_owned()]);
            }
            ["", "checkpoint", part, count, "parquet"] => {
                let (Ok(part), Ok(count)) = (part.parse(), count.parse()) else { return };
                if count <= MAX_PARTS {
                    self.parts.entry((version, count)).or_default().insert(part, name.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Number of versions: one more than the newest.
    pub(super) fn versions(&self) -> u64 {
        let newest = self.commits.keys().next_back().max(self.checkpoints.keys().next_back());
        newest.map_or(0, |newest| newest.saturating_add(1))
    }

    /// The version of the newest complete checkpoint.
    pub(super) fn newest_checkpoint(&self) -> Option<u64> {
        self.checkpoints.keys().next_back().copied()
    }

    /// How to get from `known` versions to the newest one.
    ///
    /// # Errors
    /// If a version on the way is missing.
    pub(super) fn plan(&self, known: u64) -> Result<ReadPlan, ArchiveFault> {
        let versions = self.versions();
        let missing = |range: Range<u64>| first_missing(&self.commits, range);
        let gap = missing(known..versions);
        if gap.is_none() && (known > 0 || self.checkpoints.is_empty()) {
            return Ok(ReadPlan { checkpoint: None, commits: known..versions });
        }
        let newest = self.checkpoints.range(known..).next_back();
        let Some((version, names)) = newest else {
            return Err(ArchiveFault::MissingVersion(gap.unwrap_or(known)));
        };
        let commits = version + 1..versions;
        match missing(commits.clone()) {
            Some(gap) => Err(ArchiveFault::MissingVersion(gap)),
            None => Ok(ReadPlan { checkpoint: Some((*version, names.clone())), commits }),
        }
    }
}

/// The first version of a range that is missing. A range is as long as the numbers of files say, which may be any.
fn first_missing(commits: &BTreeMap<u64, u64>, range: Range<u64>) -> Option<u64> {
    let mut next = range.start;
    for commit in commits.range(range.clone()).map(|(commit, _)| commit) {
        if *commit != next {
            return Some(next);
        }
        next = commit.saturating_add(1);
    }
    (next < range.end).then_some(next)
}

/// The version that a name begins with, and the rest of the name. One that no number holds is the greatest.
fn version_of(name: &str) -> Option<(u64, &str)> {
    let (digits, rest) = name.split_at_checked(VERSION_LEN)?;
    let is_version = digits.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('.');
    is_version.then(|| (digits.parse().unwrap_or(u64::MAX).min(MAX_VERSION), rest))
}

/// The file that names the newest checkpoint.
pub(super) const LAST_CHECKPOINT: &str = "_last_checkpoint";

/// Digits of a version in a name.
const VERSION_LEN: usize = 20;

const UUID_LEN: usize = 36;

/// The protocol counts versions with 64 bits and a sign.
const MAX_VERSION: u64 = i64::MAX as u64;

/// Parts of a checkpoint. At 10 million files in a part, no table needs more.
const MAX_PARTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str]) -> Listing {
        let object = |name: &&str| StoredObject {
            path: format!("ops/_delta_log/{name}"),
            size: 1,
            modified_ms: 0,
        };
        Listing::of(&names.iter().map(object).collect::<Vec<_>>(), "ops/_delta_log")
    }

    fn json(version: u64) -> String {
        format!("{version:020}.json")
    }

    #[test]
    fn a_log_without_a_checkpoint_begins_with_version_0_and_has_no_hole() {
        assert_eq!(listing(&[]).versions(), 0);
        let whole = listing(&[&json(0), &json(1), "_commits/x.json", "00000000000000000001.crc"]);
        assert_eq!(whole.plan(0).unwrap(), ReadPlan { checkpoint: None, commits: 0..2 });
        assert_eq!(whole.plan(1).unwrap(), ReadPlan { checkpoint: None, commits: 1..2 });
        for (names, gap) in [
            (vec![json(1)], 0),
            (vec![json(0), json(2)], 1),
            (vec![json(0), "99999999999999999999.json".to_owned()], 1),
        ] {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = listing(&names).plan(0);
            assert!(
                matches!(found, Err(ArchiveFault::MissingVersion(at)) if at == gap),
                "{names:?}: {found:?}"
            );
        }
    }

    #[test]
    fn the_newest_complete_checkpoint_is_read_and_what_follows_must_be_whole() {
        let uuid = "00000000000000000005.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json";
        let parts = |version: u64, part: u32| {
            format!("{version:020}.checkpoint.{part:010}.0000000002.parquet")
        };
        let names = [&json(7), &json(8), &*parts(6, 1), &*parts(6, 2), &*parts(7, 2), uuid];
        let found = listing(&names);
        let checkpoint = Some((6, vec![parts(6, 1), parts(6, 2)]));
        assert_eq!(found.plan(0).unwrap(), ReadPlan { checkpoint, commits: 7..9 });
        assert_eq!((found.versions(), found.newest_checkpoint()), (9, Some(6)));
        let found = listing(&[uuid, &json(7)]);
        assert!(matches!(found.plan(0), Err(ArchiveFault::MissingVersion(6))));
        let found = listing(&[uuid]);
        let checkpoint = Some((5, vec![uuid.to_owned()]));
        assert_eq!(found.plan(3).unwrap(), ReadPlan { checkpoint, commits: 6..6 });
    }
}
