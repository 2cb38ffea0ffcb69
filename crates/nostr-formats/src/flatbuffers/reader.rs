//! Decoding of an event table.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use super::walk::{Table, Walk};
use super::{CONTENT, CREATED_AT, HEX, ID, KIND, PUBKEY, SIG, TAGS, TEXT, VALUES};
use nostr::limits::Budget;
use nostr::{DecodeError, Event, Field, Reason, Tag, Value};

/// Decodes an `Event` table.
pub(super) fn event<'a>(
    walk: &mut Walk<'a>,
    table: Table<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Event<'a>, DecodeError> {
    Ok(Event {
        id: fixed(walk, table, ID, Field::Id)?,
        pubkey: fixed(walk, table, PUBKEY, Field::Pubkey)?,
        created_at: created_at(table)?,
        kind: kind(table)?,
        tags: tags(walk, table, arena, limits)?,
        content: content(walk, table, limits)?,
        sig: fixed(walk, table, SIG, Field::Sig)?,
    })
}

#[inline]
pub(super) fn created_at(table: Table<'_>) -> Result<i64, DecodeError> {
    Ok(table.integer(CREATED_AT)?.map_or(0, i64::from_le_bytes))
}

#[inline]
pub(super) fn kind(table: Table<'_>) -> Result<u16, DecodeError> {
    Ok(table.integer(KIND)?.map_or(0, u16::from_le_bytes))
}

/// Reads a vector of `N` bytes.
#[inline]
pub(super) fn fixed<'a, const N: usize>(
    walk: &mut Walk<'a>,
    table: Table<'a>,
    slot: u16,
    field: Field,
) -> Result<[u8; N], DecodeError> {
    let (offset, bytes) = walk.vector(table, slot)?.ok_or_else(|| missing(table, field))?;
    bytes.try_into().map_err(|_| DecodeError::new(offset, Reason::Length(field)))
}

fn content<'a>(
    walk: &mut Walk<'a>,
    table: Table<'a>,
    limits: &Budget<'_>,
) -> Result<&'a str, DecodeError> {
    let found = walk.text(table, CONTENT)?;
    let (offset, content) = found.ok_or_else(|| missing(table, Field::Content))?;
    limits.check_content(content.len(), offset)?;
    Ok(content)
}

fn tags<'a>(
    walk: &mut Walk<'a>,
    event: Table<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let Some(list) = walk.tables(event, TAGS)? else { return Ok(&[]) };
    limits.check_tags(list.len(), list.offset())?;
    let mut tags = BumpVec::with_capacity_in(list.len(), arena);
    for index in 0..list.len() {
        let table = walk.item(list, index)?;
        tags.push(tag(walk, table, arena, limits)?);
    }
    Ok(tags.into_bump_slice())
}

#[inline]
fn tag<'a>(
    walk: &mut Walk<'a>,
    tag: Table<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Tag<'a>, DecodeError> {
    let list = walk.tables(tag, VALUES)?.ok_or_else(|| missing(tag, Field::Tags))?;
    limits.check_tag_values(list.len(), list.offset())?;
    let mut values = BumpVec::with_capacity_in(list.len(), arena);
    for index in 0..list.len() {
        let table = walk.item(list, index)?;
        values.push(value(walk, table, limits)?);
    }
    Ok(values.into_bump_slice())
}

#[inline]
fn value<'a>(
    walk: &mut Walk<'a>,
    table: Table<'a>,
    limits: &Budget<'_>,
) -> Result<Value<'a>, DecodeError> {
    let (offset, value) = match (walk.text(table, TEXT)?, walk.vector(table, HEX)?) {
        (Some((offset, text)), None) => (offset, Value::Text(text)),
        (None, Some((offset, bytes))) => (offset, Value::Hex(bytes)),
        _ => return Err(DecodeError::new(table.offset(), TEXT_OR_BYTES)),
    };
    limits.check_value(value.text_len(), offset)?;
    Ok(value)
}

#[cold]
fn missing(table: Table<'_>, field: Field) -> DecodeError {
    DecodeError::new(table.offset(), Reason::Missing(field))
}

const TEXT_OR_BYTES: Reason = Reason::Expected("text or bytes of a value");
