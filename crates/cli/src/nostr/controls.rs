//! Control characters of strangers in lines of JSON, written as escapes: terminals would obey them. The content stays the same.
//! Characters that only join others, as in emoji, are left as they are.

/// Escapes the control and bidirectional characters of the JSON in `json` from the byte `start` on.
pub(super) fn escape_controls(json: &mut Vec<u8>, start: usize) {
    let Ok(text) = str::from_utf8(&json[start..]) else { return };
    if !text.chars().any(is_control) {
        return;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_control(letter) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => escaped.push(letter),
        }
    }
    json.truncate(start);
    json.extend_from_slice(escaped.as_bytes());
}

/// Whether a terminal may obey a character. Those of ASCII but the last occur in JSON only between its tokens.
fn is_control(letter: char) -> bool {
    const DIRECTIONS: [char; 3] = ['\u{61c}', '\u{200e}', '\u{200f}'];
    matches!(letter, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || DIRECTIONS.contains(&letter)
}
