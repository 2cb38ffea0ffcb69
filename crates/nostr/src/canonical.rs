//! Which bytes is an event's id the SHA-256 of?
//!
//! NIP-01: the UTF-8 of `[0,<pubkey>,<created_at>,<kind>,<tags>,<content>]`, without spaces. Seven
//! characters are escaped in text and no others:
//!
//! | character | U+0008 | U+0009 | U+000A | U+000C | U+000D | `"` | `\` |
//! |---|---|---|---|---|---|---|---|
//! | written | `\b` | `\t` | `\n` | `\f` | `\r` | `\"` | `\\` |
//!
//! Other control characters are *included verbatim*, says NIP-01; the JSON writers that most clients
//! use tell them as `\u00XX`. No known real event has one. [`Controls`] chooses.

use kernels::{hex, json, sha256};

use crate::{Event, Tag, Value};

/// How are control characters told that NIP-01 has no escape for?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controls {
    /// As they are: the letter of NIP-01.
    #[default]
    Verbatim,
    /// As `\u00XX`: what JSON asks for, and most writers of events do.
    Escaped,
}

/// Appends the canonical form of `event`.
///
/// ```
/// # use bumpalo::Bump;
/// # use wireproof_nostr::{canonical::{self, Controls}, example, formats::Format, Limits};
/// # let arena = Bump::new();
/// let event = Format::Json.decode(example::JSON.as_bytes(), &arena, &Limits::default())?;
/// let mut bytes = Vec::new();
/// canonical::write(&event, Controls::Verbatim, &mut bytes);
/// assert!(bytes.starts_with(b"[0,\"") && bytes.ends_with(b"]"));
/// # Ok::<(), wireproof_nostr::DecodeError>(())
/// ```
pub fn write(event: &Event<'_>, controls: Controls, out: &mut Vec<u8>) {
    out.extend_from_slice(b"[0,\"");
    hex::encode_into(&event.pubkey, out);
    out.extend_from_slice(b"\",");
    write_integer(event.created_at, out);
    out.push(b',');
    write_integer(event.kind.into(), out);
    out.push(b',');
    write_tags(event.tags, controls, out);
    out.push(b',');
    write_text(event.content, controls, out);
    out.push(b']');
}

/// The id that `event` must have, with `scratch` as memory.
pub fn id(event: &Event<'_>, controls: Controls, scratch: &mut Vec<u8>) -> [u8; 32] {
    scratch.clear();
    write(event, controls, scratch);
    sha256::digest(scratch)
}

/// Appends the tags as JSON.
pub(crate) fn write_tags(tags: &[Tag<'_>], controls: Controls, out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, tag) in tags.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
        for (at, value) in tag.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_value(value, controls, out);
        }
        out.push(b']');
    }
    out.push(b']');
}

#[inline]
fn write_value(value: &Value<'_>, controls: Controls, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => write_text(text, controls, out),
        Value::Hex(bytes) => {
            out.push(b'"');
            hex::encode_into(bytes, out);
            out.push(b'"');
        }
    }
}

/// Appends text in quotes.
#[inline]
pub(crate) fn write_text(text: &str, controls: Controls, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = json::append_plain(rest, out);
        let Some((first, behind)) = rest[plain..].split_first() else { break };
        write_special(*first, controls, out);
        rest = behind;
    }
    out.push(b'"');
}

fn write_special(byte: u8, controls: Controls, out: &mut Vec<u8>) {
    let letter = match (byte, controls) {
        (b'\n', _) => b'n',
        (b'\t', _) => b't',
        (b'\r', _) => b'r',
        (0x08, _) => b'b',
        (0x0c, _) => b'f',
        (b'"' | b'\\', _) => byte,
        (_, Controls::Verbatim) => return out.push(byte),
        (_, Controls::Escaped) => {
            out.extend_from_slice(b"\\u00");
            return hex::encode_into(&[byte], out);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Appends an integer in decimal.
#[inline]
pub(crate) fn write_integer(value: i64, out: &mut Vec<u8>) {
    // i64::MIN has 19 digits and a sign.
    let (mut digits, mut start, mut rest) = ([0; 20], 20, value.unsigned_abs());
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
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_told_in_decimal() {
        for value in [0, 1, -1, 9, 10, 1_720_000_000, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_integer(value, &mut out);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }

    fn told(text: &str, controls: Controls) -> String {
        let mut out = Vec::new();
        write_text(text, controls, &mut out);
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
            assert_eq!(told(&text, Controls::Verbatim), format!("\"{expected}\""), "{code:x}");
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(told(&text, Controls::Escaped), json, "{code:x}");
        }
    }
}
