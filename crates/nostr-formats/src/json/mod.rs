//! The JSON object of NIP-01, as [`nostr::json`] reads and writes it. A batch is an array.

mod explain;

use bumpalo::Bump;
use nostr::{DecodeError, EncodeError, Event, Limits, json};

pub use nostr::json::Fields;

use super::{Codec, ReadFields, Visit};

/// The codec. JSON holds every event.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Codec for Json {
    type Fields<'a> = Fields<'a>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        json::encode(event, out);
        Ok(())
    }

    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        json::decode(bytes, arena, limits)
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        explain::event(bytes, visit)
    }

    fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        json::encode_batch(events, out);
        Ok(())
    }

    fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        json::decode_batch(bytes, arena, limits)
    }

    #[inline]
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        _: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        Fields::open(bytes, arena)
    }
}

impl ReadFields for Fields<'_> {
    #[inline]
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        Self::pubkey(self)
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        Self::created_at(self)
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        Self::kind(self)
    }
}

#[cfg(test)]
mod tests;
