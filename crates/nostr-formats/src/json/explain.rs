//! The meaning of the bytes of an object: values, and names and punctuation between them.

use crate::explain::{Meaning, Visit, Walker};
use nostr::DecodeError;

/// A container around a value.
enum Level {
    /// An object, with the name of the value.
    Object(Option<String>),
    /// An array, with the index of the value.
    Array(u64),
}

/// Explains an object that was decoded before.
pub(super) fn event(bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
    let walker = &mut Walker::new(bytes, visit);
    let (mut levels, mut between) = (Vec::new(), 0);
    while let Some(byte) = walker.input.rest().first() {
        let (value_start, value_len) = match byte {
            b'"' => {
                let len = text_len(&walker.input.rest()[1..]);
                if let Some(Level::Object(name @ None)) = levels.last_mut() {
                    let bytes = walker.input.take(len + 2)?;
                    *name = Some(String::from_utf8_lossy(&bytes[1..=len]).into_owned());
                    continue;
                }
                (1, len)
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' => (0, scalar_len(walker.input.rest())),
            other => {
                enter(*other, &mut levels);
                walker.input.take(1)?;
                continue;
            }
        };
        walker.input.take(value_start)?;
        walker.layout(between, "", BETWEEN);
        walker.take(&field(&levels), value_len, Meaning::Text)?;
        between = walker.offset();
        walker.input.take(value_start)?;
    }
    walker.layout(between, "", BETWEEN);
    Ok(())
}

/// Follows a character outside of values.
fn enter(byte: u8, levels: &mut Vec<Level>) {
    match (byte, levels.last_mut()) {
        (b'{', _) => levels.push(Level::Object(None)),
        (b'[', _) => levels.push(Level::Array(0)),
        (b'}' | b']', _) => drop(levels.pop()),
        (b',', Some(Level::Object(name))) => *name = None,
        (b',', Some(Level::Array(index))) => *index += 1,
        _ => {}
    }
}

/// The field of a value in these containers, such as `tags[0][1]`.
fn field(levels: &[Level]) -> String {
    let mut field = String::new();
    for level in levels {
        match level {
            Level::Array(index) => field += &format!("[{index}]"),
            Level::Object(name) => {
                field += if field.is_empty() { "" } else { "." };
                field += name.as_deref().unwrap_or_default();
            }
        }
    }
    field
}

/// Length of text up to its closing quotation mark in bytes.
fn text_len(rest: &[u8]) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: &u8| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    };
    rest.iter().position(is_end).unwrap_or(rest.len())
}

/// Length of a number or a word in bytes.
fn scalar_len(rest: &[u8]) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
    rest.iter().position(is_end).unwrap_or(rest.len())
}

const BETWEEN: &str = "names and punctuation";
