//! The format in which benchmarks share signed commits.
//!
//! | part | bytes |
//! |---|---|
//! | count | 4, big-endian |
//! | curve | 1: 0 for P-256, 1 for K-256 |
//! | commit | 2 bytes of length, big-endian, and the signed object |
//! | key | 2 bytes of length, big-endian, and the compressed point; then the next curve |

use crate::keys::{Curve, POINT_LEN};

/// A signed commit, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitEntry<'a> {
    /// The curve of the key.
    pub curve: Curve,
    /// The signed commit object.
    pub commit: &'a [u8],
    /// The public key as a compressed point.
    pub key: &'a [u8; POINT_LEN],
}

/// The entries of a file, in order. `None` if the file is not exactly the entries that it states.
pub fn read(file: &[u8]) -> Option<Vec<CommitEntry<'_>>> {
    let (count, mut rest) = file.split_first_chunk()?;
    let mut entries = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let entry;
        (entry, rest) = split_entry(rest)?;
        entries.push(entry);
    }
    rest.is_empty().then_some(entries)
}

fn split_entry(bytes: &[u8]) -> Option<(CommitEntry<'_>, &[u8])> {
    let (&curve, rest) = bytes.split_first()?;
    let curve = CURVES.into_iter().find(|(code, _)| *code == curve)?.1;
    let (commit, rest) = split_piece(rest)?;
    let (key, rest) = split_piece(rest)?;
    Some((CommitEntry { curve, commit, key: key.try_into().ok()? }, rest))
}

fn split_piece(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

/// The file of `entries`, in order.
///
/// # Panics
/// If there are 2³² entries or more, or a commit is 64 KiB or longer.
pub fn write<'e>(entries: impl IntoIterator<Item = CommitEntry<'e>>) -> Vec<u8> {
    let mut file = vec![0; 4];
    let mut count = 0u32;
    for entry in entries {
        file.extend(
            CURVES.into_iter().find(|(_, curve)| *curve == entry.curve).map(|(code, _)| code),
        );
        write_piece(&mut file, entry.commit);
        write_piece(&mut file, entry.key);
        count = count.checked_add(1).expect("fewer than 2^32 entries");
    }
    file[..4].copy_from_slice(&count.to_be_bytes());
    file
}

fn write_piece(file: &mut Vec<u8>, piece: &[u8]) {
    let len = u16::try_from(piece.len()).expect("a piece shorter than 64 KiB");
    file.extend(len.to_be_bytes());
    file.extend(piece);
}

/// The curves and their codes.
const CURVES: [(u8, Curve); 2] = [(0, Curve::P256), (1, Curve::K256)];
