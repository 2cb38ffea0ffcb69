//! Which numbers does chance draw, the same each time?

/// A generator of Marsaglia's: xorshift over 64 bits, multiplied.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| (self.next() >> 40) as u8)
    }

    /// Changes `bytes` in one to three places, as a disk, a bug or a stranger would.
    pub(super) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1)).min(bytes.len());
            let end = (at + self.below(9)).min(bytes.len());
            match self.below(8) {
                _ if bytes.is_empty() => return,
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                3 => drop(bytes.drain(at..end)),
                4 => bytes.insert(at, self.next() as u8),
                5 => bytes[at..end].fill(0xff),
                6 => bytes.extend_from_within(at..end),
                _ => bytes.truncate(at),
            }
        }
    }
}
