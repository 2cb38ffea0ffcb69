//! Four lanes of AVX2, multiplied by the fused multiply-add of double-precision numbers (see `doubles.rs`).

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::Curve;
use super::super::table::{Row, TableSize};
use super::doubles::{HIGH_EXCESS, LOW_START, SPARE, START, TWO_52, TWO_104, start_by};
use super::field::MASK_52;
use super::vector::{Engine, OnEight, Vector, Work, WorkOnEight};
use crate::cpu::Level;

/// Proof that this processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Fma<C>(PhantomData<C>);

impl<C: Curve> Engine for Fma<C> {
    type Curve = C;
    type Vector = Lanes<C>;

    fn detect() -> Option<Self> {
        let is_here = Level::Avx2.is_allowed()
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma");
        is_here.then_some(Self(PhantomData))
    }

    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Output {
        // SAFETY: `self` exists only where `detect` saw the instructions.
        unsafe { with_instructions(work) }
    }

    fn run_on_eight<W: WorkOnEight>(self, work: W) -> W::Output {
        self.run(OnEight::<W, 2>(work))
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Lanes<C> {
        // SAFETY: `self` exists only where `detect` saw the instructions.
        Lanes::new(unsafe { _mm256_set1_epi64x(word as i64) })
    }

    #[inline(always)]
    fn read_rows(self, rows: &[&Row]) -> [Lanes<C>; 8] {
        let rows: &[&Row; 4] = rows.try_into().expect("a row for each lane");
        // SAFETY: `self` exists only where `detect` saw the instructions.
        unsafe { read_rows(rows) }.map(Lanes::new)
    }
}

/// Four words. Made from an [`Fma`] only, so the instructions are here.
#[derive(Clone, Copy)]
pub(super) struct Lanes<C>(__m256i, PhantomData<C>);

impl<C> Lanes<C> {
    #[inline(always)]
    fn new(words: __m256i) -> Self {
        Self(words, PhantomData)
    }
}

impl<C: Curve> Vector for Lanes<C> {
    type Curve = C;

    const LANES: usize = 4;
    const AT_ONCE: usize = 1;
    const ROUNDS_FROM: usize = 16;
    const ROUNDS_FOR_NEW_KEYS: bool = true;
    const SPREAD_FROM: Option<TableSize> = Some(TableSize::Large);
    const LOW_EXCESS: u64 = LOW_START.to_bits();
    const PRODUCT_APART: bool = false;
    const SQUARE_APART: bool = false;
    const HIGH_EXCESS: u64 = HIGH_EXCESS;
    const SPARE: u64 = SPARE;

    /// The factor as a double.
    type Factor = __m256d;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: a value of this type exists only where the instructions are.
        Self::new(unsafe { _mm256_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm256_sub_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm256_and_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm256_or_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { shr::<BITS>(self.0) })
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { shl::<BITS>(self.0) })
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Self {
        Fma::<C>(PhantomData).splat(word)
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
    fn exchange(self, distance: usize) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { exchange(self.0, distance) })
    }

    #[inline(always)]
    fn factor(self) -> __m256d {
        // SAFETY: as above.
        unsafe { factor(self.0) }
    }

    #[inline(always)]
    fn multiply(low: Self, high: Self, a: __m256d, b: __m256d) -> (Self, Self) {
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
        let rows: &mut [Row; 4] = rows.try_into().expect("a row for each lane");
        // SAFETY: as above.
        unsafe { write_rows(words.map(|lanes| lanes.0), rows) }
    }

    #[inline(always)]
    fn apart<W: Work>(self, work: W) -> W::Output {
        Fma::<C>(PhantomData).run(work)
    }
}

#[target_feature(enable = "avx2,fma")]
fn with_instructions<W: Work>(work: W) -> W::Output {
    work.run()
}

/// 2⁵² and the lowest 52 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn above_two_52(limb: __m256i) -> __m256d {
    let fraction = _mm256_and_si256(limb, _mm256_set1_epi64x(MASK_52 as i64));
    let exponent = _mm256_castpd_si256(_mm256_set1_pd(TWO_52));
    _mm256_castsi256_pd(_mm256_or_si256(fraction, exponent))
}

/// The doubles of the lowest 52 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn factor(limb: __m256i) -> __m256d {
    _mm256_sub_pd(above_two_52(limb), _mm256_set1_pd(TWO_52))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply(low: __m256i, high: __m256i, a: __m256d, b: __m256d) -> (__m256i, __m256i) {
    let top = _mm256_fmadd_pd(a, b, _mm256_set1_pd(TWO_104));
    let rest = _mm256_fmsub_pd(_mm256_set1_pd(START[0]), _mm256_set1_pd(START[1]), top);
    let bottom = _mm256_fmadd_pd(a, b, rest);
    add(low, high, bottom, top)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply_by<const NUMBER: u64>(
    low: __m256i,
    high: __m256i,
    limb: __m256i,
) -> (__m256i, __m256i) {
    let (a, b) = (above_two_52(limb), _mm256_set1_pd(NUMBER as f64));
    let top = _mm256_fmadd_pd(a, b, _mm256_set1_pd(const { start_by(NUMBER) }));
    let rest = _mm256_sub_pd(_mm256_set1_pd(const { start_by(NUMBER) + LOW_START }), top);
    let bottom = _mm256_fmadd_pd(a, b, rest);
    add(low, high, bottom, top)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(low: __m256i, high: __m256i, bottom: __m256d, top: __m256d) -> (__m256i, __m256i) {
    let low = _mm256_add_epi64(low, _mm256_castpd_si256(bottom));
    (low, _mm256_add_epi64(high, _mm256_castpd_si256(top)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn shr<const BITS: u32>(words: __m256i) -> __m256i {
    _mm256_srl_epi64(words, _mm_cvtsi32_si128(BITS as i32))
}

#[inline]
#[target_feature(enable = "avx2")]
fn shl<const BITS: u32>(words: __m256i) -> __m256i {
    _mm256_sll_epi64(words, _mm_cvtsi32_si128(BITS as i32))
}

#[inline]
#[target_feature(enable = "avx2")]
fn or_where(words: __m256i, mask: u8, other: __m256i) -> __m256i {
    let bits = _mm256_setr_epi64x(1, 2, 4, 8);
    let chosen = _mm256_and_si256(_mm256_set1_epi64x(mask.into()), bits);
    _mm256_blendv_epi8(words, other, _mm256_cmpeq_epi64(chosen, bits))
}

#[inline]
#[target_feature(enable = "avx2")]
fn nonzero_lanes(words: __m256i) -> u8 {
    let zero = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());
    !_mm256_movemask_pd(_mm256_castsi256_pd(zero)) as u8 & 0b1111
}

#[inline]
#[target_feature(enable = "avx2")]
fn exchange(words: __m256i, distance: usize) -> __m256i {
    match distance {
        2 => _mm256_permute4x64_epi64::<0b01_00_11_10>(words),
        _ => _mm256_permute4x64_epi64::<0b10_11_00_01>(words),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn read_rows(rows: &[&Row; 4]) -> [__m256i; 8] {
    let [a, b, c, d] = [load(rows[0]), load(rows[1]), load(rows[2]), load(rows[3])];
    let [w0, w1, w2, w3] = transpose([a[0], b[0], c[0], d[0]]);
    let [w4, w5, w6, w7] = transpose([a[1], b[1], c[1], d[1]]);
    [w0, w1, w2, w3, w4, w5, w6, w7]
}

#[inline]
#[target_feature(enable = "avx2")]
fn write_rows(words: [__m256i; 8], rows: &mut [Row; 4]) {
    let [w0, w1, w2, w3, w4, w5, w6, w7] = words;
    let [first, second] = [transpose([w0, w1, w2, w3]), transpose([w4, w5, w6, w7])];
    for (i, row) in rows.iter_mut().enumerate() {
        store(row, [first[i], second[i]]);
    }
}

/// Turns four vectors of four words about the diagonal.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose([r0, r1, r2, r3]: [__m256i; 4]) -> [__m256i; 4] {
    let (low01, high01) = (_mm256_unpacklo_epi64(r0, r1), _mm256_unpackhi_epi64(r0, r1));
    let (low23, high23) = (_mm256_unpacklo_epi64(r2, r3), _mm256_unpackhi_epi64(r2, r3));
    [
        _mm256_permute2x128_si256::<0x20>(low01, low23),
        _mm256_permute2x128_si256::<0x20>(high01, high23),
        _mm256_permute2x128_si256::<0x31>(low01, low23),
        _mm256_permute2x128_si256::<0x31>(high01, high23),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(row: &Row) -> [__m256i; 2] {
    let words = row.0.as_ptr();
    // SAFETY: a row is 64 readable bytes, aligned to 64 by its type; these are the first 32.
    let first = unsafe { _mm256_load_si256(words.cast()) };
    // SAFETY: the row's eight words are one allocation.
    let middle = unsafe { words.add(4) };
    // SAFETY: the other 32 bytes of the row, aligned to 32.
    let second = unsafe { _mm256_load_si256(middle.cast()) };
    [first, second]
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(row: &mut Row, [first, second]: [__m256i; 2]) {
    let words = row.0.as_mut_ptr();
    // SAFETY: a row is 64 writable bytes, aligned to 64 by its type; these are the first 32.
    unsafe { _mm256_store_si256(words.cast(), first) };
    // SAFETY: the row's eight words are one allocation.
    let middle = unsafe { words.add(4) };
    // SAFETY: the other 32 bytes of the row, aligned to 32.
    unsafe { _mm256_store_si256(middle.cast(), second) };
}
