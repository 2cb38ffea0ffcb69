//! The hash of an entry of the log, which the entry states itself, so that a changed byte of it is found.
//!
//! It is the SHA-256 of the entry with zeros in its place. Entries of other programs state none.

use std::ops::Range;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// What an entry has in place of its hash until that is known.
pub(super) const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Puts the hash into an entry that was written with [`NONE`].
pub(super) fn set(entry: &mut [u8]) {
    let place = place(entry).expect("entries of this program have the field");
    let hash = hash(entry, &place);
    entry[place].copy_from_slice(hash.as_bytes());
}

/// Whether an entry has the hash that it states; one of another program need not state any.
pub(super) fn is_right(entry: &[u8]) -> bool {
    match place(entry) {
        Some(place) => entry[place.clone()] == *hash(entry, &place).as_bytes(),
        None => find(entry, OURS).is_none(),
    }
}

fn hash(entry: &[u8], place: &Range<usize>) -> String {
    let mut hash = Sha256::new();
    hash.update(&entry[..place.start]);
    hash.update(NONE);
    hash.update(&entry[place.end..]);
    HEXLOWER.encode(&hash.finalize())
}

/// The place of the digits. Within a text of JSON the quotes would be escaped.
fn place(entry: &[u8]) -> Option<Range<usize>> {
    let start = find(entry, FIELD)? + FIELD.len();
    let end = start + NONE.len();
    (end <= entry.len()).then_some(start..end)
}

fn find(entry: &[u8], part: &[u8]) -> Option<usize> {
    entry.windows(part.len()).position(|window| window == part)
}

const FIELD: &[u8] = b"\"entrySha256\":\"";

/// What every entry of this program has.
const OURS: &[u8] = b"\"engineInfo\":\"wireproof/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_bit_of_an_entry_is_found_wherever_it_is() {
        let text = format!(
            "{{\"commitInfo\":{{\"engineInfo\":\"wireproof/1\",\"entrySha256\":\"{NONE}\"}}}}\n{{\"add\":{{\"size\":7}}}}\n"
        );
        let mut entry = text.into_bytes();
        assert!(!is_right(&entry));
        set(&mut entry);
        assert!(is_right(&entry));
        for at in 0..entry.len() {
            for bit in 0..8 {
                entry[at] ^= 1 << bit;
                assert!(!is_right(&entry), "byte {at}, bit {bit}");
                entry[at] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn entries_of_other_programs_need_no_hash() {
        assert!(is_right(b"{\"commitInfo\":{\"engineInfo\":\"Apache-Spark/4.0\"}}\n"));
        assert!(is_right(b""));
        assert!(!is_right(b"{\"commitInfo\":{\"engineInfo\":\"wireproof/0.1.0\"}}\n"));
    }
}
