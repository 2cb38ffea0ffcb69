//! The layouts in which a field has a number: `cbor-packed`, an array, and `cbor-intkey`, a map. They are
//! the two shapes that minicbor's derive gives a struct.

use minicbor::{Decode, Decoder, Encode};
use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Fields, Tally, line};

use crate::value::Value;

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
            fn parse(line: &str) -> Result<$event<'static>, Refusal> {
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

            fn encode(event: &$event<'static>, out: &mut Vec<u8>) -> Result<(), Refusal> {
                Ok(minicbor::encode(event, out)?)
            }

            fn decode(bytes: &[u8]) -> Result<$event<'_>, Refusal> {
                Ok(minicbor::decode(bytes)?)
            }

            fn tell(event: &$event<'_>, tally: &mut Tally) {
                tally.event(event.kind, event.created_at, event.content);
                for tag in &event.tags {
                    tally.tag();
                    tag.iter().for_each(|value| value.tell(tally));
                }
            }

            fn encode_batch(events: &[$event<'static>], out: &mut Vec<u8>) -> Result<(), Refusal> {
                Ok(minicbor::encode(events, out)?)
            }

            fn decode_batch(bytes: &[u8]) -> Result<Vec<$event<'_>>, Refusal> {
                Ok(minicbor::decode(bytes)?)
            }
        }

        impl Fields for $layout {
            fn kind(bytes: &[u8]) -> Result<u16, Refusal> {
                Ok($layout::at(bytes, 3)?.u16()?)
            }

            fn pubkey(bytes: &[u8]) -> Result<[u8; 32], Refusal> {
                Ok($layout::at(bytes, 1)?.bytes()?.try_into()?)
            }

            fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), Refusal> {
                Ok(($layout::kind(bytes)?, $layout::pubkey(bytes)?))
            }
        }
    };
}

layout!(Packed, PackedEvent, array, "cbor-packed");
layout!(IntKey, IntKeyEvent, map, "cbor-intkey");

impl Packed {
    /// A decoder that stands before the field of that number.
    fn at(bytes: &[u8], number: u8) -> Result<Decoder<'_>, Refusal> {
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
    fn at(bytes: &[u8], number: u8) -> Result<Decoder<'_>, Refusal> {
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
