//! The canonical form: the bytes whose SHA-256 is the id of an event.
//!
//! NIP-01 defines it as the UTF-8 of `[0,<pubkey>,<created_at>,<kind>,<tags>,<content>]` without spaces. Seven
//! characters are escaped in text and no others:
//!
//! | character | U+0008 | U+0009 | U+000A | U+000C | U+000D | `"` | `\` |
//! |---|---|---|---|---|---|---|---|
//! | written | `\b` | `\t` | `\n` | `\f` | `\r` | `\"` | `\\` |
//!
//! NIP-01 requires other control characters to be *included verbatim*; the JSON writers of the clients in use escape
//! them as `\u00XX`. Signed events of both kinds exist, so an id of either form is valid. [`ControlChars`] names the
//! form; events without such characters have one canonical form.

use kernels::append::{Appender, Pieces, append};
use kernels::{hex, json, prefetch, sha256};

use crate::{Event, Tag, Value};

/// Form of the control characters for which NIP-01 has no escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlChars {
    /// Verbatim, as NIP-01 requires.
    #[default]
    Verbatim,
    /// Escaped as `\u00XX` with lower-case digits, as JSON requires and the clients in use do.
    Escaped,
}

impl ControlChars {
    /// The name in output and on the command line: `verbatim` or `escaped`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verbatim => "verbatim",
            Self::Escaped => "escaped",
        }
    }
}

/// Appends the canonical form of `event`.
///
/// ```
/// # use wireproof::nostr::Arena;
/// # use wireproof::nostr::{canonical::{self, ControlChars}, example, formats::Format, Limits};
/// # let arena = Arena::new();
/// let event = Format::Json.decode(example::JSON.as_bytes(), &arena, &Limits::default())?;
/// let mut bytes = Vec::new();
/// canonical::write(&event, ControlChars::Verbatim, &mut bytes);
/// assert!(bytes.starts_with(b"[0,\"") && bytes.ends_with(b"]"));
/// # Ok::<(), wireproof::nostr::DecodeError>(())
/// ```
pub fn write(event: &Event<'_>, controls: ControlChars, out: &mut Vec<u8>) {
    append(Canonical { event, controls }, out);
}

struct Canonical<'e> {
    event: &'e Event<'e>,
    controls: ControlChars,
}

impl Pieces for Canonical<'_> {
    #[inline(always)]
    fn append_to(self, out: &mut Appender) {
        let Self { event, controls } = self;
        out.array(b"[0,\"");
        out.hex(&event.pubkey);
        out.array(b"\",");
        write_integer(event.created_at, out);
        out.byte(b',');
        write_integer(event.kind.into(), out);
        out.byte(b',');
        write_tags(event.tags, controls, out);
        out.byte(b',');
        write_text(event.content, controls, out);
        out.byte(b']');
    }
}

/// Computes the id of `event`; `scratch` holds the canonical form.
pub fn id(event: &Event<'_>, controls: ControlChars, scratch: &mut Vec<u8>) -> [u8; 32] {
    hash_from(0, event, controls, scratch)
}

/// Hashes the canonical form, which replaces the bytes of `scratch` from `start` on.
fn hash_from(
    start: usize,
    event: &Event<'_>,
    controls: ControlChars,
    scratch: &mut Vec<u8>,
) -> [u8; 32] {
    scratch.truncate(start);
    write(event, controls, scratch);
    sha256::digest(&scratch[start..])
}

/// Finds the form of the control characters whose hash is the id of `event`; `None` if the id is wrong.
///
/// [`Verbatim`](ControlChars::Verbatim) if both forms are the same. `scratch` holds the canonical form.
pub fn id_form(event: &Event<'_>, scratch: &mut Vec<u8>) -> Option<ControlChars> {
    id_form_from(0, event, scratch)
}

/// Finds the form as [`id_form`] does; the canonical form replaces the bytes of `scratch` from `start` on.
pub fn id_form_from(
    start: usize,
    event: &Event<'_>,
    scratch: &mut Vec<u8>,
) -> Option<ControlChars> {
    if hash_from(start, event, ControlChars::Verbatim, scratch) == event.id {
        return Some(ControlChars::Verbatim);
    }
    // The second hash is computed only for a wrong id, and only if the forms differ.
    let is_escaped = has_control_chars(&scratch[start..])
        && hash_from(start, event, ControlChars::Escaped, scratch) == event.id;
    is_escaped.then_some(ControlChars::Escaped)
}

/// Whether a canonical form with verbatim control characters has any, so that the escaped form differs.
pub fn has_control_chars(verbatim: &[u8]) -> bool {
    verbatim.iter().any(|byte| *byte < b' ')
}

/// Appends the tags as JSON.
#[inline(always)]
pub(crate) fn write_tags(tags: &[Tag<'_>], controls: ControlChars, out: &mut Appender) {
    out.byte(b'[');
    for (index, tag) in tags.iter().enumerate() {
        prefetch_ahead(tags, index);
        if index > 0 {
            out.byte(b',');
        }
        write_tag(tag, controls, out);
    }
    out.byte(b']');
}

/// Prefetches tags that will be written soon: for lists of thousands of tags that are not in the cache, half of
/// the time is waiting for memory.
#[inline(always)]
fn prefetch_ahead(tags: &[Tag<'_>], index: usize) {
    if let Some(tag) = tags.get(index + 2 * PREFETCH_DISTANCE) {
        prefetch::element(tag, 0);
    }
    if let Some([.., Value::Text(text)]) = tags.get(index + PREFETCH_DISTANCE) {
        prefetch::element(text.as_bytes(), 0);
    }
}

#[inline(always)]
fn write_tag(tag: Tag<'_>, controls: ControlChars, out: &mut Appender) {
    out.byte(b'[');
    for (index, value) in tag.iter().enumerate() {
        if index > 0 {
            out.byte(b',');
        }
        write_value(value, controls, out);
    }
    out.byte(b']');
}

#[inline(always)]
fn write_value(value: &Value<'_>, controls: ControlChars, out: &mut Appender) {
    match value {
        Value::Text(text) => write_text(text, controls, out),
        Value::Hex(bytes) => {
            out.byte(b'"');
            out.hex(bytes);
            out.byte(b'"');
        }
    }
}

/// Appends text in quotes.
#[inline(always)]
pub(crate) fn write_text(text: &str, controls: ControlChars, out: &mut Appender) {
    if !out.quoted(text.as_bytes()) {
        out.with_vec(|list| write_escaped(text.as_bytes(), controls, list));
    }
}

fn write_escaped(mut rest: &[u8], controls: ControlChars, out: &mut Vec<u8>) {
    out.push(b'"');
    loop {
        let plain = json::append_plain(rest, out);
        let Some((first, after)) = rest[plain..].split_first() else { break };
        write_special(*first, controls, out);
        rest = after;
    }
    out.push(b'"');
}

fn write_special(byte: u8, controls: ControlChars, out: &mut Vec<u8>) {
    let letter = match (byte, controls) {
        (b'\n', _) => b'n',
        (b'\t', _) => b't',
        (b'\r', _) => b'r',
        (0x08, _) => b'b',
        (0x0c, _) => b'f',
        (b'"' | b'\\', _) => byte,
        (_, ControlChars::Verbatim) => return out.push(byte),
        (_, ControlChars::Escaped) => {
            out.extend_from_slice(b"\\u00");
            return hex::encode_into(&[byte], out);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Appends an integer in decimal.
#[inline(always)]
pub(crate) fn write_integer(value: i64, out: &mut Appender) {
    let (digits, start) = decimal(value);
    out.bytes(&digits[start..]);
}

/// The decimal digits of an integer, right-aligned, and the index of the first.
#[inline]
fn decimal(value: i64) -> ([u8; 20], usize) {
    // i64::MIN has 19 digits and a sign.
    let mut digits = [0; 20];
    let mut start = 20;
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    (digits, start)
}

/// Number of tags between prefetching one and writing it.
const PREFETCH_DISTANCE: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_decimal() {
        for value in [0, 1, -1, 9, 10, 1_720_000_000, i64::MAX, i64::MIN] {
            let (digits, start) = decimal(value);
            assert_eq!(&digits[start..], value.to_string().as_bytes());
        }
    }

    struct Text<'t>(&'t str, ControlChars);

    impl Pieces for Text<'_> {
        fn append_to(self, out: &mut Appender) {
            write_text(self.0, self.1, out);
        }
    }

    fn quoted(text: &str, controls: ControlChars) -> String {
        let mut out = Vec::new();
        append(Text(text, controls), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn seven_characters_are_escaped_and_no_others() {
        for code in 0..0x300 {
            let text = char::from_u32(code).unwrap().to_string();
            let expected = match code {
                8 => r"\b".to_owned(),
                9 => r"\t".to_owned(),
                10 => r"\n".to_owned(),
                12 => r"\f".to_owned(),
                13 => r"\r".to_owned(),
                0x22 => r#"\""#.to_owned(),
                0x5c => r"\\".to_owned(),
                _ => text.clone(),
            };
            assert_eq!(
                quoted(&text, ControlChars::Verbatim),
                format!("\"{expected}\""),
                "{code:x}"
            );
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(quoted(&text, ControlChars::Escaped), json, "{code:x}");
        }
    }
}
