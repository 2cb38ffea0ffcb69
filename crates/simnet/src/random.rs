//! What does the seed say next?
//!
//! One generator for everything: ChaCha with 8 rounds. Its output is fixed by the cipher, not by a
//! library's taste: the 32-byte key is the SHA-256 of `seed`, as 8 big-endian bytes, followed by a
//! label; the 64-bit stream number separates uses under one key; words are taken in order. Choices
//! are made with integers only, by [`Random::below`].

use kernels::sha256::{self, Digest};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The key of a family of generators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(Digest);

impl Seed {
    /// The seed for one purpose, named by `label`, under a number that a person can remember.
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

/// A source of choices, the same for the same seed everywhere.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

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

    /// A number from 0 up to but not including `bound`: the high half of a 128-bit product. The
    /// bias is below `bound`·2⁻⁶⁴, which nothing here could show.
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

    /// Whether something that happens `times` in `of` happens now.
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

    /// Puts `items` in any order (Fisher–Yates, from the end).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `count` indices into `weights`, each as often as its weight asks (largest remainders first
    /// for what does not divide), in any order.
    ///
    /// # Panics
    /// If the weights are all 0.
    pub fn deck(&mut self, weights: &[u64], count: usize) -> Vec<usize> {
        let mut deck: Vec<usize> = shares(weights, count)
            .into_iter()
            .enumerate()
            .flat_map(|(index, share)| std::iter::repeat_n(index, share))
            .collect();
        self.shuffle(&mut deck);
        deck
    }
}

/// Divides `count` in proportion to `weights`.
pub(crate) fn shares(weights: &[u64], count: usize) -> Vec<usize> {
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
    fn the_generator_is_the_one_that_was_documented() {
        let mut random = Seed::new(1, "test").stream(2);
        // From an independent ChaCha8 over SHA-256(00…01 "test"), stream 2.
        let expected = [10_467_600_658_722_075_985, 16_532_196_954_864_141_416];
        assert_eq!([random.next_u64(), random.next_u64()], expected);
    }

    #[test]
    fn a_deck_holds_each_index_as_often_as_its_weight_asks() {
        let mut deck = Seed::new(1, "deck").stream(0).deck(&[5, 0, 3, 2], 11);
        deck.sort_unstable();
        assert_eq!(deck, [0, 0, 0, 0, 0, 0, 2, 2, 2, 3, 3]);
    }
}
