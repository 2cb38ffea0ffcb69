//! The meaning of the bytes of a buffer.

use crate::explain::{Note, Parts, Visit, little_endian};
use nostr::{DecodeError, Reason};

/// Explains a buffer that was decoded before.
pub(super) fn event(bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
    let mut parts = Parts::new(bytes);
    let root = distance(&mut parts, 0, "")?;
    let event = Table::read(&mut parts, root, "")?;
    for (slot, field) in [(0, "id"), (1, "pubkey"), (6, "sig")] {
        event.bytes(&mut parts, slot, field, Note::Hex)?;
    }
    for (slot, len, field) in [(2, 8, "created_at"), (3, 2, "kind")] {
        event.field(slot).map_or(Ok(0), |at| parts.integer(at, len, field))?;
    }
    event.text(&mut parts, 5, "content")?;
    for (tag, at) in event.tables(&mut parts, 4, "tags")?.into_iter().enumerate() {
        let name = format!("tags[{tag}]");
        let tag = Table::read(&mut parts, at, &name)?;
        for (value, at) in tag.tables(&mut parts, 0, &name)?.into_iter().enumerate() {
            let name = format!("{name}[{value}]");
            let value = Table::read(&mut parts, at, &name)?;
            value.text(&mut parts, 0, &name)?;
            value.bytes(&mut parts, 1, &name, Note::Hex)?;
        }
    }
    parts.visit(visit);
    Ok(())
}

/// A table: where its fields are.
struct Table {
    fields: Vec<Option<usize>>,
}

impl Table {
    fn read(parts: &mut Parts<'_>, offset: usize, name: &str) -> Result<Self, DecodeError> {
        let back = little_endian(parts.get(offset, 4)?) as u32 as i32;
        let vtable = usize::try_from(offset as i64 - i64::from(back));
        let vtable = vtable.map_err(|_| DecodeError::new(offset, Reason::Truncated))?;
        let len = little_endian(parts.get(vtable, 2)?) as usize;
        let slots = parts.layout(vtable, len, name, "vtable: lengths, then places of fields")?;
        parts.layout(offset, 4, name, format!("table, with its vtable at byte {vtable}"))?;
        let (slots, _) = slots.get(4..).unwrap_or_default().as_chunks::<2>();
        let place = |slot: &[u8; 2]| match u16::from_le_bytes(*slot) {
            0 => None,
            place => Some(offset + usize::from(place)),
        };
        Ok(Self { fields: slots.iter().map(place).collect() })
    }

    /// The place of a field; `None` if it has its default.
    fn field(&self, slot: usize) -> Option<usize> {
        self.fields.get(slot).copied().flatten()
    }

    /// Explains a vector of bytes, and returns its end.
    fn bytes(
        &self,
        parts: &mut Parts<'_>,
        slot: usize,
        name: &str,
        note: Note,
    ) -> Result<Option<usize>, DecodeError> {
        let Some(at) = self.field(slot) else { return Ok(None) };
        let (start, len) = vector(parts, at, name, "bytes")?;
        parts.add(start, len, name, note)?;
        Ok(Some(start + len))
    }

    /// Explains a string, which ends with a zero byte.
    fn text(&self, parts: &mut Parts<'_>, slot: usize, name: &str) -> Result<(), DecodeError> {
        match self.bytes(parts, slot, name, Note::Text)? {
            Some(end) => parts.layout(end, 1, name, "zero").map(drop),
            None => Ok(()),
        }
    }

    /// Explains a vector of tables, and returns their offsets.
    fn tables(
        &self,
        parts: &mut Parts<'_>,
        slot: usize,
        name: &str,
    ) -> Result<Vec<usize>, DecodeError> {
        let Some(at) = self.field(slot) else { return Ok(Vec::new()) };
        let (start, count) = vector(parts, at, name, "items")?;
        parts.get(start, count.saturating_mul(4))?;
        (0..count)
            .map(|item| distance(parts, start + 4 * item, &format!("{name}[{item}]")))
            .collect()
    }
}

/// Explains the distance at a place, and returns where it leads.
fn distance(parts: &mut Parts<'_>, at: usize, name: &str) -> Result<usize, DecodeError> {
    let target = at.saturating_add(little_endian(parts.get(at, 4)?) as usize);
    parts.layout(at, 4, name, format!("pointer to byte {target}"))?;
    Ok(target)
}

/// Explains the pointer to a vector and its length; returns the place and the number of its items.
fn vector(
    parts: &mut Parts<'_>,
    at: usize,
    name: &str,
    what: &str,
) -> Result<(usize, usize), DecodeError> {
    let target = distance(parts, at, name)?;
    let count = little_endian(parts.get(target, 4)?) as usize;
    parts.layout(target, 4, name, format!("{count} {what}"))?;
    Ok((target + 4, count))
}
