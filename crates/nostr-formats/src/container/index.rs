//! The index: where blocks begin, with a bounded number of entries for any number of blocks.

use super::Fault;
use super::parts::{END, INDEX, Salt, is_checked, salt_at, u32_at, u64_at, with_checksum};

/// The blocks of a container.
///
/// With up to [`MAX_ENTRIES`] blocks every block has an entry. When they are more, every second entry is dropped, and so
/// on: blocks with an entry have a number that is a multiple of the [stride](stride).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// Number of events.
    pub(super) events: u64,
    /// Number of blocks.
    pub(super) blocks: u64,
    pub(super) entries: Vec<Entry>,
}

/// Where a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Bytes from the start of the container.
    pub(super) offset: u64,
    /// Number of the first event.
    pub(super) first: u64,
}

impl Index {
    /// Adds the next block, which has `count` events.
    pub(super) fn push(&mut self, entry: Entry, count: u32) {
        let old = stride(self.blocks);
        let new = stride(self.blocks + 1);
        if new > old {
            let mut is_kept = false;
            self.entries.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        if self.blocks.is_multiple_of(new) {
            self.entries.push(entry);
        }
        self.blocks += 1;
        self.events += u64::from(count);
    }

    /// The entry of the last block with an entry that does not begin after the event.
    pub(super) fn entry_before(&self, event: u64) -> Option<Entry> {
        let after = self.entries.partition_point(|entry| entry.first <= event);
        self.entries.get(after.checked_sub(1)?).copied()
    }

    /// The section at `offset`.
    pub(super) fn to_bytes(&self, salt: Salt, offset: u64) -> Vec<u8> {
        let numbers = [self.events, self.blocks].map(u64::to_le_bytes);
        let count = (self.entries.len() as u32).to_le_bytes();
        let head = with_checksum([&INDEX[..], &salt, numbers.as_flattened(), &count].concat());
        let entry = |entry: &Entry| [entry.offset, entry.first].map(u64::to_le_bytes);
        let mut entries: Vec<[u8; 8]> = self.entries.iter().flat_map(entry).collect();
        entries.push(offset.to_le_bytes());
        let entries = with_checksum(entries.as_flattened().to_vec());
        [&head[..], &entries, &END].concat()
    }

    /// The index in a section, and the offset that it states for itself.
    pub(super) fn read(head: IndexHead, section: &[u8]) -> Result<(Self, u64), Fault> {
        let IndexHead { events, blocks, entries: count, .. } = head;
        let rest = section.get(INDEX_HEAD_LEN..).ok_or(Fault::Truncated)?;
        let rest = rest.strip_suffix(&END).filter(|rest| is_checked(rest)).ok_or(Fault::Index)?;
        let (numbers, _) = rest.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let (offset, entries) = numbers.split_last().ok_or(Fault::Index)?;
        let (entries, _) = entries.as_chunks();
        let entry = |[offset, first]: &[u64; 2]| Entry { offset: *offset, first: *first };
        let entries: Vec<Entry> = entries.iter().map(entry).collect();
        let is_dense = entries.len() as u64 == blocks.div_ceil(stride(blocks));
        let is_ascending = entries.is_sorted_by(|a, b| a.offset < b.offset && a.first < b.first);
        if entries.len() == count as usize && is_dense && is_ascending {
            Ok((Self { events, blocks, entries }, *offset))
        } else {
            Err(Fault::Index)
        }
    }
}

/// The distance of blocks with an entry, of that many blocks.
pub(super) fn stride(blocks: u64) -> u64 {
    blocks.div_ceil(MAX_ENTRIES as u64).next_power_of_two()
}

/// The contents of the head of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexHead {
    pub(super) salt: Salt,
    events: u64,
    blocks: u64,
    entries: u32,
}

impl IndexHead {
    /// The head, if it is whole and within the limits.
    pub(super) fn read(bytes: &[u8; INDEX_HEAD_LEN]) -> Result<Self, Fault> {
        if !bytes.starts_with(&INDEX) || !is_checked(bytes) {
            return Err(Fault::Head);
        }
        let events = u64_at(bytes, 16);
        let blocks = u64_at(bytes, 24);
        let entries = u32_at(bytes, 32);
        if entries as usize <= MAX_ENTRIES && blocks <= MAX_BLOCKS {
            Ok(Self { salt: salt_at(bytes, 8), events, blocks, entries })
        } else {
            Err(Fault::Limit)
        }
    }

    /// Length of the section in bytes.
    pub(super) fn section_len(&self) -> usize {
        INDEX_HEAD_LEN + ENTRY_LEN * self.entries as usize + TAIL_LEN
    }
}

/// The offset of the index that the last bytes of a container state.
pub(super) fn offset_in_tail(tail: &[u8; TAIL_LEN]) -> Result<u64, Fault> {
    if tail.ends_with(&END) { Ok(u64_at(tail, 0)) } else { Err(Fault::Truncated) }
}

pub(super) const INDEX_HEAD_LEN: usize = 40;
const ENTRY_LEN: usize = 16;
/// Bytes after the entries: the offset of the index, the checksum, the end.
pub(super) const TAIL_LEN: usize = 20;

/// Maximum number of entries.
pub(super) const MAX_ENTRIES: usize = 1 << 14;
/// Maximum number of blocks: more than a file has bytes.
const MAX_BLOCKS: u64 = 1 << 62;
/// The longest index in bytes.
pub(super) const MAX_SECTION_LEN: usize = INDEX_HEAD_LEN + ENTRY_LEN * MAX_ENTRIES + TAIL_LEN;

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of blocks of one event and ten bytes.
    fn index_of(blocks: u64) -> Index {
        let mut index = Index::default();
        (0..blocks).for_each(|block| index.push(Entry { offset: 10 * block, first: block }, 1));
        index
    }

    #[test]
    fn entries_are_bounded_and_evenly_spread_whatever_the_number_of_blocks() {
        let max = MAX_ENTRIES as u64;
        for (blocks, distance) in
            [(0, 1), (1, 1), (max, 1), (max + 1, 2), (2 * max, 2), (2 * max + 1, 4), (5 * max, 8)]
        {
            let index = index_of(blocks);
            assert_eq!((stride(blocks), index.blocks, index.events), (distance, blocks, blocks));
            let expected = (0..blocks).step_by(distance as usize);
            assert!(index.entries.iter().map(|entry| entry.first).eq(expected), "{blocks}");
            assert!(index.entries.len() <= MAX_ENTRIES);
            let before = blocks.checked_sub(1).and_then(|last| index.entry_before(last));
            assert_eq!(before, index.entries.last().copied());
        }
    }

    #[test]
    fn a_section_is_read_back_and_every_change_of_a_byte_is_noticed() {
        let section = index_of(3).to_bytes([7; 8], 500);
        let read = |section: &[u8]| {
            let head = IndexHead::read(section.first_chunk().expect("a head"))?;
            assert_eq!(head.section_len(), section.len());
            Index::read(head, section)
        };
        assert_eq!(read(&section), Ok((index_of(3), 500)));
        for at in 0..section.len() {
            let mut changed = section.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_section_with_right_checksums_and_wrong_entries_is_rejected() {
        let entry = |offset, first| Entry { offset, first };
        for (blocks, entries) in [
            (2, vec![entry(28, 0)]),
            (1, vec![entry(28, 0), entry(90, 1)]),
            (2, vec![entry(90, 0), entry(28, 1)]),
            (2, vec![entry(28, 1), entry(90, 1)]),
            (MAX_ENTRIES as u64 + 1, vec![entry(28, 0)]),
        ] {
            let index = Index { events: 9, blocks, entries };
            let section = index.to_bytes([0; 8], 500);
            let head = IndexHead::read(section.first_chunk().unwrap()).unwrap();
            assert_eq!(Index::read(head, &section), Err(Fault::Index), "{index:?}");
        }
        let more = Index { blocks: MAX_BLOCKS + 1, ..Index::default() }.to_bytes([0; 8], 0);
        assert_eq!(IndexHead::read(more.first_chunk().unwrap()), Err(Fault::Limit));
    }
}
