//! What does this JSON say, if it is an event?

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::{hex, utf8};

use super::text;
use crate::gather::Gather;
use crate::{DecodeError, Event, Field, Limit, Limits, Reason, Tag, Value};

/// JSON that is read from the front.
pub(super) struct Reader<'a, 'l> {
    text: &'a str,
    // offset <= text.len(), and on the boundary of a character
    offset: usize,
    arena: &'a Bump,
    limits: &'l Limits,
    // The values of the tag that is being read, before they have a place of their own.
    values: BumpVec<'a, Value<'a>>,
}

/// The fields as they come in.
#[derive(Default)]
struct Draft<'a> {
    id: Option<[u8; 32]>,
    pubkey: Option<[u8; 32]>,
    created_at: Option<i64>,
    kind: Option<u16>,
    tags: Option<&'a [Tag<'a>]>,
    content: Option<&'a str>,
    sig: Option<[u8; 64]>,
}

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
        Self { text, offset: 0, arena, limits, values: BumpVec::new_in(arena) }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The event that stands here.
    pub(super) fn event(&mut self) -> Result<Event<'a>, DecodeError> {
        self.space();
        let start = self.offset;
        let mut draft = Draft::default();
        self.must(b'{', "an object")?;
        let mut more = self.opens(b'}');
        while more {
            self.field(&mut draft)?;
            more = self.has_more(b'}', "`,` or `}`")?;
        }
        draft.into_event(start)
    }

    /// Passes over the object that stands here up to the first value of `field`.
    #[inline]
    pub(super) fn go_to(&mut self, field: Field) -> Result<(), DecodeError> {
        self.space();
        let start = self.offset;
        self.must(b'{', "an object")?;
        let mut more = self.opens(b'}');
        while more {
            if self.name()? == field.name() {
                return Ok(());
            }
            self.skip(0)?;
            more = self.has_more(b'}', "`,` or `}`")?;
        }
        Err(DecodeError::new(start, Reason::Missing(field)))
    }

    /// That only spaces are left.
    pub(super) fn end(&mut self) -> Result<(), DecodeError> {
        self.space();
        if self.peek().is_none() { Ok(()) } else { Err(self.fault(Reason::TrailingBytes)) }
    }

    /// Enters an array; whether something is in it.
    pub(super) fn opens_array(&mut self) -> Result<bool, DecodeError> {
        self.space();
        self.must(b'[', "a list")?;
        Ok(self.opens(b']'))
    }

    /// Behind an item of an array: whether another follows.
    pub(super) fn has_more_items(&mut self) -> Result<bool, DecodeError> {
        self.has_more(b']', "`,` or `]`")
    }

    fn field(&mut self, draft: &mut Draft<'a>) -> Result<(), DecodeError> {
        self.space();
        let start = self.offset;
        let name = self.name()?;
        let once = |is_first: bool, field| {
            if is_first { Ok(()) } else { Err(DecodeError::new(start, Reason::Duplicate(field))) }
        };
        match name {
            "id" => once(draft.id.replace(self.hex(Field::Id)?).is_none(), Field::Id),
            "pubkey" => {
                once(draft.pubkey.replace(self.hex(Field::Pubkey)?).is_none(), Field::Pubkey)
            }
            "created_at" => {
                let seconds = self.integer(Field::CreatedAt)?;
                once(draft.created_at.replace(seconds).is_none(), Field::CreatedAt)
            }
            "kind" => once(draft.kind.replace(self.kind()?).is_none(), Field::Kind),
            "tags" => once(draft.tags.replace(self.tags()?).is_none(), Field::Tags),
            "content" => once(draft.content.replace(self.content()?).is_none(), Field::Content),
            "sig" => once(draft.sig.replace(self.hex(Field::Sig)?).is_none(), Field::Sig),
            _ => self.skip(0),
        }
    }

    /// The name that stands here, and on to its value.
    #[inline]
    fn name(&mut self) -> Result<&'a str, DecodeError> {
        self.space();
        let name = self.string()?;
        self.space();
        self.must(b':', "`:`")?;
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

    /// A whole number without sign of its own zero, leading zeros, fraction or exponent.
    pub(super) fn integer(&mut self, field: Field) -> Result<i64, DecodeError> {
        let start = self.offset;
        let digits = self.number()?;
        let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        match digits.parse() {
            Ok(value) if is_whole && digits != "-0" => Ok(value),
            _ => Err(DecodeError::new(start, Reason::Range(field))),
        }
    }

    fn tags(&mut self) -> Result<&'a [Tag<'a>], DecodeError> {
        let mut tags = Gather::<Tag<'a>, 8>::new(self.arena, &[]);
        let mut more = self.opens_array()?;
        while more {
            self.limits.hold_tags(tags.len() + 1, self.offset)?;
            tags.push(self.tag()?);
            more = self.has_more_items()?;
        }
        Ok(tags.finish())
    }

    fn tag(&mut self) -> Result<Tag<'a>, DecodeError> {
        self.values.clear();
        let mut more = self.opens_array()?;
        while more {
            self.space();
            let start = self.offset;
            self.limits.hold_tag_values(self.values.len() + 1, start)?;
            let text = self.string()?;
            self.limits.hold_value(text.len(), start)?;
            self.values.push(Value::Text(text));
            more = self.has_more_items()?;
        }
        Ok(self.arena.alloc_slice_copy(&self.values))
    }

    fn content(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let content = self.string()?;
        self.limits.hold_content(content.len(), start)?;
        Ok(content)
    }

    /// Text in quotes, borrowed if nothing in it is escaped.
    #[inline]
    fn string(&mut self) -> Result<&'a str, DecodeError> {
        self.must(b'"', "text in quotes")?;
        let (text, len) = text::read(&self.text[self.offset..], self.arena)
            .map_err(|error| DecodeError::new(self.offset + error.offset, error.reason))?;
        self.offset += len;
        Ok(text)
    }

    /// The characters of a number in JSON's form.
    fn number(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let len =
            number_len(self.rest()).ok_or_else(|| self.fault(Reason::Expected("a number")))?;
        self.offset += len;
        Ok(&self.text[start..self.offset])
    }

    /// Passes over a value that nobody asked for.
    fn skip(&mut self, depth: usize) -> Result<(), DecodeError> {
        if depth > MAX_DEPTH {
            return Err(self.fault(Reason::Limit(Limit::Depth)));
        }
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'[') => self.skip_list(depth),
            Some(b'{') => self.skip_object(depth),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            _ => self.skip_word(),
        }
    }

    fn skip_list(&mut self, depth: usize) -> Result<(), DecodeError> {
        let mut more = self.opens_array()?;
        while more {
            self.space();
            self.skip(depth + 1)?;
            more = self.has_more_items()?;
        }
        Ok(())
    }

    fn skip_object(&mut self, depth: usize) -> Result<(), DecodeError> {
        self.must(b'{', "an object")?;
        let mut more = self.opens(b'}');
        while more {
            self.name()?;
            self.skip(depth + 1)?;
            more = self.has_more(b'}', "`,` or `}`")?;
        }
        Ok(())
    }

    fn skip_word(&mut self) -> Result<(), DecodeError> {
        let rest = self.rest();
        let word = ["true", "false", "null"].iter().find(|word| rest.starts_with(word.as_bytes()));
        self.offset += word.ok_or_else(|| self.fault(Reason::Expected("a value")))?.len();
        Ok(())
    }

    /// Inside a list or an object: whether something is in it.
    #[inline]
    fn opens(&mut self, close: u8) -> bool {
        self.space();
        let is_empty = self.peek() == Some(close);
        self.offset += usize::from(is_empty);
        !is_empty
    }

    /// Behind an item: whether another follows.
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
            _ => Err(self.expected(expected)),
        }
    }

    #[inline]
    fn must(&mut self, byte: u8, expected: &'static str) -> Result<(), DecodeError> {
        if self.peek() != Some(byte) {
            return Err(self.expected(expected));
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
    fn expected(&self, what: &'static str) -> DecodeError {
        let is_end = self.peek().is_none();
        self.fault(if is_end { Reason::Truncated } else { Reason::Expected(what) })
    }

    #[cold]
    fn fault(&self, reason: Reason) -> DecodeError {
        DecodeError::new(self.offset, reason)
    }
}

impl<'a> Draft<'a> {
    fn into_event(self, start: usize) -> Result<Event<'a>, DecodeError> {
        let missing = |field| move || DecodeError::new(start, Reason::Missing(field));
        Ok(Event {
            id: self.id.ok_or_else(missing(Field::Id))?,
            pubkey: self.pubkey.ok_or_else(missing(Field::Pubkey))?,
            created_at: self.created_at.ok_or_else(missing(Field::CreatedAt))?,
            kind: self.kind.ok_or_else(missing(Field::Kind))?,
            tags: self.tags.ok_or_else(missing(Field::Tags))?,
            content: self.content.ok_or_else(missing(Field::Content))?,
            sig: self.sig.ok_or_else(missing(Field::Sig))?,
        })
    }
}

/// The text that `bytes` are.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, DecodeError> {
    utf8::from_utf8(bytes).ok_or_else(|| {
        let valid = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        DecodeError::new(valid, Reason::Utf8)
    })
}

/// How many bytes at the start of `bytes` are a number: `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
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

/// Levels of a field that is passed over.
const MAX_DEPTH: usize = 64;
