//! Lower-case hexadecimal, both ways.
//!
//! Upper-case digits are rejected: text that is hashed or compared must have one form.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_avx2;

/// Appends two digits per byte.
///
/// ```
/// let mut digits = Vec::new();
/// wireproof::kernels::hex::encode_into(&[0, 0xff], &mut digits);
/// assert_eq!(digits, b"00ff");
/// ```
#[inline]
pub fn encode_into(bytes: &[u8], out: &mut Vec<u8>) {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= x86_avx2::STEP && x86_avx2::is_available() {
        return x86_avx2::encode_into(bytes, out);
    }
    portable::encode_into(bytes, out);
}

/// The two lower-case digits of `byte`.
#[inline]
pub fn digits(byte: u8) -> [u8; 2] {
    portable::DIGITS[usize::from(byte)]
}

/// The hexadecimal text of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    let mut digits = Vec::with_capacity(2 * bytes.len());
    encode_into(bytes, &mut digits);
    String::from_utf8(digits).expect("digits are ASCII")
}

/// Whether `digits` are pairs of lower-case digits.
#[inline]
pub fn is_lower(digits: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if digits.len() >= 2 * x86_avx2::STEP && x86_avx2::is_available() {
        return x86_avx2::is_lower(digits);
    }
    portable::is_lower(digits)
}

/// Decodes `digits` into `bytes`. Returns whether they are lower-case digits, two per byte; if not,
/// the content of `bytes` is unspecified.
///
/// ```
/// let mut bytes = [0; 2];
/// assert!(wireproof::kernels::hex::decode(b"00ff", &mut bytes) && bytes == [0, 0xff]);
/// assert!(!wireproof::kernels::hex::decode(b"00FF", &mut bytes));
/// ```
#[inline]
pub fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= x86_avx2::STEP && x86_avx2::is_available() {
        return x86_avx2::decode(digits, bytes);
    }
    portable::decode(digits, bytes)
}

/// Decodes `digits` and appends the bytes. Returns `false` and appends nothing if they are not pairs of
/// lower-case digits.
pub fn decode_into(digits: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + digits.len() / 2, 0);
    let is_hex = decode(digits, &mut out[start..]);
    if !is_hex {
        out.truncate(start);
    }
    is_hex
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

    type Encode = fn(&[u8], &mut Vec<u8>);
    type Decode = fn(&[u8], &mut [u8]) -> bool;
    type IsLower = fn(&[u8]) -> bool;

    type BackEnd = (&'static str, Encode, Decode, IsLower);

    fn back_ends() -> Vec<BackEnd> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut all: Vec<BackEnd> = vec![
            ("portable", portable::encode_into, portable::decode, portable::is_lower),
            ("dispatched", encode_into, decode, is_lower),
        ];
        #[cfg(target_arch = "x86_64")]
        if x86_avx2::is_available() {
            all.push(("avx2", x86_avx2::encode_into, x86_avx2::decode, x86_avx2::is_lower));
        }
        all
    }

    fn plain(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn every_back_end_encodes_every_length_and_decodes_it_back() {
        let bytes: Vec<u8> =
            (0..=255).cycle().map(|byte: u8| byte.wrapping_mul(37)).take(200).collect();
        for (name, encode, decode, is_lower) in back_ends() {
            for len in 0..=bytes.len() {
                let bytes = &bytes[..len];
                let mut digits = b"before".to_vec();
                encode(bytes, &mut digits);
                assert_eq!(digits, format!("before{}", plain(bytes)).into_bytes(), "{name} {len}");
                let mut read = vec![0; len];
                assert!(decode(&digits[6..], &mut read) && read == bytes, "{name} {len}");
                assert!(is_lower(&digits[6..]), "{name} {len}");
                assert!(!decode(&digits[5..], &mut read), "{name} {len}: a digit too many");
            }
        }
    }

    #[test]
    fn every_back_end_rejects_every_other_byte_at_every_position() {
        for (name, _, decode, is_lower) in back_ends() {
            for len in [2, 4, 32, 34, 64, 70] {
                for at in 0..len {
                    for byte in 0..=255u8 {
                        let mut digits = vec![b'a'; len];
                        digits[at] = byte;
                        let is_digit = byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                        let is_hex = decode(&digits, &mut vec![0; len / 2]);
                        assert_eq!(is_hex, is_digit, "{name}: {byte:02x} at {at} of {len}");
                        assert_eq!(is_lower(&digits), is_digit, "{name}: {byte:02x} at {at}");
                    }
                }
            }
            assert!(!is_lower(b"abc"), "{name}");
        }
    }

    #[test]
    fn other_text_appends_nothing() {
        let mut out = vec![7];
        assert!(!decode_into(b"abc", &mut out) && !decode_into(b"AB", &mut out));
        assert!(decode_into(b"ab", &mut out));
        assert_eq!(out, [7, 0xab]);
    }
}
