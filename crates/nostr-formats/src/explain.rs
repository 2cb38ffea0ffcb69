//! The meaning of every byte of an encoded event.
//!
//! A codec explains bytes that it decodes: in order, and all of them. Parts of a layout with pointers may overlap,
//! where an encoder shares them.

use nostr::input::Input;
use nostr::limits::MAX_DEPTH;
use nostr::{DecodeError, Field, Limit, Reason};

/// Consecutive bytes of an encoded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// Offset of the first byte; in a packed message the unpacked one's.
    pub offset: usize,
    /// The bytes, at least one.
    pub bytes: &'a [u8],
    /// The field that they are part of, such as `tags[0][1]`, or the fields that share them; empty for the event as a whole.
    pub field: &'a str,
    /// Their meaning.
    pub meaning: Meaning<'a>,
}

/// The meaning of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    /// Lengths, counts, pointers and the like, in words.
    Layout(&'a str),
    /// An integer.
    Integer(i64),
    /// Text: the bytes themselves, which are UTF-8.
    Text,
    /// Bytes: those themselves, of which the field is the hexadecimal.
    Hex,
}

/// Receives the spans.
pub type Visit<'v> = &'v mut dyn FnMut(Span<'_>);

/// Reads a layout in the order of its bytes, and names them.
pub(super) struct Walker<'a, 'v> {
    pub(super) input: Input<'a>,
    bytes: &'a [u8],
    visit: Visit<'v>,
}

impl<'a, 'v> Walker<'a, 'v> {
    pub(super) fn new(bytes: &'a [u8], visit: Visit<'v>) -> Self {
        Self { input: Input::new(bytes), bytes, visit }
    }

    pub(super) fn offset(&self) -> usize {
        self.input.offset()
    }

    /// Names the bytes from `start` up to the next one to read.
    pub(super) fn span(&mut self, start: usize, field: &str, meaning: Meaning<'_>) {
        let bytes = &self.bytes[start..self.input.offset()];
        if !bytes.is_empty() {
            (self.visit)(Span { offset: start, bytes, field, meaning });
        }
    }

    /// As [`span`](Self::span), in words.
    pub(super) fn layout(&mut self, start: usize, field: &str, words: &str) {
        self.span(start, field, Meaning::Layout(words));
    }

    pub(super) fn hex(&mut self, field: &str, len: usize) -> Result<(), DecodeError> {
        self.take(field, len, Meaning::Hex)
    }

    pub(super) fn text(&mut self, field: &str, len: usize) -> Result<(), DecodeError> {
        self.take(field, len, Meaning::Text)
    }

    /// Reads text, or the bytes of digits.
    pub(super) fn value(
        &mut self,
        field: &str,
        is_hex: bool,
        len: usize,
    ) -> Result<(), DecodeError> {
        self.take(field, len, if is_hex { Meaning::Hex } else { Meaning::Text })
    }

    pub(super) fn take(
        &mut self,
        field: &str,
        len: usize,
        meaning: Meaning<'_>,
    ) -> Result<(), DecodeError> {
        let start = self.offset();
        self.input.take(len)?;
        self.span(start, field, meaning);
        Ok(())
    }

    /// Reads a LEB128 integer.
    pub(super) fn varint(&mut self, field: &str) -> Result<u64, DecodeError> {
        let start = self.offset();
        let value = self.input.varint()?;
        self.span(start, field, Meaning::Integer(value as i64));
        Ok(value)
    }

    /// Reads a LEB128 integer that counts `what`.
    pub(super) fn count(&mut self, field: &str, what: &str) -> Result<usize, DecodeError> {
        let start = self.offset();
        let count = usize::try_from(self.input.varint()?).unwrap_or(usize::MAX);
        self.layout(start, field, &format!("{count} {what}"));
        Ok(count)
    }

    /// Reads an integer of up to eight bytes, little-endian.
    pub(super) fn fixed(&mut self, field: &str, len: usize) -> Result<u64, DecodeError> {
        let start = self.offset();
        let value = little_endian(self.input.take(len)?);
        self.span(start, field, Meaning::Integer(value as i64));
        Ok(value)
    }

    /// As [`fixed`](Self::fixed), of a number of `what`.
    pub(super) fn fixed_count(
        &mut self,
        field: &str,
        len: usize,
        what: &str,
    ) -> Result<usize, DecodeError> {
        let start = self.offset();
        let count = little_endian(self.input.take(len)?) as usize;
        self.layout(start, field, &format!("{count} {what}"));
        Ok(count)
    }
}

/// The integer in up to eight bytes.
pub(super) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The words for a head.
pub(super) fn stored(is_hex: bool, len: usize) -> String {
    if is_hex { format!("{len} bytes of digits") } else { format!("{len} bytes of text") }
}

/// The head of an item of CBOR or MessagePack.
pub(super) enum ItemHead {
    Integer(i64),
    Bytes(usize),
    Text(usize),
    Array(u64),
    Map(u64),
    /// Another value, which ends here.
    Other,
    /// The bytes before an item.
    Prefix,
}

/// Reads a head.
pub(super) type ReadHead = fn(&mut Input<'_>) -> Result<ItemHead, DecodeError>;

/// Explains an event that is an array of its fields, or a map of them by name or number.
pub(super) fn items(bytes: &[u8], read: ReadHead, visit: Visit<'_>) -> Result<(), DecodeError> {
    let walker = &mut Walker::new(bytes, visit);
    match read(&mut walker.input)? {
        ItemHead::Array(count) => {
            walker.layout(0, "", &format!("array of {count} items"));
            Field::ALL.iter().try_for_each(|field| item(walker, read, field.name(), 0))
        }
        ItemHead::Map(count) => {
            walker.layout(0, "", &format!("map of {count} entries"));
            entries(walker, read, "", count, 0)
        }
        _ => Err(DecodeError::new(0, Reason::Expected("an array or a map"))),
    }
}

fn item(
    walker: &mut Walker<'_, '_>,
    read: ReadHead,
    field: &str,
    depth: usize,
) -> Result<(), DecodeError> {
    let start = walker.offset();
    if depth > MAX_DEPTH {
        return Err(DecodeError::new(start, Reason::Limit(Limit::Depth)));
    }
    match read(&mut walker.input)? {
        ItemHead::Integer(value) => walker.span(start, field, Meaning::Integer(value)),
        ItemHead::Bytes(len) => {
            walker.layout(start, field, &format!("{len} bytes"));
            walker.hex(field, len)?;
        }
        ItemHead::Text(len) => {
            walker.layout(start, field, &stored(false, len));
            walker.text(field, len)?;
        }
        ItemHead::Array(count) => {
            walker.layout(start, field, &format!("array of {count} items"));
            for at in 0..count {
                item(walker, read, &format!("{field}[{at}]"), depth + 1)?;
            }
        }
        ItemHead::Map(count) => {
            walker.layout(start, field, &format!("map of {count} entries"));
            entries(walker, read, field, count, depth + 1)?;
        }
        ItemHead::Other => walker.layout(start, field, "another value"),
        ItemHead::Prefix => {
            walker.layout(start, field, "before the value");
            item(walker, read, field, depth + 1)?;
        }
    }
    Ok(())
}

/// Explains the entries of a map, whose values have the names or numbers of their keys.
fn entries(
    walker: &mut Walker<'_, '_>,
    read: ReadHead,
    field: &str,
    count: u64,
    depth: usize,
) -> Result<(), DecodeError> {
    for _ in 0..count {
        let start = walker.offset();
        let name = match read(&mut walker.input)? {
            ItemHead::Text(len) => walker.input.text(len)?.to_owned(),
            ItemHead::Integer(number) => {
                let known = usize::try_from(number).ok().and_then(|at| Field::ALL.get(at));
                known.map_or(number.to_string(), |field| field.name().to_owned())
            }
            ItemHead::Bytes(len) => walker.input.take(len).map(|_| "bytes".to_owned())?,
            _ => return Err(DecodeError::new(start, Reason::Expected("a key"))),
        };
        let name = if field.is_empty() { name } else { format!("{field}.{name}") };
        walker.layout(start, &name, "key");
        item(walker, read, &name, depth)?;
    }
    Ok(())
}

/// Collects the parts of a layout with pointers, and names them in the order of the bytes.
pub(super) struct Parts<'a> {
    pub(super) bytes: &'a [u8],
    parts: Vec<LayoutPart>,
}

struct LayoutPart {
    start: usize,
    end: usize,
    field: String,
    note: Note,
}

/// The meaning of a part.
pub(super) enum Note {
    Layout(String),
    Integer(i64),
    Text,
    Hex,
}

impl<'a> Parts<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, parts: Vec::new() }
    }

    /// The bytes of a part.
    pub(super) fn get(&self, start: usize, len: usize) -> Result<&'a [u8], DecodeError> {
        let end = start.saturating_add(len);
        let outside = || DecodeError::new(start.min(self.bytes.len()), Reason::Truncated);
        self.bytes.get(start..end).ok_or_else(outside)
    }

    /// Adds a part, and returns its bytes.
    pub(super) fn add(
        &mut self,
        start: usize,
        len: usize,
        field: &str,
        note: Note,
    ) -> Result<&'a [u8], DecodeError> {
        let bytes = self.get(start, len)?;
        if len > 0 {
            self.parts.push(LayoutPart { start, end: start + len, field: field.to_owned(), note });
        }
        Ok(bytes)
    }

    /// Adds a part in words.
    pub(super) fn layout(
        &mut self,
        start: usize,
        len: usize,
        field: &str,
        words: impl Into<String>,
    ) -> Result<&'a [u8], DecodeError> {
        self.add(start, len, field, Note::Layout(words.into()))
    }

    /// Adds an integer, little-endian.
    pub(super) fn integer(
        &mut self,
        start: usize,
        len: usize,
        field: &str,
    ) -> Result<u64, DecodeError> {
        let value = little_endian(self.get(start, len)?);
        self.add(start, len, field, Note::Integer(value as i64))?;
        Ok(value)
    }

    /// Names all parts, and the bytes between them.
    pub(super) fn visit(mut self, visit: Visit<'_>) {
        self.parts.sort_by_key(|part| (part.start, part.end));
        // A part that several fields share is there once; a value has the names of all.
        self.parts.dedup_by(|later, kept| {
            let is_same = (later.start, later.end) == (kept.start, kept.end);
            if is_same && matches!(kept.note, Note::Text | Note::Hex) && later.field != kept.field {
                kept.field += &format!(", {}", later.field);
            }
            is_same
        });
        let (bytes, mut at) = (self.bytes, 0);
        let between = |start: usize, end: usize, visit: &mut dyn FnMut(Span<'_>)| {
            if start < end {
                let (bytes, meaning) = (&bytes[start..end], Meaning::Layout("not in use"));
                visit(Span { offset: start, bytes, field: "", meaning });
            }
        };
        for LayoutPart { start, end, field, note } in &self.parts {
            between(at, *start, visit);
            let meaning = match note {
                Note::Layout(words) => Meaning::Layout(words),
                Note::Integer(value) => Meaning::Integer(*value),
                Note::Text => Meaning::Text,
                Note::Hex => Meaning::Hex,
            };
            visit(Span { offset: *start, bytes: &bytes[*start..*end], field, meaning });
            at = at.max(*end);
        }
        between(at, bytes.len(), visit);
    }
}
