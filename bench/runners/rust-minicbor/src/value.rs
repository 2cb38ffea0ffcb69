//! What is a tag's value in the layouts that compact hexadecimal?

use minicbor::data::Type;
use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};
use runner_shell::nostr::{Tally, line};

/// Text, or the bytes that its digits spell.
pub(crate) enum Value<'b> {
    Text(&'b str),
    Hex(&'b [u8]),
}

impl Value<'_> {
    pub(crate) fn tell(&self, tally: &mut Tally) {
        match self {
            Value::Text(text) => tally.text(text),
            Value::Hex(bytes) => tally.hex(bytes),
        }
    }
}

impl<'b, C> Decode<'b, C> for Value<'b> {
    fn decode(input: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        match input.datatype()? {
            Type::Bytes => input.bytes().map(Value::Hex),
            _ => input.str().map(Value::Text),
        }
    }
}

impl<C> Encode<C> for Value<'_> {
    fn encode<W: Write>(
        &self,
        out: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        match self {
            Value::Hex(bytes) => out.bytes(bytes)?.ok(),
            Value::Text(text) => line::with_spelled(text, LEAST_DIGITS, |bytes| match bytes {
                Some(bytes) => out.bytes(bytes)?.ok(),
                None => out.str(text)?.ok(),
            }),
        }
    }
}

const LEAST_DIGITS: usize = 8;
