//! The meaning of the bytes of a single event.

use super::head::{Head, KEY_BYTES, from_zigzag, read_kind};
use super::reader::EARLIER_NUMBER;
use super::words;
use crate::explain::{Meaning, Walker, stored};
use nostr::canonical::ControlChars;
use nostr::{DecodeError, Reason};

/// Explains an event that was decoded before.
pub(super) fn event(walker: &mut Walker<'_, '_>) -> Result<(), DecodeError> {
    walker.fixed("version", 1)?;
    walker.hex("pubkey", 32)?;
    walker.hex("sig", 64)?;
    let start = walker.offset();
    let created_at = from_zigzag(walker.input.varint()?);
    walker.span(start, "created_at", Meaning::Integer(created_at));
    let start = walker.offset();
    match read_kind(&mut walker.input)? {
        (kind, ControlChars::Verbatim) => {
            walker.span(start, "kind", Meaning::Integer(kind.into()));
        }
        (kind, ControlChars::Escaped) => {
            walker.layout(start, "kind", &format!("{kind}; the id is that of the escaped form"));
        }
    }
    for index in 0..walker.count("tags", "tags")? {
        tag(walker, &format!("tags[{index}]"))?;
    }
    value(walker, "content")
}

fn tag(walker: &mut Walker<'_, '_>, field: &str) -> Result<(), DecodeError> {
    let start = walker.offset();
    let head = walker.input.byte()?;
    let name = words::NAMES.get(usize::from(head & 0x3f));
    let count = match head >> 6 {
        3 => walker.input.varint()?,
        count => 2 + u64::from(count),
    };
    let named = name.map_or(String::new(), |name| format!(", the first is {name:?}"));
    walker.layout(start, field, &format!("{count} values{named}"));
    let first = u64::from(name.is_some());
    (first..count).try_for_each(|index| value(walker, &format!("{field}[{index}]")))
}

fn value(walker: &mut Walker<'_, '_>, field: &str) -> Result<(), DecodeError> {
    let start = walker.offset();
    match Head::read(&mut walker.input)? {
        Head::WithRuns => {
            let runs = walker.input.varint()?;
            walker.layout(start, field, &format!("text with {runs} runs of digits"));
            for _ in 0..runs {
                piece(walker, field)?;
                let start = walker.offset();
                let head = Head::read(&mut walker.input)?;
                stored_value(walker, field, start, head)?;
            }
            piece(walker, field)
        }
        Head::Word(number) => {
            let word = words::STRINGS[usize::from(number)];
            walker.layout(start, field, &format!("string {number} of the table: {word:?}"));
            Ok(())
        }
        head => stored_value(walker, field, start, head),
    }
}

/// Explains a value that is stored in full, whose head begins at `start`.
fn stored_value(
    walker: &mut Walker<'_, '_>,
    field: &str,
    start: usize,
    head: Head,
) -> Result<(), DecodeError> {
    let (is_hex, len) = match head {
        Head::Text(len) => (false, len),
        Head::Hex(len) => (true, len),
        Head::Key => (true, KEY_BYTES),
        _ => return Err(DecodeError::new(start, Reason::Expected(EARLIER_NUMBER))),
    };
    walker.layout(start, field, &stored(is_hex, len));
    walker.value(field, is_hex, len)
}

/// Explains the text before or after a run.
fn piece(walker: &mut Walker<'_, '_>, field: &str) -> Result<(), DecodeError> {
    let len = walker.count(field, "bytes of text")?;
    walker.text(field, len)
}
