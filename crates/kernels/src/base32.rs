//! Lower-case base32 without padding (RFC 4648 §6 alphabet), as multibase `b` uses it.

/// Appends the base32 of `bytes`.
pub fn encode_into(bytes: &[u8], out: &mut String) {
    for group in bytes.chunks(5) {
        let mut padded = [0; 8];
        padded[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(padded);
        let symbols = (group.len() * 8).div_ceil(5);
        out.extend(
            (0..symbols).map(|i| char::from(ALPHABET[(bits >> (35 - 5 * i)) as usize & 31])),
        );
    }
}

/// Decodes `text`. `None` for foreign symbols, impossible lengths and set bits past the last byte.
///
/// ```
/// use wireproof::kernels::base32;
/// assert_eq!(base32::decode("mzxw6"), Some(b"foo".to_vec()));
/// assert_eq!(base32::decode("mzxw7"), None); // the same bytes, with a stray bit
/// ```
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    for group in text.as_bytes().chunks(8) {
        let mut bits = 0u64;
        for symbol in group {
            bits = bits << 5 | u64::from(value(*symbol)?);
        }
        let (bit_len, byte_len) = (group.len() * 5, group.len() * 5 / 8);
        let stray = bit_len - byte_len * 8;
        if stray >= 5 || bits & ((1 << stray) - 1) != 0 {
            return None;
        }
        bytes.extend_from_slice(&(bits >> stray).to_be_bytes()[8 - byte_len..]);
    }
    Some(bytes)
}

fn value(symbol: u8) -> Option<u8> {
    match symbol {
        b'a'..=b'z' => Some(symbol - b'a'),
        b'2'..=b'7' => Some(symbol - b'2' + 26),
        _ => None,
    }
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(bytes: &[u8]) -> String {
        let mut text = String::new();
        encode_into(bytes, &mut text);
        text
    }

    #[test]
    fn the_vectors_of_rfc_4648_read_both_ways() {
        let vectors = [
            ("", ""),
            ("f", "my"),
            ("fo", "mzxq"),
            ("foo", "mzxw6"),
            ("foob", "mzxw6yq"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn only_one_text_decodes_to_given_bytes() {
        for len in 0..=12 {
            let text = encode(&vec![0xa5; len]);
            let head = &text[..text.len().saturating_sub(1)];
            for symbol in ALPHABET {
                let other = format!("{head}{}", char::from(*symbol));
                if let Some(bytes) = decode(&other) {
                    assert_eq!(encode(&bytes), other, "decoding must be reversible");
                }
            }
        }
    }

    #[test]
    fn upper_case_padding_and_impossible_lengths_are_rejected() {
        for bad in ["MY", "my======", "m", "mzx", "mzxw6y", "m0", "m1", "m ", "mé"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
