//! What has a sampler to know of an event?

use nostr::{Event, OwnedEvent};

/// An event, as far as it is classified.
pub trait EventShape {
    /// The kind.
    fn kind(&self) -> u16;

    /// How many tags there are.
    fn tags(&self) -> usize;

    /// About how long its JSON is: 375 bytes, 1.1 times the content, and of each tag 2 bytes and
    /// 3 more than each value has.
    fn estimated_bytes(&self) -> usize;

    /// Appends the event as JSON.
    fn write_json(&self, out: &mut Vec<u8>);
}

impl EventShape for Event<'_> {
    fn kind(&self) -> u16 {
        self.kind
    }

    fn tags(&self) -> usize {
        self.tags.len()
    }

    fn estimated_bytes(&self) -> usize {
        let tag = |tag: &nostr::Tag<'_>| estimated_tag(tag.iter().map(|value| value.text_len()));
        estimated(self.content.len(), self.tags.iter().map(tag).sum())
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        nostr::formats::Format::Json.encode(self, out).expect("JSON holds every event");
    }
}

impl EventShape for OwnedEvent {
    fn kind(&self) -> u16 {
        self.kind
    }

    fn tags(&self) -> usize {
        self.tags.len()
    }

    fn estimated_bytes(&self) -> usize {
        let tag = |tag: &Vec<String>| estimated_tag(tag.iter().map(String::len));
        estimated(self.content.len(), self.tags.iter().map(tag).sum())
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        self.borrow_in(&bumpalo::Bump::new()).write_json(out);
    }
}

fn estimated(content: usize, tags: usize) -> usize {
    375 + content * 11 / 10 + tags
}

fn estimated_tag(values: impl Iterator<Item = usize>) -> usize {
    2 + values.map(|len| len + 3).sum::<usize>()
}
