//! Bytes as hexadecimal digits and back.

use std::fmt::Write;

/// Two lower-case digits for each byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("a string takes what it is given");
    }
    digits
}

/// The bytes of digits in either case; `None` if a digit is foreign or has no partner.
pub(crate) fn decode(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks() else { return None };
    let byte = |[high, low]: &[u8; 2]| Some(16 * digit(*high)? + digit(*low)?);
    pairs.iter().map(byte).collect()
}

fn digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_for_bytes_and_anything_else_for_nothing() {
        assert_eq!(decode("00fFa7"), Some(vec![0, 0xff, 0xa7]));
        assert_eq!(decode(""), Some(Vec::new()));
        for bad in ["0", "0g", "+1", "0x00", " 00", "é"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
        assert_eq!(encode(&[0, 0xff, 0xa7]), "00ffa7");
    }
}
