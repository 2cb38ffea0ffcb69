//! The hash of an entry of the log, or of a checkpoint, which it states itself, so that a changed byte of it is found.
//!
//! It is the SHA-256 of the entry with zeros in its place. Entries and checkpoints of other programs state none.

use std::ops::Range;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Placeholder for the hash of an entry until it is known.
pub(super) const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Where the hash stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stated {
    /// Text right before the digits.
    field: &'static [u8],
    /// Text that all entries of this program contain.
    ours: &'static [u8],
    /// Bytes at the end within which both are.
    end: usize,
}

/// In an entry: JSON.
pub(super) const ENTRY: Stated =
    Stated { field: b"\"entrySha256\":\"", ours: b"\"engineInfo\":\"wireproof/", end: usize::MAX };

/// In a checkpoint: the value of [`CHECKPOINT_KEY`] at the end of the Parquet file, a text of 64 bytes in Thrift's compact form.
pub(super) const CHECKPOINT: Stated =
    Stated { field: b"wireproof.sha256\x18\x40", ours: b"wireproof/", end: 64 << 10 };

/// The key in the metadata of a checkpoint.
pub(super) const CHECKPOINT_KEY: &str = "wireproof.sha256";

impl Stated {
    /// Puts the hash into an entry that was written with [`NONE`].
    pub(super) fn set(self, entry: &mut [u8]) {
        let place = self.place(entry).expect("entries of this program have the field");
        let hash = hash(entry, &place);
        entry[place].copy_from_slice(hash.as_bytes());
    }

    /// Whether an entry has the hash that it states; one of another program need not state any.
    pub(super) fn is_right(self, entry: &[u8]) -> bool {
        match self.place(entry) {
            Some(place) => entry[place.clone()] == *hash(entry, &place).as_bytes(),
            None => find(self.end(entry), self.ours).is_none(),
        }
    }

    /// The place of the digits. Within a text of JSON the quotes would be escaped.
    fn place(self, entry: &[u8]) -> Option<Range<usize>> {
        let end = self.end(entry);
        let start = entry.len() - end.len() + find(end, self.field)? + self.field.len();
        let end = start + NONE.len();
        (end <= entry.len()).then_some(start..end)
    }

    fn end(self, entry: &[u8]) -> &[u8] {
        &entry[entry.len().saturating_sub(self.end)..]
    }
}

fn hash(entry: &[u8], place: &Range<usize>) -> String {
    let mut hash = Sha256::new();
    hash.update(&entry[..place.start]);
    hash.update(NONE);
    hash.update(&entry[place.end..]);
    HEXLOWER.encode(&hash.finalize())
}

fn find(entry: &[u8], part: &[u8]) -> Option<usize> {
    entry.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_bit_of_an_entry_is_found_wherever_it_is() {
        let text = format!(
            "{{\"commitInfo\":{{\"engineInfo\":\"wireproof/1\",\"entrySha256\":\"{NONE}\"}}}}\n{{\"add\":{{\"size\":7}}}}\n"
        );
        let mut entry = text.into_bytes();
        assert!(!ENTRY.is_right(&entry));
        ENTRY.set(&mut entry);
        assert!(ENTRY.is_right(&entry));
        for at in 0..entry.len() {
            for bit in 0..8 {
                entry[at] ^= 1 << bit;
                assert!(!ENTRY.is_right(&entry), "byte {at}, bit {bit}");
                entry[at] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn entries_of_other_programs_need_no_hash() {
        assert!(ENTRY.is_right(b"{\"commitInfo\":{\"engineInfo\":\"Apache-Spark/4.0\"}}\n"));
        assert!(ENTRY.is_right(b""));
        assert!(!ENTRY.is_right(b"{\"commitInfo\":{\"engineInfo\":\"wireproof/0.1.0\"}}\n"));
    }
}
