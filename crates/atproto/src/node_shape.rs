//! The shape that nearly all tree nodes have, parsed by comparing bytes.
//!
//! ```text
//! node    a2 61 65 80+n                      61 6c child
//! entry   a4 61 6b head suffix  61 70 prefix  61 74 child  61 76 d8 2a 58 25 00 value
//! child   f6, or d8 2a 58 25 00 01 71 12 20 digest
//! ```
//!
//! Up to 23 entries, lengths below 256, links of 36 bytes. A block of this shape is canonical DAG-CBOR. Its reader
//! checks that the keys ascend and the prefixes are whole, and parses every other shape.

use codec::cid::Codec;
use codec::{Cid, CidRef};

/// A key of a node, with its record and the child after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Length of the prefix that the key shares with the one before it in the node.
    pub prefix_len: usize,
    /// The rest of the key, never empty.
    pub suffix: &'a [u8],
    /// The record.
    pub value: CidRef<'a>,
    /// The child after the key.
    pub right: Option<Cid>,
}

/// Whether a block has the shape, and so is canonical DAG-CBOR.
#[inline]
pub(crate) fn is_usual(block: &[u8]) -> bool {
    let Some((len, mut rest)) = usual_head(block) else { return false };
    for _ in 0..len {
        let Some((_, others)) = usual_entry(rest) else { return false };
        rest = others;
    }
    usual_tail(rest).is_some()
}

/// Parses up to the first entry; returns the number of entries.
#[inline(always)]
pub(crate) fn usual_head(block: &[u8]) -> Option<(usize, &[u8])> {
    match block {
        [0xa2, 0x61, b'e', count @ 0x80..=0x97, rest @ ..] => {
            Some((usize::from(count & 0x1f), rest))
        }
        _ => None,
    }
}

/// Parses an entry.
#[inline(always)]
pub(crate) fn usual_entry(rest: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (suffix, rest) = match rest {
        [0xa4, 0x61, b'k', head @ 0x40..=0x57, rest @ ..] => {
            rest.split_at_checked(usize::from(head & 0x1f))?
        }
        [0xa4, 0x61, b'k', 0x58, len @ 24..=255, rest @ ..] => {
            rest.split_at_checked(usize::from(*len))?
        }
        _ => return None,
    };
    let (prefix_len, rest) = match rest {
        [0x61, b'p', len @ 0..=23, 0x61, b't', rest @ ..] => (usize::from(*len), rest),
        [0x61, b'p', 0x18, len @ 24..=255, 0x61, b't', rest @ ..] => (usize::from(*len), rest),
        _ => return None,
    };
    let (right, rest) = match rest {
        [0xf6, rest @ ..] => (None, rest),
        _ => {
            let (child, rest) = usual_child(rest)?;
            (Some(child), rest)
        }
    };
    let rest = rest.strip_prefix(b"\x61v\xd8\x2a\x58\x25\x00")?;
    let (value, rest) = rest.split_first_chunk::<{ Cid::LEN }>()?;
    let value = CidRef::from_bytes(value)?;
    Some((Entry { prefix_len, suffix, value, right }, rest))
}

/// Parses the part after the entries: the child before the first.
#[inline(always)]
pub(crate) fn usual_tail(rest: &[u8]) -> Option<Option<Cid>> {
    match rest {
        [0x61, b'l', 0xf6] => Some(None),
        [0x61, b'l', child @ ..] => match usual_child(child) {
            Some((cid, [])) => Some(Some(cid)),
            _ => None,
        },
        _ => None,
    }
}

/// Parses a link to a child.
#[inline(always)]
fn usual_child(rest: &[u8]) -> Option<(Cid, &[u8])> {
    let rest = rest.strip_prefix(b"\xd8\x2a\x58\x25\x00\x01\x71\x12\x20")?;
    let (digest, rest) = rest.split_first_chunk()?;
    Some((Cid::from_digest(Codec::DagCbor, digest), rest))
}

/// The most entries of a node of the shape.
pub(crate) const MAX_USUAL_ENTRIES: usize = 23;

#[cfg(test)]
mod tests {
    use codec::cbor;
    use proptest::prelude::*;

    use super::*;
    use crate::mst::reference::encode_node;

    fn child(seed: u8) -> Option<Cid> {
        (seed > 0).then(|| Cid::of(Codec::DagCbor, &[seed]))
    }

    /// The block of a node with keys of these lengths.
    fn block(left: u8, entries: &[(usize, usize, u8)]) -> Vec<u8> {
        let value = Cid::of(Codec::DagCbor, b"").into();
        let keys: Vec<Vec<u8>> = (b'a'..)
            .zip(entries)
            .map(|(first, (shared, len, _))| [vec![b'A'; *shared], vec![first; 1 + len]].concat())
            .collect();
        let entries: Vec<_> = keys
            .iter()
            .zip(entries)
            .map(|(key, (.., right))| (&key[..], &value, child(*right)))
            .collect();
        encode_node(child(left).as_ref(), &entries)
    }

    fn any_block() -> impl Strategy<Value = Vec<u8>> {
        let entry = (0..300usize, 0..300usize, 0..3u8);
        (0..3u8, proptest::collection::vec(entry, 0..26)).prop_map(|(left, e)| block(left, &e))
    }

    proptest! {
        #[test]
        fn what_has_the_shape_is_canonical_whatever_is_changed(
            block in any_block(),
            changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..3),
            end in any::<usize>(),
        ) {
            let mut changed = block.clone();
            for (at, byte) in changes {
                let at = at % changed.len();
                changed[at] = byte;
            }
            for bytes in [&block[..], &changed, &changed[..end % changed.len()]] {
                prop_assert!(!is_usual(bytes) || cbor::validate(bytes).is_ok(), "{bytes:02x?}");
            }
        }
    }

    #[test]
    fn nodes_with_short_keys_and_few_entries_have_the_shape() {
        let entry = |at: usize| (at * 10, 20, (at % 2) as u8);
        for len in 0..=24 {
            let entries: Vec<_> = (0..len).map(entry).collect();
            for left in [0, 1] {
                assert_eq!(is_usual(&block(left, &entries)), len <= MAX_USUAL_ENTRIES, "{len}");
            }
        }
        assert!(!is_usual(&block(0, &[(0, 256, 0)])));
        assert!(!is_usual(b"") && !is_usual(b"\xa0"));
    }
}
