//! The fields of an event as CBOR items.

use bumpalo::Bump;

use super::head::{self, ARRAY, BYTES, NEGATIVE, TEXT, UNSIGNED};
use crate::tags::{self, TagLayout};
use nostr::input::{self, Input};
use nostr::limits::Budget;
use nostr::{DecodeError, Event, Field, Limits, Reason, Tag};

/// CBOR that is read from the front.
pub(super) struct Reader<'a, 'l> {
    pub(super) input: Input<'a>,
    arena: &'a Bump,
    limits: Budget<'l>,
}

impl<'a, 'l> Reader<'a, 'l> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], arena: &'a Bump, limits: &'l Limits) -> Self {
        Self { input: Input::new(bytes), arena, limits: Budget::new(bytes.len(), limits) }
    }

    /// Reads an array of events, up to the end of the input.
    #[inline(always)]
    pub(super) fn events(
        mut self,
        event: impl Fn(&mut Self) -> Result<Event<'a>, DecodeError>,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let start = self.input.offset();
        let count = self.len(ARRAY, MIN_EVENT_BYTES, "an array of events")?;
        self.limits.check_events(count, start)?;
        let events = self.arena.alloc_slice_try_fill_with(count, |_| event(&mut self))?;
        self.input.end()?;
        Ok(events)
    }

    /// Reads a byte string of `N` bytes.
    #[inline(always)]
    pub(super) fn fixed<const N: usize>(
        &mut self,
        field: Field,
    ) -> Result<&'a [u8; N], DecodeError> {
        let start = self.input;
        if self.len(BYTES, 1, "a byte string")? != N {
            return Err(start.error(Reason::Length(field)));
        }
        self.input.array()
    }

    #[inline(always)]
    pub(super) fn created_at(&mut self) -> Result<i64, DecodeError> {
        created_at(&mut self.input)
    }

    #[inline(always)]
    pub(super) fn kind(&mut self) -> Result<u16, DecodeError> {
        kind(&mut self.input)
    }

    #[inline(always)]
    pub(super) fn tags<L: TagLayout>(&mut self) -> Result<&'a [Tag<'a>], DecodeError> {
        tags::read::<L>(&mut self.input, self.arena, &self.limits)
    }

    #[inline(always)]
    pub(super) fn content(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.input.offset();
        let len = self.len(TEXT, 1, "text")?;
        self.limits.check_content(len, start)?;
        self.input.text(len)
    }

    /// Reads the length or count of an item of type `major`, whose parts take at least `min_bytes` each.
    #[inline(always)]
    pub(super) fn len(
        &mut self,
        major: u8,
        min_bytes: u64,
        expected: &'static str,
    ) -> Result<usize, DecodeError> {
        let start = self.input;
        let argument = argument(&mut self.input, major, expected)?;
        if argument > self.input.rest().len() as u64 / min_bytes {
            return Err(start.error(Reason::Truncated));
        }
        Ok(argument as usize)
    }
}

#[inline(always)]
pub(super) fn created_at(input: &mut Input<'_>) -> Result<i64, DecodeError> {
    let start = *input;
    let (major, argument) = head::read(input)?;
    match (major, i64::try_from(argument)) {
        (UNSIGNED, Ok(seconds)) => Ok(seconds),
        (NEGATIVE, Ok(before)) => Ok(-1 - before),
        (UNSIGNED | NEGATIVE, Err(_)) => Err(start.error(Reason::Range(Field::CreatedAt))),
        _ => Err(start.error(Reason::Expected("an integer"))),
    }
}

#[inline(always)]
pub(super) fn kind(input: &mut Input<'_>) -> Result<u16, DecodeError> {
    let start = input.offset();
    input::kind(argument(input, UNSIGNED, "an unsigned integer")?, start)
}

/// Reads the argument of an item, which must be of type `major`.
#[inline(always)]
pub(super) fn argument(
    input: &mut Input<'_>,
    major: u8,
    expected: &'static str,
) -> Result<u64, DecodeError> {
    let start = *input;
    match head::read(input)? {
        (found, argument) if found == major => Ok(argument),
        _ => Err(start.error(Reason::Expected(expected))),
    }
}

/// Minimum size of an event in bytes, in all layouts.
const MIN_EVENT_BYTES: u64 = 1 + 34 + 34 + 1 + 1 + 1 + 1 + 66;
