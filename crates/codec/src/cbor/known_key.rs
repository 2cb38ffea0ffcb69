//! A map key that is expected: comparing its encoded bytes replaces reading it.

/// A key in its encoded form, ready to be compared. See [`Entries::next`](super::Entries::next).
#[derive(Clone, Debug)]
pub struct KnownKey {
    /// The first eight encoded bytes (head, then text, then zeros) as a big-endian number and its mask.
    word: u64,
    mask: u64,
    /// The next eight and their mask.
    second: u64,
    second_mask: u64,
    /// The encoded key.
    // len() >= 1
    encoded: Box<[u8]>,
}

impl KnownKey {
    /// The key `text`; `None` if it is longer than 23 bytes, the length of a head of one byte.
    pub fn new(text: &str) -> Option<Self> {
        let len = u8::try_from(text.len()).ok().filter(|len| *len < 24)?;
        let encoded = [&[0x60 + len], text.as_bytes()].concat();
        let word_at = |at: usize| {
            let (mut word, mut mask) = ([0; 8], [0; 8]);
            for ((word, mask), byte) in word.iter_mut().zip(&mut mask).zip(encoded.iter().skip(at))
            {
                (*word, *mask) = (*byte, 0xff);
            }
            (u64::from_be_bytes(word), u64::from_be_bytes(mask))
        };
        let ((word, mask), (second, second_mask)) = (word_at(0), word_at(8));
        Some(Self { word, mask, second, second_mask, encoded: encoded.into() })
    }

    /// Whether an encoded key that starts with these eight bytes, as a big-endian number, can be this one.
    #[inline]
    pub fn may_start(&self, word: u64) -> bool {
        word & self.mask == self.word
    }

    /// The key.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.encoded[1..]).expect("made from text")
    }

    /// The encoded key.
    #[inline]
    pub(super) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// The encoded key and zeros after it, if it has at most sixteen bytes.
    #[inline]
    pub(super) fn first_bytes(&self) -> Option<[u8; 16]> {
        let both = u128::from(self.word) << 64 | u128::from(self.second);
        (self.encoded.len() <= 16).then(|| both.to_be_bytes())
    }

    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word
    }

    /// The input split after this encoded key, if it begins with it. `window` is the start of `rest`.
    #[inline(always)]
    pub(super) fn strip<'a>(
        &self,
        window: &[u8; 16],
        rest: &'a [u8],
    ) -> Option<(&'a [u8], &'a [u8])> {
        let both = u128::from_be_bytes(*window);
        let (word, second) = ((both >> 64) as u64, both as u64);
        if word & self.mask != self.word || second & self.second_mask != self.second {
            return None;
        }
        let (key, value) = rest.split_at_checked(self.encoded.len())?;
        (key.len() <= window.len() || *key == *self.encoded).then_some((key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_stripped_where_the_input_begins_with_it_and_nowhere_else() {
        for len in 0..24 {
            let text = &"abcdefghijklmnopqrstuvw"[..len];
            let known = KnownKey::new(text).unwrap();
            assert_eq!(known.text(), text);
            let input = [&[0x60 + len as u8], text.as_bytes(), &[0xf6; 24]].concat();
            let word = |input: &[u8]| u64::from_be_bytes(*input.first_chunk().unwrap());
            assert!(known.may_start(word(&input)));
            let strip = |input: &[u8]| {
                known.strip(input.first_chunk().unwrap(), input).map(|(key, _)| key.len())
            };
            assert_eq!(strip(&input), Some(1 + len));
            for at in 0..input.len() {
                let mut changed = input.clone();
                changed[at] ^= 1;
                assert_eq!(strip(&changed), (at > len).then_some(1 + len), "{len} {at}");
                assert_eq!(known.may_start(word(&changed)), at > len.min(7), "{len} {at}");
            }
        }
        assert!(KnownKey::new("abcdefghijklmnopqrstuvwx").is_none());
    }
}
