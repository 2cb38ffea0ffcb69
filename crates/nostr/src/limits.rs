//! Limits on the size of decoded events, and their checks.

use crate::{DecodeError, Reason};

/// Limits on what a decoder accepts from an untrusted sender. The defaults hold every real event known.
///
/// Lengths are those of the text, not of the bytes that it may be stored as.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum content of an event in bytes.
    pub content_bytes: usize,
    /// Maximum number of tags in an event.
    pub tags: usize,
    /// Maximum number of values in a tag.
    pub tag_values: usize,
    /// Maximum value of a tag in bytes.
    pub value_bytes: usize,
    /// Maximum number of events in a batch.
    pub events: usize,
}

impl Default for Limits {
    /// 1 MiB of content, 10,000 tags of 10,000 values of 64 KiB, 1,000,000 events.
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

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Nesting depth of a skipped value.
    Depth,
}

impl Limit {
    /// What is limited, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContentBytes => "bytes of content",
            Self::Tags => "tags",
            Self::TagValues => "values in a tag",
            Self::ValueBytes => "bytes in a value",
            Self::Events => "events in a batch",
            Self::Depth => "levels in an unknown field",
        }
    }
}

impl Limits {
    #[inline]
    pub(crate) fn check_content(&self, len: usize, offset: usize) -> Result<(), DecodeError> {
        check(len, self.content_bytes, Limit::ContentBytes, offset)
    }

    #[inline]
    pub(crate) fn check_value(&self, text_len: usize, offset: usize) -> Result<(), DecodeError> {
        check(text_len, self.value_bytes, Limit::ValueBytes, offset)
    }

    #[inline]
    pub(crate) fn check_tags(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        check(count, self.tags, Limit::Tags, offset)
    }

    #[inline]
    pub(crate) fn check_tag_values(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        check(count, self.tag_values, Limit::TagValues, offset)
    }

    #[inline]
    pub(crate) fn check_events(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        check(count, self.events, Limit::Events, offset)
    }
}

/// Rejects a `count`, read at `offset`, of more than `max`.
#[inline]
pub(crate) fn check(
    count: usize,
    max: usize,
    limit: Limit,
    offset: usize,
) -> Result<(), DecodeError> {
    if count > max { Err(DecodeError::new(offset, Reason::Limit(limit))) } else { Ok(()) }
}
