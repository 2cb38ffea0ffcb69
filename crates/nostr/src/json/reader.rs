//! A strict JSON reader for events.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::{hex, utf8};

use super::string;
use crate::draft::{self, set_once};
use crate::limits::MAX_DEPTH;
use crate::{DecodeError, Event, Field, Limit, Limits, Reason, Tag, Value};

/// JSON that is read from the front.
pub(super) struct Reader<'a, 'l> {
    text: &'a str,
    // offset <= text.len(), and on a character boundary
    offset: usize,
    arena: &'a Bump,
    limits: &'l Limits,
    // The values of the tag and the tags of the event that are being read, before they are copied to the arena.
    values: BumpVec<'a, Value<'a>>,
    tags: BumpVec<'a, Tag<'a>>,
}

type Draft<'a> = draft::Draft<'a, [u8; 32], [u8; 64]>;

impl<'a, 'l> Reader<'a, 'l> {
    pub(super) fn new(
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &'l Limits,
    ) -> Result<Self, DecodeError> {
        Ok(Self::of_text(utf8(bytes)?, arena, limits))
    }

    #[inline]
    pub(super) fn of_text(text: &'a str, arena: &'a Bump, limits: &'l Limits) -> Self {
        let (values, tags) = (BumpVec::new_in(arena), BumpVec::new_in(arena));
        Self { text, offset: 0, arena, limits, values, tags }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Reads an event.
    pub(super) fn event(&mut self) -> Result<Event<'a>, DecodeError> {
        self.space();
        let start = self.offset;
        let mut draft = Draft::default();
        self.expect(b'{', "an object")?;
        let mut more = self.has_items(b'}');
        while more {
            self.field(&mut draft)?;
            more = self.has_more(b'}', "`,` or `}`")?;
        }
        draft.into_event(start)
    }

    /// Enters an object and skips to the first value of `field`.
    #[inline]
    pub(super) fn skip_to(&mut self, field: Field) -> Result<(), DecodeError> {
        self.space();
        let start = self.offset;
        self.expect(b'{', "an object")?;
        let mut more = self.has_items(b'}');
        while more {
            if self.name()? == field.name() {
                return Ok(());
            }
            self.skip(0)?;
            more = self.has_more(b'}', "`,` or `}`")?;
        }
        Err(DecodeError::new(start, Reason::Missing(field)))
    }

    /// Checks that only spaces remain.
    pub(super) fn end(&mut self) -> Result<(), DecodeError> {
        self.space();
        if self.peek().is_none() { Ok(()) } else { Err(self.error(Reason::TrailingBytes)) }
    }

    /// Enters an array; `true` if it has items.
    pub(super) fn open_array(&mut self) -> Result<bool, DecodeError> {
        self.space();
        self.expect(b'[', "an array")?;
        Ok(self.has_items(b']'))
    }

    /// After an item of an array: whether another follows.
    pub(super) fn has_more_items(&mut self) -> Result<bool, DecodeError> {
        self.has_more(b']', "`,` or `]`")
    }

    fn field(&mut self, draft: &mut Draft<'a>) -> Result<(), DecodeError> {
        self.space();
        let start = self.offset;
        match self.name()? {
            "id" => set_once(&mut draft.id, self.hex(Field::Id)?, Field::Id, start),
            "pubkey" => set_once(&mut draft.pubkey, self.hex(Field::Pubkey)?, Field::Pubkey, start),
            "created_at" => {
                let seconds = self.integer(Field::CreatedAt)?;
                set_once(&mut draft.created_at, seconds, Field::CreatedAt, start)
            }
            "kind" => set_once(&mut draft.kind, self.kind()?, Field::Kind, start),
            "tags" => set_once(&mut draft.tags, self.tags()?, Field::Tags, start),
            "content" => set_once(&mut draft.content, self.content()?, Field::Content, start),
            "sig" => set_once(&mut draft.sig, self.hex(Field::Sig)?, Field::Sig, start),
            _ => self.skip(0),
        }
    }

    /// Reads a field name, up to the value.
    #[inline]
    fn name(&mut self) -> Result<&'a str, DecodeError> {
        self.space();
        let name = self.string()?;
        self.space();
        self.expect(b':', "`:`")?;
        self.space();
        Ok(name)
    }

    pub(super) fn hex<const N: usize>(&mut self, field: Field) -> Result<[u8; N], DecodeError> {
        let start = self.offset;
        let digits = self.string()?.as_bytes();
        if digits.len() != 2 * N {
            return Err(DecodeError::new(start, Reason::Length(field)));
        }
        let mut bytes = [0; N];
        if !hex::decode(digits, &mut bytes) {
            return Err(DecodeError::new(start, Reason::Hex(field)));
        }
        Ok(bytes)
    }

    pub(super) fn kind(&mut self) -> Result<u16, DecodeError> {
        let start = self.offset;
        let out_of_range = |_| DecodeError::new(start, Reason::Range(Field::Kind));
        u16::try_from(self.integer(Field::Kind)?).map_err(out_of_range)
    }

    /// Reads an integer: no fraction, exponent or leading zeros, and not `-0`.
    pub(super) fn integer(&mut self, field: Field) -> Result<i64, DecodeError> {
        let start = self.offset;
        let digits = self.number()?;
        let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if !is_whole || digits == "-0" {
            return Err(DecodeError::new(start, Reason::Integer(field)));
        }
        digits.parse().map_err(|_| DecodeError::new(start, Reason::Range(field)))
    }

    fn tags(&mut self) -> Result<&'a [Tag<'a>], DecodeError> {
        self.tags.clear();
        // Most events have fewer: without it the list would move while it grows.
        self.tags.reserve(FEW_TAGS);
        let mut more = self.open_array()?;
        while more {
            self.limits.check_tags(self.tags.len() + 1, self.offset)?;
            let tag = self.tag()?;
            self.tags.push(tag);
            more = self.has_more_items()?;
        }
        Ok(self.arena.alloc_slice_copy(&self.tags))
    }

    fn tag(&mut self) -> Result<Tag<'a>, DecodeError> {
        self.values.clear();
        let mut more = self.open_array()?;
        while more {
            self.space();
            let start = self.offset;
            self.limits.check_tag_values(self.values.len() + 1, start)?;
            let text = self.string()?;
            self.limits.check_value(text.len(), start)?;
            self.values.push(Value::Text(text));
            more = self.has_more_items()?;
        }
        Ok(self.arena.alloc_slice_copy(&self.values))
    }

    fn content(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let content = self.string()?;
        self.limits.check_content(content.len(), start)?;
        Ok(content)
    }

    /// Reads a string.
    #[inline]
    fn string(&mut self) -> Result<&'a str, DecodeError> {
        self.expect(b'"', "a string")?;
        let (text, len) = string::read(&self.text[self.offset..], self.arena)
            .map_err(|error| DecodeError::new(self.offset + error.offset, error.reason))?;
        self.offset += len;
        Ok(text)
    }

    /// Reads the characters of a number.
    fn number(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let len = number_len(self.rest()).ok_or_else(|| self.unexpected("a number"))?;
        self.offset += len;
        Ok(&self.text[start..self.offset])
    }

    /// Skips a value.
    fn skip(&mut self, depth: usize) -> Result<(), DecodeError> {
        if depth > MAX_DEPTH {
            return Err(self.error(Reason::Limit(Limit::Depth)));
        }
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'[') => self.skip_array(depth),
            Some(b'{') => self.skip_object(depth),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            _ => self.skip_literal(),
        }
    }

    fn skip_array(&mut self, depth: usize) -> Result<(), DecodeError> {
        let mut more = self.open_array()?;
        while more {
            self.space();
            self.skip(depth + 1)?;
            more = self.has_more_items()?;
        }
        Ok(())
    }

    fn skip_object(&mut self, depth: usize) -> Result<(), DecodeError> {
        self.expect(b'{', "an object")?;
        let mut more = self.has_items(b'}');
        while more {
            self.name()?;
            self.skip(depth + 1)?;
            more = self.has_more(b'}', "`,` or `}`")?;
        }
        Ok(())
    }

    fn skip_literal(&mut self) -> Result<(), DecodeError> {
        let rest = self.rest();
        let word = ["true", "false", "null"].iter().find(|word| rest.starts_with(word.as_bytes()));
        self.offset += word.ok_or_else(|| self.error(Reason::Expected("a value")))?.len();
        Ok(())
    }

    /// After the opening bracket of an array or an object: whether it has items.
    #[inline]
    fn has_items(&mut self, close: u8) -> bool {
        self.space();
        let is_empty = self.peek() == Some(close);
        self.offset += usize::from(is_empty);
        !is_empty
    }

    /// After an item: whether another follows.
    #[inline]
    fn has_more(&mut self, close: u8, expected: &'static str) -> Result<bool, DecodeError> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.offset += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.offset += 1;
                Ok(false)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), DecodeError> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected(expected));
        }
        self.offset += 1;
        Ok(())
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.offset += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.offset..]
    }

    #[cold]
    fn unexpected(&self, what: &'static str) -> DecodeError {
        let is_end = self.peek().is_none();
        self.error(if is_end { Reason::Truncated } else { Reason::Expected(what) })
    }

    #[cold]
    fn error(&self, reason: Reason) -> DecodeError {
        DecodeError::new(self.offset, reason)
    }
}

/// Checks that `bytes` are UTF-8.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, DecodeError> {
    utf8::from_utf8(bytes).ok_or_else(|| {
        let valid = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        DecodeError::new(valid, Reason::Utf8)
    })
}

/// Length in bytes of the number at the start of `bytes`: `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
fn number_len(bytes: &[u8]) -> Option<usize> {
    let digits = |at: usize| {
        let len = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (len > 0).then_some(at + len)
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut end = if bytes.get(start) == Some(&b'0') { start + 1 } else { digits(start)? };
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign)?;
    }
    Some(end)
}

/// Capacity of a list of tags before the first tag is read.
const FEW_TAGS: usize = 8;
