//! The odd multiples of eight keys at once, and the conversion between rows and lanes.
//!
//! A lane reads its own row of its own table: eight loads of a cache line, then a transpose, which
//! is a third of the instructions of the gathers that would do the same.

use std::arch::x86_64::*;

use super::super::table::{KEY_ROWS, Row};
use super::field::{Factor, Limbs, Tight};
use super::point::CoZ;

/// The odd multiples of the key in each lane, before they are written as rows.
pub(super) struct Multiples<const G: usize> {
    /// X and Y of Q, 3Q, 5Q, …, each with a Z of its own.
    points: [[Tight<G>; 2]; KEY_ROWS],
    /// `ratios[i]` is Z of `points[i]`, divided by the one before (for the first: Z itself).
    ratios: [Factor<G>; KEY_ROWS],
}

impl<const G: usize> Multiples<G> {
    /// The odd multiples of the points (x, y).
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn of(x: &Tight<G>, y: &Tight<G>) -> Self {
        let mut chain = CoZ::start(x, y);
        let mut points = [chain.current; KEY_ROWS];
        let mut ratios = [y.loose().twice().carry(); KEY_ROWS];
        for i in 1..KEY_ROWS {
            ratios[i] = chain.advance();
            points[i] = chain.current;
        }
        Self { points, ratios }
    }

    /// The Z of the last multiple.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn last_z(&self) -> Factor<G> {
        let mut product = self.ratios[0];
        for ratio in &self.ratios[1..] {
            product = product.mul(ratio).carry();
        }
        product
    }

    /// Writes the multiples with the Z that is `scale` times the last one's, which is then the Z of
    /// all rows (for `scale` one), or with Z = 1 (for `scale` 1/Z).
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn write(&self, scale: &Factor<G>, rows: &mut [[[Row; KEY_ROWS]; 8]; G]) {
        let mut to_shared = *scale;
        for i in (0..KEY_ROWS).rev() {
            let [x, y] = &self.points[i];
            let squared = to_shared.square().carry();
            let x = x.mul(&squared).tighten();
            let y = y.mul(&squared.mul(&to_shared).carry()).tighten();
            let written = to_rows(&x, &y);
            for g in 0..G {
                for lane in 0..8 {
                    rows[g][lane][i] = written[g][lane];
                }
            }
            if i > 0 {
                to_shared = to_shared.mul(&self.ratios[i]).carry();
            }
        }
    }
}

/// The two numbers of each lane's row.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn read_rows<const G: usize>(rows: &[[&Row; 8]; G]) -> [Tight<G>; 2] {
    let mut first = [[_mm512_setzero_si512(); 5]; G];
    let mut second = first;
    for g in 0..G {
        let mut words = [_mm512_setzero_si512(); 8];
        for lane in 0..8 {
            words[lane] = load(rows[g][lane]);
        }
        let [x0, x1, x2, x3, y0, y1, y2, y3] = transpose(words);
        first[g] = unpack([x0, x1, x2, x3]);
        second[g] = unpack([y0, y1, y2, y3]);
    }
    [Tight::from_limbs(first), Tight::from_limbs(second)]
}

/// A row for each lane of two numbers of magnitude 1.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn to_rows<const G: usize>(first: &Tight<G>, second: &Tight<G>) -> [[Row; 8]; G] {
    let (first, second) = (first.below_2_256(), second.below_2_256());
    let mut rows = [[Row::ZERO; 8]; G];
    for g in 0..G {
        let [x0, x1, x2, x3] = pack(first.limbs()[g]);
        let [y0, y1, y2, y3] = pack(second.limbs()[g]);
        let words = transpose([x0, x1, x2, x3, y0, y1, y2, y3]);
        for lane in 0..8 {
            store(&mut rows[g][lane], words[lane]);
        }
    }
    rows
}

/// Five 52-bit limbs of four 64-bit words.
#[inline]
#[target_feature(enable = "avx512f")]
fn unpack([w0, w1, w2, w3]: [__m512i; 4]) -> Limbs {
    let mask = _mm512_set1_epi64((1 << 52) - 1);
    [
        _mm512_and_si512(w0, mask),
        or_then_and(_mm512_srli_epi64::<52>(w0), _mm512_slli_epi64::<12>(w1), mask),
        or_then_and(_mm512_srli_epi64::<40>(w1), _mm512_slli_epi64::<24>(w2), mask),
        or_then_and(_mm512_srli_epi64::<28>(w2), _mm512_slli_epi64::<36>(w3), mask),
        _mm512_srli_epi64::<16>(w3),
    ]
}

/// `(a | b) & c`.
#[inline]
#[target_feature(enable = "avx512f")]
fn or_then_and(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0xa8>(a, b, c)
}

/// Four 64-bit words of five 52-bit limbs whose value is below 2²⁵⁶.
#[inline]
#[target_feature(enable = "avx512f")]
fn pack([l0, l1, l2, l3, l4]: Limbs) -> [__m512i; 4] {
    [
        _mm512_or_si512(l0, _mm512_slli_epi64::<52>(l1)),
        _mm512_or_si512(_mm512_srli_epi64::<12>(l1), _mm512_slli_epi64::<40>(l2)),
        _mm512_or_si512(_mm512_srli_epi64::<24>(l2), _mm512_slli_epi64::<28>(l3)),
        _mm512_or_si512(_mm512_srli_epi64::<36>(l3), _mm512_slli_epi64::<16>(l4)),
    ]
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

/// 128-bit groups 0 and 2 of each.
#[inline]
#[target_feature(enable = "avx512f")]
fn evens(a: __m512i, b: __m512i) -> __m512i {
    _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b)
}

/// 128-bit groups 1 and 3 of each.
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
