//! Requirements on a processor that runs the lanes: vectors of 64-bit words, and a multiplier of 52-bit factors.
//!
//! The code above (`field.rs`, `point.rs`, `table.rs`, `ladder.rs`) is written once, over [`Vector`]. A vector can only be
//! made from an [`Engine`], and an engine only where the processor has its instructions, so a value of these types is the
//! proof that the instructions may be used. [`Engine::run`] and [`Vector::apart`] are compiled with the instructions, and
//! all that they run must be inlined into them: a function of its own that is not a [`Work`] would be compiled without.

use super::super::Curve;
use super::super::table::{Row, TableSize};
use super::field::MASK_52;

/// Proof that this processor has the instructions of the vectors.
pub(super) trait Engine: Copy {
    /// The curve whose points the vectors are made for.
    type Curve: Curve;

    /// The vectors.
    type Vector: Vector<Curve = Self::Curve>;

    /// The engine, if this processor has the instructions.
    fn detect() -> Option<Self>;

    /// Does the work in a function of its own, compiled with the instructions. `#[inline(never)]`, because the compiler
    /// ignores that (rustc 1.95) at the function with the instructions that it calls.
    fn run<W: Work>(self, work: W) -> W::Output;

    /// Does the work with as many vectors as eight lanes are.
    fn run_on_eight<W: WorkOnEight>(self, work: W) -> W::Output;

    /// The word in every lane.
    fn splat(self, word: u64) -> Self::Vector;

    /// The words of one row per lane: vector `i` has word `i` of every row.
    fn read_rows(self, rows: &[&Row]) -> [Self::Vector; 8];
}

/// A word of 64 bits in each of [`LANES`](Self::LANES) lanes. Masks have a bit per lane.
pub(in crate::curve) trait Vector: Copy + 'static {
    /// The curve whose numbers the vectors hold.
    type Curve: Curve;

    /// The number of lanes, at most 8.
    const LANES: usize;

    /// How many vectors take a step together, one or two. Two hide each other's latency, where there are registers for both.
    const AT_ONCE: usize;

    /// From how many signatures under keys of the same form on rounds (see `rounds.rs`) are faster than additions in sequence.
    const ROUNDS_FROM: usize;

    /// Whether rounds are faster for keys without tables, too.
    const ROUNDS_FOR_NEW_KEYS: bool;

    /// The smallest table of a key with which one signature is verified faster in all lanes (see `single.rs`) than in one.
    const SPREAD_FROM: Option<TableSize>;

    /// All lanes.
    const ALL: u8 = ((1 << Self::LANES) - 1) as u8;

    /// The excess that [`multiply`](Self::multiply) adds to the low column on top of the low half.
    const LOW_EXCESS: u64;

    /// The excess that [`multiply`](Self::multiply) adds to the high column on top of the high half.
    const HIGH_EXCESS: u64;

    /// The start that keeps a column positive, in units of 2⁵²; 0 if no half is negative.
    const SPARE: u64;

    /// Whether a product is a function of its own: a barrier to the compiler, which otherwise reorders the products of an
    /// addition into one stretch that takes 1.2 times as long (IFMA on Zen 5). With few registers a call costs more.
    const PRODUCT_APART: bool;

    /// Whether a square is a function of its own, too: with one lane the steps of an addition, all inlined, are so long that
    /// they take 1.1 times as long to be decoded (Zen 5).
    const SQUARE_APART: bool;

    /// A factor of 52 bits in the form that the multiplier reads.
    type Factor: Copy;

    /// The sum in every lane.
    fn plus(self, other: Self) -> Self;

    /// The difference in every lane.
    fn minus(self, other: Self) -> Self;

    /// The bits that are set in both.
    fn and(self, other: Self) -> Self;

    /// The bits that are set in either.
    fn or(self, other: Self) -> Self;

    /// Shifted to the right by `BITS`.
    fn shr<const BITS: u32>(self) -> Self;

    /// Shifted to the left by `BITS`.
    fn shl<const BITS: u32>(self) -> Self;

    /// The same word in every lane.
    fn splat(self, word: u64) -> Self;

    /// `other` in the lanes of `mask`, `self` elsewhere.
    fn or_where(self, mask: u8, other: Self) -> Self;

    /// The lanes that are not zero.
    fn nonzero_lanes(self) -> u8;

    /// The word of lane `i ^ distance` in lane `i`. The distance is a power of two below the number of lanes.
    fn exchange(self, distance: usize) -> Self;

    /// The lowest 52 bits as a factor.
    fn factor(self) -> Self::Factor;

    /// Adds the halves of the product of two factors to `low` and `high`, with their excess. A low half may be
    /// negative, down to −2⁵¹.
    fn multiply(low: Self, high: Self, a: Self::Factor, b: Self::Factor) -> (Self, Self);

    /// Adds the halves of the product of the lowest 52 bits of `limb` and a number from 2 to 2⁵² − 1.
    #[inline(always)]
    fn multiply_by<const NUMBER: u64>(low: Self, high: Self, limb: Self) -> (Self, Self) {
        Self::multiply(low, high, limb.factor(), limb.splat(NUMBER).factor())
    }

    /// Adds the products of a factor with five others to the columns from `at` on.
    #[inline(always)]
    fn multiply_row(columns: &mut [Self; 10], at: usize, a: Self::Factor, b: &[Self::Factor; 5]) {
        for j in 0..5 {
            let (low, high) = Self::multiply(columns[at + j], columns[at + j + 1], a, b[j]);
            (columns[at + j], columns[at + j + 1]) = (low, high);
        }
    }

    /// Adds the halves of `q`·2^`UP` to `low` and `high`, for the lowest 52 bits of `q`. `UP` + `DOWN` is 52.
    #[inline(always)]
    fn add_shifted<const UP: u32, const DOWN: u32>(low: Self, high: Self, q: Self) -> (Self, Self) {
        let mask = q.splat(MASK_52);
        (low.plus(q.shl::<UP>().and(mask)), high.plus(q.and(mask).shr::<DOWN>()))
    }

    /// Writes a row per lane: word `i` of it from vector `i`.
    fn write_rows(words: [Self; 8], rows: &mut [Row]);

    /// Does the work in a function of its own, compiled with the instructions.
    fn apart<W: Work>(self, work: W) -> W::Output;
}

/// Work that becomes a function of its own, compiled with the instructions. A closure would not do: the compiler
/// may leave it a function without them.
pub(in crate::curve) trait Work {
    /// The result.
    type Output;

    /// Does the work. `#[inline(always)]` in every implementation.
    fn run(self) -> Self::Output;
}

/// Work on eight lanes, in vectors of any size.
pub(super) trait WorkOnEight {
    /// The result.
    type Output;

    /// Does the work with `G` vectors. `#[inline(always)]` in every implementation.
    fn run<const G: usize>(self) -> Self::Output;
}

/// Work on eight lanes in `G` vectors.
pub(super) struct OnEight<W, const G: usize>(pub(super) W);

impl<W: WorkOnEight, const G: usize> Work for OnEight<W, G> {
    type Output = W::Output;

    #[inline(always)]
    fn run(self) -> W::Output {
        self.0.run::<G>()
    }
}
