//! The Wireproof format: the smallest, since it leaves out the data that every reader recomputes. Hand-written.
//!
//! The id is left out: it is the SHA-256 of the rest, and the decoder computes it. The id of a decoded event is
//! therefore always right, and an event with a wrong id cannot be encoded. Of the two [forms](nostr::canonical) of an
//! event with control characters, a flag selects the one whose hash is the id.
//!
//! | bytes | an event |
//! |---|---|
//! | 1 | version, `01` |
//! | 32 | pubkey |
//! | 64 | sig |
//! | LEB128 | created_at, zigzag: twice its value, or for a negative one the odd number below that |
//! | LEB128 | kind, plus 65,536 if the id is the hash of the form with escaped control characters |
//! | LEB128 | number of tags, then every tag |
//! | … | content, as a value |
//!
//! A **tag** begins with a byte. Its lower six bits are the number of the tag name in [`words`], or 63 for a name
//! that follows as the first value. Its upper two bits are the number of values after the name: one, two or
//! three; or the total number of values follows as LEB128, which is not two, three or four, and zero only for an
//! empty tag.
//!
//! A **value** begins with a head, and its bytes follow:
//!
//! | head | the value is |
//! |---|---|
//! | `00`–`5f` | text of that many bytes |
//! | `60`–`6f` | the digits of 1 to 16 bytes |
//! | `70` | the digits of 32 bytes, a *key* |
//! | `71` LEB128 | the digits of 17 bytes more than the LEB128, but not 32 |
//! | `72` LEB128 | text of 96 bytes more than the LEB128 |
//! | `73` LEB128 | text with that many runs of digits: before every run, LEB128 bytes of text and a head of digits; after the last, LEB128 bytes of text |
//! | `80`–`bf` | a string of [`words`] |
//! | `c0`–`d7` 1 byte | an earlier key, by its number below 6,144 |
//! | `d8`–`df` 2 bytes | the same, by its number less 6,144 |
//! | `e0`–`f7` 1 byte | an earlier short value, by its number below 6,144 |
//! | `f8`–`ff` 2 bytes | the same, by its number less 6,144 |
//!
//! *Digits* are lower-case hexadecimal of even length, stored as the bytes that they encode. A *run* is at least
//! 32 digits within other text, as in a URL or in an event embedded in content; the last digit of a maximal run
//! of odd length is text. Where several encodings fit, the first of these is used: a string of the table, the
//! number of an earlier key or value, digits, text with runs, text.
//!
//! A **batch** separates data that compress well from the rest:
//!
//! | bytes | a batch |
//! |---|---|
//! | 1 | version, `81` |
//! | 3 × LEB128 | number of events; number of keys; length of the heads in bytes |
//! | 64 each | the sigs |
//! | 32 each | the keys, in order of first use |
//! | … | heads of all events: pubkey as the head of a key; created_at minus the previous event's; kind; tags; content |
//! | … | the bytes of texts and digits, in the order of their heads |
//!
//! Keys are numbered in order of first use, and after every event its id takes the next number. Values stored in
//! full whose text is 4 to 64 bytes long are numbered in the same way. Only the first 530,432 of each have a
//! number.
//!
//! An event has one encoding, and the decoder rejects every other. In a batch the decoder does not check that
//! earlier keys and values are stored by number: that would need a table of all of them. The encoder stores them in
//! full where numbers would make a batch expand to more memory than [`Limits`] allow.

mod batch;
mod explain;
mod head;
mod reader;
mod runs;
#[cfg(test)]
mod tests;
pub mod words;
mod writer;

use bumpalo::Bump;

use super::codec::{Codec, or_truncate};
use super::explain::{Visit, Walker};
use super::fields::ReadFields;
use head::{VERSION, from_zigzag, read_kind, read_version};
use nostr::input::Input;
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Limits};
use reader::Reader;
use writer::Writer;

/// The codec. The format holds every event whose id is right.
#[derive(Clone, Copy, Debug)]
pub struct Wireproof;

impl Codec for Wireproof {
    type Fields<'a> = Fields<'a>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        or_truncate(out, |out| {
            let id_form = writer::id_form(event, out)?;
            out.push(VERSION);
            out.extend_from_slice(&event.pubkey);
            out.extend_from_slice(&event.sig);
            Writer::new(writer::Single(out)).event(event, id_form, 0);
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
        read_version(&mut input, VERSION)?;
        let (pubkey, sig) = (*input.array()?, *input.array()?);
        reader::with_scratch(|scratch| {
            let limits = Budget::new(bytes.len(), limits);
            let mut reader = Reader::new(reader::Single(input), arena, limits, scratch);
            let event = reader.event(pubkey, sig, 0)?;
            reader.source.0.end()?;
            Ok(event)
        })
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        explain::event(&mut Walker::new(bytes, visit))
    }

    fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        batch::encode(events, out)
    }

    fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        batch::decode(bytes, arena, limits)
    }

    fn fields<'a>(
        self,
        bytes: &'a [u8],
        _: &'a Bump,
        _: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        let mut rest = Input::new(bytes);
        read_version(&mut rest, VERSION)?;
        Ok(Fields { pubkey: rest.array()?, sig: rest.array()?, rest })
    }
}

/// The fields of an event, without the id: computing it takes the whole event.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pubkey: &'a [u8; 32],
    sig: &'a [u8; 64],
    rest: Input<'a>,
}

impl<'a> Fields<'a> {
    /// The signature.
    pub fn sig(&self) -> &'a [u8; 64] {
        self.sig
    }
}

impl ReadFields for Fields<'_> {
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        Ok(*self.pubkey)
    }

    fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(from_zigzag({ self.rest }.varint()?))
    }

    fn kind(&self) -> Result<u16, DecodeError> {
        let mut rest = self.rest;
        rest.varint()?;
        read_kind(&mut rest).map(|(kind, _)| kind)
    }
}
