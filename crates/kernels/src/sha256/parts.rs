//! One message in several parts, without putting them together first.
//!
//! Whole blocks of a part are folded where they lie; a block that begins in one part and ends in
//! another is gathered. For a commit of 190 bytes in two parts that is one block of three.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use super::Digest;
use super::lanes::Engine;
use super::portable::{Block, pad_into, to_digest};

/// The SHA-256 of the parts put together.
pub(super) fn digest<E: Engine<1>>(parts: &[&[u8]]) -> Digest {
    let mut engine = E::new();
    let mut open: Block = [0; 64];
    // open[..open_len] is not yet folded, and open_len < 64.
    let mut open_len = 0;
    for part in parts {
        let mut rest = *part;
        if open_len > 0 {
            let taken = rest.len().min(64 - open_len);
            open[open_len..open_len + taken].copy_from_slice(&rest[..taken]);
            (open_len, rest) = (open_len + taken, &rest[taken..]);
            if open_len < 64 {
                continue;
            }
            engine.compress(&[&open]);
        }
        let (blocks, tail) = rest.as_chunks::<64>();
        blocks.iter().for_each(|block| engine.compress(&[block]));
        open[..tail.len()].copy_from_slice(tail);
        open_len = tail.len();
    }
    let message_len = parts.iter().map(|part| part.len()).sum();
    let mut padded = [[0; 64]; 2];
    let padded_len = pad_into(&mut padded, &open[..open_len], message_len);
    padded[..padded_len].iter().for_each(|block| engine.compress(&[block]));
    to_digest(&engine.get(0))
}
