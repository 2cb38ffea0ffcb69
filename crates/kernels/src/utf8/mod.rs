//! UTF-8 validation, fastest for the short ASCII strings of which records consist.
//!
//! `str::from_utf8` defines the result. Three faster forms compute the same: a map key in one word, short
//! ASCII in a few, and other text sixteen bytes at a time with SSSE3.

#[cfg(target_arch = "x86_64")]
mod x86_ssse3;

/// The bytes as text, or `None` if they are not UTF-8 (RFC 3629: no surrogates, no overlong forms).
///
/// ```
/// assert_eq!(wireproof::kernels::utf8::from_utf8(b"did:plc:abc"), Some("did:plc:abc"));
/// assert_eq!(wireproof::kernels::utf8::from_utf8(b"\xc0\xaf"), None);
/// ```
#[inline]
pub fn from_utf8(bytes: &[u8]) -> Option<&str> {
    if is_ascii(bytes) {
        // SAFETY: every byte is below 0x80, and ASCII is UTF-8.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    beyond_ascii(bytes)
}

#[inline(never)]
fn beyond_ascii(bytes: &[u8]) -> Option<&str> {
    #[cfg(target_arch = "x86_64")]
    if x86_ssse3::is_available() {
        // SAFETY: the back end accepts exactly UTF-8, as the tests check against the standard library.
        return x86_ssse3::is_utf8(bytes).then(|| unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

/// The text of a length-prefixed item that is whole in `window`: its first byte is 0x60 plus a length of
/// at most seven, and as many bytes of ASCII follow. Returned with the item as a big-endian number, zeros
/// after its end. `None` for anything else, which may still be text.
///
/// One load, one mask and one compare validate a whole map key.
///
/// ```
/// let (text, word) = wireproof::kernels::utf8::short_text(b"\x63rev\x6dabc").unwrap();
/// assert_eq!((text, word), ("rev", u64::from_be_bytes(*b"\x63rev\0\0\0\0")));
/// ```
#[inline(always)]
pub fn short_text(window: &[u8; 8]) -> Option<(&str, u64)> {
    let len = usize::from(window[0] ^ 0x60);
    if len > 7 {
        return None;
    }
    let word = u64::from_be_bytes(*window) & (u64::MAX << (56 - 8 * len));
    if word & HIGH_BITS != 0 {
        return None;
    }
    let bytes = &window[1..=len];
    // SAFETY: no byte of the item has its high bit set, and ASCII is UTF-8.
    Some((unsafe { std::str::from_utf8_unchecked(bytes) }, word))
}

/// True if every byte is below 0x80. Short strings, the usual ones, take one pass of eight-byte steps,
/// the last of which overlaps the one before.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    if bytes.len() > 64 {
        return is_long_ascii(bytes);
    }
    let high_bits = match bytes.as_chunks::<8>() {
        ([], tail) => tail.iter().fold(0, |seen, byte| seen | u64::from(*byte)),
        (chunks, _) => {
            let last = bytes.last_chunk().expect("a whole chunk came before");
            high_bits(chunks) | u64::from_ne_bytes(*last)
        }
    };
    high_bits & HIGH_BITS == 0
}

/// The same in steps of 64 bytes, which the compiler turns into vector code.
#[inline(never)]
fn is_long_ascii(bytes: &[u8]) -> bool {
    let (steps, tail) = bytes.as_chunks::<64>();
    let is_plain = |step: &[u8]| high_bits(step.as_chunks().0) & HIGH_BITS == 0;
    steps.iter().all(|step| is_plain(step)) && is_ascii(tail)
}

#[inline]
fn high_bits(chunks: &[[u8; 8]]) -> u64 {
    chunks.iter().fold(0, |seen, chunk| seen | u64::from_ne_bytes(*chunk))
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The back end other than the portable one, if it is used.
pub(crate) fn fast_back_end() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if x86_ssse3::is_available() {
        return Some("ssse3");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_byte_at_any_position_of_any_length_is_found_as_the_standard_library_finds_it() {
        for len in 0..=200 {
            let mut bytes = vec![b'a'; len];
            assert_eq!(from_utf8(&bytes), std::str::from_utf8(&bytes).ok(), "length {len}");
            for at in 0..len {
                for odd in [0x80, 0xc3, 0xff, 0x00] {
                    bytes[at] = odd;
                    assert_eq!(
                        from_utf8(&bytes),
                        std::str::from_utf8(&bytes).ok(),
                        "{odd:x} at {at} of {len}"
                    );
                }
                bytes[at] = b'a';
            }
        }
    }

    #[test]
    fn short_text_is_the_text_that_its_length_byte_states() {
        for len in 0..=8u8 {
            let mut window = [b'k'; 8];
            window[0] = 0x60 + len;
            let expected = (len <= 7).then(|| &"kkkkkkk"[..usize::from(len.min(7))]);
            assert_eq!(short_text(&window).map(|(text, _)| text), expected, "length {len}");
            for at in 1..8 {
                window[at] = 0xc3;
                let hit = at <= usize::from(len);
                let text = short_text(&window).map(|(text, _)| text);
                assert_eq!(text, expected.filter(|_| !hit), "length {len}, byte {at}");
                window[at] = b'k';
            }
        }
        for head in (0..0x60).chain(0x68..=0xff) {
            assert_eq!(short_text(&[head, 0, 0, 0, 0, 0, 0, 0]), None);
        }
    }

    /// Asserts that the dispatched form and every back end agree with the standard library.
    fn assert_all_agree(bytes: &[u8]) {
        let expected = std::str::from_utf8(bytes).is_ok();
        assert_eq!(from_utf8(bytes).is_some(), expected, "{bytes:02x?}");
        #[cfg(target_arch = "x86_64")]
        if x86_ssse3::is_available() {
            assert_eq!(x86_ssse3::is_utf8(bytes), expected, "ssse3: {bytes:02x?}");
        }
    }

    #[test]
    fn all_agree_on_every_sequence_of_two_and_three_bytes() {
        for first in 0..=0xff {
            for second in 0..=0xff {
                assert_all_agree(&[first, second]);
                for third in [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xe1, 0xff] {
                    assert_all_agree(&[first, second, third]);
                }
            }
        }
    }

    #[test]
    fn all_agree_on_the_edges_of_four_bytes_at_every_position_of_a_block() {
        let edges = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xed];
        let leading = [0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xf8, 0xff];
        for at in 0..34 {
            for (first, second) in leading.iter().flat_map(|l| edges.map(|e| (*l, e))) {
                for (third, fourth) in
                    edges.iter().flat_map(|t| [0x41, 0x80, 0xbf].map(|f| (*t, f)))
                {
                    let mut bytes = [b'a'; 38];
                    bytes[at..at + 4].copy_from_slice(&[first, second, third, fourth]);
                    assert_all_agree(&bytes);
                    assert_all_agree(&bytes[..at + 4]);
                    assert_all_agree(&bytes[..at + 3]);
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn all_agree_on_long_text_with_a_damaged_byte(
            text in "[aé水👩]{0,60}",
            at: proptest::sample::Index,
            byte: u8,
        ) {
            let mut bytes = text.into_bytes();
            assert_all_agree(&bytes);
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                assert_all_agree(&bytes);
            }
        }
    }

    #[test]
    fn text_beyond_ascii_is_accepted_and_overlong_or_cut_forms_are_not() {
        for good in [
            "水",
            "žluťoučký kůň",
            "👩‍🚀 and a tail that is longer than sixty-four bytes, to be sure of it",
        ] {
            assert_eq!(from_utf8(good.as_bytes()), Some(good));
        }
        for bad in [&b"\xed\xa0\x80"[..], b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"] {
            assert_eq!(from_utf8(bad), None);
        }
    }
}
