//! How does CBOR tell the parts of an event?
//!
//! | part | item |
//! |---|---|
//! | `id`, `pubkey` | `58 20` and 32 bytes |
//! | `created_at` | an integer of either sign |
//! | `kind` | an unsigned integer up to 65,535 |
//! | `tags` | an array of arrays of values |
//! | `content` | text |
//! | `sig` | `58 40` and 64 bytes |
//!
//! A value is text, or where the format has it so the bytes that its digits spell.

use bumpalo::Bump;

use super::head::{self, ARRAY, BYTES, NEGATIVE, TEXT, UNSIGNED};
use crate::formats::compact::{self, Form, LEAST_DIGITS};
use crate::formats::tags::{self, Layout};
use crate::input::{self, Input};
use crate::{DecodeError, Event, Field, Limits, Reason, Tag, Value};

/// The map with names: values are text.
#[derive(Clone, Copy, Debug)]
pub enum WithNames {}

/// The map with numbers: values are text or bytes, as their writer liked.
#[derive(Clone, Copy, Debug)]
pub enum WithNumbers {}

/// The array: values are bytes if they can be, else text.
#[derive(Clone, Copy, Debug)]
pub enum OneForm {}

impl Layout for WithNames {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        argument(input, ARRAY, "an array of tags")
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        argument(input, ARRAY, "an array of values")
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let len = argument(input, TEXT, "text")?;
        Ok((Form::Text, usize::try_from(len).unwrap_or(usize::MAX)))
    }
}

impl Layout for WithNumbers {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        WithNames::tag_count(input)
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        WithNames::value_count(input)
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let start = *input;
        let (major, len) = head::read(input)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        match major {
            TEXT => Ok((Form::Text, len)),
            BYTES => Ok((Form::Bytes, len)),
            _ => Err(start.fault(Reason::Expected("text or bytes"))),
        }
    }
}

impl Layout for OneForm {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        WithNames::tag_count(input)
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        WithNames::value_count(input)
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        WithNumbers::head(input)
    }

    #[inline(always)]
    fn rule(value: &Value<'_>) -> Result<(), Reason> {
        compact::only_form(value, LEAST_DIGITS)
    }
}

/// CBOR that is read from the front.
pub(super) struct Reader<'a, 'l> {
    pub(super) input: Input<'a>,
    arena: &'a Bump,
    limits: &'l Limits,
}

impl<'a, 'l> Reader<'a, 'l> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], arena: &'a Bump, limits: &'l Limits) -> Self {
        Self { input: Input::new(bytes), arena, limits }
    }

    /// An array of what `event` reads, and nothing behind it.
    #[inline(always)]
    pub(super) fn events(
        mut self,
        event: impl Fn(&mut Self) -> Result<Event<'a>, DecodeError>,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let start = self.input.offset();
        let count = self.len(ARRAY, LEAST_EVENT_BYTES, "an array of events")?;
        self.limits.hold_events(count, start)?;
        let events = self.arena.alloc_slice_try_fill_with(count, |_| event(&mut self))?;
        self.input.end()?;
        Ok(events)
    }

    /// `N` bytes.
    #[inline(always)]
    pub(super) fn fixed<const N: usize>(
        &mut self,
        field: Field,
    ) -> Result<&'a [u8; N], DecodeError> {
        let start = self.input;
        if self.len(BYTES, 1, "a byte string")? != N {
            return Err(start.fault(Reason::Length(field)));
        }
        self.input.array()
    }

    #[inline(always)]
    pub(super) fn created_at(&mut self) -> Result<i64, DecodeError> {
        read_created_at(&mut self.input)
    }

    #[inline(always)]
    pub(super) fn kind(&mut self) -> Result<u16, DecodeError> {
        read_kind(&mut self.input)
    }

    #[inline(always)]
    pub(super) fn tags<L: Layout>(&mut self) -> Result<&'a [Tag<'a>], DecodeError> {
        tags::read::<L>(&mut self.input, self.arena, self.limits)
    }

    #[inline(always)]
    pub(super) fn content(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.input.offset();
        let len = self.len(TEXT, 1, "text")?;
        self.limits.hold_content(len, start)?;
        self.input.text(len)
    }

    /// The length or the count that an item of type `major` states, whose parts take `least_bytes`
    /// each.
    #[inline(always)]
    pub(super) fn len(
        &mut self,
        major: u8,
        least_bytes: u64,
        expected: &'static str,
    ) -> Result<usize, DecodeError> {
        let start = self.input;
        let argument = argument(&mut self.input, major, expected)?;
        if argument > self.input.rest().len() as u64 / least_bytes {
            return Err(start.fault(Reason::Truncated));
        }
        Ok(argument as usize)
    }
}

#[inline(always)]
pub(super) fn read_created_at(input: &mut Input<'_>) -> Result<i64, DecodeError> {
    let start = *input;
    let (major, argument) = head::read(input)?;
    match (major, i64::try_from(argument)) {
        (UNSIGNED, Ok(seconds)) => Ok(seconds),
        (NEGATIVE, Ok(before)) => Ok(-1 - before),
        (UNSIGNED | NEGATIVE, Err(_)) => Err(start.fault(Reason::Range(Field::CreatedAt))),
        _ => Err(start.fault(Reason::Expected("an integer"))),
    }
}

#[inline(always)]
pub(super) fn read_kind(input: &mut Input<'_>) -> Result<u16, DecodeError> {
    let start = input.offset();
    input::kind(argument(input, UNSIGNED, "an unsigned integer")?, start)
}

/// The argument of the next item, which must be of type `major`.
#[inline(always)]
fn argument(input: &mut Input<'_>, major: u8, expected: &'static str) -> Result<u64, DecodeError> {
    let start = *input;
    match head::read(input)? {
        (found, argument) if found == major => Ok(argument),
        _ => Err(start.fault(Reason::Expected(expected))),
    }
}

#[inline(always)]
pub(super) fn write_fixed<const N: usize>(bytes: &[u8; N], out: &mut Vec<u8>) {
    head::write(BYTES, N as u64, out);
    out.extend_from_slice(bytes);
}

#[inline(always)]
pub(super) fn write_created_at(seconds: i64, out: &mut Vec<u8>) {
    let (major, argument) = if seconds < 0 { (NEGATIVE, !seconds) } else { (UNSIGNED, seconds) };
    head::write(major, argument as u64, out);
}

#[inline(always)]
pub(super) fn write_kind(kind: u16, out: &mut Vec<u8>) {
    head::write(UNSIGNED, kind.into(), out);
}

#[inline(always)]
pub(super) fn write_tags(tags: &[Tag<'_>], least_digits: usize, out: &mut Vec<u8>) {
    head::write(ARRAY, tags.len() as u64, out);
    for tag in tags {
        head::write(ARRAY, tag.len() as u64, out);
        for value in *tag {
            compact::write(value, least_digits, out, |form, len, out| {
                head::write(if form == Form::Bytes { BYTES } else { TEXT }, len as u64, out);
            });
        }
    }
}

#[inline(always)]
pub(super) fn write_content(content: &str, out: &mut Vec<u8>) {
    head::write(TEXT, content.len() as u64, out);
    out.extend_from_slice(content.as_bytes());
}

/// Makes room for `event`, about: one look at its tags, none at their values.
#[inline(always)]
pub(super) fn reserve(event: &Event<'_>, out: &mut Vec<u8>) {
    out.reserve(USUAL_BYTES + event.content.len() + 48 * event.tags.len());
}

/// Bytes of an event of any of the formats, at least.
const LEAST_EVENT_BYTES: u64 = 1 + 34 + 34 + 1 + 1 + 1 + 1 + 66;

/// Bytes of an event without its content and tags, at most.
const USUAL_BYTES: usize = 256;
