//! The format in which benchmarks share the records of a tree.
//!
//! | part | bytes |
//! |---|---|
//! | count of records | 4, big-endian, as all numbers here |
//! | each record, in ascending order of the keys | 2 of the key's length, the key, 36 of CID |
//! | count of records, once more | 4 |
//! | an index into the records, for each of them, in shuffled order | 4 |
//! | count of lookups | 4 |
//! | an index into the records, for each lookup | 4 |

use codec::Cid;

use crate::tree::Entry;

/// A key and its CID.
pub type Record<'a> = (&'a [u8], Cid);

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRecords<'a> {
    /// The records, in ascending order of the keys.
    pub records: Vec<Record<'a>>,
    /// Each record's index once, in shuffled order.
    pub shuffled: Vec<u32>,
    /// The indices of the records to look up.
    pub lookups: Vec<u32>,
}

/// Takes a file apart. `None` if it is not exactly the records and orders that it states: keys
/// ascend, the shuffled order has each record once, each lookup is of a record.
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
    let is_sound = records.is_sorted_by(|a, b| a.0 < b.0)
        && is_permutation(&shuffled, records.len())
        && rest.is_empty();
    is_sound.then_some(TreeRecords { records, shuffled, lookups })
}

fn split_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let (cid, rest) = rest.split_at_checked(Cid::LEN)?;
    Some(((key, Cid::from_bytes(cid)?), rest))
}

/// A count and that many indices, each below `bound`.
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

/// The file of these records and orders.
///
/// # Panics
/// If a number does not fit its bytes.
pub(super) fn write(records: &[Entry], shuffled: &[u32], lookups: &[u32]) -> Vec<u8> {
    let mut file = Vec::new();
    write_number(&mut file, records.len());
    for Entry { key, value } in records {
        let len = u16::try_from(key.len()).expect("a key shorter than 64 KiB");
        file.extend(len.to_be_bytes());
        file.extend_from_slice(key.as_bytes());
        file.extend_from_slice(value.as_bytes());
    }
    for indices in [shuffled, lookups] {
        write_number(&mut file, indices.len());
        indices.iter().for_each(|index| file.extend(index.to_be_bytes()));
    }
    file
}

fn write_number(file: &mut Vec<u8>, number: usize) {
    file.extend(u32::try_from(number).expect("fewer than 2^32").to_be_bytes());
}
