//! Decoding of events from heads and bytes.

use std::cell::Cell;
use std::ops::Range;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::{hex, utf8};

use super::head::{Head, from_zigzag, read_kind};
use super::{runs, words};
use nostr::canonical::{self, ControlChars};
use nostr::input::Input;
use nostr::limits::Budget;
use nostr::{DecodeError, Event, Field, Limit, Limits, Reason, Tag, Value};

/// The input: where heads and bytes come from, and earlier keys and values by number.
pub(super) trait Source<'a> {
    fn heads(&mut self) -> &mut Input<'a>;
    fn bytes(&mut self) -> &mut Input<'a>;
    /// Reads a new key.
    fn new_key(&mut self) -> Result<&'a [u8; 32], DecodeError>;
    fn known_key(&self, number: usize) -> Option<&'a [u8; 32]>;
    fn known_value(&mut self, number: usize) -> Result<Value<'a>, Reason>;
    /// Numbers a value that was stored in full; returns the memory that this takes in bytes.
    fn number_value(&mut self, value: Value<'a>) -> usize;
}

/// A single event: bytes follow their heads, and there are no earlier keys or values.
pub(super) struct Single<'a>(pub(super) Input<'a>);

impl<'a> Source<'a> for Single<'a> {
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

    fn known_value(&mut self, _: usize) -> Result<Value<'a>, Reason> {
        Err(Reason::Expected(EARLIER_NUMBER))
    }

    #[inline]
    fn number_value(&mut self, _: Value<'a>) -> usize {
        0
    }
}

/// A decoder of one event after the other.
pub(super) struct Reader<'a, 'l, S> {
    pub(super) source: S,
    arena: &'a Bump,
    limits: Budget<'l>,
    scratch: &'l mut Scratch,
}

impl<'a, 'l, S: Source<'a>> Reader<'a, 'l, S> {
    pub(super) fn new(
        source: S,
        arena: &'a Bump,
        limits: Budget<'l>,
        scratch: &'l mut Scratch,
    ) -> Self {
        Self { source, arena, limits, scratch }
    }

    /// Reads the event from `created_at` on.
    pub(super) fn event(
        &mut self,
        pubkey: [u8; 32],
        sig: [u8; 64],
        previous_time: i64,
    ) -> Result<Event<'a>, DecodeError> {
        let heads = self.source.heads();
        let created_at = previous_time.wrapping_add(from_zigzag(heads.varint()?));
        let kind_offset = heads.offset();
        let (kind, id_form) = read_kind(heads)?;
        let (tags, content) = (self.tags()?, self.content()?);
        let mut event = Event { id: [0; 32], pubkey, created_at, kind, tags, content, sig };
        event.id = self.id(&event, id_form, kind_offset)?;
        Ok(event)
    }

    /// Computes the id of `event`, whose form was read at `offset`.
    fn id(
        &mut self,
        event: &Event<'_>,
        form: ControlChars,
        offset: usize,
    ) -> Result<[u8; 32], DecodeError> {
        let id = canonical::id(event, ControlChars::Verbatim, &mut self.scratch.bytes);
        match form {
            ControlChars::Verbatim => Ok(id),
            ControlChars::Escaped if canonical::has_control_chars(&self.scratch.bytes) => {
                Ok(canonical::id(event, form, &mut self.scratch.bytes))
            }
            ControlChars::Escaped => Err(DecodeError::new(offset, NO_CONTROL_CHARS)),
        }
    }

    /// Reads a key, stored in full or by its number.
    pub(super) fn key(&mut self) -> Result<&'a [u8; 32], DecodeError> {
        let start = *self.source.heads();
        match Head::read(self.source.heads())? {
            Head::Key => self.source.new_key(),
            Head::KnownKey(number) => self.known_key(number, &start),
            _ => Err(start.error(Reason::Length(Field::Pubkey))),
        }
    }

    fn known_key(&self, number: usize, start: &Input<'a>) -> Result<&'a [u8; 32], DecodeError> {
        self.source.known_key(number).ok_or_else(|| start.error(Reason::Expected(EARLIER_NUMBER)))
    }

    fn tags(&mut self) -> Result<&'a [Tag<'a>], DecodeError> {
        let heads = self.source.heads();
        let start = heads.offset();
        let count = heads.count(1, Limit::Tags, self.limits.tags)?;
        self.limits.check_tags(count, start)?;
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
            3 => self.long_count(name.is_some())?,
            count => 2 + usize::from(count),
        };
        self.limits.check_tag_values(count, start.offset())?;
        let mut values = BumpVec::with_capacity_in(count, self.arena);
        values.extend(name.map(|name| Value::Text(name)));
        while values.len() < count {
            values.push(self.value(Limits::check_value)?);
        }
        if name.is_none() && values.first().is_some_and(is_name) {
            return Err(
                start.error(Reason::NotCanonical("a name of the table must be stored by number"))
            );
        }
        Ok(values.into_bump_slice())
    }

    /// Reads the number of values of a tag, if it does not fit the head.
    fn long_count(&mut self, has_name: bool) -> Result<usize, DecodeError> {
        let heads = self.source.heads();
        let start = *heads;
        match heads.count(1, Limit::TagValues, self.limits.tag_values)? {
            2..=4 => Err(start.error(Reason::NotCanonical("the number of values fits the head"))),
            0 if has_name => Err(start.error(Reason::NotCanonical("an empty tag has no name"))),
            count => Ok(count),
        }
    }

    fn content(&mut self) -> Result<&'a str, DecodeError> {
        match self.value(Limits::check_content)? {
            Value::Text(text) => Ok(text),
            Value::Hex(bytes) => {
                self.scratch.bytes.clear();
                hex::encode_into(bytes, &mut self.scratch.bytes);
                Ok(self.arena_text().expect("digits are ASCII"))
            }
        }
    }

    /// Reads a value and checks its length with `check`.
    #[inline]
    fn value(&mut self, check: CheckLength) -> Result<Value<'a>, DecodeError> {
        let start = *self.source.heads();
        let (value, is_new) = match Head::read(self.source.heads())? {
            Head::Text(len) => (Value::Text(self.text(len, &start)?), true),
            Head::Hex(len) => (Value::Hex(self.source.bytes().take(len)?), true),
            Head::WithRuns => (Value::Text(self.text_with_runs(&start, check)?), true),
            Head::Key => (Value::Hex(self.source.new_key()?), false),
            Head::KnownKey(number) => (Value::Hex(self.known_key(number, &start)?), false),
            Head::Word(number) => (Value::Text(words::STRINGS[usize::from(number)]), false),
            Head::KnownValue(number) => {
                let known = self.source.known_value(number);
                (known.map_err(|reason| start.error(reason))?, false)
            }
        };
        check(&self.limits, value.text_len(), start.offset())?;
        if is_new {
            self.limits.take(self.source.number_value(value), start.offset())?;
        }
        Ok(value)
    }

    /// Reads text that has no other encoding.
    #[inline]
    fn text(&mut self, len: usize, start: &Input<'a>) -> Result<&'a str, DecodeError> {
        let text = self.source.bytes().text(len)?;
        if len == 0 {
            return Ok(text);
        }
        if words::string(text).is_some() {
            return Err(
                start.error(Reason::NotCanonical("a string of the table must be stored by number"))
            );
        }
        if Value::Text(text).hex_len(1).is_some() || runs::next(text.as_bytes(), 0).is_some() {
            return Err(start.error(Reason::NotCanonical("digits must be stored as bytes")));
        }
        Ok(text)
    }

    /// Reads text that consists of text and digits.
    fn text_with_runs(
        &mut self,
        start: &Input<'a>,
        check: CheckLength,
    ) -> Result<&'a str, DecodeError> {
        self.scratch.bytes.clear();
        self.scratch.runs.clear();
        let min_head_bytes = 2;
        let count = self.source.heads().varint()?;
        if count > (self.source.heads().rest().len() / min_head_bytes) as u64 {
            return Err(start.error(Reason::Truncated));
        }
        for _ in 0..count {
            self.piece()?;
            self.run()?;
            check(&self.limits, self.scratch.bytes.len(), start.offset())?;
        }
        self.piece()?;
        check(&self.limits, self.scratch.bytes.len(), start.offset())?;
        self.limits.take(self.scratch.bytes.len(), start.offset())?;
        if !self.scratch.has_these_runs_only() {
            return Err(start.error(Reason::NotCanonical("runs of digits must be maximal")));
        }
        self.arena_text().ok_or_else(|| start.error(Reason::Utf8))
    }

    /// Reads the text before or after a run.
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
            _ => return Err(start.error(Reason::Expected("a head of digits"))),
        };
        let text = &mut self.scratch.bytes;
        let at = text.len();
        hex::encode_into(bytes, text);
        self.scratch.runs.push(at..text.len());
        Ok(())
    }

    /// Copies the assembled text to the arena.
    fn arena_text(&self) -> Option<&'a str> {
        utf8::from_utf8(self.arena.alloc_slice_copy(&self.scratch.bytes))
    }
}

impl Scratch {
    /// Whether the runs of the text are exactly the ones read, at least one.
    fn has_these_runs_only(&self) -> bool {
        let mut at = 0;
        for expected in &self.runs {
            match runs::next(&self.bytes, at) {
                Some(run) if run == *expected => at = run.end,
                _ => return false,
            }
        }
        let is_all_digits = self.runs.first() == Some(&(0..self.bytes.len()));
        !self.runs.is_empty() && !is_all_digits && runs::next(&self.bytes, at).is_none()
    }
}

/// Memory for canonical forms and assembled texts, so that the arena does not grow by them.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) bytes: Vec<u8>,
    /// Runs of digits in `bytes`.
    pub(super) runs: Vec<Range<usize>>,
}

/// Calls `work` with the scratch memory of this thread, which is kept unless it has become large.
pub(super) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = SCRATCH.take();
    let result = work(&mut scratch);
    if scratch.bytes.capacity() <= MAX_KEPT_BYTES && scratch.runs.capacity() <= MAX_KEPT_RUNS {
        SCRATCH.set(scratch);
    }
    result
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Maximum capacity that a thread keeps; the canonical form of every real event known is shorter.
const MAX_KEPT_BYTES: usize = 2 << 20;
const MAX_KEPT_RUNS: usize = 64 << 10;

fn is_name(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(text) if words::name(text).is_some())
}

/// The check of a length against its limit.
type CheckLength = fn(&Limits, usize, usize) -> Result<(), DecodeError>;

const NO_CONTROL_CHARS: Reason =
    Reason::NotCanonical("without control characters the id has one form");
pub(super) const EARLIER_NUMBER: &str = "the number of an earlier key or value";
