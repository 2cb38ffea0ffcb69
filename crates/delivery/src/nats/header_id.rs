//! Ids in headers, and names that a subject cannot hold.

use std::borrow::Cow;

use data_encoding::BASE32_NOPAD;
use kernels::sha256;

/// An id as the value of a header of text: itself, or the hash of one that is too long or has other characters than
/// visible ones of ASCII.
pub(super) fn header_id(id: &str) -> Cow<'_, str> {
    let is_plain = id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { id.into() } else { hashed(id).into() }
}

/// The hash of a name that a queue cannot hold.
pub(super) fn hashed(name: &str) -> String {
    format!("sha256:{}", BASE32_NOPAD.encode(&sha256::digest(name.as_bytes())))
}

/// Maximum length of an id in a header, in bytes.
const MAX_ID_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_of_a_stranger_breaks_a_header() {
        assert_eq!(header_id("did:web:a.test/3k"), "did:web:a.test/3k");
        let long = "x".repeat(2000);
        let odd = ["a\r\nNats-Expected-Stream: b", "a b", "é", &long].map(header_id);
        for (at, id) in odd.iter().enumerate() {
            assert!(id.starts_with("sha256:") && id.len() == 59, "{id}");
            assert!(!odd[..at].contains(id), "{id}");
        }
    }
}
