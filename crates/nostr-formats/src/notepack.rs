//! Notepack, version 1. Hand-written.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | varint | version: 1 |
//! | 1 | 32 | `id` |
//! | 33 | 32 | `pubkey` |
//! | 65 | 64 | `sig` |
//! | 129 | varint | `created_at` as 64 bits without sign: a time before 1970 takes ten bytes |
//! | | varint | `kind` |
//! | | varint | length of the content in bytes |
//! | | … | `content` |
//! | | varint | number of tags, then for every tag: |
//! | | varint | number of values, then for every value: |
//! | | varint | twice its length in bytes, plus one if the bytes stand for digits |
//! | | … | the value |
//!
//! A value is stored as bytes if it is lower-case hexadecimal with an even number of digits, at least two;
//! content is always text. Varints are minimal LEB128. A batch is framed.
//!
//! The string form is `notepack_` and the base64 of the bytes, without padding: [`encode_string`].

use bumpalo::Bump;
use data_encoding::BASE64_NOPAD;

use super::codec::Codec;
use super::explain::{Visit, Walker, stored};
use super::fields::ReadFields;
use super::tags::{self, Form, TagLayout, Tags};
use nostr::input::{self, Input, write_varint};
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Limits, Reason};

/// The codec. Notepack holds every event.
#[derive(Clone, Copy, Debug)]
pub struct Notepack;

impl Codec for Notepack {
    type Fields<'a> = Fields<'a>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.reserve(BASE_BYTES + event.content.len() + 48 * event.tags.len());
        out.push(VERSION);
        out.extend_from_slice(&event.id);
        out.extend_from_slice(&event.pubkey);
        out.extend_from_slice(&event.sig);
        write_varint(event.created_at as u64, out);
        write_varint(event.kind.into(), out);
        write_varint(event.content.len() as u64, out);
        out.extend_from_slice(event.content.as_bytes());
        write_varint(event.tags.len() as u64, out);
        for tag in event.tags {
            write_varint(tag.len() as u64, out);
            for value in *tag {
                tags::write_value(value, MIN_DIGITS, out, |form, len, out| {
                    write_varint((len as u64) << 1 | u64::from(form == Form::Bytes), out);
                });
            }
        }
        Ok(())
    }

    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        let mut input = Input::new(bytes);
        read_version(&mut input)?;
        let id = *input.array()?;
        let pubkey = *input.array()?;
        let sig = *input.array()?;
        let created_at = input.varint()? as i64;
        let kind = read_kind(&mut input)?;
        let content = read_content(&mut input, limits)?;
        let limits = Budget::new(bytes.len(), limits);
        let tags = tags::read::<Self>(&mut input, arena, &limits)?;
        input.end()?;
        Ok(Event { id, pubkey, created_at, kind, tags, content, sig })
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        let mut walker = Walker::new(bytes, visit);
        walker.varint("version")?;
        walker.hex("id", 32)?;
        walker.hex("pubkey", 32)?;
        walker.hex("sig", 64)?;
        walker.varint("created_at")?;
        walker.varint("kind")?;
        let len = walker.count("content", "bytes")?;
        walker.text("content", len)?;
        for tag in 0..walker.count("tags", "tags")? {
            let tag = format!("tags[{tag}]");
            for value in 0..walker.count(&tag, "values")? {
                let (value, start) = (format!("{tag}[{value}]"), walker.offset());
                let (form, len) = Self::head(&mut walker.input)?;
                walker.layout(start, &value, &stored(form == Form::Bytes, len));
                walker.value(&value, form == Form::Bytes, len)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        _: &'a Bump,
        _: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        let mut input = Input::new(bytes);
        read_version(&mut input)?;
        let id = input.array()?;
        let pubkey = input.array()?;
        let sig = input.array()?;
        Ok(Fields { id, pubkey, sig, rest: input })
    }
}

impl TagLayout for Notepack {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        input.varint()
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        input.varint()
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let head = input.varint()?;
        let form = if head & 1 == 0 { Form::Text } else { Form::Bytes };
        Ok((form, usize::try_from(head >> 1).unwrap_or(usize::MAX)))
    }
}

#[inline(always)]
fn read_version(input: &mut Input<'_>) -> Result<(), DecodeError> {
    let start = *input;
    match input.varint()? {
        1 => Ok(()),
        other => Err(start.error(Reason::Version(other))),
    }
}

#[inline(always)]
fn read_kind(input: &mut Input<'_>) -> Result<u16, DecodeError> {
    let start = input.offset();
    input::kind(input.varint()?, start)
}

#[inline(always)]
fn read_content<'a>(input: &mut Input<'a>, limits: &Limits) -> Result<&'a str, DecodeError> {
    let start = input.offset();
    let len = read_len(input)?;
    limits.check_content(len, start)?;
    input.text(len)
}

#[inline(always)]
fn read_len(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    Ok(usize::try_from(input.varint()?).unwrap_or(usize::MAX))
}

/// The fields of an event: `id`, `pubkey` and `sig` stand at fixed offsets, `created_at` and `kind` after them,
/// the tags after the content.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    id: &'a [u8; 32],
    pubkey: &'a [u8; 32],
    sig: &'a [u8; 64],
    rest: Input<'a>,
}

impl<'a> Fields<'a> {
    /// The id.
    #[inline]
    pub fn id(&self) -> &'a [u8; 32] {
        self.id
    }

    /// The signature.
    #[inline]
    pub fn sig(&self) -> &'a [u8; 64] {
        self.sig
    }

    /// Reads the tags one by one.
    ///
    /// # Errors
    /// If `created_at`, `kind` or the length of the content is malformed, or no list of tags follows.
    pub fn tags(&self) -> Result<Tags<'a, Notepack>, DecodeError> {
        let mut input = self.rest;
        input.varint()?;
        read_kind(&mut input)?;
        let len = read_len(&mut input)?;
        input.take(len)?;
        Tags::new(input)
    }
}

impl ReadFields for Fields<'_> {
    #[inline]
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        Ok(*self.pubkey)
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(Input::varint(&mut { self.rest })? as i64)
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        let mut input = self.rest;
        input.varint()?;
        read_kind(&mut input)
    }
}

/// Appends `event` in the string form.
///
/// # Errors
/// None: Notepack holds every event.
pub fn encode_string(event: &Event<'_>, out: &mut String) -> Result<(), EncodeError> {
    let mut bytes = Vec::new();
    Notepack.encode(event, &mut bytes)?;
    out.push_str(PREFIX);
    BASE64_NOPAD.encode_append(&bytes, out);
    Ok(())
}

/// Decodes the string form; its bytes are allocated in `arena`.
///
/// # Errors
/// If `text` is not `notepack_` and base64 without padding, with an offset in `text`; or if the bytes are not
/// an event, with an offset in the bytes.
pub fn decode_string<'a>(
    text: &str,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    Notepack.decode(bytes_of_string(text, arena)?, arena, limits)
}

/// The bytes of the string form, in `arena`. Whether they are an event is not checked.
///
/// # Errors
/// If `text` is not `notepack_` and base64 without padding.
pub fn bytes_of_string<'a>(text: &str, arena: &'a Bump) -> Result<&'a [u8], DecodeError> {
    let prefix = DecodeError::new(0, Reason::Expected("`notepack_`"));
    let digits = text.strip_prefix(PREFIX).ok_or(prefix)?.as_bytes();
    let at = |position| {
        DecodeError::new(PREFIX.len() + position, Reason::Expected("base64 without padding"))
    };
    let len = BASE64_NOPAD.decode_len(digits.len()).map_err(|error| at(error.position))?;
    let bytes = arena.alloc_slice_fill_copy(len, 0);
    match BASE64_NOPAD.decode_mut(digits, bytes) {
        Ok(_) => Ok(bytes),
        Err(partial) => Err(at(partial.error.position)),
    }
}

const VERSION: u8 = 1;

const PREFIX: &str = "notepack_";

/// Minimum number of digits that are stored as bytes: less than in other formats.
const MIN_DIGITS: usize = 2;

/// Maximum size of an event without content and tags in bytes.
const BASE_BYTES: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_fields_agree, encoded, golden, reason, texts};
    use nostr::{Field, OwnedEvent};

    /// The event of the test vector in the specification.
    fn vector() -> OwnedEvent {
        let tag = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        OwnedEvent {
            id: [0; 32],
            pubkey: [0x11; 32],
            created_at: 1_720_000_000,
            kind: 0,
            tags: vec![
                tag(&["e", &"aa".repeat(32), "wss://relay.example.com"]),
                tag(&["p", &"bb".repeat(32)]),
            ],
            content: "hello".to_owned(),
            sig: [0x22; 64],
        }
    }

    #[test]
    fn the_test_vector_of_the_specification_is_encoded_and_decoded() {
        let bytes = [
            &[1][..],
            &[0; 32],
            &[0x11; 32],
            &[0x22; 64],
            b"\x80\xbc\x94\xb4\x06\x00\x05hello\x02\x03\x02e\x41",
            &[0xaa; 32],
            b"\x2ewss://relay.example.com\x02\x02p\x41",
            &[0xbb; 32],
        ]
        .concat();
        assert_eq!(encoded(Notepack, &vector()), bytes);
        let arena = Bump::new();
        assert_eq!(
            Notepack.decode(&bytes, &arena, &Limits::default()).unwrap().to_owned(),
            vector()
        );
    }

    #[test]
    fn few_digits_are_bytes_too_and_content_never_is() {
        let tags = vec![["be", "cafe", "2024", "a", ""].map(str::to_owned).to_vec()];
        let event = OwnedEvent { tags, content: "cafebabe".to_owned(), ..vector() };
        let bytes = encoded(Notepack, &event);
        assert!(bytes.ends_with(b"\x08cafebabe\x01\x05\x03\xbe\x05\xca\xfe\x05\x20\x24\x02a\x00"));
        assert_eq!(
            Notepack.decode(&bytes, &Bump::new(), &Limits::default()).unwrap().to_owned(),
            event
        );
    }

    #[test]
    fn a_time_before_1970_takes_ten_bytes() {
        let bytes = encoded(Notepack, &OwnedEvent { created_at: -1, ..vector() });
        assert!(
            bytes[129..].starts_with(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0])
        );
        assert_eq!(
            Notepack.decode(&bytes, &Bump::new(), &Limits::default()).unwrap().created_at,
            -1
        );
    }

    #[test]
    fn other_versions_kinds_out_of_range_and_long_varints_are_rejected() {
        let bytes = encoded(Notepack, &OwnedEvent { tags: vec![], ..vector() });
        assert_eq!(reason(Notepack, &[&[2], &bytes[1..]].concat()), Reason::Version(2));
        assert_eq!(reason(Notepack, &[&[0x81, 0], &bytes[1..]].concat()), Reason::NotMinimal);
        let after_time = |rest: &[u8]| reason(Notepack, &[&bytes[..134], rest].concat());
        assert_eq!(after_time(b"\x80\x80\x04\x05hello\x00"), Reason::Range(Field::Kind));
        assert_eq!(after_time(b"\x00\x85\x00hello\x00"), Reason::NotMinimal);
        assert_eq!(after_time(b"\x00\x05hell\xff\x00"), Reason::Utf8);
        assert_eq!(after_time(b"\x00\x05hello\x01\x01\x02\xff"), Reason::Utf8);
        assert_eq!(after_time(b"\x00\x05hello\x02\x00"), Reason::Truncated);
        assert_eq!(after_time(b"\x00\x05hello\x00\x00"), Reason::TrailingBytes);
    }

    #[test]
    fn single_fields_are_those_of_the_event() {
        assert_fields_agree(Notepack, |fields| Ok((*fields.id(), texts(fields.tags()?)?)));
        let bytes = encoded(Notepack, &golden());
        let (arena, limits) = (Bump::new(), Limits::default());
        let fields = Notepack.fields(&bytes, &arena, &limits).unwrap();
        assert_eq!(fields.sig(), &golden().sig);
    }

    #[test]
    fn the_string_form_round_trips_and_no_other_is_accepted() {
        let arena = Bump::new();
        let decode = |text: &str| decode_string(text, &arena, &Limits::default());
        for content in ["", "a", "ab", "abc"] {
            let event = OwnedEvent { content: content.to_owned(), ..vector() };
            let mut text = "> ".to_owned();
            encode_string(&event.borrow_in(&arena), &mut text).unwrap();
            let text = &text[2..];
            assert!(text.starts_with("notepack_AQAAAAAA") && !text.ends_with('='), "{text}");
            assert_eq!(decode(text).unwrap().to_owned(), event);
            assert_eq!(decode(&text[1..]).unwrap_err().offset, 0);
            for changed in
                [text.replace('A', "-"), format!("{text}="), text[..text.len() - 1].to_owned()]
            {
                decode(&changed).unwrap_err();
            }
        }
        let error = decode("notepack_AQ*A").unwrap_err();
        assert_eq!((error.offset, error.reason), (11, Reason::Expected("base64 without padding")));
        assert_eq!(decode("notepack_AQ").unwrap_err().reason, Reason::Truncated);
    }
}
