//! What do heads and the bytes behind them say?

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::{hex, utf8};

use super::head::Head;
use super::scratch::Scratch;
use super::{from_zigzag, runs, words};
use crate::canonical::{self, Controls};
use crate::input::{self, Input};
use crate::{DecodeError, Event, Field, Limit, Limits, Reason, Tag, Value};

/// Where heads and bytes come from, and what was there before.
pub(super) trait Source<'a> {
    fn heads(&mut self) -> &mut Input<'a>;
    fn bytes(&mut self) -> &mut Input<'a>;
    /// A key that comes for the first time.
    fn new_key(&mut self) -> Result<&'a [u8; 32], DecodeError>;
    fn known_key(&self, number: usize) -> Option<&'a [u8; 32]>;
    fn known_value(&self, number: usize) -> Option<Value<'a>>;
    /// Notes a value that was told in full.
    fn note(&mut self, value: Value<'a>);
}

/// An event on its own: bytes follow their heads, and nothing was there before.
pub(super) struct Alone<'a>(pub(super) Input<'a>);

impl<'a> Source<'a> for Alone<'a> {
    #[inline]
    fn heads(&mut self) -> &mut Input<'a> {
        &mut self.0
    }

    #[inline]
    fn bytes(&mut self) -> &mut Input<'a> {
        &mut self.0
    }

    #[inline]
    fn new_key(&mut self) -> Result<&'a [u8; 32], DecodeError> {
        self.0.array()
    }

    fn known_key(&self, _: usize) -> Option<&'a [u8; 32]> {
        None
    }

    fn known_value(&self, _: usize) -> Option<Value<'a>> {
        None
    }

    #[inline]
    fn note(&mut self, _: Value<'a>) {}
}

/// Reads events one after the other.
pub(super) struct Reader<'a, 'l, S> {
    pub(super) source: S,
    arena: &'a Bump,
    limits: &'l Limits,
    scratch: &'l mut Scratch,
}

impl<'a, 'l, S: Source<'a>> Reader<'a, 'l, S> {
    pub(super) fn new(
        source: S,
        arena: &'a Bump,
        limits: &'l Limits,
        scratch: &'l mut Scratch,
    ) -> Self {
        Self { source, arena, limits, scratch }
    }

    /// The event from its time on.
    pub(super) fn event(
        &mut self,
        pubkey: [u8; 32],
        sig: [u8; 64],
        time_before: i64,
    ) -> Result<Event<'a>, DecodeError> {
        let heads = self.source.heads();
        let created_at = time_before.wrapping_add(from_zigzag(heads.varint()?));
        let kind_offset = heads.offset();
        let kind = input::kind(heads.varint()?, kind_offset)?;
        let (tags, content) = (self.tags()?, self.content()?);
        let mut event = Event { id: [0; 32], pubkey, created_at, kind, tags, content, sig };
        event.id = canonical::id(&event, Controls::Verbatim, &mut self.scratch.bytes);
        Ok(event)
    }

    /// A key, which is told as such or by its number.
    pub(super) fn key(&mut self) -> Result<&'a [u8; 32], DecodeError> {
        let start = *self.source.heads();
        match Head::read(self.source.heads())? {
            Head::Key => self.source.new_key(),
            Head::KnownKey(number) => self.known_key(number, &start),
            _ => Err(start.fault(Reason::Length(Field::Pubkey))),
        }
    }

    fn known_key(&self, number: usize, start: &Input<'a>) -> Result<&'a [u8; 32], DecodeError> {
        self.source.known_key(number).ok_or_else(|| start.fault(Reason::Expected(A_KNOWN_NUMBER)))
    }

    fn tags(&mut self) -> Result<&'a [Tag<'a>], DecodeError> {
        let count = self.source.heads().count(1, Limit::Tags, self.limits.tags)?;
        let mut tags = BumpVec::with_capacity_in(count, self.arena);
        for _ in 0..count {
            tags.push(self.tag()?);
        }
        Ok(tags.into_bump_slice())
    }

    #[inline]
    fn tag(&mut self) -> Result<Tag<'a>, DecodeError> {
        let heads = self.source.heads();
        let start = *heads;
        let head = heads.byte()?;
        let name = words::NAMES.get(usize::from(head & 0x3f));
        let count = match head >> 6 {
            3 => self.stated_count(name.is_some())?,
            behind => 2 + usize::from(behind),
        };
        self.limits.hold_tag_values(count, start.offset())?;
        let mut values = BumpVec::with_capacity_in(count, self.arena);
        values.extend(name.map(|name| Value::Text(name)));
        while values.len() < count {
            values.push(self.value(Limits::hold_value)?);
        }
        if name.is_none() && values.first().is_some_and(is_name) {
            return Err(start.fault(Reason::NotCanonical("a name that has a number")));
        }
        Ok(values.into_bump_slice())
    }

    /// How many values a tag has whose head does not say it.
    fn stated_count(&mut self, has_name: bool) -> Result<usize, DecodeError> {
        let heads = self.source.heads();
        let start = *heads;
        match heads.count(1, Limit::TagValues, self.limits.tag_values)? {
            2..=4 => Err(start.fault(Reason::NotCanonical("a count that the head can tell"))),
            0 if has_name => {
                Err(start.fault(Reason::NotCanonical("a tag of no values with a name")))
            }
            count => Ok(count),
        }
    }

    fn content(&mut self) -> Result<&'a str, DecodeError> {
        match self.value(Limits::hold_content)? {
            Value::Text(text) => Ok(text),
            Value::Hex(bytes) => {
                self.scratch.bytes.clear();
                hex::encode_into(bytes, &mut self.scratch.bytes);
                Ok(self.kept_text().expect("digits are ASCII"))
            }
        }
    }

    /// A value, with its length held by `hold`.
    #[inline]
    fn value(&mut self, hold: Hold) -> Result<Value<'a>, DecodeError> {
        let start = *self.source.heads();
        let (value, is_new) = match Head::read(self.source.heads())? {
            Head::Text(len) => (Value::Text(self.text(len, &start)?), true),
            Head::Hex(len) => (Value::Hex(self.source.bytes().take(len)?), true),
            Head::WithRuns => (Value::Text(self.text_with_runs(&start, hold)?), true),
            Head::Key => (Value::Hex(self.source.new_key()?), false),
            Head::KnownKey(number) => (Value::Hex(self.known_key(number, &start)?), false),
            Head::Word(number) => (Value::Text(words::STRINGS[usize::from(number)]), false),
            Head::KnownValue(number) => {
                let known = self.source.known_value(number);
                (known.ok_or_else(|| start.fault(Reason::Expected(A_KNOWN_NUMBER)))?, false)
            }
        };
        hold(self.limits, value.text_len(), start.offset())?;
        if is_new {
            self.source.note(value);
        }
        Ok(value)
    }

    /// Text that could not be told in another way.
    #[inline]
    fn text(&mut self, len: usize, start: &Input<'a>) -> Result<&'a str, DecodeError> {
        let text = self.source.bytes().text(len)?;
        if len == 0 {
            return Ok(text);
        }
        if words::string(text).is_some() {
            return Err(start.fault(Reason::NotCanonical("a string that has a number")));
        }
        if Value::Text(text).hex_len(1).is_some() || runs::next(text.as_bytes(), 0).is_some() {
            return Err(start.fault(Reason::NotCanonical("digits that are told as text")));
        }
        Ok(text)
    }

    /// Text that is put together from text and digits.
    fn text_with_runs(&mut self, start: &Input<'a>, hold: Hold) -> Result<&'a str, DecodeError> {
        self.scratch.bytes.clear();
        self.scratch.runs.clear();
        let least_head_bytes = 2;
        let count = self.source.heads().varint()?;
        if count > (self.source.heads().rest().len() / least_head_bytes) as u64 {
            return Err(start.fault(Reason::Truncated));
        }
        for _ in 0..count {
            self.piece()?;
            self.run()?;
            hold(self.limits, self.scratch.bytes.len(), start.offset())?;
        }
        self.piece()?;
        hold(self.limits, self.scratch.bytes.len(), start.offset())?;
        if !self.scratch.has_these_runs_only() {
            return Err(
                start.fault(Reason::NotCanonical("runs of digits that are not the longest"))
            );
        }
        self.kept_text().ok_or_else(|| start.fault(Reason::Utf8))
    }

    /// A piece of text before or behind a run.
    fn piece(&mut self) -> Result<(), DecodeError> {
        let len = usize::try_from(self.source.heads().varint()?).unwrap_or(usize::MAX);
        self.scratch.bytes.extend_from_slice(self.source.bytes().take(len)?);
        Ok(())
    }

    fn run(&mut self) -> Result<(), DecodeError> {
        let start = *self.source.heads();
        let bytes = match Head::read(self.source.heads())? {
            Head::Key => self.source.new_key()?,
            Head::KnownKey(number) => self.known_key(number, &start)?,
            Head::Hex(len) => self.source.bytes().take(len)?,
            _ => return Err(start.fault(Reason::Expected("a head of digits"))),
        };
        let text = &mut self.scratch.bytes;
        let at = text.len();
        hex::encode_into(bytes, text);
        self.scratch.runs.push(at..text.len());
        Ok(())
    }

    /// The text that was put together, in the arena.
    fn kept_text(&self) -> Option<&'a str> {
        utf8::from_utf8(self.arena.alloc_slice_copy(&self.scratch.bytes))
    }
}

impl Scratch {
    /// Whether the runs in the text are those that were told, and there is one.
    fn has_these_runs_only(&self) -> bool {
        let mut at = 0;
        for told in &self.runs {
            match runs::next(&self.bytes, at) {
                Some(run) if run == *told => at = run.end,
                _ => return false,
            }
        }
        let is_all_digits = self.runs.first() == Some(&(0..self.bytes.len()));
        !self.runs.is_empty() && !is_all_digits && runs::next(&self.bytes, at).is_none()
    }
}

fn is_name(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(text) if words::name(text).is_some())
}

/// Which of the limits on text holds.
type Hold = fn(&Limits, usize, usize) -> Result<(), DecodeError>;

const A_KNOWN_NUMBER: &str = "the number of something that was there before";
