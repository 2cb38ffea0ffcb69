//! The layouts in which a field has a number: `cbor-packed`, an array, and `cbor-intkey`, a map. They are
//! the two layouts of minicbor's derive.

use minicbor::data::Type;
use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};
use runner_shell::BoxError;
use runner_shell::nostr::{Codec, EventCounts, Fields, line};

pub(crate) struct Packed;
pub(crate) struct IntKey;

macro_rules! layout {
    ($layout:ident, $event:ident, $shape:ident, $format:literal) => {
        #[derive(Encode, Decode)]
        #[cbor($shape)]
        pub(crate) struct $event<'b> {
            #[cbor(n(0), with = "minicbor::bytes")]
            id: [u8; 32],
            #[cbor(n(1), with = "minicbor::bytes")]
            pubkey: [u8; 32],
            #[n(2)]
            created_at: i64,
            #[n(3)]
            kind: u16,
            #[b(4)]
            tags: Vec<Vec<Value<'b>>>,
            #[b(5)]
            content: &'b str,
            #[cbor(n(6), with = "minicbor::bytes")]
            sig: [u8; 64],
        }

        impl Codec for $layout {
            const FORMAT: &'static str = $format;
            const CHECKS: &'static [&'static str] = &["utf8", "kind-range"];

            type Event = $event<'static>;
            type Decoded<'a> = $event<'a>;

            /// The corpus stays until the end, and so its texts may.
            fn parse(line: &str) -> Result<$event<'static>, BoxError> {
                let event: line::Event<'_> = serde_json::from_str(line)?;
                let value = |text: line::Text<'_>| Value::Text(text.0.into_owned().leak());
                let tag = |tag: Vec<_>| tag.into_iter().map(value).collect();
                Ok($event {
                    id: event.id,
                    pubkey: event.pubkey,
                    created_at: event.created_at,
                    kind: event.kind,
                    tags: event.tags.into_iter().map(tag).collect(),
                    content: event.content.into_owned().leak(),
                    sig: event.sig,
                })
            }

            fn encode(event: &$event<'static>, out: &mut Vec<u8>) -> Result<(), BoxError> {
                Ok(minicbor::encode(event, out)?)
            }

            fn decode(bytes: &[u8]) -> Result<$event<'_>, BoxError> {
                Ok(minicbor::decode(bytes)?)
            }

            fn count(event: &$event<'_>, counts: &mut EventCounts) {
                counts.event(event.kind, event.created_at, event.content);
                for tag in &event.tags {
                    counts.tag();
                    tag.iter().for_each(|value| value.count(counts));
                }
            }

            fn encode_batch(events: &[$event<'static>], out: &mut Vec<u8>) -> Result<(), BoxError> {
                Ok(minicbor::encode(events, out)?)
            }

            fn decode_batch(bytes: &[u8]) -> Result<Vec<$event<'_>>, BoxError> {
                Ok(minicbor::decode(bytes)?)
            }
        }

        impl Fields for $layout {
            fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
                Ok($layout::at(bytes, 3)?.u16()?)
            }

            fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
                Ok($layout::at(bytes, 1)?.bytes()?.try_into()?)
            }

            fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
                Ok(($layout::kind(bytes)?, $layout::pubkey(bytes)?))
            }
        }
    };
}

layout!(Packed, PackedEvent, array, "cbor-packed");
layout!(IntKey, IntKeyEvent, map, "cbor-intkey");

impl Packed {
    /// A decoder that stands before the field of that number.
    fn at(bytes: &[u8], number: u8) -> Result<Decoder<'_>, BoxError> {
        let mut decoder = Decoder::new(bytes);
        decoder.array()?;
        for _ in 0..number {
            decoder.skip()?;
        }
        Ok(decoder)
    }
}

impl IntKey {
    /// A decoder that stands before the field of that number.
    fn at(bytes: &[u8], number: u8) -> Result<Decoder<'_>, BoxError> {
        let mut decoder = Decoder::new(bytes);
        for _ in 0..decoder.map()?.ok_or("a map without a length")? {
            if decoder.u8()? == number {
                return Ok(decoder);
            }
            decoder.skip()?;
        }
        Err("a field is missing".into())
    }
}

/// A tag's value: text, or the bytes of its digits.
pub(crate) enum Value<'b> {
    Text(&'b str),
    Hex(&'b [u8]),
}

impl Value<'_> {
    fn count(&self, counts: &mut EventCounts) {
        match self {
            Value::Text(text) => counts.text(text),
            Value::Hex(bytes) => counts.hex(bytes),
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
            Value::Text(text) => line::with_hex_bytes(text, MIN_DIGITS, |bytes| match bytes {
                Some(bytes) => out.bytes(bytes)?.ok(),
                None => out.str(text)?.ok(),
            }),
        }
    }
}

const MIN_DIGITS: usize = 8;
