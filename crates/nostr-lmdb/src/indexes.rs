//! Comparing the indexes of strfry with its events, in linear time and constant memory: numbers and sums of hashes of entries.

use std::hash::{BuildHasher, RandomState};

use heed::RoTxn;
use nostr_formats::packed_event::PackedEvent;

use crate::error::DatabaseError;
use crate::tables::{self, INDEXES, Index, Table};

/// The entries that the indexes should have.
pub(crate) struct Expected {
    hasher: RandomState,
    sums: [Sum; INDEXES.len()],
}

/// Number of entries, and the sum of their hashes, which is the same in every order.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    hashes: u64,
}

impl Expected {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), sums: Default::default() }
    }

    /// Adds the entries of an event.
    pub(crate) fn add(&mut self, event: &PackedEvent<'_>, number: u64) {
        let mut entries = tables::entries(event);
        // A tag may be repeated; an index has its entry once.
        entries.sort_unstable_by(|one, other| {
            (one.0 as usize, &one.1).cmp(&(other.0 as usize, &other.1))
        });
        entries.dedup();
        for (index, key) in entries {
            let sum = &mut self.sums[index as usize];
            sum.add(self.hasher.hash_one((&key[..], number)));
        }
    }

    /// The names of the indexes that have other entries. `progress` is called now and then.
    pub(crate) fn differences(
        &self,
        indexes: &[Option<Table>; INDEXES.len()],
        txn: &RoTxn<'_>,
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<&'static str>, DatabaseError> {
        let mut names = Vec::new();
        for ((index, table), expected) in INDEXES.into_iter().zip(indexes).zip(self.sums) {
            // strfry 1.1 added it, and leaves out the events that it had before.
            if index == Index::ReplaceDeletion {
                continue;
            }
            let is_equal = match table {
                Some(table) => self.is_equal(expected, table, txn, progress)?,
                None => false,
            };
            if !is_equal {
                names.push(index.name());
            }
        }
        Ok(names)
    }

    fn is_equal(
        &self,
        expected: Sum,
        table: &Table,
        txn: &RoTxn<'_>,
        progress: &mut dyn FnMut(),
    ) -> Result<bool, DatabaseError> {
        let mut found = Sum::default();
        for entry in table.iter(txn)? {
            let (key, number) = entry?;
            let Ok(number) = number.try_into().map(u64::from_ne_bytes) else { return Ok(false) };
            found.add(self.hasher.hash_one((key, number)));
            // A damaged table may have no end.
            if found.count > expected.count {
                return Ok(false);
            }
            if found.count.is_multiple_of(PROGRESS_ENTRIES) {
                progress();
            }
        }
        Ok(found == expected)
    }
}

impl Sum {
    fn add(&mut self, hash: u64) {
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(hash);
    }
}

/// Number of entries after which progress is reported.
const PROGRESS_ENTRIES: u64 = 1 << 16;
