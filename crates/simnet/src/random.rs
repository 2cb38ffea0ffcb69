//! The seeded random number generator: ChaCha with 8 rounds.
//!
//! The cipher, not the version of a library, fixes its output: the 32-byte key is the SHA-256
//! of `seed`, as 8 big-endian bytes, followed by a label; the 64-bit stream number separates uses under
//! one key; words are taken in order. Choices are made with integers only, by [`Random::below`].

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use kernels::sha256::{self, Digest};

/// The seed that every published corpus is generated from.
pub const DEFAULT_SEED: u64 = 4_621_332_152;

/// The key of a family of generators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(Digest);

impl Seed {
    /// The seed for the purpose `label` under the number `seed`.
    pub fn new(seed: u64, label: &str) -> Self {
        let mut message = seed.to_be_bytes().to_vec();
        message.extend_from_slice(label.as_bytes());
        Self(sha256::digest(&message))
    }

    /// The generator of this seed and stream number.
    pub fn stream(&self, stream: u64) -> Random {
        let mut cipher = ChaCha8Rng::from_seed(self.0);
        cipher.set_stream(stream);
        Random(cipher)
    }
}

/// A generator; the same seed gives the same output on every machine.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Clone for Random {
    fn clone(&self) -> Self {
        Self(ChaCha8Rng::deserialize_state(&self.0.serialize_state()))
    }
}

impl Random {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next 32 bytes.
    pub fn bytes32(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// A number from 0 up to but not including `bound`: the high half of a 128-bit product, with a
    /// bias below `bound`·2⁻⁶⁴.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below 0");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    ///
    /// # Panics
    /// If `high` is less than `low`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// `true` with the probability `times` / `of`.
    pub fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }

    /// One of `items`.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Shuffles `items` (Fisher–Yates, from the end).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `count` indices into `weights`, apportioned by the weights and shuffled.
    ///
    /// # Panics
    /// If the weights are all 0.
    pub fn apportioned(&mut self, weights: &[u64], count: usize) -> Vec<usize> {
        let mut indices: Vec<usize> = apportion(weights, count)
            .into_iter()
            .enumerate()
            .flat_map(|(index, share)| std::iter::repeat_n(index, share))
            .collect();
        self.shuffle(&mut indices);
        indices
    }
}

/// Divides `count` in proportion to `weights`, by the method of largest remainders.
pub(crate) fn apportion(weights: &[u64], count: usize) -> Vec<usize> {
    let total: u64 = weights.iter().sum();
    let exact = |weight: &u64| weight * count as u64;
    let mut shares: Vec<usize> = weights.iter().map(|w| (exact(w) / total) as usize).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|&index| std::cmp::Reverse(exact(&weights[index]) % total));
    let missing = count - shares.iter().sum::<usize>();
    by_remainder.into_iter().take(missing).for_each(|index| shares[index] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_documented_one() {
        let mut random = Seed::new(1, "test").stream(2);
        // From an independent ChaCha8 over SHA-256(00…01 "test"), stream 2.
        let expected = [10_467_600_658_722_075_985, 16_532_196_954_864_141_416];
        assert_eq!([random.next_u64(), random.next_u64()], expected);
    }

    #[test]
    fn a_clone_gives_the_same_output() {
        let mut random = Seed::new(1, "test").stream(2);
        random.bytes32();
        let mut clone = random.clone();
        assert_eq!([clone.next_u64(), clone.next_u64()], [random.next_u64(), random.next_u64()]);
    }

    #[test]
    fn indices_are_apportioned_by_weight() {
        let mut indices = Seed::new(1, "deck").stream(0).apportioned(&[5, 0, 3, 2], 11);
        indices.sort_unstable();
        assert_eq!(indices, [0, 0, 0, 0, 0, 0, 2, 2, 2, 3, 3]);
    }
}
