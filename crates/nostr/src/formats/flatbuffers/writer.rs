//! How is an event built from its end?

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};

use super::{
    CONTENT, CREATED_AT, EVENTS, HEX, ID, KIND, LEAST_DIGITS, PUBKEY, SIG, TAGS, TEXT, VALUES,
};
use crate::{EncodeError, Event, Tag, Value};

/// A table that is built.
pub(super) type Built = WIPOffset<TableFinishedWIPOffset>;

/// Appends the buffer of `events` whose root `root` chooses or builds.
pub(super) fn write(
    events: &[Event<'_>],
    out: &mut Vec<u8>,
    root: impl FnOnce(&[Built], &mut FlatBufferBuilder<'_>) -> Built,
) -> Result<(), EncodeError> {
    let most = events.iter().map(bytes_at_most).sum::<usize>() + 64;
    EncodeError::at_most("bytes of a buffer", most, MOST_BYTES)?;
    let mut writer = Writer {
        builder: FlatBufferBuilder::with_capacity(most),
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

/// The table of a batch.
pub(super) fn batch(events: &[Built], builder: &mut FlatBufferBuilder<'_>) -> Built {
    let events = builder.create_vector(events);
    let table = builder.start_table();
    builder.push_slot_always(EVENTS, events);
    builder.end_table(table)
}

struct Writer<'b> {
    builder: FlatBufferBuilder<'b>,
    // The tags of an event, the values of a tag and the bytes of a value, one after the other.
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
        // Fields of a table follow one another by size, and backwards.
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
        if value.hex_len(LEAST_DIGITS).is_some() {
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

/// Bytes of an event's parts, with what stands between them.
fn bytes_at_most(event: &Event<'_>) -> usize {
    let value = |value: &Value<'_>| 24 + value.text_len();
    let tag = |tag: &Tag<'_>| 24 + tag.iter().map(value).sum::<usize>();
    256 + event.tags.iter().map(tag).sum::<usize>() + event.content.len()
}

/// Half of what the library can address.
const MOST_BYTES: usize = 1 << 30;
