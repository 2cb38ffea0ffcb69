//! Encoding of an event as a message.

use kernels::hex;

use super::wire::{Key, Type};
use super::{
    CONTENT, CREATED_AT, HEX, ID, KIND, PUBKEY, SIG, Schema, TAGS, TEXT, VALUES, VALUES_V2,
};
use crate::tags::{self, Form, MIN_DIGITS};
use nostr::input::{varint_len, write_varint};
use nostr::{Event, Tag, Value};

/// Appends the message.
pub(super) fn event(schema: Schema, event: &Event<'_>, out: &mut Vec<u8>) {
    out.reserve(BASE_BYTES + event.content.len());
    fixed(schema, ID, &event.id, out);
    fixed(schema, PUBKEY, &event.pubkey, out);
    integer(CREATED_AT, event.created_at as u64, out);
    integer(KIND, event.kind.into(), out);
    for item in event.tags {
        nested(TAGS, out, |out| tag(schema, item, out));
    }
    if !event.content.is_empty() {
        head(CONTENT, event.content.len(), out);
        out.extend_from_slice(event.content.as_bytes());
    }
    fixed(schema, SIG, &event.sig, out);
}

/// Appends a message field whose value `write` appends.
///
/// Most messages are shorter than 128 bytes: one byte is reserved for the length, and a longer message is
/// moved.
#[inline]
pub(super) fn nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    head(number, 0, out);
    let body = out.len();
    write(out);
    let len = out.len() - body;
    if len < 0x80 {
        out[body - 1] = len as u8;
    } else {
        widen_length(body, len, out);
    }
}

#[cold]
fn widen_length(body: usize, len: usize, out: &mut Vec<u8>) {
    let (head, more) = (body - 1, varint_len(len as u64) - 1);
    out.resize(body + len + more, 0);
    out.copy_within(body..body + len, body + more);
    let mut rest = len;
    for byte in &mut out[head..head + more] {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    out[head + more] = rest as u8;
}

#[inline]
fn tag(schema: Schema, tag: Tag<'_>, out: &mut Vec<u8>) {
    match schema {
        Schema::String | Schema::Binary => tag.iter().for_each(|value| text(value, out)),
        Schema::BinaryHex => tag.iter().for_each(|value| value_v2(value, out)),
    }
}

#[inline]
fn text(value: &Value<'_>, out: &mut Vec<u8>) {
    head(VALUES, value.text_len(), out);
    value.write_text(out);
}

#[inline]
fn value_v2(value: &Value<'_>, out: &mut Vec<u8>) {
    tags::write_value(value, MIN_DIGITS, out, |form, len, out| {
        let number = if form == Form::Bytes { HEX } else { TEXT };
        head(VALUES_V2, 1 + varint_len(len as u64) + len, out);
        head(number, len, out);
    });
}

#[inline(always)]
fn fixed<const N: usize>(schema: Schema, number: u32, bytes: &[u8; N], out: &mut Vec<u8>) {
    if schema == Schema::String {
        head(number, 2 * N, out);
        hex::encode_into(bytes, out);
    } else {
        head(number, N, out);
        out.extend_from_slice(bytes);
    }
}

/// Appends the key and the length of a delimited field.
#[inline(always)]
fn head(number: u32, len: usize, out: &mut Vec<u8>) {
    let key = key(number, Type::Delimited);
    if len < 0x80 {
        out.extend_from_slice(&[key, len as u8]);
    } else {
        out.push(key);
        write_varint(len as u64, out);
    }
}

#[inline]
fn integer(number: u32, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        out.push(key(number, Type::Varint));
        write_varint(value, out);
    }
}

/// A key as its one byte: all numbers are below 16.
#[inline(always)]
fn key(number: u32, kind: Type) -> u8 {
    Key::new(number, kind).bits() as u8
}

/// Maximum size of an event without tags and content in bytes.
const BASE_BYTES: usize = 300;
