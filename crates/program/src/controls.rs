//! Control characters of strangers in lines of JSON, written as escapes: terminals would obey them. The content stays the same.
//! Characters that only join others, as in emoji, are left as they are.

use std::io::{self, Write};

/// Escapes the control and bidirectional characters of the JSON in `json` from the byte `start` on.
pub fn escape_controls(json: &mut Vec<u8>, start: usize) {
    let Ok(text) = str::from_utf8(&json[start..]) else { return };
    if !text.chars().any(is_control) {
        return;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_control(letter) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(letter)))
        } else {
            escaped.push(letter)
        }
    }
    json.truncate(start);
    json.extend_from_slice(escaped.as_bytes());
}

/// Writes JSON with these characters escaped, in whatever parts it comes.
pub struct EscapedJson<W> {
    out: W,
    /// The start of a character whose end has not come, at most 3 bytes.
    rest: Vec<u8>,
}

impl<W: Write> EscapedJson<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, rest: Vec::new() }
    }
}

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut text = std::mem::take(&mut self.rest);
        text.extend_from_slice(buf);
        let end = match str::from_utf8(&text) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => text.len(),
        };
        self.rest = text.split_off(end);
        escape_controls(&mut text, 0);
        self.out.write_all(&text)?;
        Ok(buf.len())
    }

    /// Flushes all complete characters.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a terminal may obey a character. ASCII ones except the last occur in JSON only between its tokens.
pub fn is_control(letter: char) -> bool {
    const DIRECTIONS: [char; 3] = ['\u{61c}', '\u{200e}', '\u{200f}'];
    matches!(letter, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || DIRECTIONS.contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_escaped_wherever_it_is_cut() {
        let json = "{\"a\":\"x\u{9b}31m\u{202e}é👩\u{200d}👧\u{7f}\"}\n";
        let expected = "{\"a\":\"x\\u009b31m\\u202eé👩\u{200d}👧\\u007f\"}\n";
        for len in 1..=json.len() {
            let mut out = EscapedJson::new(Vec::new());
            json.as_bytes().chunks(len).for_each(|part| out.write_all(part).unwrap());
            out.flush().unwrap();
            assert_eq!(str::from_utf8(&out.out), Ok(expected), "{len}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_written_as_they_are() {
        let mut out = EscapedJson::new(Vec::new());
        out.write_all(b"{\xff\xc3(").unwrap();
        assert_eq!(out.out, b"{\xff\xc3(");
    }
}
