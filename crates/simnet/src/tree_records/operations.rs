//! Inserts, updates, deletes and lookups in turn, on a tree that is empty before the first.
//!
//! Keys are inserted in random order, lookups and edits are of random keys, and a quarter of the lookups is of keys that are
//! not in the tree. The root is read every [`ROOT_EVERY`] operations.

use codec::Cid;
use serde::{Deserialize, Serialize};

use super::{first_four_bytes, split_number, write_number};
use crate::random::Random;
use crate::tree::{Tree, TreeEntry};

/// An operation; the numbers are indices into the records of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Inserts the key of a record with its CID.
    Insert(u32),
    /// Replaces the CID at the key of a record.
    Update {
        /// The record with the key.
        key: u32,
        /// The record with the new CID.
        value: u32,
    },
    /// Deletes the key of a record.
    Delete(u32),
    /// Looks the key of a record up.
    Lookup(u32),
}

impl Operation {
    /// The record with the key.
    pub fn key(self) -> u32 {
        match self {
            Self::Insert(key)
            | Self::Update { key, .. }
            | Self::Delete(key)
            | Self::Lookup(key) => key,
        }
    }
}

/// The counts of the operations on a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounts {
    /// Operations.
    pub operations: u64,
    /// The CID of the last root, as text.
    pub last_root: String,
    /// The sum, modulo 2³², of the first four bytes, big-endian, of the digests of the roots that are read.
    pub root_checksum: u32,
    /// Lookups that found a record.
    pub hits: u64,
    /// The same sum over the CIDs that the lookups found.
    pub hit_checksum: u32,
}

/// The number of operations from one reading of the root to the next; the root is read after the last operation, too.
pub const ROOT_EVERY: usize = 100;

/// Draws `count` operations on the keys of `records` records.
pub(super) fn generate(records: u32, count: usize, random: &mut Random) -> Vec<Operation> {
    let mut absent: Vec<u32> = (0..records).collect();
    random.shuffle(&mut absent);
    let mut keys = Keys { present: Vec::new(), absent };
    (0..count).map(|_| keys.draw(records, random)).collect()
}

/// The keys in the tree and the others.
struct Keys {
    present: Vec<u32>,
    absent: Vec<u32>,
}

impl Keys {
    fn draw(&mut self, records: u32, random: &mut Random) -> Operation {
        let drawn = random.below(100);
        if self.present.is_empty() || drawn < 40 && !self.absent.is_empty() {
            let key = take(&mut self.absent, random);
            self.present.push(key);
            return Operation::Insert(key);
        }
        match drawn {
            40..55 => {
                let key = *random.pick(&self.present);
                let other = 1 + random.below(u64::from(records) - 1) as u32;
                Operation::Update { key, value: (key + other) % records }
            }
            55..70 => {
                let key = take(&mut self.present, random);
                self.absent.push(key);
                Operation::Delete(key)
            }
            70..77 if !self.absent.is_empty() => Operation::Lookup(*random.pick(&self.absent)),
            _ => Operation::Lookup(*random.pick(&self.present)),
        }
    }
}

/// Removes a random key.
fn take(keys: &mut Vec<u32>, random: &mut Random) -> u32 {
    let at = random.below(keys.len() as u64) as usize;
    keys.swap_remove(at)
}

/// The counts of `operations` on the records with these keys and CIDs, by the simulator's own tree. `None` if a key is not
/// text.
pub fn counts(records: &[(&[u8], Cid)], operations: &[Operation]) -> Option<OperationCounts> {
    let mut keys = Vec::with_capacity(records.len());
    for (key, _) in records {
        keys.push(str::from_utf8(key).ok()?);
    }
    let cid = |at: u32| records[at as usize].1;
    let mut tree = Tree::new(Vec::<TreeEntry>::new());
    let mut counts =
        OperationCounts { operations: operations.len() as u64, ..OperationCounts::default() };
    for some in operations.chunks(ROOT_EVERY) {
        for operation in some {
            match *operation {
                Operation::Insert(at) => {
                    tree.insert(keys[at as usize], cid(at));
                }
                Operation::Update { key, value } => {
                    tree.insert(keys[key as usize], cid(value));
                }
                Operation::Delete(at) => {
                    tree.remove(keys[at as usize]);
                }
                Operation::Lookup(at) => {
                    if let Some(found) = tree.get(keys[at as usize]) {
                        counts.hits += 1;
                        add(&mut counts.hit_checksum, &found);
                    }
                }
            }
        }
        tree.rehash();
        add(&mut counts.root_checksum, &tree.root());
    }
    counts.last_root = tree.root().to_string();
    Some(counts)
}

fn add(checksum: &mut u32, cid: &Cid) {
    *checksum = checksum.wrapping_add(first_four_bytes(cid));
}

pub(super) fn write(operations: &[Operation], file: &mut Vec<u8>) {
    write_number(file, operations.len());
    for operation in operations {
        let (kind, key, value) = match *operation {
            Operation::Insert(at) => (0, at, at),
            Operation::Update { key, value } => (1, key, value),
            Operation::Delete(at) => (2, at, at),
            Operation::Lookup(at) => (3, at, at),
        };
        file.push(kind);
        file.extend(key.to_be_bytes());
        file.extend(value.to_be_bytes());
    }
}

/// Splits off a count and that many operations on records below `bound`.
pub(super) fn split(bytes: &[u8], bound: u32) -> Option<(Vec<Operation>, &[u8])> {
    let (count, rest) = split_number(bytes)?;
    let (operations, rest) = rest.split_at_checked(OPERATION_LEN.checked_mul(count as usize)?)?;
    let (operations, _) = operations.as_chunks::<OPERATION_LEN>();
    let operations: Option<Vec<Operation>> =
        operations.iter().map(|operation| read(operation, bound)).collect();
    Some((operations?, rest))
}

fn read(&[kind, ref indices @ ..]: &[u8; OPERATION_LEN], bound: u32) -> Option<Operation> {
    let (indices, _) = indices.as_chunks::<4>();
    let [key, value] = [indices[0], indices[1]].map(u32::from_be_bytes);
    if key >= bound || value >= bound || kind != 1 && value != key {
        return None;
    }
    Some(match kind {
        0 => Operation::Insert(key),
        1 => Operation::Update { key, value },
        2 => Operation::Delete(key),
        3 => Operation::Lookup(key),
        _ => return None,
    })
}

/// A byte for the kind, and two indices.
const OPERATION_LEN: usize = 9;
