//! Text that hosts send, prepared for messages: on one line, cut to a length, invisible characters escaped.

use codec::printable::Printable;

/// At most `max_chars` characters of `text`.
pub fn sanitize(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.char_indices().nth(max_chars).map_or(line.len(), |(end, _)| end);
    Printable(&line[..end]).to_string()
}

/// Maximum length of a message in characters.
pub const MAX_MESSAGE_CHARS: usize = 300;

/// Maximum length of a name in characters.
pub const MAX_NAME_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_line_of_a_maximum_length_without_invisible_characters() {
        assert_eq!(sanitize("  a\n\tb \u{1b}[2J\u{202e}", 300), "a b \\u{1b}[2J\\u{202e}");
        assert_eq!(sanitize("äöü", 2), "äö");
    }
}
