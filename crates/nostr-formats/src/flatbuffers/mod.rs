//! FlatBuffers with the published schema. The library `flatbuffers` encodes; the decoder is hand-written, since the
//! library's is not safe code.
//!
//! ```text
//! table TagValue { text: string; hex: [ubyte]; }
//! table Tag      { values: [TagValue]; }
//! table Event {
//!   id: [ubyte] (required); pubkey: [ubyte] (required); created_at: long; kind: ushort;
//!   tags: [Tag]; content: string (required); sig: [ubyte] (required);
//! }
//! table EventBatch { events: [Event]; }
//! ```
//!
//! | bytes | of a buffer |
//! |---|---|
//! | 4 | distance to the root table |
//!
//! | bytes | of a table |
//! |---|---|
//! | 4 | distance back to its vtable, signed |
//! | … | integers, and distances to vectors, strings and tables |
//!
//! | bytes | of a vtable |
//! |---|---|
//! | 2, 2 | length of the vtable, length of the table |
//! | 2 per field | offset of the field in the table; 0 if the field has its default |
//!
//! | bytes | of a vector or a string |
//! |---|---|
//! | 4 | number of items |
//! | … | the items; a zero byte after a string |
//!
//! All integers are little-endian. Values of at least 8 lower-case digits are stored as `hex`. The buffer is built
//! from its end, in the published order: id, pubkey, sig, content, tags.
//!
//! The decoder rejects a buffer whose last object ends more than three zero bytes before the end. Objects may be
//! shared, but their total length, counted at every visit, may not exceed four times the length of the buffer.
//! Unknown fields are not looked at.

mod explain;
mod reader;
mod walk;

use ::flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use super::codec::Codec;
use super::explain::Visit;
use super::fields::ReadFields;
use super::tags::MIN_DIGITS;
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Field, Limits, Tag, Value};
use walk::{Table, Walk};

/// The codec. FlatBuffers hold every event, up to 1 GiB.
#[derive(Clone, Copy, Debug)]
pub struct Flatbuffers;

impl Codec for Flatbuffers {
    type Fields<'a> = Fields<'a>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write(std::slice::from_ref(event), out, |events, _| events[0])
    }

    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        let mut walk = Walk::new(bytes)?;
        let root = walk.root()?;
        let event = reader::event(&mut walk, root, arena, &Budget::new(bytes.len(), limits))?;
        walk.end()?;
        Ok(event)
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        explain::event(bytes, visit)
    }

    fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write(events, out, |events, builder| {
            let events = builder.create_vector(events);
            let table = builder.start_table();
            builder.push_slot_always(EVENTS, events);
            builder.end_table(table)
        })
    }

    fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let mut walk = Walk::new(bytes)?;
        let root = walk.root()?;
        let list = walk.tables(root, EVENTS)?.unwrap_or_default();
        limits.check_events(list.len(), list.offset())?;
        let limits = Budget::new(bytes.len(), limits);
        let capacity = list.len().min(walk::max_visits(bytes, MIN_EVENT_BYTES));
        let mut events = BumpVec::with_capacity_in(capacity, arena);
        for index in 0..list.len() {
            let table = walk.item(list, index)?;
            events.push(reader::event(&mut walk, table, arena, &limits)?);
        }
        walk.end()?;
        Ok(events.into_bump_slice())
    }

    #[inline]
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        _: &'a Bump,
        _: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        let mut walk = Walk::new(bytes)?;
        Ok(Fields { event: walk.root()?, walk })
    }
}

/// The fields of a buffer, looked at when they are read.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    walk: Walk<'a>,
    event: Table<'a>,
}

impl Fields<'_> {
    /// Reads the id.
    ///
    /// # Errors
    /// If the field is missing, outside the buffer or of the wrong length.
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        reader::fixed(&mut { self.walk }, self.event, ID, Field::Id)
    }
}

impl ReadFields for Fields<'_> {
    #[inline]
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        reader::fixed(&mut { self.walk }, self.event, PUBKEY, Field::Pubkey)
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        reader::created_at(self.event)
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        reader::kind(self.event)
    }
}

/// A finished table.
type Built = WIPOffset<TableFinishedWIPOffset>;

/// Appends a buffer of `events`; `root` selects or builds the root table.
fn write(
    events: &[Event<'_>],
    out: &mut Vec<u8>,
    root: impl FnOnce(&[Built], &mut FlatBufferBuilder<'_>) -> Built,
) -> Result<(), EncodeError> {
    let size = events.iter().map(max_bytes).sum::<usize>() + 64;
    EncodeError::at_most("bytes of a buffer", size, MAX_BUFFER_BYTES)?;
    let mut writer = Writer {
        builder: FlatBufferBuilder::with_capacity(size),
        tags: Vec::new(),
        values: Vec::new(),
        digits: Vec::new(),
    };
    let built: Vec<Built> = events.iter().map(|item| writer.event(item)).collect();
    let root = root(&built, &mut writer.builder);
    writer.builder.finish_minimal(root);
    out.extend_from_slice(writer.builder.finished_data());
    Ok(())
}

struct Writer<'b> {
    builder: FlatBufferBuilder<'b>,
    // Reused for the tags of an event, the values of a tag and the bytes of a value.
    tags: Vec<Built>,
    values: Vec<Built>,
    digits: Vec<u8>,
}

impl Writer<'_> {
    fn event(&mut self, event: &Event<'_>) -> Built {
        let id = self.builder.create_vector(&event.id);
        let pubkey = self.builder.create_vector(&event.pubkey);
        let sig = self.builder.create_vector(&event.sig);
        let content = self.builder.create_string(event.content);
        self.tags.clear();
        for item in event.tags {
            let built = self.tag(item);
            self.tags.push(built);
        }
        let tags = self.builder.create_vector(&self.tags);
        // Fields are pushed largest first; the buffer grows backwards.
        let table = self.builder.start_table();
        self.builder.push_slot(CREATED_AT, event.created_at, 0);
        self.builder.push_slot_always(SIG, sig);
        self.builder.push_slot_always(CONTENT, content);
        self.builder.push_slot_always(TAGS, tags);
        self.builder.push_slot_always(PUBKEY, pubkey);
        self.builder.push_slot_always(ID, id);
        self.builder.push_slot(KIND, event.kind, 0);
        self.builder.end_table(table)
    }

    fn tag(&mut self, tag: Tag<'_>) -> Built {
        self.values.clear();
        for item in tag {
            let built = self.value(item);
            self.values.push(built);
        }
        let values = self.builder.create_vector(&self.values);
        let table = self.builder.start_table();
        self.builder.push_slot_always(VALUES, values);
        self.builder.end_table(table)
    }

    fn value(&mut self, value: &Value<'_>) -> Built {
        if value.hex_len(MIN_DIGITS).is_some() {
            self.digits.clear();
            value.write_hex_bytes(&mut self.digits);
            let bytes = self.builder.create_vector(&self.digits);
            let table = self.builder.start_table();
            self.builder.push_slot_always(HEX, bytes);
            self.builder.end_table(table)
        } else {
            let text = self.builder.create_string(value.to_text().as_ref());
            let table = self.builder.start_table();
            self.builder.push_slot_always(TEXT, text);
            self.builder.end_table(table)
        }
    }
}

/// Maximum size of the objects of an event in bytes, with padding.
fn max_bytes(event: &Event<'_>) -> usize {
    let value = |value: &Value<'_>| 24 + value.text_len();
    let tag = |tag: &Tag<'_>| 24 + tag.iter().map(value).sum::<usize>();
    256 + event.tags.iter().map(tag).sum::<usize>() + event.content.len()
}

/// Offsets in the vtable of `Event`.
const ID: u16 = 4;
const PUBKEY: u16 = 6;
const CREATED_AT: u16 = 8;
const KIND: u16 = 10;
const TAGS: u16 = 12;
const CONTENT: u16 = 14;
const SIG: u16 = 16;

/// Offset in the vtable of `Tag`.
const VALUES: u16 = 4;

/// Offsets in the vtable of `TagValue`.
const TEXT: u16 = 4;
const HEX: u16 = 6;

/// Offset in the vtable of `EventBatch`.
const EVENTS: u16 = 4;

/// Minimum size of the objects of an event in bytes: id, key and signature.
const MIN_EVENT_BYTES: usize = 32 + 32 + 64;

/// Half of the range of a distance.
const MAX_BUFFER_BYTES: usize = 1 << 30;

#[cfg(test)]
mod tests;
