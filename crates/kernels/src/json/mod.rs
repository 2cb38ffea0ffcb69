//! How much of this text stands in JSON as it is?

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_avx2;

/// The length of the longest prefix of `text` free of `"`, `\` and bytes below 0x20.
///
/// ```
/// assert_eq!(wireproof_kernels::json::plain_len(b"one\ntwo"), 3);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_back_end_stops_at_every_special_byte_at_every_place_and_at_no_other() {
        let mut back_ends: Vec<(&str, fn(&[u8]) -> usize)> =
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
