//! Search for long runs of lower-case hexadecimal digits in text.
//!
//! A run of at least 32 digits covers one of every 32 positions, so the search probes only those.

use std::ops::Range;

/// The first maximal run at or after `from`, without its last digit if its length is odd.
pub(super) fn next(text: &[u8], from: usize) -> Option<Range<usize>> {
    let mut probe = from + MIN_DIGITS - 1;
    while let Some(byte) = text.get(probe) {
        if !is_digit(byte) {
            probe += MIN_DIGITS;
            continue;
        }
        let start =
            probe - text[from..probe].iter().rev().take_while(|byte| is_digit(byte)).count();
        let end = probe + text[probe..].iter().take_while(|byte| is_digit(byte)).count();
        if end - start >= MIN_DIGITS {
            return Some(start..end - (end - start) % 2);
        }
        probe = end + MIN_DIGITS;
    }
    None
}

#[inline]
fn is_digit(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Minimum length of a run in digits.
pub(super) const MIN_DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn byte_by_byte(text: &[u8]) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let len = text[at..].iter().take_while(|byte| is_digit(byte)).count();
            if len >= MIN_DIGITS {
                runs.push(at..at + len - len % 2);
            }
            at += len + 1;
        }
        runs
    }

    fn all(text: &[u8]) -> Vec<Range<usize>> {
        let first = next(text, 0);
        std::iter::successors(first, |run| next(text, run.end)).collect()
    }

    #[test]
    fn every_run_is_found_at_every_position() {
        for before in 0..70 {
            for len in [0, 1, 31, 32, 33, 34, 63, 64, 65, 128] {
                for after in [0, 1, 40] {
                    let mut text = vec![b'x'; before];
                    text.extend(vec![b'7'; len]);
                    text.extend(vec![b'G'; after]);
                    text.extend(vec![b'e'; len / 2]);
                    assert_eq!(all(&text), byte_by_byte(&text), "{before} {len} {after}");
                }
            }
        }
    }

    #[test]
    fn the_last_digit_of_an_odd_run_begins_no_other() {
        assert_eq!(all(&[b'0'; 33]), vec![0..32]);
        let two = ["0".repeat(33), "1".repeat(32)].join("-");
        assert_eq!(all(two.as_bytes()), [0..32, 34..66]);
    }
}
