//! Lower-case base32 without padding (RFC 4648 §6 alphabet), as multibase `b` uses it.

use std::fmt::{self, Write};

/// Appends the base32 of `bytes`.
pub fn encode_into(bytes: &[u8], out: &mut String) {
    write_to(bytes, out).expect("memory is written");
}

/// Writes the base32 of `bytes`.
///
/// # Errors
/// If `out` fails.
pub fn write_to(bytes: &[u8], out: &mut impl Write) -> fmt::Result {
    for block in bytes.chunks(BLOCK) {
        let mut symbols = [[0; 8]; BLOCK / 5];
        let (groups, rest) = block.as_chunks();
        for (group, symbols) in groups.iter().zip(&mut symbols) {
            *symbols = eight_symbols(group);
        }
        if !rest.is_empty() {
            let mut group = [0; 5];
            group[..rest.len()].copy_from_slice(rest);
            symbols[groups.len()] = eight_symbols(&group);
        }
        let symbols = &symbols.as_flattened()[..(block.len() * 8).div_ceil(5)];
        out.write_str(str::from_utf8(symbols).expect("symbols are ASCII"))?;
    }
    Ok(())
}

/// The symbols of five bytes, all at once.
#[inline]
fn eight_symbols([a, b, c, d, e]: &[u8; 5]) -> [u8; 8] {
    let bits = u64::from_be_bytes([0, 0, 0, *a, *b, *c, *d, *e]);
    let halves = (bits >> 20) << 32 | bits & 0xf_ffff;
    let quarters = (halves & 0x000f_fc00_000f_fc00) << 6 | halves & 0x0000_03ff_0000_03ff;
    let values = (quarters & 0x03e0_03e0_03e0_03e0) << 3 | quarters & 0x001f_001f_001f_001f;
    // A byte of 1 for every value that is a digit: adding makes its high bit.
    let digits = (values + EACH * (128 - LETTERS)) >> 7 & EACH;
    let shift = u64::from(b'a') + LETTERS - u64::from(b'2');
    (values + EACH * u64::from(b'a') - digits * shift).to_be_bytes()
}

/// Bytes that are encoded at once; longer than a CID.
const BLOCK: usize = 40;

/// The number of letters among the symbols.
const LETTERS: u64 = 26;

/// 1 in every byte of a word.
const EACH: u64 = u64::MAX / 255;

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

#[cfg(test)]
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
    fn each_symbol_is_the_one_of_its_five_bits() {
        let definition = |bytes: &[u8]| -> String {
            let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
            let bits: Vec<u8> = bits.collect();
            let value =
                |bits: &[u8]| (0..5).fold(0, |value, at| value << 1 | bits.get(at).unwrap_or(&0));
            bits.chunks(5).map(|bits| char::from(ALPHABET[usize::from(value(bits))])).collect()
        };
        let bytes: Vec<u8> = (0..=255).map(|byte: u8| byte.wrapping_mul(167)).collect();
        for len in 0..=bytes.len() {
            assert_eq!(encode(&bytes[..len]), definition(&bytes[..len]), "{len} bytes");
            assert_eq!(decode(&encode(&bytes[..len])).as_deref(), Some(&bytes[..len]));
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
