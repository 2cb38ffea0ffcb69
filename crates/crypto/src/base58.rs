//! Base58 in the Bitcoin alphabet, for the few dozen bytes of a key.
//!
//! Base58 reads the bytes as one big number, so the plain method costs the square of the length and
//! is only for short input: anything that cannot be a key is refused unread. Ten symbols are folded
//! into a 64-bit word first (58¹⁰ < 2⁵⁹), then words into the number: 10 steps of a few
//! multiplications where symbol by symbol there are 48 of 35.

/// The most bytes that are read or written: an uncompressed point has 65.
pub(crate) const MAX_LEN: usize = 8 * LIMBS;

/// Bytes that a text spells.
#[derive(Clone, Copy)]
pub(crate) struct Decoded {
    /// Right-aligned.
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Decoded {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[MAX_LEN - self.len..]
    }
}

/// The bytes that `text` spells. `None` if a symbol is foreign or there are too many of them.
pub(crate) fn decode(text: &str) -> Option<Decoded> {
    if text.len() > MAX_TEXT_LEN {
        return None;
    }
    let mut number = [0; LIMBS];
    for group in text.as_bytes().chunks(GROUP) {
        let mut word = 0;
        for symbol in group {
            word = word * 58 + u64::from(digit(*symbol)?);
        }
        multiply_add(&mut number, 58u64.pow(group.len() as u32), word)?;
    }
    // Every leading `1` is a zero byte that the number does not show.
    let zeros = text.bytes().take_while(|symbol| *symbol == b'1').count();
    let bytes = to_bytes(&number);
    let significant = MAX_LEN - bytes.iter().take_while(|byte| **byte == 0).count();
    let len = zeros + significant;
    (len <= MAX_LEN).then_some(Decoded { bytes, len })
}

/// Appends the text that spells `bytes`.
///
/// # Panics
/// If there are more than [`MAX_LEN`] bytes.
pub(crate) fn encode_into(bytes: &[u8], out: &mut String) {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    out.extend(std::iter::repeat_n('1', zeros));
    let mut number = to_number(&bytes[zeros..]);
    let mut symbols = [0; MAX_TEXT_LEN];
    let mut start = MAX_TEXT_LEN;
    while number != [0; LIMBS] {
        let mut word = divide(&mut number, 58u64.pow(GROUP as u32));
        for _ in 0..GROUP {
            start -= 1;
            symbols[start] = ALPHABET[(word % 58) as usize];
            word /= 58;
        }
    }
    let significant = symbols[start..].iter().skip_while(|symbol| **symbol == b'1');
    out.extend(significant.map(|symbol| char::from(*symbol)));
}

/// `number · factor + add`. `None` if that is too big.
fn multiply_add(number: &mut [u64; LIMBS], factor: u64, add: u64) -> Option<()> {
    let mut carry = u128::from(add);
    for limb in number {
        let sum = u128::from(*limb) * u128::from(factor) + carry;
        *limb = sum as u64;
        carry = sum >> 64;
    }
    (carry == 0).then_some(())
}

/// Divides in place and answers the remainder.
fn divide(number: &mut [u64; LIMBS], divisor: u64) -> u64 {
    let mut remainder = 0;
    for limb in number.iter_mut().rev() {
        let dividend = u128::from(remainder) << 64 | u128::from(*limb);
        *limb = (dividend / u128::from(divisor)) as u64;
        remainder = (dividend % u128::from(divisor)) as u64;
    }
    remainder
}

fn to_bytes(number: &[u64; LIMBS]) -> [u8; MAX_LEN] {
    let mut bytes = [0; MAX_LEN];
    for (bytes, limb) in bytes.rchunks_exact_mut(8).zip(number) {
        bytes.copy_from_slice(&limb.to_be_bytes());
    }
    bytes
}

fn to_number(bytes: &[u8]) -> [u64; LIMBS] {
    let mut aligned = [0; MAX_LEN];
    aligned[MAX_LEN - bytes.len()..].copy_from_slice(bytes);
    let mut number = [0; LIMBS];
    for (limb, bytes) in number.iter_mut().zip(aligned.as_rchunks::<8>().1.iter().rev()) {
        *limb = u64::from_be_bytes(*bytes);
    }
    number
}

#[inline]
fn digit(symbol: u8) -> Option<u8> {
    let digit = DIGITS[usize::from(symbol)];
    (digit < 58).then_some(digit)
}

/// The limbs of the number, the least significant first.
const LIMBS: usize = 9;

/// Symbols that fit a word.
const GROUP: usize = 10;

/// No text of [`MAX_LEN`] bytes is longer: 72 · log 256 / log 58 = 98.4. Whole groups.
const MAX_TEXT_LEN: usize = 100;

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// The value of each symbol, 255 for those outside the alphabet.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut digit = 0;
    while digit < 58 {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(bytes: &[u8]) -> String {
        let mut text = String::new();
        encode_into(bytes, &mut text);
        text
    }

    fn decoded(text: &str) -> Option<Vec<u8>> {
        decode(text).map(|decoded| decoded.as_bytes().to_vec())
    }

    #[test]
    fn every_length_of_zeros_and_of_ones_reads_as_the_library_reads_it() {
        for len in 0..=MAX_LEN {
            for byte in [0x00, 0x01, 0x39, 0x3a, 0xff] {
                let bytes = vec![byte; len];
                let text = bs58::encode(&bytes).into_string();
                assert_eq!(encode(&bytes), text);
                assert_eq!(decoded(&text), Some(bytes), "{len} times {byte:#x}");
            }
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        assert_eq!(decoded(&bs58::encode([1; MAX_LEN + 1]).into_string()), None);
        assert_eq!(decoded(&bs58::encode([0; MAX_LEN + 1]).into_string()), None);
        assert_eq!(decoded(&format!("1{}", bs58::encode([0xff; MAX_LEN]).into_string())), None);
        assert_eq!(decoded(&"z".repeat(MAX_TEXT_LEN - 1)), None);
        assert_eq!(decoded(&"z".repeat(1_000_000)), None);
    }

    #[test]
    fn foreign_symbols_are_refused_everywhere() {
        for foreign in ["0", "O", "I", "l", " ", "+", "/", "é", "\0"] {
            for text in [foreign.to_owned(), format!("2{foreign}"), format!("{foreign}2")] {
                assert_eq!(decoded(&text), None, "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_read_as_the_library_reads_them(
            zeros in 0usize..4,
            tail in proptest::collection::vec(any::<u8>(), 0..MAX_LEN - 4),
        ) {
            let bytes = [vec![0; zeros], tail].concat();
            let text = bs58::encode(&bytes).into_string();
            prop_assert_eq!(encode(&bytes), text.clone());
            prop_assert_eq!(decoded(&text), Some(bytes));
        }

        #[test]
        fn any_text_is_judged_as_the_library_judges_it(text in "[1-9A-HJ-NP-Za-km-z0OIl]{0,60}") {
            prop_assert_eq!(decoded(&text), bs58::decode(&text).into_vec().ok());
        }
    }
}
