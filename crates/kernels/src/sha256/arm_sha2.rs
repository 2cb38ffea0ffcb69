//! SHA-256 by the ARMv8 SHA-2 instructions, one message at a time.
//!
//! The unit keeps the state as two vectors, `ABCD` and `EFGH`, low word first. `vsha256hq` and
//! `vsha256h2q` take four rounds on one half each, `vsha256su0q` and `vsha256su1q` extend the
//! schedule by four words.
//!
//! On other machines the tests compile this file over [`emulation`], which implements the six
//! instructions in plain Rust, so that their use is tested everywhere.

#![cfg(any(target_arch = "aarch64", test))]

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;

#[cfg(not(target_arch = "aarch64"))]
use emulation::*;

use super::lanes::Engine;
use super::portable::Block;
use super::{INITIAL, ROUND};

/// One message. Made only where the SHA-2 instructions were detected.
pub(super) struct Stream {
    state: [u32; 8],
}

impl Engine<1> for Stream {
    fn new() -> Self {
        #[cfg(target_arch = "aarch64")]
        assert!(std::arch::is_aarch64_feature_detected!("sha2"), "the dispatcher checked before");
        Self { state: INITIAL }
    }

    fn set(&mut self, _lane: usize, state: &[u32; 8]) {
        self.state = *state;
    }

    fn get(&self, _lane: usize) -> [u32; 8] {
        self.state
    }

    fn compress(&mut self, blocks: &[&Block; 1]) {
        #[cfg_attr(not(target_arch = "aarch64"), expect(unused_unsafe, reason = "emulated"))]
        // SAFETY: `new` saw the instructions on this CPU, and no `Stream` comes from elsewhere.
        unsafe {
            compress(&mut self.state, blocks[0])
        }
    }
}

#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,sha2"))]
fn compress(state: &mut [u32; 8], block: &Block) {
    let (abcd_before, efgh_before) = (load(&state[..4]), load(&state[4..]));
    let (mut abcd, mut efgh) = (abcd_before, efgh_before);
    // The last sixteen words of the schedule, as a ring of four vectors.
    let mut words: [uint32x4_t; 4] = std::array::from_fn(|i| load_big_endian(block, i));
    for quad in 0..16 {
        let [w0, w1, w2, w3] = std::array::from_fn(|i| words[(quad + i) % 4]);
        let sum = vaddq_u32(w0, load(&ROUND[4 * quad..4 * quad + 4]));
        let abcd_old = abcd;
        abcd = vsha256hq_u32(abcd, efgh, sum);
        efgh = vsha256h2q_u32(efgh, abcd_old, sum);
        if quad < 12 {
            words[quad % 4] = vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
        }
    }
    store(&mut state[..4], vaddq_u32(abcd, abcd_before));
    store(&mut state[4..], vaddq_u32(efgh, efgh_before));
}

#[inline]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,sha2"))]
fn load_big_endian(block: &Block, quad: usize) -> uint32x4_t {
    let words: [u32; 4] =
        std::array::from_fn(|i| u32::from_be_bytes(block.as_chunks::<4>().0[4 * quad + i]));
    load(&words)
}

#[inline]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,sha2"))]
fn load(words: &[u32]) -> uint32x4_t {
    let words: &[u32; 4] = words.try_into().expect("callers cut four words");
    // SAFETY: `words` is 16 readable bytes.
    unsafe { vld1q_u32(words.as_ptr()) }
}

#[inline]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,sha2"))]
fn store(words: &mut [u32], value: uint32x4_t) {
    let words: &mut [u32; 4] = words.try_into().expect("callers cut four words");
    // SAFETY: `words` is 16 writable bytes.
    unsafe { vst1q_u32(words.as_mut_ptr(), value) }
}

/// The instructions in plain Rust (Arm Architecture Reference Manual, `SHA256H` and its neighbours).
#[cfg(not(target_arch = "aarch64"))]
mod emulation {
    #![allow(non_camel_case_types, reason = "the names of the real intrinsics")]

    pub(super) type uint32x4_t = [u32; 4];

    pub(super) unsafe fn vld1q_u32(words: *const u32) -> uint32x4_t {
        // SAFETY: the caller passes a pointer to four words, as for the real intrinsic.
        unsafe { *words.cast() }
    }

    pub(super) unsafe fn vst1q_u32(words: *mut u32, value: uint32x4_t) {
        // SAFETY: the caller passes a pointer to four words, as for the real intrinsic.
        unsafe { *words.cast() = value }
    }

    pub(super) fn vaddq_u32(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        std::array::from_fn(|i| a[i].wrapping_add(b[i]))
    }

    pub(super) fn vsha256hq_u32(
        abcd: uint32x4_t,
        efgh: uint32x4_t,
        keyed: uint32x4_t,
    ) -> uint32x4_t {
        four_rounds(abcd, efgh, keyed).0
    }

    pub(super) fn vsha256h2q_u32(
        efgh: uint32x4_t,
        abcd: uint32x4_t,
        keyed: uint32x4_t,
    ) -> uint32x4_t {
        four_rounds(abcd, efgh, keyed).1
    }

    pub(super) fn vsha256su0q_u32(w0: uint32x4_t, w4: uint32x4_t) -> uint32x4_t {
        let next = [w0[1], w0[2], w0[3], w4[0]];
        std::array::from_fn(|i| {
            let w = next[i];
            w0[i].wrapping_add(w.rotate_right(7) ^ w.rotate_right(18) ^ (w >> 3))
        })
    }

    pub(super) fn vsha256su1q_u32(
        partial: uint32x4_t,
        w8: uint32x4_t,
        w12: uint32x4_t,
    ) -> uint32x4_t {
        let w9 = [w8[1], w8[2], w8[3], w12[0]];
        let sigma1 = |w: u32| w.rotate_right(17) ^ w.rotate_right(19) ^ (w >> 10);
        let mut next = [0u32; 4];
        for i in 0..4 {
            let back_two = if i < 2 { w12[i + 2] } else { next[i - 2] };
            next[i] = partial[i].wrapping_add(w9[i]).wrapping_add(sigma1(back_two));
        }
        next
    }

    fn four_rounds(
        abcd: uint32x4_t,
        efgh: uint32x4_t,
        keyed: uint32x4_t,
    ) -> (uint32x4_t, uint32x4_t) {
        let [mut a, mut b, mut c, mut d] = abcd;
        let [mut e, mut f, mut g, mut h] = efgh;
        for word in keyed {
            let sigma1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let t1 = h.wrapping_add(sigma1).wrapping_add((e & f) ^ (!e & g)).wrapping_add(word);
            let sigma0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let t2 = sigma0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
        }
        ([a, b, c, d], [e, f, g, h])
    }
}
