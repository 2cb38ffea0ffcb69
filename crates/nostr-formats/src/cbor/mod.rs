//! CBOR in three layouts. Hand-written.
//!
//! | codec | event | size |
//! |---|---|---|
//! | [`Schemaless`] | a map with the field names of NIP-01, all tag values as text | largest |
//! | [`IntKey`] | a map with integer keys | |
//! | [`Packed`] | an array with one encoding: the deterministic profile | smallest |
//!
//! All use definite lengths and heads in their shortest form, and end with the event; other CBOR is rejected. A
//! batch is an array. CBOR holds every event.
//!
//! | field | item |
//! |---|---|
//! | `id`, `pubkey` | `58 20` and 32 bytes |
//! | `created_at` | an integer of either sign |
//! | `kind` | an unsigned integer up to 65,535 |
//! | `tags` | an array of arrays of values |
//! | `content` | text |
//! | `sig` | `58 40` and 64 bytes |

mod head;
mod map;
mod reader;
#[cfg(test)]
mod tests;

use bumpalo::Bump;

pub use map::MapFields;

use super::codec::Codec;
use super::explain::{self, Visit};
use super::fields::{FieldOrder, Keys, SequentialFields};
use super::tags::{self, Form, MIN_DIGITS, TagLayout};
use head::{ARRAY, BYTES, MAP, NEGATIVE, TEXT, UNSIGNED};
use map::MapKeys;
use nostr::input::Input;
use nostr::{DecodeError, EncodeError, Event, Field, Limits, Reason, Tag, Value};
use reader::{Reader, argument};

/// A map of seven text keys: `id`, `pubkey`, `created_at`, `kind`, `tags`, `content`, `sig`.
///
/// Written as `a7` and in this order; tag values are always text. Read in any order; unknown keys are skipped
/// with their values, a duplicate or missing key is rejected.
#[derive(Clone, Copy, Debug)]
pub struct Schemaless;

/// A map of seven integer keys.
///
/// | key | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
/// |---|---|---|---|---|---|---|---|
/// | field | `id` | `pubkey` | `created_at` | `kind` | `tags` | `content` | `sig` |
///
/// Written as `a7` and in this order. A tag value is a byte string if it is lower-case hexadecimal with an even
/// number of digits, at least eight; otherwise text. The published rule accepted digits of any case and number
/// and could not distinguish `CAFE` from `cafe` when decoding. Its encodings are accepted: byte strings of any
/// length, decoded to lower-case digits.
///
/// Read in any order; other integer keys are skipped with their values, a duplicate or missing key is
/// rejected.
#[derive(Clone, Copy, Debug)]
pub struct IntKey;

/// An array of seven items, in the order `id`, `pubkey`, `created_at`, `kind`, `tags`, `content`, `sig`.
///
/// A tag value is a byte string if it is lower-case hexadecimal with an even number of digits, at least eight;
/// otherwise text. An event has one encoding: heads longer than needed, indefinite lengths, such digits as text
/// and byte strings of fewer than eight digits are rejected.
#[derive(Clone, Copy, Debug)]
pub struct Packed;

/// The differences of the three layouts.
trait Layout: Copy {
    /// Reads the head of a tag value.
    fn value_head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError>;

    /// Rejects a tag value that must be stored otherwise.
    #[inline(always)]
    fn check_value(_: &Value<'_>) -> Result<(), Reason> {
        Ok(())
    }

    fn write(event: &Event<'_>, out: &mut Vec<u8>);

    fn read<'a>(reader: &mut Reader<'a, '_>) -> Result<Event<'a>, DecodeError>;
}

/// Implements [`Codec`] for a [`Layout`].
macro_rules! impl_codec {
    ($layout:ident, $fields:ident, $open:expr) => {
        impl Codec for $layout {
            type Fields<'a> = $fields<'a, Self>;

            fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
                out.reserve(BASE_BYTES + event.content.len() + 48 * event.tags.len());
                Self::write(event, out);
                Ok(())
            }

            fn decode<'a>(
                self,
                bytes: &'a [u8],
                arena: &'a Bump,
                limits: &Limits,
            ) -> Result<Event<'a>, DecodeError> {
                let mut reader = Reader::new(bytes, arena, limits);
                let event = Self::read(&mut reader)?;
                reader.input.end()?;
                Ok(event)
            }

            fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
                explain::items(bytes, head::item, visit)
            }

            fn encode_batch(
                self,
                events: &[Event<'_>],
                out: &mut Vec<u8>,
            ) -> Result<(), EncodeError> {
                head::write(ARRAY, events.len() as u64, out);
                events.iter().try_for_each(|event| self.encode(event, out))
            }

            fn decode_batch<'a>(
                self,
                bytes: &'a [u8],
                arena: &'a Bump,
                limits: &Limits,
            ) -> Result<&'a [Event<'a>], DecodeError> {
                Reader::new(bytes, arena, limits).events(Self::read)
            }

            #[inline]
            fn fields<'a>(
                self,
                bytes: &'a [u8],
                arena: &'a Bump,
                _: &Limits,
            ) -> Result<Self::Fields<'a>, DecodeError> {
                $open(bytes, arena)
            }
        }
    };
}

impl_codec!(Schemaless, MapFields, MapFields::new);
impl_codec!(IntKey, MapFields, MapFields::new);
impl_codec!(Packed, SequentialFields, |bytes, _| SequentialFields::new(bytes));

impl<L: Layout> TagLayout for L {
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
        L::value_head(input)
    }

    #[inline(always)]
    fn check(value: &Value<'_>) -> Result<(), Reason> {
        L::check_value(value)
    }
}

impl Layout for Schemaless {
    #[inline(always)]
    fn value_head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let len = argument(input, TEXT, "text")?;
        Ok((Form::Text, usize::try_from(len).unwrap_or(usize::MAX)))
    }

    #[inline(always)]
    fn write(event: &Event<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\xa7\x62id");
        write_fixed(&event.id, out);
        out.extend_from_slice(b"\x66pubkey");
        write_fixed(&event.pubkey, out);
        out.extend_from_slice(b"\x6acreated_at");
        write_created_at(event.created_at, out);
        out.extend_from_slice(b"\x64kind");
        write_kind(event.kind, out);
        out.extend_from_slice(b"\x64tags");
        write_tags(event.tags, usize::MAX, out);
        out.extend_from_slice(b"\x67content");
        write_content(event.content, out);
        out.extend_from_slice(b"\x63sig");
        write_fixed(&event.sig, out);
    }

    #[inline(always)]
    fn read<'a>(reader: &mut Reader<'a, '_>) -> Result<Event<'a>, DecodeError> {
        map::event::<Self>(reader)
    }
}

impl MapKeys for Schemaless {
    #[inline(always)]
    fn field(reader: &mut Reader<'_, '_>) -> Result<Option<Field>, DecodeError> {
        let len = reader.len(TEXT, 1, "a text key")?;
        Ok(match reader.input.text(len)? {
            "id" => Some(Field::Id),
            "pubkey" => Some(Field::Pubkey),
            "created_at" => Some(Field::CreatedAt),
            "kind" => Some(Field::Kind),
            "tags" => Some(Field::Tags),
            "content" => Some(Field::Content),
            "sig" => Some(Field::Sig),
            _ => None,
        })
    }
}

impl Layout for IntKey {
    #[inline(always)]
    fn value_head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        text_or_bytes(input)
    }

    #[inline(always)]
    fn write(event: &Event<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&[MAP << 5 | 7, 0]);
        write_fixed(&event.id, out);
        out.push(1);
        write_fixed(&event.pubkey, out);
        out.push(2);
        write_created_at(event.created_at, out);
        out.push(3);
        write_kind(event.kind, out);
        out.push(4);
        write_tags(event.tags, MIN_DIGITS, out);
        out.push(5);
        write_content(event.content, out);
        out.push(6);
        write_fixed(&event.sig, out);
    }

    #[inline(always)]
    fn read<'a>(reader: &mut Reader<'a, '_>) -> Result<Event<'a>, DecodeError> {
        map::event::<Self>(reader)
    }
}

impl MapKeys for IntKey {
    #[inline(always)]
    fn field(reader: &mut Reader<'_, '_>) -> Result<Option<Field>, DecodeError> {
        let start = reader.input;
        match head::read(&mut reader.input)? {
            (UNSIGNED, key @ 0..7) => Ok(Some(Field::ALL[key as usize])),
            (UNSIGNED | NEGATIVE, _) => Ok(None),
            _ => Err(start.error(Reason::Expected("an integer key"))),
        }
    }
}

impl Layout for Packed {
    #[inline(always)]
    fn value_head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        text_or_bytes(input)
    }

    #[inline(always)]
    fn check_value(value: &Value<'_>) -> Result<(), Reason> {
        tags::check_form(value, MIN_DIGITS)
    }

    #[inline(always)]
    fn write(event: &Event<'_>, out: &mut Vec<u8>) {
        out.push(ARRAY << 5 | 7);
        write_fixed(&event.id, out);
        write_fixed(&event.pubkey, out);
        write_created_at(event.created_at, out);
        write_kind(event.kind, out);
        write_tags(event.tags, MIN_DIGITS, out);
        write_content(event.content, out);
        write_fixed(&event.sig, out);
    }

    #[inline(always)]
    fn read<'a>(reader: &mut Reader<'a, '_>) -> Result<Event<'a>, DecodeError> {
        let start = reader.input;
        if reader.len(ARRAY, 1, "an array")? != 7 {
            return Err(start.error(Reason::Expected("seven items")));
        }
        Ok(Event {
            id: *reader.fixed(Field::Id)?,
            pubkey: *reader.fixed(Field::Pubkey)?,
            created_at: reader.created_at()?,
            kind: reader.kind()?,
            tags: reader.tags::<Self>()?,
            content: reader.content()?,
            sig: *reader.fixed(Field::Sig)?,
        })
    }
}

impl FieldOrder for Packed {
    #[inline]
    fn keys<'a>(input: &mut Input<'a>) -> Result<Keys<'a>, DecodeError> {
        if *input.array()? != [0x87, 0x58, 0x20] {
            return Err(DecodeError::new(0, Reason::Expected("seven items, the id first")));
        }
        let id = input.array()?;
        let start = *input;
        if *input.array()? != [0x58, 0x20] {
            return Err(start.error(Reason::Length(Field::Pubkey)));
        }
        Ok((id, input.array()?))
    }

    #[inline]
    fn created_at(input: &mut Input<'_>) -> Result<i64, DecodeError> {
        reader::created_at(input)
    }

    #[inline]
    fn kind(input: &mut Input<'_>) -> Result<u16, DecodeError> {
        reader::kind(input)
    }
}

#[inline(always)]
fn text_or_bytes(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
    let start = *input;
    let (major, len) = head::read(input)?;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    match major {
        TEXT => Ok((Form::Text, len)),
        BYTES => Ok((Form::Bytes, len)),
        _ => Err(start.error(Reason::Expected("text or bytes"))),
    }
}

#[inline(always)]
fn write_fixed<const N: usize>(bytes: &[u8; N], out: &mut Vec<u8>) {
    head::write(BYTES, N as u64, out);
    out.extend_from_slice(bytes);
}

#[inline(always)]
fn write_created_at(seconds: i64, out: &mut Vec<u8>) {
    let (major, argument) = if seconds < 0 { (NEGATIVE, !seconds) } else { (UNSIGNED, seconds) };
    head::write(major, argument as u64, out);
}

#[inline(always)]
fn write_kind(kind: u16, out: &mut Vec<u8>) {
    head::write(UNSIGNED, kind.into(), out);
}

#[inline(always)]
fn write_tags(tags: &[Tag<'_>], min_digits: usize, out: &mut Vec<u8>) {
    head::write(ARRAY, tags.len() as u64, out);
    for tag in tags {
        head::write(ARRAY, tag.len() as u64, out);
        for value in *tag {
            tags::write_value(value, min_digits, out, |form, len, out| {
                head::write(if form == Form::Bytes { BYTES } else { TEXT }, len as u64, out);
            });
        }
    }
}

#[inline(always)]
fn write_content(content: &str, out: &mut Vec<u8>) {
    head::write(TEXT, content.len() as u64, out);
    out.extend_from_slice(content.as_bytes());
}

/// Maximum size of an event without content and tags in bytes.
const BASE_BYTES: usize = 256;
