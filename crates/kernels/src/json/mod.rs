//! The prefix of a text that JSON needs no escape for.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_avx2;

/// The length of the longest prefix of `text` free of `"`, `\` and bytes below 0x20.
///
/// ```
/// assert_eq!(wireproof::kernels::json::plain_len(b"one\ntwo"), 3);
/// ```
#[inline]
pub fn plain_len(text: &[u8]) -> usize {
    // Names of fields and tags end within a word.
    if let Some(word) = text.first_chunk() {
        let len = portable::plain_in_word(u64::from_le_bytes(*word));
        if len < 8 {
            return len;
        }
    }
    plain_len_of_more(text)
}

#[inline(never)]
fn plain_len_of_more(text: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if text.len() >= x86_avx2::STEP && x86_avx2::is_available() {
        return x86_avx2::plain_len(text);
    }
    portable::plain_len(text)
}

/// Appends the longest prefix of `text` free of `"`, `\` and bytes below 0x20, and returns its length:
/// [`plain_len`] and a copy in one pass.
///
/// ```
/// let mut out = Vec::new();
/// assert_eq!(wireproof::kernels::json::append_plain(b"one\ntwo", &mut out), 3);
/// assert_eq!(out, b"one");
/// ```
#[inline]
pub fn append_plain(text: &[u8], out: &mut Vec<u8>) -> usize {
    #[cfg(target_arch = "x86_64")]
    if x86_avx2::is_available() {
        return x86_avx2::append_plain(text, out);
    }
    portable::append_plain(text, out)
}

/// The back end other than the portable one, if it is used.
pub(crate) fn fast_back_end() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if x86_avx2::is_available() {
        return Some("avx2");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    type PlainLen = fn(&[u8]) -> usize;
    type AppendPlain = fn(&[u8], &mut Vec<u8>) -> usize;

    #[test]
    fn every_back_end_stops_at_every_special_byte_at_every_position_and_at_no_other() {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut back_ends: Vec<(&str, PlainLen)> =
            vec![("portable", portable::plain_len), ("dispatched", plain_len)];
        #[cfg(target_arch = "x86_64")]
        if x86_avx2::is_available() {
            back_ends.push(("avx2", x86_avx2::plain_len));
        }
        for (name, plain_len) in back_ends {
            for len in (0..40).chain([63, 64, 65, 100]) {
                assert_eq!(plain_len(&vec![b'a'; len]), len, "{name}");
                for at in 0..len {
                    for byte in 0..=255u8 {
                        let mut text = vec![b'a'; len];
                        text[at] = byte;
                        let is_special = byte < 0x20 || byte == b'"' || byte == b'\\';
                        let expected = if is_special { at } else { len };
                        assert_eq!(
                            plain_len(&text),
                            expected,
                            "{name}: {byte:02x} at {at} of {len}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_back_end_appends_the_plain_prefix_and_nothing_after_it() {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut back_ends: Vec<(&str, AppendPlain)> =
            vec![("portable", portable::append_plain), ("dispatched", append_plain)];
        #[cfg(target_arch = "x86_64")]
        if x86_avx2::is_available() {
            back_ends.push(("avx2", x86_avx2::append_plain));
        }
        let plain: Vec<u8> = (0..200).map(|at| b'a' + at % 26).collect();
        for (name, append_plain) in back_ends {
            for len in 0..=plain.len() {
                for at in (0..len).step_by(1 + len / 40).chain([len]) {
                    for special in [b'"', b'\\', 0, 0x1f] {
                        let mut text = plain[..len].to_vec();
                        text.extend(special_after(special));
                        if let Some(byte) = text[..len].get_mut(at) {
                            *byte = special;
                        }
                        let text = &text[..len];
                        let mut out = b"before".to_vec();
                        assert_eq!(append_plain(text, &mut out), at, "{name}: {at} of {len}");
                        assert_eq!(out, [b"before", &plain[..at]].concat(), "{name}");
                    }
                }
            }
        }
    }

    /// Bytes after the text in memory, which must not be read as part of it.
    fn special_after(special: u8) -> [u8; 40] {
        [special; 40]
    }

    proptest::proptest! {
        #[test]
        fn several_special_bytes_end_the_prefix_at_the_first(text: Vec<u8>) {
            let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
            let expected = text.iter().position(is_special).unwrap_or(text.len());
            proptest::prop_assert_eq!(plain_len(&text), expected);
            proptest::prop_assert_eq!(portable::plain_len(&text), expected);
        }
    }
}
