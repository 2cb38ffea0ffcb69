//! How large may an event be?

/// Bounds on what a decoder takes from a stranger. The defaults hold every real event known.
///
/// Lengths are those of the text, not of a compact form of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the content.
    pub content_bytes: usize,
    /// Tags of an event.
    pub tags: usize,
    /// Values of one tag.
    pub tag_values: usize,
    /// Bytes of one value.
    pub value_bytes: usize,
    /// Events of a batch.
    pub events: usize,
}

impl Default for Limits {
    /// 1 MiB of content, 10,000 tags of 10,000 values of 64 KiB, a million events.
    fn default() -> Self {
        Self {
            content_bytes: 1 << 20,
            tags: 10_000,
            tag_values: 10_000,
            value_bytes: 64 << 10,
            events: 1_000_000,
        }
    }
}

/// Which of the [`Limits`] was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::content_bytes`].
    ContentBytes,
    /// [`Limits::tags`].
    Tags,
    /// [`Limits::tag_values`].
    TagValues,
    /// [`Limits::value_bytes`].
    ValueBytes,
    /// [`Limits::events`].
    Events,
    /// Levels of a value that is skipped.
    Depth,
}

impl Limit {
    /// What is bounded.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContentBytes => "content bytes",
            Self::Tags => "tags",
            Self::TagValues => "values of a tag",
            Self::ValueBytes => "bytes of a value",
            Self::Events => "events of a batch",
            Self::Depth => "levels of an ignored field",
        }
    }
}
