//! SHA-256 in plain Rust: the definition that every other back end is tested against.

use super::{Digest, INITIAL, ROUND};

/// One block of the message after padding.
pub(super) type Block = [u8; 64];

pub(super) fn digest(message: &[u8]) -> Digest {
    let mut state = INITIAL;
    let (blocks, tail) = message.as_chunks::<64>();
    for block in blocks {
        compress(&mut state, block);
    }
    let mut padded = [[0; 64]; 2];
    let used = pad_into(&mut padded, tail, message.len());
    for block in &padded[..used] {
        compress(&mut state, block);
    }
    to_digest(&state)
}

/// Writes the last one or two blocks (the tail of the message, a one bit, zeros, and the message's
/// length in bits) and returns how many.
#[inline]
pub(super) fn pad_into(blocks: &mut [Block; 2], tail: &[u8], message_len: usize) -> usize {
    let bits = (message_len as u64 * 8).to_be_bytes();
    blocks[0] = [0; 64];
    blocks[0][..tail.len()].copy_from_slice(tail);
    blocks[0][tail.len()] = 0x80;
    if tail.len() < 56 {
        blocks[0][56..].copy_from_slice(&bits);
        return 1;
    }
    blocks[1] = [0; 64];
    blocks[1][56..].copy_from_slice(&bits);
    2
}

#[inline]
pub(super) fn to_digest(state: &[u32; 8]) -> Digest {
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// Folds one block into the state (FIPS 180-4 §6.2.2).
pub(super) fn compress(state: &mut [u32; 8], block: &Block) {
    let schedule = schedule(block);
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (constant, word) in ROUND.iter().zip(schedule) {
        let sigma1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 =
            h.wrapping_add(sigma1).wrapping_add(choice).wrapping_add(*constant).wrapping_add(word);
        let sigma0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let t2 = sigma0.wrapping_add(majority);
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(add);
    }
}

fn schedule(block: &Block) -> [u32; 64] {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for t in 16..64 {
        let s0 = w[t - 15].rotate_right(7) ^ w[t - 15].rotate_right(18) ^ (w[t - 15] >> 3);
        let s1 = w[t - 2].rotate_right(17) ^ w[t - 2].rotate_right(19) ^ (w[t - 2] >> 10);
        w[t] = w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1);
    }
    w
}
