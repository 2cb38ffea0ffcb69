//! The plain prefix of text, a word at a time.

pub(super) fn plain_len(text: &[u8]) -> usize {
    let (words, tail) = text.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let len = plain_in_word(u64::from_le_bytes(*word));
        if len < 8 {
            return 8 * at + len;
        }
    }
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    8 * words.len() + tail.iter().position(is_special).unwrap_or(tail.len())
}

pub(super) fn append_plain(text: &[u8], out: &mut Vec<u8>) -> usize {
    let len = plain_len(text);
    out.extend_from_slice(&text[..len]);
    len
}

/// How many bytes of `word`, from its lowest, are plain.
#[inline]
pub(super) fn plain_in_word(word: u64) -> usize {
    // A byte's high bit is set where a subtraction borrowed. After the first such byte, bits may be set
    // by the borrow alone, but only the first one is used.
    let below = |bytes: u64, bound: u64| bytes.wrapping_sub(ONES * bound) & !bytes;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (ONES << 7);
    special.trailing_zeros() as usize / 8
}

const ONES: u64 = 0x0101_0101_0101_0101;
