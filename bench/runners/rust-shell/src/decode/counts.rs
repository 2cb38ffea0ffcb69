//! What came out of the work? Numbers that nobody can reach by skipping some of it.

use serde_json::{Map, Value};

/// The counts of the task `decode`, by the names of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub frames: u64,
    pub errors: u64,
    pub blocks: u64,
    pub maps: u64,
    pub map_entries: u64,
    pub arrays: u64,
    pub array_items: u64,
    pub text_bytes: u64,
    pub byte_string_bytes: u64,
    pub links: u64,
    pub integers: u64,
    pub floats: u64,
    pub booleans: u64,
    pub nulls: u64,
}

impl Counts {
    pub fn map(&mut self, entries: usize) {
        self.maps += 1;
        self.map_entries += entries as u64;
    }

    pub fn array(&mut self, items: usize) {
        self.arrays += 1;
        self.array_items += items as u64;
    }

    /// A text value or a map key.
    pub fn text(&mut self, text: &str) {
        self.text_bytes += text.len() as u64;
    }

    pub fn byte_string(&mut self, bytes: &[u8]) {
        self.byte_string_bytes += bytes.len() as u64;
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        let theirs = other.rows();
        for ((_, mine), (_, theirs)) in self.rows_mut().into_iter().zip(theirs) {
            *mine += theirs;
        }
    }

    pub(crate) fn to_json(self) -> Value {
        let named = |(name, count): (&str, u64)| (name.to_owned(), Value::from(count));
        Value::Object(self.rows().into_iter().map(named).collect::<Map<_, _>>())
    }

    fn rows(&self) -> [(&'static str, u64); 14] {
        let mut copy = *self;
        copy.rows_mut().map(|(name, count)| (name, *count))
    }

    fn rows_mut(&mut self) -> [(&'static str, &mut u64); 14] {
        [
            ("frames", &mut self.frames),
            ("errors", &mut self.errors),
            ("blocks", &mut self.blocks),
            ("maps", &mut self.maps),
            ("map_entries", &mut self.map_entries),
            ("arrays", &mut self.arrays),
            ("array_items", &mut self.array_items),
            ("text_bytes", &mut self.text_bytes),
            ("byte_string_bytes", &mut self.byte_string_bytes),
            ("links", &mut self.links),
            ("integers", &mut self.integers),
            ("floats", &mut self.floats),
            ("booleans", &mut self.booleans),
            ("nulls", &mut self.nulls),
        ]
    }
}
