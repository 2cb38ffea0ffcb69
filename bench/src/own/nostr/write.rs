//! Encodes events one after the other into one buffer.
//!
//! The events are in memory in the order in which they are written, texts with texts and lists with lists, like events
//! just read or created. An arena allocates from the end to the start: events decoded into it one by one would
//! be in reverse order, which doubles the time for reasons unrelated to encoding.

use std::hint::black_box;

use bumpalo::Bump;
use bumpalo::collections::{String as BumpString, Vec as BumpVec};
use nostr::{Event, Tag, Value};
use nostr_formats::Format;
use protocol::{BoxError, CHUNK_UNITS, Counts, Loaded, Parts, Proof, Work};

use super::{ChunkClock, Corpus};

/// Encodes all events.
pub(super) struct Encode<'f> {
    format: Format,
    loaded: Loaded,
    events: Vec<Event<'f>>,
    out: Vec<u8>,
}

impl<'f> Encode<'f> {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>, arena: &'f Bump) -> Self {
        let events = in_memory_order(&corpus.events, arena);
        Self { format, loaded: corpus.loaded(), events, out: Vec::new() }
    }

    /// Allocations of a warm pass: the buffer is the encoder's only memory and allocates when it grows.
    fn allocations(&mut self) -> u64 {
        let mut growths = 0;
        for event in &self.events {
            let before = self.out.capacity();
            self.out.clear();
            let _ = self.format.encode(event, &mut self.out);
            growths += u64::from(self.out.capacity() != before);
        }
        growths
    }
}

impl Work for Encode<'_> {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let (mut bytes, mut errors) = (0, 0);
        for event in &self.events {
            self.out.clear();
            errors += u64::from(self.format.encode(event, &mut self.out).is_err());
            bytes += self.out.len() as u64;
        }
        let events = self.events.len() as u64;
        let counts = Counts::from_iter([("events", events), ("errors", errors), ("bytes", bytes)]);
        Ok(Proof::from(counts).with_allocations(self.allocations()))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let mut clock = ChunkClock::start();
        for chunk in self.events.chunks(CHUNK_UNITS) {
            for event in chunk {
                self.out.clear();
                let _ = black_box(self.format.encode(event, &mut self.out));
                black_box(&self.out);
            }
            clock.lap();
        }
        Ok(Parts { chunks_ns: clock.chunks_ns, ..Parts::default() })
    }
}

/// The same events with their texts and lists in `arena`, in order.
fn in_memory_order<'a>(events: &[Event<'_>], arena: &'a Bump) -> Vec<Event<'a>> {
    let mut texts = texts(events, arena);
    let mut values = BumpVec::with_capacity_in(events.iter().flat_map(values_of).count(), arena);
    let mut contents = Vec::with_capacity(events.len());
    for event in events {
        let text = |value: &Value<'_>| Value::Text(split_off(&mut texts, value.text_len()));
        values.extend(values_of(event).map(text));
        contents.push(split_off(&mut texts, event.content.len()));
    }
    let mut tags = tags(events, values.into_bump_slice(), arena);
    let event = |(event, content): (&Event<'_>, &'a str)| {
        let (own, rest) = tags.split_at(event.tags.len());
        tags = rest;
        let Event { id, pubkey, created_at, kind, sig, .. } = *event;
        Event { id, pubkey, created_at, kind, tags: own, content, sig }
    };
    events.iter().zip(contents).map(event).collect()
}

/// The texts of the events' values and contents.
fn texts<'a>(events: &[Event<'_>], arena: &'a Bump) -> &'a str {
    let mut texts = BumpString::new_in(arena);
    for event in events {
        values_of(event).for_each(|value| texts.push_str(&value.to_text()));
        texts.push_str(event.content);
    }
    texts.into_bump_str()
}

/// The tags of all events, with the values `values`.
fn tags<'a>(events: &[Event<'_>], mut values: &'a [Value<'a>], arena: &'a Bump) -> &'a [Tag<'a>] {
    let tag_lens = events.iter().flat_map(|event| event.tags).map(|tag| tag.len());
    let mut tags = BumpVec::with_capacity_in(tag_lens.clone().count(), arena);
    tags.extend(tag_lens.map(|len| {
        let (own, rest) = values.split_at(len);
        values = rest;
        own
    }));
    tags.into_bump_slice()
}

fn values_of<'e>(event: &'e Event<'_>) -> impl Iterator<Item = &'e Value<'e>> {
    event.tags.iter().copied().flatten()
}

/// Splits the first `len` bytes off `text`.
fn split_off<'a>(text: &mut &'a str, len: usize) -> &'a str {
    let (first, rest) = text.split_at(len);
    *text = rest;
    first
}

#[cfg(test)]
mod tests {
    use simnet::nostr_events::{Corpus, Spec};

    use super::*;

    #[test]
    fn events_in_memory_order_are_equal_to_their_originals() {
        let corpus = Corpus::generate(&Spec { events: 300, ..Spec::quick() });
        let [read, ordered] = [Bump::new(), Bump::new()];
        let events: Vec<_> = corpus.events().iter().map(|event| event.borrow_in(&read)).collect();
        let copies = in_memory_order(&events, &ordered);
        assert_eq!(copies, events);
        let contents: Vec<_> = copies.iter().map(|event| event.content.as_ptr()).collect();
        assert!(contents.is_sorted());
    }
}
