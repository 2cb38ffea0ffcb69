//! How much room is left on an event that is to have a certain length?

use crate::schnorr_events::Draft;

/// An event that is being written, until its JSON is about as long as it shall be.
pub(super) struct Page {
    kind: u16,
    left: usize,
    tags: Vec<Vec<String>>,
    content: String,
}

impl Page {
    /// An empty event of `kind`, whose JSON shall have `bytes`.
    pub(super) fn new(kind: u16, bytes: usize) -> Self {
        let bare = BARE_BYTES + kind.to_string().len();
        Self { kind, left: bytes.saturating_sub(bare), tags: Vec::new(), content: String::new() }
    }

    /// Bytes of JSON that there is room for.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Adds a tag, whether there is room or not.
    pub(super) fn tag(&mut self, values: &[&str]) {
        self.left = self.left.saturating_sub(tag_len(values));
        self.tags.push(values.iter().map(|value| (*value).to_owned()).collect());
    }

    /// Adds a tag if that leaves room for `more` bytes; whether it did.
    pub(super) fn tag_before(&mut self, more: usize, values: &[&str]) -> bool {
        let fits = tag_len(values) + more <= self.left;
        if fits {
            self.tag(values);
        }
        fits
    }

    /// Sets the content.
    pub(super) fn write(&mut self, content: String) {
        self.left = self.left.saturating_sub(json_len(&content));
        self.content = content;
    }

    /// What was written.
    pub(super) fn into_draft(self, created_at: u64) -> Draft {
        Draft { created_at, kind: self.kind, tags: self.tags, content: self.content }
    }
}

/// Bytes of a tag in JSON, with the comma behind it.
fn tag_len(values: &[&str]) -> usize {
    values.iter().map(|value| json_len(value) + 3).sum::<usize>() + 2
}

/// Bytes of text in JSON, without quotes.
pub(super) fn json_len(text: &str) -> usize {
    let escaped = |byte: &&u8| matches!(byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t');
    text.len() + text.as_bytes().iter().filter(escaped).count()
}

/// Bytes of an event in JSON without kind, tags and content.
const BARE_BYTES: usize = 341;
