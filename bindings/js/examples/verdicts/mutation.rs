//! Seeded changes of inputs, each a number of bytes that others replace.

use codec::Cid;
use codec::car::{Options, Sections};

use crate::inputs::Kind;

/// Bytes of an input that others replace.
pub(crate) struct Change {
    pub(crate) start: usize,
    pub(crate) removed: usize,
    pub(crate) inserted: Vec<u8>,
}

impl Change {
    fn apply(&self, input: &mut Vec<u8>) {
        let end = self.start + self.removed;
        drop(input.splice(self.start..end, self.inserted.iter().copied()));
    }
}

/// Random changes, by an xorshift generator.
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, or 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % (end as u64).max(1)) as usize
    }

    /// One to four changes of a seed, and the input that they make.
    pub(crate) fn mutate(
        &mut self,
        seed: &[u8],
        others: &[&[u8]],
        kind: Kind,
    ) -> (Vec<Change>, Vec<u8>) {
        let (mut changes, mut input) = (Vec::new(), seed.to_vec());
        for _ in 0..=self.below(4) {
            let other = others[self.below(others.len())];
            let change = self.change(&input, other);
            change.apply(&mut input);
            changes.push(change);
        }
        // Otherwise nearly every archive would be refused for a hash.
        if kind.is_archive()
            && self.below(4) > 0
            && let Some(change) = rehash(&input)
        {
            change.apply(&mut input);
            changes.push(change);
        }
        (changes, input)
    }

    fn change(&mut self, input: &[u8], other: &[u8]) -> Change {
        let (start, len) = (self.below(input.len()), 1 + self.below(8));
        let removed = len.min(input.len() - start);
        let byte = input.get(start).copied().unwrap_or_default();
        let from = self.below(other.len());
        let piece = &other[from..other.len().min(from + 4 * len)];
        let (removed, inserted) = match self.below(7) {
            0 => (input.len() - start, Vec::new()),
            1 => (removed, Vec::new()),
            2 => (0, vec![self.next() as u8]),
            3 => (0, input[start..start + removed].to_vec()),
            4 => (removed, piece.to_vec()),
            5 => (removed.min(1), vec![self.next() as u8]),
            _ => (removed.min(1), vec![byte ^ 1 << self.below(8)]),
        };
        Change { start, removed, inserted }
    }
}

/// The true CID of the first block of an archive whose bytes have another hash.
fn rehash(archive: &[u8]) -> Option<Change> {
    for section in Sections::new(archive, &Options::default()).ok()? {
        let block = section.ok()?;
        let cid = block.cid.to_cid()?;
        let found = Cid::of(cid.codec(), block.data);
        if found != cid {
            let start = block.data_offset() - Cid::LEN;
            return Some(Change { start, removed: Cid::LEN, inserted: found.as_bytes().to_vec() });
        }
    }
    None
}
