//! Hexadecimal, a byte at a time: the definition.

pub(super) fn encode_into(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().flat_map(|byte| DIGITS[usize::from(*byte)]));
}

pub(super) fn is_lower(digits: &[u8]) -> bool {
    digits.len().is_multiple_of(2) && digits.iter().all(|digit| VALUES[usize::from(*digit)] < 16)
}

pub(super) fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    if digits.len() != 2 * bytes.len() {
        return false;
    }
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks().0) {
        let [high, low] = pair.map(|digit: u8| VALUES[usize::from(digit)]);
        seen |= high | low;
        *byte = high << 4 | low;
    }
    seen < 16
}

/// The digits of every byte.
pub(super) const DIGITS: [[u8; 2]; 256] = {
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digit(byte >> 4), digit(byte & 15)];
        byte += 1;
    }
    table
};

/// The value of every digit; 0xff for other bytes.
const VALUES: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        table[digit(value) as usize] = value as u8;
        value += 1;
    }
    table
};

const fn digit(value: usize) -> u8 {
    b"0123456789abcdef"[value]
}
