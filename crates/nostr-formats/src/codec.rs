//! The interface of every format, and the batch framing of formats that have no list of their own.
//!
//! | bytes of a framed batch | |
//! |---|---|
//! | 4 | number of events, little-endian |
//! | then per event: 4 | length of the event in bytes, little-endian |
//! | … | the event |

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use super::explain::Visit;
use super::fields::ReadFields;
use nostr::input::Input;
use nostr::{DecodeError, EncodeError, Event, Limits, Reason};

/// One format: encodes and decodes events, batches and single fields.
///
/// A codec is a constant, such as [`json::Json`](super::json::Json) or
/// [`proto::Schema::Binary`](super::proto::Schema::Binary).
pub trait Codec: Copy {
    /// The reader of single fields.
    type Fields<'a>: ReadFields;

    /// Appends `event`.
    ///
    /// # Errors
    /// If the layout cannot hold the event; `out` is then unchanged.
    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// Decodes `bytes`, which must be exactly one event; lists are allocated in `arena`.
    ///
    /// # Errors
    /// If the bytes break a rule of the format or exceed `limits`.
    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError>;

    /// Appends `events` as one batch: framed, unless the format has a list of its own.
    ///
    /// # Errors
    /// If the layout cannot hold one of the events; `out` is then unchanged.
    fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        or_truncate(out, |out| {
            out.extend_from_slice(&length("events", events.len())?);
            for event in events {
                let head = out.len();
                out.extend_from_slice(&[0; 4]);
                self.encode(event, out)?;
                let len = length("bytes of an event", out.len() - head - 4)?;
                out[head..head + 4].copy_from_slice(&len);
            }
            Ok(())
        })
    }

    /// Decodes `bytes`, which must be exactly one batch of [`encode_batch`](Self::encode_batch).
    ///
    /// # Errors
    /// As [`decode`](Self::decode), with the offset in all of `bytes`; and if there are more events than
    /// `limits` allow.
    fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let mut input = Input::new(bytes);
        let count = u32::from_le_bytes(*input.array()?) as usize;
        limits.check_events(count, 0)?;
        if count > input.rest().len() / (4 + MIN_EVENT_BYTES) {
            return Err(input.error(Reason::Truncated));
        }
        let (mut events, mut limits) = (BumpVec::with_capacity_in(count, arena), limits.clone());
        for _ in 0..count {
            let len = u32::from_le_bytes(*input.array()?) as usize;
            let start = input.offset();
            let event = self.decode(input.take(len)?, arena, &limits);
            let in_batch =
                |error: DecodeError| DecodeError::new(start + error.offset, error.reason);
            let event = event.map_err(in_batch)?;
            limits.charge(&event, len);
            events.push(event);
        }
        input.end()?;
        Ok(events.into_bump_slice())
    }

    /// Names the meaning of every byte of an event. The event is one that [`decode`](Self::decode) accepts.
    ///
    /// # Errors
    /// If the bytes are no event of the format.
    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError>;

    /// Opens an encoded event for reading single fields.
    ///
    /// # Errors
    /// If the bytes that locate the fields break a rule of the format.
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Self::Fields<'a>, DecodeError>;
}

/// Appends by `write`; truncates `out` to its old length on an error.
pub(super) fn or_truncate(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    write(out).inspect_err(|_| out.truncate(start))
}

/// Minimum size of an event in bytes, in every format that has no list of its own: id, key and signature.
const MIN_EVENT_BYTES: usize = 32 + 32 + 64;

fn length(what: &'static str, len: usize) -> Result<[u8; 4], EncodeError> {
    EncodeError::at_most(what, len, u32::MAX as usize)?;
    Ok((len as u32).to_le_bytes())
}
