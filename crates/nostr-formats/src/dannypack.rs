//! DannyPack: fixed offsets, then tags and content. Hand-written.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 32 | `id` |
//! | 32 | 32 | `pubkey` |
//! | 64 | 64 | `sig` |
//! | 128 | 8 | `created_at`, little-endian, signed |
//! | 136 | 2 | `kind`, little-endian |
//! | 138 | varint | length of the tags in bytes |
//! | | varint | number of tags, then for every tag: |
//! | | 1 | number of values, then for every value: |
//! | | 1… | head of the value |
//! | | … | the value |
//! | | 1… | head of the content |
//! | | … | the content |
//!
//! | bits of a head | |
//! |---|---|
//! | 7 | set if the bytes stand for hexadecimal digits, clear for text |
//! | 0–6 | length in bytes; 127 if a varint after the head holds it |
//!
//! A value or content is stored as bytes if it is lower-case hexadecimal with an even number of digits, at least
//! eight. A tag has up to 255 values; a longer one is rejected. Varints are minimal LEB128. A batch is framed.

use bumpalo::Bump;
use kernels::hex;

use super::codec::{Codec, or_truncate};
use super::explain::{Visit, Walker, stored};
use super::fields::ReadFields;
use super::tags::{self, Form, MIN_DIGITS, TagLayout, Tags};
use nostr::input::{Input, varint_len, write_varint};
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Limits, Reason, Tag};

/// The codec. DannyPack holds events whose tags have at most 255 values.
#[derive(Clone, Copy, Debug)]
pub struct Dannypack;

impl Codec for Dannypack {
    type Fields<'a> = Fields<'a>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.reserve(HEAD_BYTES + 16 + event.content.len() + 48 * event.tags.len());
        or_truncate(out, |out| {
            out.extend_from_slice(&event.id);
            out.extend_from_slice(&event.pubkey);
            out.extend_from_slice(&event.sig);
            out.extend_from_slice(&event.created_at.to_le_bytes());
            out.extend_from_slice(&event.kind.to_le_bytes());
            write_tags(event.tags, out)?;
            tags::write_text(event.content.as_bytes(), MIN_DIGITS, out, write_head);
            Ok(())
        })
    }

    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        let mut input = Input::new(bytes);
        let id = *input.array()?;
        let pubkey = *input.array()?;
        let sig = *input.array()?;
        let created_at = i64::from_le_bytes(*input.array()?);
        let kind = u16::from_le_bytes(*input.array()?);
        let tags = read_tags(&mut input, arena, limits)?;
        let content = read_content(&mut input, arena, limits)?;
        input.end()?;
        Ok(Event { id, pubkey, created_at, kind, tags, content, sig })
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        let mut walker = Walker::new(bytes, visit);
        walker.hex("id", 32)?;
        walker.hex("pubkey", 32)?;
        walker.hex("sig", 64)?;
        walker.fixed("created_at", 8)?;
        walker.fixed("kind", 2)?;
        walker.count("tags", "bytes of tags")?;
        for tag in 0..walker.count("tags", "tags")? {
            let tag = format!("tags[{tag}]");
            for value in 0..walker.fixed_count(&tag, 1, "values")? {
                explain_value(&mut walker, &format!("{tag}[{value}]"))?;
            }
        }
        explain_value(&mut walker, "content")
    }

    #[inline]
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        _: &'a Bump,
        _: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        let mut input = Input::new(bytes);
        match input.array() {
            Ok(head) => Ok(Fields { head, rest: input }),
            Err(_) => Err(DecodeError::new(bytes.len(), Reason::Truncated)),
        }
    }
}

fn explain_value(walker: &mut Walker<'_, '_>, field: &str) -> Result<(), DecodeError> {
    let start = walker.offset();
    let (form, len) = Dannypack::head(&mut walker.input)?;
    walker.layout(start, field, &stored(form == Form::Bytes, len));
    walker.value(field, form == Form::Bytes, len)
}

/// Appends the tags after their length. Space for the length is reserved by a guess that is nearly always right.
fn write_tags(tags: &[Tag<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let reserved = if tags.len() < 3 { 1 } else { 2 };
    out.extend_from_slice(&[0; 2][..reserved]);
    write_varint(tags.len() as u64, out);
    for tag in tags {
        EncodeError::at_most("values in a tag", tag.len(), u8::MAX.into())?;
        out.push(tag.len() as u8);
        for value in *tag {
            tags::write_value(value, MIN_DIGITS, out, write_head);
        }
    }
    write_len(start, reserved, out);
    Ok(())
}

/// Writes at `start`, into the `reserved` bytes, the number of bytes after them.
fn write_len(start: usize, reserved: usize, out: &mut Vec<u8>) {
    let len = (out.len() - start - reserved) as u64;
    match (reserved, varint_len(len)) {
        (1, 1) => out[start] = len as u8,
        (2, 2) => out[start..start + 2].copy_from_slice(&[len as u8 | 0x80, (len >> 7) as u8]),
        _ => {
            let mut varint = Vec::new();
            write_varint(len, &mut varint);
            out.splice(start..start + reserved, varint);
        }
    }
}

#[inline(always)]
fn write_head(form: Form, len: usize, out: &mut Vec<u8>) {
    let is_bytes = if form == Form::Bytes { IS_BYTES } else { 0 };
    if len < LONG {
        out.push(is_bytes | len as u8);
    } else {
        out.push(is_bytes | LONG as u8);
        write_varint(len as u64, out);
    }
}

#[inline(always)]
fn read_tags<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let mut section = tag_section(input)?;
    let limits = Budget::new(section.rest().len(), limits);
    let tags = tags::read::<Dannypack>(&mut section, arena, &limits)?;
    section.end()?;
    Ok(tags)
}

/// Reads the bytes of the tags.
#[inline(always)]
fn tag_section<'a>(input: &mut Input<'a>) -> Result<Input<'a>, DecodeError> {
    let len = input.varint()?;
    input.part(usize::try_from(len).unwrap_or(usize::MAX))
}

#[inline(always)]
fn read_content<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a str, DecodeError> {
    let start = input.offset();
    match Dannypack::head(input)? {
        (Form::Text, len) => {
            limits.check_content(len, start)?;
            input.text(len)
        }
        (Form::Bytes, len) => {
            let bytes = input.take(len)?;
            limits.check_content(2 * len, start)?;
            Ok(digits(bytes, arena))
        }
    }
}

/// The digits of `bytes`, in the arena.
fn digits<'a>(bytes: &[u8], arena: &'a Bump) -> &'a str {
    let digits = arena.alloc_slice_fill_copy(2 * bytes.len(), 0);
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = hex::digits(*byte);
    }
    str::from_utf8(digits).expect("digits are ASCII")
}

impl TagLayout for Dannypack {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        input.varint()
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        Ok(input.byte()?.into())
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let first = input.byte()?;
        let form = if first & IS_BYTES == 0 { Form::Text } else { Form::Bytes };
        match usize::from(first & !IS_BYTES) {
            LONG => Ok((form, long_len(input)?)),
            len => Ok((form, len)),
        }
    }
}

#[inline]
fn long_len(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    let start = *input;
    let len = usize::try_from(input.varint()?).unwrap_or(usize::MAX);
    if len < LONG { Err(start.error(Reason::NotMinimal)) } else { Ok(len) }
}

/// The fields of an event: all but tags and content stand at fixed offsets.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    head: &'a [u8; HEAD_BYTES],
    rest: Input<'a>,
}

impl<'a> Fields<'a> {
    /// The id.
    #[inline]
    pub fn id(&self) -> &'a [u8; 32] {
        self.at::<0, 32>()
    }

    /// The signature.
    #[inline]
    pub fn sig(&self) -> &'a [u8; 64] {
        self.at::<64, 64>()
    }

    /// Reads the tags one by one.
    ///
    /// # Errors
    /// If no list of tags follows the fixed fields.
    pub fn tags(&self) -> Result<Tags<'a, Dannypack>, DecodeError> {
        Tags::new(tag_section(&mut { self.rest })?)
    }

    #[inline(always)]
    fn at<const OFFSET: usize, const N: usize>(&self) -> &'a [u8; N] {
        self.head[OFFSET..].first_chunk().expect("every field lies within the head")
    }
}

impl ReadFields for Fields<'_> {
    #[inline]
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        Ok(*self.at::<32, 32>())
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(i64::from_le_bytes(*self.at::<128, 8>()))
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(*self.at::<136, 2>()))
    }
}

/// The bit of a head that is set for bytes and clear for text.
const IS_BYTES: u8 = 0x80;

/// The length in a head if a varint holds the length.
const LONG: usize = 0x7f;

/// Length of the fields at fixed offsets in bytes.
const HEAD_BYTES: usize = 138;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_fields_agree, encoded, golden, reason, texts};
    use nostr::{Limit, OwnedEvent};

    #[test]
    fn the_layout_is_the_published_one() {
        let event = golden();
        let head = [
            &event.id[..],
            &event.pubkey,
            &event.sig,
            &1_700_000_123i64.to_le_bytes(),
            &30_023u16.to_le_bytes(),
        ];
        let tags = [
            b"\x03\x03\x01e\xa0".as_slice(),
            &[0xab; 32],
            b"\x13wss://relay.example\x03\x06custom\x08DEADBEEF\x84\xde\xad\xbe\xef\x00",
        ]
        .concat();
        let content = b"\x11Hello, Nostr \xf0\x9f\x8c\x8d";
        let bytes = [&head.concat(), &[tags.len() as u8][..], &tags, content].concat();
        assert_eq!(encoded(Dannypack, &event), bytes);
    }

    #[test]
    fn content_of_digits_is_stored_as_bytes() {
        let event = OwnedEvent { tags: vec![], content: "cafe".repeat(200), ..golden() };
        let bytes = encoded(Dannypack, &event);
        assert!(bytes[138..].starts_with(&[1, 0, 0xff, 0x90, 3, 0xca, 0xfe]));
        let arena = Bump::new();
        assert_eq!(Dannypack.decode(&bytes, &arena, &Limits::default()).unwrap().to_owned(), event);
        let mut limits = Limits::default();
        limits.content_bytes = 799;
        let error = DecodeError { offset: 140, reason: Reason::Limit(Limit::ContentBytes) };
        assert_eq!(Dannypack.decode(&bytes, &arena, &limits), Err(error));
    }

    #[test]
    fn the_length_of_the_tags_takes_as_many_bytes_as_it_needs() {
        for count in [0, 1, 2, 3, 40, 63, 64, 1000, 8191, 9000] {
            let event = OwnedEvent { tags: vec![vec![]; count], ..golden() };
            let bytes = encoded(Dannypack, &event);
            let back = Dannypack
                .decode(&bytes, &Bump::new(), &Limits::default())
                .map(|event| event.to_owned());
            assert_eq!(back, Ok(event), "{count}");
        }
        for len in [100, 122, 123, 124, 126, 127, 128, 16_000] {
            let event = OwnedEvent { tags: vec![vec!["x".repeat(len)]], ..golden() };
            let back = Dannypack
                .decode(&encoded(Dannypack, &event), &Bump::new(), &Limits::default())
                .map(|event| event.to_owned());
            assert_eq!(back, Ok(event), "{len}");
        }
    }

    #[test]
    fn more_values_than_a_byte_counts_are_rejected() {
        let event = OwnedEvent { tags: vec![vec![String::new(); 256]], ..golden() };
        let result = Dannypack.encode(&event.borrow_in(&Bump::new()), &mut Vec::new());
        let error = EncodeError::TooMany { what: "values in a tag", count: 256, max: 255 };
        assert_eq!(result, Err(error));
    }

    #[test]
    fn lengths_longer_than_needed_are_rejected() {
        let bytes =
            encoded(Dannypack, &OwnedEvent { tags: vec![], content: "x".to_owned(), ..golden() });
        let after_head = |rest: &[u8]| reason(Dannypack, &[&bytes[..138], rest].concat());
        assert_eq!(after_head(b"\x01\x00\x7f\x01x"), Reason::NotMinimal);
        assert_eq!(after_head(b"\x81\x00\x00\x01x"), Reason::NotMinimal);
        assert_eq!(after_head(b"\x02\x00\x00\x01x"), Reason::TrailingBytes);
        assert_eq!(after_head(b"\x00\x00\x01x"), Reason::Truncated);
        assert_eq!(after_head(b"\x01\x00\x01\xff"), Reason::Utf8);
        assert_eq!(after_head(b"\x01\x00\x01x\x00"), Reason::TrailingBytes);
    }

    #[test]
    fn single_fields_are_those_of_the_event() {
        assert_fields_agree(Dannypack, |fields| Ok((*fields.id(), texts(fields.tags()?)?)));
        let bytes = encoded(Dannypack, &golden());
        let (arena, limits) = (Bump::new(), Limits::default());
        let fields = Dannypack.fields(&bytes, &arena, &limits).unwrap();
        assert_eq!(fields.sig(), &golden().sig);
    }
}
