//! The smallest of the formats, by leaving out what every reader recomputes. Ours, hand-written.
//!
//! The id is not told: it is the SHA-256 of the rest, and the reader computes it. So the id of an event
//! from this format is always right, and an event whose id is not right cannot be held.
//!
//! | bytes | an event |
//! |---|---|
//! | 1 | version, `01` |
//! | 32 | pubkey |
//! | 64 | sig |
//! | LEB128 | created_at, zigzag: twice its value, or for a negative one the odd number below that |
//! | LEB128 | kind |
//! | LEB128 | how many tags, then each |
//! | … | content, as a value |
//!
//! A **tag** begins with a byte. Its lower six bits are the tag's name in [`words`], or 63 for a name
//! that follows as the first value. Its upper two bits tell the values behind the name: one, two or
//! three; or the number of all values follows as LEB128, which is neither two nor three nor four, and
//! none only for a tag of nothing at all.
//!
//! A **value** begins with a head, and its bytes follow:
//!
//! | head | the value is |
//! |---|---|
//! | `00`–`5f` | text of so many bytes |
//! | `60`–`6f` | the digits of 1 to 16 bytes |
//! | `70` | the digits of 32 bytes, a *key* |
//! | `71` LEB128 | the digits of so many bytes, and 17; they are not 32 |
//! | `72` LEB128 | text of so many bytes, and 96 |
//! | `73` LEB128 | text with so many runs of digits: before each LEB128 bytes of text and a head of digits, behind the last LEB128 bytes of text |
//! | `80`–`bf` | a string of [`words`] |
//! | `c0`–`d7` 1 byte | a key that was there before, by its number below 6,144 |
//! | `d8`–`df` 2 bytes | the same, by its number less 6,144 |
//! | `e0`–`f7` 1 byte | a short value that was there before, by its number below 6,144 |
//! | `f8`–`ff` 2 bytes | the same, by its number less 6,144 |
//!
//! *Digits* are lower-case hexadecimal of even length, which are told as the bytes that they spell. A
//! *run* is 32 of them at least, in other text, as in an address or in an event told in a content; of a
//! longest run of odd length the last digit is text. What can be told in several ways is told by the
//! first that fits: a string of the table, something that was there before, digits, text with runs, text.
//!
//! A **batch** keeps apart what compresses well and what does not:
//!
//! | bytes | a batch |
//! |---|---|
//! | 1 | version, `81` |
//! | 3 × LEB128 | how many events; how many keys; how many bytes of heads |
//! | 64 each | the sigs |
//! | 32 each | the keys, each where it comes first |
//! | … | heads of all events: pubkey as a head of a key; created_at less that of the event before; kind; tags; content |
//! | … | the bytes of texts and digits, in the order of their heads |
//!
//! Keys are numbered as they come, and behind each event its id takes the next number; values told in
//! full whose text is 4 to 64 bytes long are numbered the same way. Only the first 530,432 of each have one.
//!
//! One event has one encoding, and the reader refuses every other. In a batch the reader does not check
//! that what was there before is told by its number: that would take a table of everything.

mod batch;
mod head;
mod reader;
mod runs;
mod scratch;
#[cfg(test)]
mod tests;
pub mod words;
mod writer;

pub use batch::{decode_batch, encode_batch};

use bumpalo::Bump;

use super::or_undo;
use crate::input::{self, Input};
use crate::{DecodeError, EncodeError, Event, Limits, Reason};
use reader::Reader;
use writer::Writer;

/// Appends `event`.
///
/// # Errors
/// If its id is not that of the event.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    or_undo(out, |out| {
        writer::check_id(event, out)?;
        out.push(VERSION);
        out.extend_from_slice(&event.pubkey);
        out.extend_from_slice(&event.sig);
        Writer::new(writer::Alone(out)).event(event, 0);
        Ok(())
    })
}

/// The event that `bytes` are, with the id that it must have.
///
/// # Errors
/// If they are not exactly one event within `limits`, or say it in another way than [`encode`].
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let mut input = Input::new(bytes);
    version(&mut input, VERSION)?;
    let (pubkey, sig) = (*input.array()?, *input.array()?);
    scratch::with(|scratch| {
        let mut reader = Reader::new(reader::Alone(input), arena, limits, scratch);
        let event = reader.event(pubkey, sig, 0)?;
        reader.source.0.end()?;
        Ok(event)
    })
}

/// Single fields of an event, read without the rest.
///
/// There is no id: it takes all of the event.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pubkey: &'a [u8; 32],
    sig: &'a [u8; 64],
    rest: Input<'a>,
}

impl<'a> Fields<'a> {
    /// Looks at no more than the version and the length.
    ///
    /// # Errors
    /// If there are fewer bytes than every event has, or those of another version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = Input::new(bytes);
        version(&mut rest, VERSION)?;
        Ok(Self { pubkey: rest.array()?, sig: rest.array()?, rest })
    }

    /// The author's key.
    pub fn pubkey(&self) -> &'a [u8; 32] {
        self.pubkey
    }

    /// The signature.
    pub fn sig(&self) -> &'a [u8; 64] {
        self.sig
    }

    /// Seconds since 1970.
    ///
    /// # Errors
    /// If the bytes end there, or the integer is not in its shortest form.
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(from_zigzag({ self.rest }.varint()?))
    }

    /// The kind.
    ///
    /// # Errors
    /// As [`created_at`](Self::created_at), and if there is no such kind.
    pub fn kind(&self) -> Result<u16, DecodeError> {
        let mut rest = self.rest;
        rest.varint()?;
        let offset = rest.offset();
        input::kind(rest.varint()?, offset)
    }
}

fn version(input: &mut Input<'_>, expected: u8) -> Result<(), DecodeError> {
    match input.byte()? {
        found if found == expected => Ok(()),
        found => Err(DecodeError::new(0, Reason::Version(found.into()))),
    }
}

fn to_zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn from_zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Of an event on its own.
const VERSION: u8 = 0x01;

/// Of a batch.
const BATCH_VERSION: u8 = 0x81;
