//! Limits on the size of decoded events, and their checks.

use std::cell::Cell;
use std::ops::Deref;

use crate::{DecodeError, Event, Reason, Tag, Value};

/// Limits of a decoder on input from an untrusted sender. The defaults hold every real event known.
///
/// Lengths count the text, not its stored bytes, which may be fewer.
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
    /// Maximum memory of the lists of tags and values that one call decodes, in bytes beyond six per byte of input.
    /// A value takes 24 bytes and a tag 16, but only a byte each in some formats.
    pub list_bytes: usize,
}

impl Default for Limits {
    /// 1 MiB of content, 10,000 tags of 10,000 values of 64 KiB, 1,000,000 events, 1 MiB of lists.
    fn default() -> Self {
        Self {
            content_bytes: 1 << 20,
            tags: 10_000,
            tag_values: 10_000,
            value_bytes: 64 << 10,
            events: 1_000_000,
            list_bytes: 1 << 20,
        }
    }
}

/// The most containers inside each other in a skipped field: as many as JSON libraries with a limit accept.
pub const MAX_DEPTH: usize = 127;

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
    /// [`Limits::list_bytes`].
    ListBytes,
    /// Text of an event that the `wireproof` layout stores as numbers of earlier values: 1 MiB and the length of the
    /// batch.
    ReferencedBytes,
    /// Nesting depth of a skipped value.
    Depth,
}

impl Limit {
    /// The name of the limited items, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContentBytes => "bytes of content",
            Self::Tags => "tags",
            Self::TagValues => "values in a tag",
            Self::ValueBytes => "bytes in a value",
            Self::Events => "events in a batch",
            Self::ListBytes => "bytes of lists of tags and values for an input of this length",
            Self::ReferencedBytes => "bytes of values by number in an event",
            Self::Depth => "levels in an unknown field",
        }
    }
}

impl Limits {
    /// Takes from [`list_bytes`](Self::list_bytes) the share that a decoded event of `len` bytes used. Events that are in
    /// memory together then share the limit, as a batch does.
    pub fn charge(&mut self, event: &Event<'_>, len: usize) {
        let beyond = list_bytes(event.tags).saturating_sub(LIST_RATIO.saturating_mul(len));
        self.list_bytes = self.list_bytes.saturating_sub(beyond);
    }

    /// Checks the length of content, read at `offset`.
    ///
    /// # Errors
    /// If it exceeds [`content_bytes`](Self::content_bytes).
    #[inline]
    pub fn check_content(&self, len: usize, offset: usize) -> Result<(), DecodeError> {
        check(len, self.content_bytes, Limit::ContentBytes, offset)
    }

    /// Checks the length of a value's text, read at `offset`.
    ///
    /// # Errors
    /// If it exceeds [`value_bytes`](Self::value_bytes).
    #[inline]
    pub fn check_value(&self, text_len: usize, offset: usize) -> Result<(), DecodeError> {
        check(text_len, self.value_bytes, Limit::ValueBytes, offset)
    }

    /// Checks a number of tags, read at `offset`.
    ///
    /// # Errors
    /// If it exceeds [`tags`](Self::tags).
    #[inline]
    pub fn check_tags(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        check(count, self.tags, Limit::Tags, offset)
    }

    /// Checks a number of values of a tag, read at `offset`.
    ///
    /// # Errors
    /// If it exceeds [`tag_values`](Self::tag_values).
    #[inline]
    pub fn check_tag_values(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        check(count, self.tag_values, Limit::TagValues, offset)
    }

    /// Checks a number of events, read at `offset`.
    ///
    /// # Errors
    /// If it exceeds [`events`](Self::events).
    #[inline]
    pub fn check_events(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        check(count, self.events, Limit::Events, offset)
    }
}

/// The limits of one decoding call, and the memory that its lists may still take.
#[derive(Debug)]
pub struct Budget<'l> {
    limits: &'l Limits,
    left: Cell<usize>,
}

impl<'l> Budget<'l> {
    /// The budget of an input of `input_len` bytes.
    #[inline]
    pub fn new(input_len: usize, limits: &'l Limits) -> Self {
        let left = limits.list_bytes.saturating_add(LIST_RATIO.saturating_mul(input_len));
        Self { limits, left: Cell::new(left) }
    }

    /// Checks a number of tags, and takes the memory of their list.
    ///
    /// # Errors
    /// If it exceeds the limit, or too little memory is left.
    #[inline]
    pub fn check_tags(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        self.limits.check_tags(count, offset)?;
        self.take(size_of::<Tag<'_>>().saturating_mul(count), offset)
    }

    /// Checks a number of values of a tag, and takes the memory of their list.
    ///
    /// # Errors
    /// If it exceeds the limit, or too little memory is left.
    #[inline]
    pub fn check_tag_values(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        self.limits.check_tag_values(count, offset)?;
        self.take(size_of::<Value<'_>>().saturating_mul(count), offset)
    }

    /// Takes memory for the item read at `offset`.
    ///
    /// # Errors
    /// If too little is left.
    #[inline]
    pub fn take(&self, bytes: usize, offset: usize) -> Result<(), DecodeError> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(DecodeError::new(offset, Reason::Limit(Limit::ListBytes))),
        }
    }
}

impl Deref for Budget<'_> {
    type Target = Limits;

    fn deref(&self) -> &Limits {
        self.limits
    }
}

/// Memory of the lists of tags and values in bytes.
pub fn list_bytes(tags: &[Tag<'_>]) -> usize {
    size_of_val(tags) + tags.iter().map(|tag| size_of_val(*tag)).sum::<usize>()
}

/// Checks a `count`, read at `offset`.
///
/// # Errors
/// If it is more than `max`.
#[inline]
pub fn check(count: usize, max: usize, limit: Limit, offset: usize) -> Result<(), DecodeError> {
    if count > max { Err(DecodeError::new(offset, Reason::Limit(limit))) } else { Ok(()) }
}

/// Memory that lists may take per byte of input, in bytes. An arena, whose chunks double, takes up to twice as
/// much.
pub const LIST_RATIO: usize = 6;
