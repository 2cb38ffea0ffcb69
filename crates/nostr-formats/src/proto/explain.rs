//! The meaning of the bytes of a message.

use super::{
    CONTENT, CREATED_AT, HEX, ID, KIND, PUBKEY, SIG, Schema, TAGS, TEXT, VALUES, VALUES_V2,
};
use crate::explain::{Meaning, Walker};
use nostr::{DecodeError, Reason};

/// Explains an `Event` that ends at `end`.
pub(super) fn event(
    schema: Schema,
    walker: &mut Walker<'_, '_>,
    end: usize,
) -> Result<(), DecodeError> {
    let (digits, mut tags) = (schema != Schema::String, 0);
    while walker.offset() < end {
        let start = walker.offset();
        let (number, wire_type) = key(walker)?;
        let name = match number {
            ID => "id",
            PUBKEY => "pubkey",
            CREATED_AT => "created_at",
            KIND => "kind",
            TAGS => &format!("tags[{tags}]"),
            CONTENT => "content",
            SIG => "sig",
            _ => "",
        };
        match (number, wire_type) {
            (ID | PUBKEY | SIG, DELIMITED) => {
                let len = len(walker, start, name, number)?;
                walker.value(name, digits, len)?;
            }
            (CONTENT, DELIMITED) => {
                let len = len(walker, start, name, number)?;
                walker.text(name, len)?;
            }
            (TAGS, DELIMITED) => {
                let len = len(walker, start, name, number)?;
                tag(walker, name, walker.offset() + len)?;
                tags += 1;
            }
            _ => other(walker, start, name, number, wire_type)?,
        }
    }
    Ok(())
}

/// Explains a `Tag`.
fn tag(walker: &mut Walker<'_, '_>, tag: &str, end: usize) -> Result<(), DecodeError> {
    let mut values = 0;
    while walker.offset() < end {
        let start = walker.offset();
        let (number, wire_type) = key(walker)?;
        let name = format!("{tag}[{values}]");
        if wire_type != DELIMITED || ![VALUES, VALUES_V2].contains(&number) {
            other(walker, start, tag, number, wire_type)?;
            continue;
        }
        let len = len(walker, start, &name, number)?;
        match number {
            VALUES => walker.text(&name, len)?,
            _ => tag_value(walker, &name, walker.offset() + len)?,
        }
        values += 1;
    }
    Ok(())
}

/// Explains a `TagValue`.
fn tag_value(walker: &mut Walker<'_, '_>, name: &str, end: usize) -> Result<(), DecodeError> {
    while walker.offset() < end {
        let start = walker.offset();
        match key(walker)? {
            (number @ (TEXT | HEX), DELIMITED) => {
                let len = len(walker, start, name, number)?;
                walker.value(name, number == HEX, len)?;
            }
            (number, wire_type) => other(walker, start, name, number, wire_type)?,
        }
    }
    Ok(())
}

/// Explains an integer, or a field that is not known.
fn other(
    walker: &mut Walker<'_, '_>,
    start: usize,
    name: &str,
    number: u32,
    wire_type: u32,
) -> Result<(), DecodeError> {
    let unknown = Meaning::Layout("unknown");
    match wire_type {
        VARINT => {
            walker.layout(start, name, &format!("field {number}, an integer"));
            walker.varint(name).map(drop)
        }
        DELIMITED => {
            let len = len(walker, start, name, number)?;
            walker.take(name, len, unknown)
        }
        _ => {
            walker.layout(start, name, &format!("field {number}"));
            walker.take(name, if wire_type == FIXED_64 { 8 } else { 4 }, unknown)
        }
    }
}

/// Reads the number and the type of a field.
fn key(walker: &mut Walker<'_, '_>) -> Result<(u32, u32), DecodeError> {
    let start = walker.offset();
    let key = u32::try_from(walker.input.varint()?);
    let key = key.map_err(|_| DecodeError::new(start, Reason::Expected("a field number")))?;
    Ok((key >> 3, key & 7))
}

/// Reads the length of a field whose key is at `start`.
fn len(
    walker: &mut Walker<'_, '_>,
    start: usize,
    name: &str,
    number: u32,
) -> Result<usize, DecodeError> {
    let len = usize::try_from(walker.input.varint()?).unwrap_or(usize::MAX);
    if len > walker.input.rest().len() {
        return Err(walker.input.error(Reason::Truncated));
    }
    walker.layout(start, name, &format!("field {number}, {len} bytes"));
    Ok(len)
}

/// Wire types.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const DELIMITED: u32 = 2;
