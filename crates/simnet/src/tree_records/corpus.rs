//! The records, and what is asked of them.

use codec::Cid;
use codec::cid::Codec;
use serde::{Deserialize, Serialize};

use super::file;
use crate::history;
use crate::random::{Random, Seed};
use crate::tree::{Entry, Tree};

/// What records to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything follows from this number.
    pub seed: u64,
    /// How many records.
    pub records: usize,
    /// How many lookups, each of a record that is there.
    pub lookups: usize,
}

impl Default for Spec {
    /// 50,000 records, 500,000 lookups.
    fn default() -> Self {
        Self { seed: 4_621_332_152, records: 50_000, lookups: 500_000 }
    }
}

impl Spec {
    /// Records for tests: 2,000, and 8,000 lookups.
    pub fn quick() -> Self {
        Self { records: 2_000, lookups: 8_000, ..Self::default() }
    }
}

/// Generated records.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    tree: Tree,
    shuffled: Vec<u32>,
    lookups: Vec<u32>,
}

impl Corpus {
    /// Makes the records of `spec`.
    ///
    /// # Panics
    /// If there are to be no records, or 2³² or more.
    pub fn generate(spec: &Spec) -> Self {
        let seed = Seed::new(spec.seed, "tree records");
        let mut random = seed.stream(DRAWING_STREAM);
        let records = u32::try_from(spec.records).expect("fewer than 2^32 records");
        let mut shuffled: Vec<u32> = (0..records).collect();
        random.shuffle(&mut shuffled);
        let lookup = |_| random.below(u64::from(records)) as u32;
        let lookups = (0..spec.lookups).map(lookup).collect();
        Self { spec: spec.clone(), tree: tree(&seed, spec.records), shuffled, lookups }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The records, sorted by key.
    pub fn records(&self) -> &[Entry] {
        self.tree.entries()
    }

    /// The bytes of a corpus file; [`read`](super::read) takes them apart.
    pub fn to_file(&self) -> Vec<u8> {
        file::write(self.records(), &self.shuffled, &self.lookups)
    }

    /// What a tree must give.
    pub fn counts(&self) -> TreeCounts {
        let looked_up = self.lookups.iter().map(|at| first_four_bytes(self.record(*at)));
        TreeCounts {
            records: self.records().len() as u64,
            root: self.tree.root().to_string(),
            lookups: self.lookups.len() as u64,
            found: self.lookups.len() as u64,
            lookup_checksum: looked_up.fold(0, u32::wrapping_add),
        }
    }

    fn record(&self, at: u32) -> &Cid {
        &self.records()[at as usize].value
    }
}

/// The tree of an account with so many records. What is in them no tree knows.
fn tree(seed: &Seed, records: usize) -> Tree {
    let mut random: Random = seed.stream(VALUE_STREAM);
    let entry = |record: history::OldRecord| {
        let value = Cid::from_digest(Codec::DagCbor, &random.bytes32());
        Entry { key: record.key, value }
    };
    let records = history::all_records(seed, records, CLOCK, NOW_MICROS);
    Tree::new(records.into_iter().map(entry).collect())
}

fn first_four_bytes(cid: &Cid) -> u32 {
    u32::from_be_bytes(*cid.digest().first_chunk().expect("a digest has 32 bytes"))
}

/// What a tree of the records must give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeCounts {
    /// Records.
    pub records: u64,
    /// The root's CID, as text.
    pub root: String,
    /// Lookups.
    pub lookups: u64,
    /// Lookups of a record that is there.
    pub found: u64,
    /// The sum, modulo 2³², of the first four bytes, big-endian, of each digest found.
    pub lookup_checksum: u32,
}

/// The clock identifier in the record keys.
const CLOCK: u64 = 13;

/// Until when there are records: 2026-07-01T00:00:00Z.
const NOW_MICROS: u64 = 1_782_864_000_000_000;

/// The stream number for the orders; the history's uses have others.
const DRAWING_STREAM: u64 = 1 << 34;

/// The stream number for the names of records.
const VALUE_STREAM: u64 = 1 << 35;
