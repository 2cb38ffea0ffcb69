//! How is an event written as a message?

use kernels::hex;

use super::*;
use crate::formats::compact::{self, Form};
use crate::input::{varint_len, write_varint};
use crate::{Tag, Value};

/// Appends the message.
pub(super) fn event(schema: Schema, event: &Event<'_>, out: &mut Vec<u8>) {
    out.reserve(LEAST_BYTES + event.content.len());
    fixed(schema, ID, &event.id, out);
    fixed(schema, PUBKEY, &event.pubkey, out);
    integer(CREATED_AT, event.created_at as u64, out);
    integer(KIND, event.kind.into(), out);
    for item in event.tags {
        nested(TAGS, out, |out| tag(schema, item, out));
    }
    if !event.content.is_empty() {
        delimited(CONTENT, event.content.as_bytes(), out);
    }
    fixed(schema, SIG, &event.sig, out);
}

/// Appends a field that is the message which `write` appends.
///
/// Most messages are shorter than 128 bytes, so one byte is kept for the length, and only a longer
/// message is moved once.
#[inline]
pub(super) fn nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    key(number, Type::Delimited, out);
    let head = out.len();
    out.push(0);
    write(out);
    let len = out.len() - head - 1;
    if len < 0x80 {
        out[head] = len as u8;
    } else {
        make_room(head, len, out);
    }
}

#[cold]
fn make_room(head: usize, len: usize, out: &mut Vec<u8>) {
    let (body, more) = (head + 1, varint_len(len as u64) - 1);
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
        Schema::String | Schema::Binary => tag.iter().for_each(|value| text(VALUES, value, out)),
        Schema::BinaryHex => tag.iter().for_each(|value| value_v2(value, out)),
    }
}

#[inline]
fn value_v2(value: &Value<'_>, out: &mut Vec<u8>) {
    compact::write(value, LEAST_DIGITS, out, |form, len, out| {
        key(VALUES_V2, Type::Delimited, out);
        write_varint((1 + varint_len(len as u64) + len) as u64, out);
        key(if form == Form::Bytes { HEX } else { TEXT }, Type::Delimited, out);
        write_varint(len as u64, out);
    });
}

#[inline]
fn text(number: u32, value: &Value<'_>, out: &mut Vec<u8>) {
    key(number, Type::Delimited, out);
    write_varint(value.text_len() as u64, out);
    value.write_text(out);
}

#[inline]
fn fixed(schema: Schema, number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    if schema != Schema::String {
        return delimited(number, bytes, out);
    }
    key(number, Type::Delimited, out);
    write_varint(2 * bytes.len() as u64, out);
    hex::encode_into(bytes, out);
}

#[inline]
fn delimited(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    key(number, Type::Delimited, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[inline]
fn integer(number: u32, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        key(number, Type::Varint, out);
        write_varint(value, out);
    }
}

#[inline]
fn key(number: u32, kind: Type, out: &mut Vec<u8>) {
    // All our numbers are below 16.
    out.push(Key::new(number, kind).bits() as u8);
}

/// Bytes of an event without tags and content, at most.
const LEAST_BYTES: usize = 300;
