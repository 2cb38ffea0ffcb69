//! Untrusted text made visible: control, bidirectional, zero-width and other invisible characters are escaped
//! for terminals, and in JSON, whose content stays the same.
//!
//! ```
//! use wireproof::codec::printable::{Printable, escape_json};
//! assert_eq!(Printable("a\u{202e}b\n").to_string(), "a\\u{202e}b\\u{a}");
//!
//! let mut json = "{\"name\":\"a\u{202e}b\"}".as_bytes().to_vec();
//! escape_json(&mut json, 0);
//! assert_eq!(json, br#"{"name":"a\u202eb"}"#);
//! ```

use std::fmt::{self, Display, Write as _};

/// Text of a stranger, displayed on one line with its invisible characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.0, is_invisible)
    }
}

/// Text of several lines, displayed with its other invisible characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct PrintableLines<'a>(pub &'a str);

impl Display for PrintableLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.0, |letter| is_invisible(letter) && !matches!(letter, '\n' | '\t'))
    }
}

fn write_escaped(
    f: &mut fmt::Formatter<'_>,
    text: &str,
    is_escaped: impl Fn(char) -> bool + Copy,
) -> fmt::Result {
    let mut rest = text;
    while let Some(letter) = rest.chars().find(|letter| is_escaped(*letter)) {
        let (before, after) = rest.split_once(letter).expect("the line above found it");
        write!(f, "{before}{}", letter.escape_unicode())?;
        rest = after;
    }
    f.write_str(rest)
}

/// Whether a character has no glyph of its own, or changes how its neighbours are displayed: controls,
/// formats, line separators, and default-ignorable characters.
pub fn is_invisible(letter: char) -> bool {
    let after = INVISIBLE.partition_point(|(_, last)| *last < letter);
    INVISIBLE.get(after).is_some_and(|(first, _)| *first <= letter)
}

/// Escapes the invisible characters of the JSON text in `json` from the byte `start` on, which must be valid
/// UTF-8. The JSON has the same content afterwards. Text without such characters costs one pass.
///
/// # Panics
/// If `start` is beyond the end.
pub fn escape_json(json: &mut Vec<u8>, start: usize) {
    let Some(first) = first_escaped(json, start) else { return };
    let Ok(tail) = str::from_utf8(&json[first..]).map(str::to_owned) else { return };
    json.truncate(first);
    for letter in tail.chars() {
        if is_escaped(letter) {
            push_escape(json, letter)
        } else {
            json.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes())
        }
    }
}

/// Whether a character is escaped in JSON. Raw ASCII control characters occur only between its tokens, as white space.
fn is_escaped(letter: char) -> bool {
    letter >= '\u{7f}' && is_invisible(letter)
}

/// The offset of the first escaped character from the byte `at` on. Few characters are decoded: only characters with the
/// first byte of an invisible one.
fn first_escaped(json: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += plain_ascii_len(&json[at..]);
        let first = *json.get(at)?;
        let len = if first < 0xC0 { 1 } else { first.leading_ones() as usize };
        if LEADS_INVISIBLE[usize::from(first)] {
            let text = str::from_utf8(json.get(at..at + len)?).ok()?;
            if text.chars().any(is_escaped) {
                return Some(at);
            }
        }
        at += len;
    }
}

/// The length of the longest prefix of bytes below 0x7F.
fn plain_ascii_len(bytes: &[u8]) -> usize {
    // The largest byte of a block, unlike the first one above a value, is found with vector instructions.
    let is_plain = |block: &[u8]| block.iter().fold(0, |max, byte| max.max(*byte)) < 0x7F;
    let blocks = bytes.chunks_exact(BLOCK_LEN).take_while(|block| is_plain(block)).count();
    let rest = &bytes[blocks * BLOCK_LEN..];
    let in_rest = rest.iter().position(|byte| *byte >= 0x7F).unwrap_or(rest.len());
    blocks * BLOCK_LEN + in_rest
}

/// Bytes that are examined together.
const BLOCK_LEN: usize = 32;

/// The first bytes of the invisible characters in UTF-8.
static LEADS_INVISIBLE: [bool; 256] = leads_invisible();

const fn leads_invisible() -> [bool; 256] {
    let (mut leads, mut at) = ([false; 256], 0);
    while at < INVISIBLE.len() {
        let (first, last) = INVISIBLE[at];
        let (mut lead, last) = (lead(first), lead(last));
        while lead <= last {
            leads[lead as usize] = true;
            lead += 1;
        }
        at += 1;
    }
    leads
}

/// The first byte of a character in UTF-8.
const fn lead(letter: char) -> u8 {
    letter.encode_utf8(&mut [0; 4]).as_bytes()[0]
}

/// The escape of JSON: one per unit of UTF-16.
fn push_escape(json: &mut Vec<u8>, letter: char) {
    let mut escape = String::new();
    for unit in letter.encode_utf16(&mut [0; 2]) {
        write!(escape, "\\u{unit:04x}").expect("writing to memory does not fail");
    }
    json.extend_from_slice(escape.as_bytes());
}

/// The general categories Cc, Cf, Zl and Zp, and the property `Default_Ignorable_Code_Point`, of Unicode 14.
#[rustfmt::skip]
const INVISIBLE: [(char, char); 27] = [
    ('\0', '\u{1f}'), ('\u{7f}', '\u{9f}'), ('\u{ad}', '\u{ad}'), ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'), ('\u{61c}', '\u{61c}'), ('\u{6dd}', '\u{6dd}'), ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'), ('\u{8e2}', '\u{8e2}'), ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'), ('\u{180b}', '\u{180f}'), ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'), ('\u{2060}', '\u{206f}'), ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'), ('\u{feff}', '\u{feff}'), ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'), ('\u{110bd}', '\u{110bd}'), ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{13438}'), ('\u{1bca0}', '\u{1bca3}'), ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_that_hide_or_reorder_text_are_escaped_and_others_are_not() {
        for letter in
            "\0\n\u{1b}\u{7f}\u{9b}\u{ad}\u{200b}\u{200d}\u{202e}\u{2066}\u{2028}\u{feff}\u{e0041}"
                .chars()
        {
            assert!(is_invisible(letter), "{letter:?}");
            assert!(Printable(&letter.to_string()).to_string().starts_with("\\u{"));
        }
        let visible = "a b ä € 漢字 عربي \u{1f600}";
        assert_eq!(Printable(visible).to_string(), visible);
        assert_eq!(PrintableLines("a\n\tb\u{1b}[2J").to_string(), "a\n\tb\\u{1b}[2J");
    }

    #[test]
    fn json_is_escaped_from_the_given_byte_on_and_white_space_is_kept() {
        let mut json = "\u{200b}{\n \"a\u{e0041}\": \"\u{7f}é\"}".as_bytes().to_vec();
        escape_json(&mut json, 3);
        let expected = "\u{200b}{\n \"a\\udb40\\udc41\": \"\\u007fé\"}";
        assert_eq!(str::from_utf8(&json).unwrap(), expected);
        for (raw, expected) in [("\u{200b}", "\\u200b"), ("\u{7f}", "\\u007f")] {
            let mut json = raw.as_bytes().to_vec();
            escape_json(&mut json, 0);
            assert_eq!(str::from_utf8(&json).unwrap(), expected);
        }
    }

    #[test]
    fn a_character_is_escaped_at_every_offset_of_a_block() {
        for before in 0..2 * BLOCK_LEN + 2 {
            let start = "x".repeat(before);
            for (raw, escaped) in [("\u{7f}", "\\u007f"), ("é\u{200b}", "é\\u200b"), ("é", "é")]
            {
                let mut json = format!("{start}{raw}y").into_bytes();
                escape_json(&mut json, 0);
                assert_eq!(String::from_utf8(json).unwrap(), format!("{start}{escaped}y"));
            }
        }
    }

    proptest! {
        #[test]
        fn escaped_json_has_the_same_content_and_no_invisible_character(
            text in "[a\\\\\"é\u{0}-\u{20}\u{7f}-\u{ad}\u{200b}-\u{202e}\u{feff}\u{e0000}-\u{e0fff}\u{1f600}]{0,30}",
        ) {
            let mut json = serde_json::to_vec(&text).unwrap();
            escape_json(&mut json, 0);
            let written = String::from_utf8(json).unwrap();
            prop_assert!(!written.contains(is_invisible), "{}", written);
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }
}
