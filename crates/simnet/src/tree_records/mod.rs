//! Records to insert into a tree and to look up, for tests and benchmarks of Merkle search trees.
//!
//! The keys belong to an account that has written for years, in the usual mix of collections. The file has the keys
//! with CIDs, a shuffled order of insertion, the keys to look up, and operations of all kinds:
//!
//! | part | bytes |
//! |---|---|
//! | count of records | 4, big-endian, as all numbers here |
//! | each record, in ascending order of the keys | 2 of the key's length, the key, 36 of CID |
//! | count of records, repeated | 4 |
//! | an index into the records, one per record, in shuffled order | 4 |
//! | count of lookups | 4 |
//! | an index into the records, one per lookup | 4 |
//! | count of operations | 4 |
//! | each operation: 0 insert, 1 update, 2 delete or 3 look up; the index of the key; the index of the CID | 1, 4, 4 |
//!
//! The index of the CID equals the key's, except in an update.
//!
//! ```
//! use wireproof_simnet::tree_records::{self, Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick());
//! let file = corpus.to_file();
//! assert_eq!(tree_records::read(&file).unwrap().records.len(), 2_000);
//! ```

use codec::Cid;
use codec::cid::Codec;
use serde::{Deserialize, Serialize};

use crate::corpus::{self, NoDetails};
use crate::history;
use crate::random::{DEFAULT_SEED, Seed};
use crate::time::START_MICROS;
use crate::tree::{Tree, TreeEntry};

mod operations;
#[cfg(test)]
mod tests;

pub use operations::{Operation, OperationCounts, ROOT_EVERY, counts as count_operations};

/// The specification of a file of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The number of records.
    pub records: usize,
    /// The number of lookups, all of existing records.
    pub lookups: usize,
    /// The number of operations, on a tree that is empty before the first.
    pub operations: usize,
}

impl Default for Spec {
    /// 50,000 records, 500,000 lookups, 50,000 operations.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, records: 50_000, lookups: 500_000, operations: 50_000 }
    }
}

impl Spec {
    /// A small file for tests: 2,000 records, 8,000 lookups, 2,050 operations.
    pub fn quick() -> Self {
        Self { records: 2_000, lookups: 8_000, operations: 2_050, ..Self::default() }
    }
}

/// The description of a file of records.
pub type Manifest = corpus::Manifest<Spec, TreeCounts>;

/// Generated records.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    tree: Tree,
    shuffled: Vec<u32>,
    lookups: Vec<u32>,
    operations: Vec<Operation>,
}

impl Corpus {
    /// Generates the records of `spec`.
    ///
    /// # Panics
    /// If there are fewer than two records, or 2³² or more.
    pub fn generate(spec: &Spec) -> Self {
        let seed = Seed::new(spec.seed, "tree records");
        let mut random = seed.stream(ORDER_STREAM);
        let records = u32::try_from(spec.records).expect("fewer than 2^32 records");
        let mut shuffled: Vec<u32> = (0..records).collect();
        random.shuffle(&mut shuffled);
        let lookup = |_| random.below(u64::from(records)) as u32;
        let lookups = (0..spec.lookups).map(lookup).collect();
        let operations =
            operations::generate(records, spec.operations, &mut seed.stream(OPERATION_STREAM));
        Self { spec: spec.clone(), tree: tree(&seed, spec.records), shuffled, lookups, operations }
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The records, sorted by key.
    pub fn records(&self) -> &[TreeEntry] {
        self.tree.entries()
    }

    /// The bytes of the file; [`read`] parses them.
    pub fn to_file(&self) -> Vec<u8> {
        write(self.records(), &self.shuffled, &self.lookups, &self.operations)
    }

    /// The description of `file`, the bytes of [`Corpus::to_file`].
    pub fn manifest(&self, file: &[u8]) -> Manifest {
        Manifest::new(self.spec.clone(), self.counts(), NoDetails {}, file)
    }

    /// The counts that a tree of the records gives.
    pub fn counts(&self) -> TreeCounts {
        let found = self.lookups.iter().map(|at| first_four_bytes(self.record(*at)));
        let records: Vec<Record<'_>> =
            self.records().iter().map(|entry| (entry.key.as_bytes(), entry.value)).collect();
        let operations = count_operations(&records, &self.operations).expect("keys are text");
        TreeCounts {
            records: self.records().len() as u64,
            root: self.tree.root().to_string(),
            lookups: self.lookups.len() as u64,
            found: self.lookups.len() as u64,
            lookup_checksum: found.fold(0, u32::wrapping_add),
            operations,
        }
    }

    fn record(&self, at: u32) -> &Cid {
        &self.records()[at as usize].value
    }
}

/// The tree of an account with this number of records; their CIDs are random.
fn tree(seed: &Seed, records: usize) -> Tree {
    let mut random = seed.stream(VALUE_STREAM);
    let entry = |record: history::InitialRecord| {
        let value = Cid::from_digest(Codec::DagCbor, &random.bytes32());
        TreeEntry { key: record.key, value }
    };
    let records = history::all_records(seed, records, CLOCK_ID, START_MICROS);
    Tree::new(records.into_iter().map(entry).collect())
}

fn first_four_bytes(cid: &Cid) -> u32 {
    u32::from_be_bytes(*cid.digest().first_chunk().expect("a digest has 32 bytes"))
}

/// The counts that a tree of the records gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeCounts {
    /// Records.
    pub records: u64,
    /// The CID of the root, as text.
    pub root: String,
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found a record.
    pub found: u64,
    /// The sum, modulo 2³², of the first four bytes, big-endian, of the digests found.
    pub lookup_checksum: u32,
    /// The counts of the operations.
    #[serde(flatten)]
    pub operations: OperationCounts,
}

/// A key and its CID.
pub type Record<'a> = (&'a [u8], Cid);

/// The parsed contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRecords<'a> {
    /// The records, in ascending order of the keys.
    pub records: Vec<Record<'a>>,
    /// The index of every record once, in shuffled order.
    pub shuffled: Vec<u32>,
    /// The indices of the records to look up.
    pub lookups: Vec<u32>,
    /// The operations, on a tree that is empty before the first.
    pub operations: Vec<Operation>,
}

/// Parses a file. `None` unless it holds exactly the records, orders and operations it states: keys ascend, the
/// shuffled order has every record once, lookups and operations are of records.
pub fn read(file: &[u8]) -> Option<TreeRecords<'_>> {
    let (count, mut rest) = split_number(file)?;
    let mut records = Vec::new();
    for _ in 0..count {
        let record;
        (record, rest) = split_record(rest)?;
        records.push(record);
    }
    let (shuffled, rest) = split_indices(rest, count)?;
    let (lookups, rest) = split_indices(rest, count)?;
    let (operations, rest) = operations::split(rest, count)?;
    let is_valid = records.is_sorted_by(|a, b| a.0 < b.0)
        && is_permutation(&shuffled, records.len())
        && rest.is_empty();
    is_valid.then_some(TreeRecords { records, shuffled, lookups, operations })
}

fn split_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let (cid, rest) = rest.split_at_checked(Cid::LEN)?;
    Some(((key, Cid::from_bytes(cid)?), rest))
}

/// Splits off a count and so many indices, all below `bound`.
fn split_indices(bytes: &[u8], bound: u32) -> Option<(Vec<u32>, &[u8])> {
    let (count, rest) = split_number(bytes)?;
    let (indices, rest) = rest.split_at_checked(4 * count as usize)?;
    let (indices, _) = indices.as_chunks();
    let indices: Vec<u32> = indices.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
    indices.iter().all(|index| *index < bound).then_some((indices, rest))
}

fn split_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn is_permutation(indices: &[u32], count: usize) -> bool {
    let mut is_seen = vec![false; count];
    indices.len() == count
        && indices.iter().all(|index| !std::mem::replace(&mut is_seen[*index as usize], true))
}

fn write(
    records: &[TreeEntry],
    shuffled: &[u32],
    lookups: &[u32],
    operations: &[Operation],
) -> Vec<u8> {
    let mut file = Vec::new();
    write_number(&mut file, records.len());
    for TreeEntry { key, value } in records {
        let len = u16::try_from(key.len()).expect("a key shorter than 64 KiB");
        file.extend(len.to_be_bytes());
        file.extend_from_slice(key.as_bytes());
        file.extend_from_slice(value.as_bytes());
    }
    for indices in [shuffled, lookups] {
        write_number(&mut file, indices.len());
        indices.iter().for_each(|index| file.extend(index.to_be_bytes()));
    }
    operations::write(operations, &mut file);
    file
}

fn write_number(file: &mut Vec<u8>, number: usize) {
    file.extend(u32::try_from(number).expect("fewer than 2^32").to_be_bytes());
}

/// The clock identifier in the record keys.
const CLOCK_ID: u16 = 13;

/// The stream number for the orders; the history uses others.
const ORDER_STREAM: u64 = 1 << 34;

/// The stream number for the CIDs of records.
const VALUE_STREAM: u64 = 1 << 35;

/// The stream number for the operations.
const OPERATION_STREAM: u64 = 1 << 36;
