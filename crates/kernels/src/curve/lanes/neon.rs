//! Two lanes of Advanced SIMD on ARMv8, multiplied by the fused multiply-add of double-precision numbers (see `doubles.rs`).

use std::arch::aarch64::*;
use std::marker::PhantomData;

use super::super::Curve;
use super::super::table::{Row, TableSize};
use super::doubles::{HIGH_EXCESS, LOW_START, SPARE, START, TWO_52, TWO_104, start_by};
use super::field::MASK_52;
use super::vector::{Engine, OnEight, Vector, Work, WorkOnEight};
use crate::cpu::Level;

/// Proof that this processor has Advanced SIMD.
#[derive(Clone, Copy)]
pub(super) struct Neon<C>(PhantomData<C>);

impl<C: Curve> Engine for Neon<C> {
    type Curve = C;
    type Vector = Lanes<C>;

    fn detect() -> Option<Self> {
        let is_here = Level::Neon.is_allowed() && std::arch::is_aarch64_feature_detected!("neon");
        is_here.then_some(Self(PhantomData))
    }

    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Output {
        // SAFETY: `self` exists only where `detect` saw the instructions.
        unsafe { with_instructions(work) }
    }

    fn run_on_eight<W: WorkOnEight>(self, work: W) -> W::Output {
        self.run(OnEight::<W, 4>(work))
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Lanes<C> {
        // SAFETY: `self` exists only where `detect` saw the instructions.
        Lanes::new(unsafe { vdupq_n_u64(word) })
    }

    #[inline(always)]
    fn read_rows(self, rows: &[&Row]) -> [Lanes<C>; 8] {
        let rows: &[&Row; 2] = rows.try_into().expect("a row for each lane");
        // SAFETY: `self` exists only where `detect` saw the instructions.
        unsafe { read_rows(rows) }.map(Lanes::new)
    }
}

/// Two words. Made from a [`Neon`] only, so the instructions are here.
#[derive(Clone, Copy)]
pub(super) struct Lanes<C>(uint64x2_t, PhantomData<C>);

impl<C> Lanes<C> {
    #[inline(always)]
    fn new(words: uint64x2_t) -> Self {
        Self(words, PhantomData)
    }
}

impl<C: Curve> Vector for Lanes<C> {
    type Curve = C;

    const LANES: usize = 2;
    const AT_ONCE: usize = 2;
    const ROUNDS_FROM: usize = 16;
    const ROUNDS_FOR_NEW_KEYS: bool = true;

    /// The instructions subtract products, so that the low half is negative.
    const SPREAD_FROM: Option<TableSize> = Some(TableSize::Large);
    const LOW_EXCESS: u64 = (-LOW_START).to_bits();
    const PRODUCT_APART: bool = false;
    const SQUARE_APART: bool = false;
    const HIGH_EXCESS: u64 = HIGH_EXCESS;
    const SPARE: u64 = SPARE;

    /// The factor as a double.
    type Factor = float64x2_t;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: a value of this type exists only where the instructions are.
        Self::new(unsafe { vaddq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { vsubq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { vandq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { vorrq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { shifted(self.0, -i64::from(BITS)) })
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { shifted(self.0, i64::from(BITS)) })
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Self {
        Neon::<C>(PhantomData).splat(word)
    }

    #[inline(always)]
    fn or_where(self, mask: u8, other: Self) -> Self {
        // SAFETY: a value of this type exists only where the instructions are.
        Self::new(unsafe { or_where(self.0, mask, other.0) })
    }

    #[inline(always)]
    fn nonzero_lanes(self) -> u8 {
        // SAFETY: as above.
        unsafe { nonzero_lanes(self.0) }
    }

    #[inline(always)]
    fn exchange(self, _distance: usize) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { vextq_u64::<1>(self.0, self.0) })
    }

    #[inline(always)]
    fn factor(self) -> float64x2_t {
        // SAFETY: as above.
        unsafe { factor(self.0) }
    }

    #[inline(always)]
    fn multiply(low: Self, high: Self, a: float64x2_t, b: float64x2_t) -> (Self, Self) {
        // SAFETY: as above.
        let (low, high) = unsafe { multiply(low.0, high.0, a, b) };
        (Self::new(low), Self::new(high))
    }

    #[inline(always)]
    fn multiply_by<const NUMBER: u64>(low: Self, high: Self, limb: Self) -> (Self, Self) {
        // SAFETY: as above.
        let (low, high) = unsafe { multiply_by::<NUMBER>(low.0, high.0, limb.0) };
        (Self::new(low), Self::new(high))
    }

    #[inline(always)]
    fn write_rows(words: [Self; 8], rows: &mut [Row]) {
        let rows: &mut [Row; 2] = rows.try_into().expect("a row for each lane");
        // SAFETY: as above.
        unsafe { write_rows(words.map(|lanes| lanes.0), rows) }
    }

    #[inline(always)]
    fn apart<W: Work>(self, work: W) -> W::Output {
        Neon::<C>(PhantomData).run(work)
    }
}

#[target_feature(enable = "neon")]
fn with_instructions<W: Work>(work: W) -> W::Output {
    work.run()
}

/// Shifted to the left, or by a negative number of bits to the right.
#[inline]
#[target_feature(enable = "neon")]
fn shifted(words: uint64x2_t, bits: i64) -> uint64x2_t {
    vshlq_u64(words, vdupq_n_s64(bits))
}

#[inline]
#[target_feature(enable = "neon")]
fn or_where(words: uint64x2_t, mask: u8, other: uint64x2_t) -> uint64x2_t {
    vbslq_u64(
        pair([mask & 1, mask >> 1 & 1].map(|bit| 0_u64.wrapping_sub(bit.into()))),
        other,
        words,
    )
}

#[inline]
#[target_feature(enable = "neon")]
fn pair([first, second]: [u64; 2]) -> uint64x2_t {
    vcombine_u64(vcreate_u64(first), vcreate_u64(second))
}

#[inline]
#[target_feature(enable = "neon")]
fn nonzero_lanes(words: uint64x2_t) -> u8 {
    let (first, second) = (vgetq_lane_u64::<0>(words), vgetq_lane_u64::<1>(words));
    u8::from(first != 0) | u8::from(second != 0) << 1
}

/// 2⁵² and the lowest 52 bits.
#[inline]
#[target_feature(enable = "neon")]
fn above_two_52(limb: uint64x2_t) -> float64x2_t {
    let fraction = vandq_u64(limb, vdupq_n_u64(MASK_52));
    vreinterpretq_f64_u64(vorrq_u64(fraction, vdupq_n_u64(TWO_52.to_bits())))
}

/// The doubles of the lowest 52 bits.
#[inline]
#[target_feature(enable = "neon")]
fn factor(limb: uint64x2_t) -> float64x2_t {
    vsubq_f64(above_two_52(limb), vdupq_n_f64(TWO_52))
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply(
    low: uint64x2_t,
    high: uint64x2_t,
    a: float64x2_t,
    b: float64x2_t,
) -> (uint64x2_t, uint64x2_t) {
    let top = vfmaq_f64(vdupq_n_f64(TWO_104), a, b);
    let minus_rest = vfmsq_f64(top, vdupq_n_f64(START[0]), vdupq_n_f64(START[1]));
    let minus_bottom = vfmsq_f64(minus_rest, a, b);
    add(low, high, minus_bottom, top)
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply_by<const NUMBER: u64>(
    low: uint64x2_t,
    high: uint64x2_t,
    limb: uint64x2_t,
) -> (uint64x2_t, uint64x2_t) {
    let (a, b) = (above_two_52(limb), vdupq_n_f64(NUMBER as f64));
    let top = vfmaq_f64(vdupq_n_f64(const { start_by(NUMBER) }), a, b);
    let minus_rest = vsubq_f64(top, vdupq_n_f64(const { start_by(NUMBER) + LOW_START }));
    let minus_bottom = vfmsq_f64(minus_rest, a, b);
    add(low, high, minus_bottom, top)
}

#[inline]
#[target_feature(enable = "neon")]
fn add(
    low: uint64x2_t,
    high: uint64x2_t,
    bottom: float64x2_t,
    top: float64x2_t,
) -> (uint64x2_t, uint64x2_t) {
    let low = vaddq_u64(low, vreinterpretq_u64_f64(bottom));
    (low, vaddq_u64(high, vreinterpretq_u64_f64(top)))
}

#[inline]
#[target_feature(enable = "neon")]
fn read_rows([first, second]: &[&Row; 2]) -> [uint64x2_t; 8] {
    let mut words = [vdupq_n_u64(0); 8];
    for (i, word) in words.iter_mut().enumerate() {
        *word = pair([first.0[i], second.0[i]]);
    }
    words
}

#[inline]
#[target_feature(enable = "neon")]
fn write_rows(words: [uint64x2_t; 8], [first, second]: &mut [Row; 2]) {
    for (i, word) in words.into_iter().enumerate() {
        first.0[i] = vgetq_lane_u64::<0>(word);
        second.0[i] = vgetq_lane_u64::<1>(word);
    }
}
