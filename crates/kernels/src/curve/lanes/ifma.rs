//! Eight lanes of AVX-512, multiplied by IFMA: `vpmadd52luq` and `vpmadd52huq` read 52 bits of both factors, ignore the
//! rest, and add the low or high half of the product to 64 bits.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::Curve;
use super::super::table::{Row, TableSize};
use super::vector::{Engine, OnEight, Vector, Work, WorkOnEight};
use crate::cpu::Level;

/// Proof that this processor has AVX-512 F and IFMA.
#[derive(Clone, Copy)]
pub(super) struct Ifma<C>(PhantomData<C>);

impl<C: Curve> Engine for Ifma<C> {
    type Curve = C;
    type Vector = Lanes<C>;

    fn detect() -> Option<Self> {
        let is_here = Level::Avx512.is_allowed()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512ifma");
        is_here.then_some(Self(PhantomData))
    }

    #[inline(never)]
    fn run<W: Work>(self, work: W) -> W::Output {
        // SAFETY: `self` exists only where `detect` saw the instructions.
        unsafe { with_instructions(work) }
    }

    fn run_on_eight<W: WorkOnEight>(self, work: W) -> W::Output {
        self.run(OnEight::<W, 1>(work))
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Lanes<C> {
        // SAFETY: `self` exists only where `detect` saw the instructions.
        Lanes::new(unsafe { _mm512_set1_epi64(word as i64) })
    }

    #[inline(always)]
    fn read_rows(self, rows: &[&Row]) -> [Lanes<C>; 8] {
        let rows: &[&Row; 8] = rows.try_into().expect("a row for each lane");
        // SAFETY: `self` exists only where `detect` saw the instructions.
        unsafe { read_rows(rows) }.map(Lanes::new)
    }
}

/// Eight words. Made from an [`Ifma`] only, so the instructions are here.
#[derive(Clone, Copy)]
pub(super) struct Lanes<C>(__m512i, PhantomData<C>);

impl<C> Lanes<C> {
    #[inline(always)]
    fn new(words: __m512i) -> Self {
        Self(words, PhantomData)
    }
}

impl<C: Curve> Vector for Lanes<C> {
    type Curve = C;

    const LANES: usize = 8;
    const AT_ONCE: usize = 2;
    const ROUNDS_FROM: usize = 96;
    const ROUNDS_FOR_NEW_KEYS: bool = false;
    const SPREAD_FROM: Option<TableSize> = Some(TableSize::Medium);
    const LOW_EXCESS: u64 = 0;
    const PRODUCT_APART: bool = true;
    const SQUARE_APART: bool = false;
    const HIGH_EXCESS: u64 = 0;
    const SPARE: u64 = 0;

    /// The multiplier ignores the bits above the 52nd.
    type Factor = Self;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: a value of this type exists only where the instructions are.
        Self::new(unsafe { _mm512_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm512_sub_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm512_and_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm512_or_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm512_srli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { _mm512_slli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Self {
        Ifma::<C>(PhantomData).splat(word)
    }

    #[inline(always)]
    fn or_where(self, mask: u8, other: Self) -> Self {
        // SAFETY: a value of this type exists only where the instructions are.
        Self::new(unsafe { _mm512_mask_mov_epi64(self.0, mask, other.0) })
    }

    #[inline(always)]
    fn nonzero_lanes(self) -> u8 {
        // SAFETY: as above.
        unsafe { _mm512_test_epi64_mask(self.0, self.0) }
    }

    #[inline(always)]
    fn exchange(self, distance: usize) -> Self {
        // SAFETY: as above.
        Self::new(unsafe { exchange(self.0, distance) })
    }

    #[inline(always)]
    fn factor(self) -> Self {
        self
    }

    #[inline(always)]
    fn multiply(low: Self, high: Self, a: Self, b: Self) -> (Self, Self) {
        // SAFETY: as above.
        let low = unsafe { _mm512_madd52lo_epu64(low.0, a.0, b.0) };
        // SAFETY: as above.
        let high = unsafe { _mm512_madd52hi_epu64(high.0, a.0, b.0) };
        (Self::new(low), Self::new(high))
    }

    /// All low halves first, so that no column is added to twice in a row.
    #[inline(always)]
    fn multiply_row(columns: &mut [Self; 10], at: usize, a: Self, b: &[Self; 5]) {
        for j in 0..5 {
            // SAFETY: as above.
            columns[at + j].0 = unsafe { _mm512_madd52lo_epu64(columns[at + j].0, a.0, b[j].0) };
        }
        for j in 0..5 {
            let column = &mut columns[at + j + 1].0;
            // SAFETY: as above.
            *column = unsafe { _mm512_madd52hi_epu64(*column, a.0, b[j].0) };
        }
    }

    /// The multiplier's constant costs less than shifts.
    #[inline(always)]
    fn add_shifted<const UP: u32, const DOWN: u32>(low: Self, high: Self, q: Self) -> (Self, Self) {
        Self::multiply(low, high, q, q.splat(1 << UP))
    }

    #[inline(always)]
    fn write_rows(words: [Self; 8], rows: &mut [Row]) {
        let rows: &mut [Row; 8] = rows.try_into().expect("a row for each lane");
        // SAFETY: as above.
        unsafe { write_rows(words.map(|lanes| lanes.0), rows) }
    }

    #[inline(always)]
    fn apart<W: Work>(self, work: W) -> W::Output {
        Ifma::<C>(PhantomData).run(work)
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn with_instructions<W: Work>(work: W) -> W::Output {
    work.run()
}

#[inline]
#[target_feature(enable = "avx512f")]
fn exchange(words: __m512i, distance: usize) -> __m512i {
    match distance {
        4 => _mm512_shuffle_i64x2::<0b01_00_11_10>(words, words),
        2 => _mm512_permutex_epi64::<0b01_00_11_10>(words),
        _ => _mm512_permutex_epi64::<0b10_11_00_01>(words),
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn read_rows(rows: &[&Row; 8]) -> [__m512i; 8] {
    let mut words = [_mm512_setzero_si512(); 8];
    for (words, row) in words.iter_mut().zip(rows) {
        *words = load(row);
    }
    transpose(words)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn write_rows(words: [__m512i; 8], rows: &mut [Row; 8]) {
    for (row, words) in rows.iter_mut().zip(transpose(words)) {
        store(row, words);
    }
}

/// Turns eight vectors of eight words about the diagonal.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose([r0, r1, r2, r3, r4, r5, r6, r7]: [__m512i; 8]) -> [__m512i; 8] {
    let [c0, c2, c4, c6] = transpose_pairs([
        _mm512_unpacklo_epi64(r0, r1),
        _mm512_unpacklo_epi64(r2, r3),
        _mm512_unpacklo_epi64(r4, r5),
        _mm512_unpacklo_epi64(r6, r7),
    ]);
    let [c1, c3, c5, c7] = transpose_pairs([
        _mm512_unpackhi_epi64(r0, r1),
        _mm512_unpackhi_epi64(r2, r3),
        _mm512_unpackhi_epi64(r4, r5),
        _mm512_unpackhi_epi64(r6, r7),
    ]);
    [c0, c1, c2, c3, c4, c5, c6, c7]
}

/// Turns four vectors of four 128-bit groups about the diagonal.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_pairs([p0, p1, p2, p3]: [__m512i; 4]) -> [__m512i; 4] {
    let (even01, odd01) = (evens(p0, p1), odds(p0, p1));
    let (even23, odd23) = (evens(p2, p3), odds(p2, p3));
    [evens(even01, even23), evens(odd01, odd23), odds(even01, even23), odds(odd01, odd23)]
}

/// 128-bit groups 0 and 2 of both vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn evens(a: __m512i, b: __m512i) -> __m512i {
    _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b)
}

/// 128-bit groups 1 and 3 of both vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn odds(a: __m512i, b: __m512i) -> __m512i {
    _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(row: &Row) -> __m512i {
    // SAFETY: a row is 64 readable bytes, aligned to 64 by its type.
    unsafe { _mm512_load_si512(row.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(row: &mut Row, words: __m512i) {
    // SAFETY: a row is 64 writable bytes, aligned to 64 by its type.
    unsafe { _mm512_store_si512(row.0.as_mut_ptr().cast(), words) }
}
