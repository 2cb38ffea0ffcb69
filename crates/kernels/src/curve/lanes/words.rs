//! One lane: a 64-bit word, multiplied by the 128-bit product of every 64-bit processor.
//!
//! A signature alone leaves the other lanes of a vector without work, so this is the faster form for one where the vectors
//! multiply doubles, and the only one where there are no vectors. A factor is shifted to the top of its word, so that the high
//! half of a product is the high word of 128 bits.

use std::marker::PhantomData;

use super::super::Curve;
use super::super::table::{Row, TableSize};
use super::field::MASK_52;
use super::vector::{Engine, OnEight, Vector, Work, WorkOnEight};

/// The engine of every processor.
#[derive(Clone, Copy)]
pub(super) struct Words<C>(PhantomData<C>);

impl<C: Curve> Engine for Words<C> {
    type Curve = C;
    type Vector = Word<C>;

    fn detect() -> Option<Self> {
        Some(Self(PhantomData))
    }

    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Output {
        work.run()
    }

    fn run_on_eight<W: WorkOnEight>(self, work: W) -> W::Output {
        self.run(OnEight::<W, 8>(work))
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Word<C> {
        Word::new(word)
    }

    #[inline(always)]
    fn read_rows(self, rows: &[&Row]) -> [Word<C>; 8] {
        rows[0].0.map(Word::new)
    }
}

/// A word.
#[derive(Clone, Copy)]
pub(super) struct Word<C>(u64, PhantomData<C>);

impl<C> Word<C> {
    #[inline(always)]
    fn new(word: u64) -> Self {
        Self(word, PhantomData)
    }
}

impl<C: Curve> Vector for Word<C> {
    type Curve = C;

    const LANES: usize = 1;
    const AT_ONCE: usize = 1;
    const ROUNDS_FROM: usize = 16;
    const ROUNDS_FOR_NEW_KEYS: bool = true;
    const SPREAD_FROM: Option<TableSize> = None;
    const LOW_EXCESS: u64 = 0;
    const PRODUCT_APART: bool = true;
    const SQUARE_APART: bool = true;
    const HIGH_EXCESS: u64 = 0;
    const SPARE: u64 = 0;

    /// The factor alone.
    type Factor = u64;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self::new(self.0.wrapping_add(other.0))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self::new(self.0.wrapping_sub(other.0))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self::new(self.0 & other.0)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self::new(self.0 | other.0)
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        Self::new(self.0 >> BITS)
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        Self::new(self.0 << BITS)
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Self {
        Self::new(word)
    }

    #[inline(always)]
    fn or_where(self, mask: u8, other: Self) -> Self {
        if mask & 1 == 1 { other } else { self }
    }

    #[inline(always)]
    fn nonzero_lanes(self) -> u8 {
        u8::from(self.0 != 0)
    }

    /// There is no other lane.
    #[inline(always)]
    fn exchange(self, _distance: usize) -> Self {
        self
    }

    #[inline(always)]
    fn factor(self) -> u64 {
        self.0 & MASK_52
    }

    #[inline(always)]
    fn multiply(low: Self, high: Self, a: u64, b: u64) -> (Self, Self) {
        let product = u128::from(a << 12) * u128::from(b);
        let (upper, lower) = ((product >> 64) as u64, product as u64 >> 12);
        (low.plus(Self::new(lower)), high.plus(Self::new(upper)))
    }

    #[inline(always)]
    fn write_rows(words: [Self; 8], rows: &mut [Row]) {
        rows[0] = Row(words.map(|word| word.0));
    }

    #[inline(always)]
    fn apart<W: Work>(self, work: W) -> W::Output {
        Words::<C>(PhantomData).run(work)
    }
}
