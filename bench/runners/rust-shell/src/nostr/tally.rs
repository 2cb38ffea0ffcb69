//! What came out of decoding? Numbers that nobody can reach without walking every event.

use serde_json::{Value, json};

/// The counts of what was decoded, by the names of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    events: u64,
    pub(super) errors: u64,
    tags: u64,
    values: u64,
    value_bytes: u64,
    content_bytes: u64,
    kinds: i64,
    seconds: i64,
}

impl Tally {
    /// An event without its tags.
    pub fn event(&mut self, kind: impl Into<i64>, created_at: i64, content: &str) {
        self.events += 1;
        self.kinds += kind.into();
        self.seconds += created_at;
        self.content_bytes += content.len() as u64;
    }

    /// A tag without its values.
    pub fn tag(&mut self) {
        self.tags += 1;
    }

    /// A value that is text.
    pub fn text(&mut self, value: &str) {
        self.value(value.len());
    }

    /// A value whose text is the digits of these bytes.
    pub fn hex(&mut self, value: &[u8]) {
        self.value(2 * value.len());
    }

    /// A tag with its values, all of them text.
    pub fn texts<T: AsRef<str>>(&mut self, tag: impl IntoIterator<Item = T>) {
        self.tag();
        tag.into_iter().for_each(|value| self.text(value.as_ref()));
    }

    /// Events that were refused, of which nothing else is known.
    pub(super) fn refused(&mut self, events: u64) {
        self.events += events;
        self.errors += events;
    }

    pub(super) fn to_json(self) -> Value {
        json!({
            "events": self.events,
            "errors": self.errors,
            "tags": self.tags,
            "values": self.values,
            "value_bytes": self.value_bytes,
            "content_bytes": self.content_bytes,
            "kinds": self.kinds,
            "seconds": self.seconds,
        })
    }

    fn value(&mut self, text_len: usize) {
        self.values += 1;
        self.value_bytes += text_len as u64;
    }
}
