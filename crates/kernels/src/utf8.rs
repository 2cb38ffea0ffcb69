//! Whether bytes are text, quickest for the short ASCII strings that records are full of.
//!
//! The portable answer is `str::from_utf8`. The quick one looks at eight bytes at a time for a set
//! high bit, which costs a handful of instructions for a key or an identifier; anything else goes to
//! the standard library.

/// The bytes as text, or `None` if they are not UTF-8 (RFC 3629: no surrogates, no overlong forms).
///
/// ```
/// assert_eq!(wireproof_kernels::utf8::text(b"did:plc:abc"), Some("did:plc:abc"));
/// assert_eq!(wireproof_kernels::utf8::text(b"\xc0\xaf"), None);
/// ```
#[inline]
pub fn text(bytes: &[u8]) -> Option<&str> {
    if is_short_ascii(bytes) {
        // SAFETY: every byte is below 0x80, and ASCII is UTF-8.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

/// True if the bytes are at most 64 and all ASCII. The last eight-byte step overlaps the one before.
#[inline]
fn is_short_ascii(bytes: &[u8]) -> bool {
    if bytes.len() > 64 {
        return false;
    }
    let high_bits = match bytes.as_chunks::<8>() {
        (chunks, []) => chunks.iter().fold(0, |seen, chunk| seen | u64::from_ne_bytes(*chunk)),
        ([], tail) => tail.iter().fold(0, |seen, byte| seen | u64::from(*byte)),
        (chunks, _) => {
            let last = bytes.last_chunk().expect("a whole chunk came before");
            chunks
                .iter()
                .fold(u64::from_ne_bytes(*last), |seen, chunk| seen | u64::from_ne_bytes(*chunk))
        }
    };
    high_bits & 0x8080_8080_8080_8080 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_every_place_of_a_bad_byte_is_judged_as_the_standard_library_does() {
        for len in 0..=130 {
            let mut bytes = vec![b'a'; len];
            assert_eq!(text(&bytes), std::str::from_utf8(&bytes).ok(), "length {len}");
            for at in 0..len {
                for odd in [0x80, 0xc3, 0xff, 0x00] {
                    bytes[at] = odd;
                    assert_eq!(
                        text(&bytes),
                        std::str::from_utf8(&bytes).ok(),
                        "{odd:x} at {at} of {len}"
                    );
                }
                bytes[at] = b'a';
            }
        }
    }

    #[test]
    fn text_beyond_ascii_passes_and_its_forgeries_do_not() {
        for good in [
            "水",
            "žluťoučký kůň",
            "👩‍🚀 and a tail that is longer than sixty-four bytes, to be sure of it",
        ] {
            assert_eq!(text(good.as_bytes()), Some(good));
        }
        for bad in [&b"\xed\xa0\x80"[..], b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"] {
            assert_eq!(text(bad), None);
        }
    }
}
