//! How do many events follow one another, in a format that has no list of its own?
//!
//! | bytes | |
//! |---|---|
//! | 4 | how many events, little-endian |
//! | then for each: 4 | how many bytes it has, little-endian |
//! | … | the event |

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use super::or_undo;
use crate::input::Input;
use crate::{DecodeError, EncodeError, Event, Limits, Reason};

/// Appends `events`, each as `encode` tells it.
///
/// # Errors
/// The first of `encode`; then nothing was appended.
pub fn encode(
    events: &[Event<'_>],
    out: &mut Vec<u8>,
    encode: impl Fn(&Event<'_>, &mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    or_undo(out, |out| {
        out.extend_from_slice(&length("events", events.len())?);
        for event in events {
            let head = out.len();
            out.extend_from_slice(&[0; 4]);
            encode(event, out)?;
            let len = length("bytes of an event", out.len() - head - 4)?;
            out[head..head + 4].copy_from_slice(&len);
        }
        Ok(())
    })
}

/// The events, each as `decode` reads it.
///
/// # Errors
/// If a length is not what follows, or the first of `decode`, with the place in all of `bytes`.
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
    decode: impl Fn(&'a [u8], &'a Bump, &Limits) -> Result<Event<'a>, DecodeError>,
) -> Result<&'a [Event<'a>], DecodeError> {
    let mut input = Input::new(bytes);
    let count = u32::from_le_bytes(*input.array()?) as usize;
    limits.hold_events(count, 0)?;
    if count > input.rest().len() / 4 {
        return Err(input.fault(Reason::Truncated));
    }
    let mut events = BumpVec::with_capacity_in(count, arena);
    for _ in 0..count {
        let len = u32::from_le_bytes(*input.array()?) as usize;
        let start = input.offset();
        let event = decode(input.take(len)?, arena, limits);
        let in_batch = |error: DecodeError| DecodeError::new(start + error.offset, error.reason);
        events.push(event.map_err(in_batch)?);
    }
    input.end()?;
    Ok(events.into_bump_slice())
}

fn length(what: &'static str, len: usize) -> Result<[u8; 4], EncodeError> {
    EncodeError::at_most(what, len, u32::MAX as usize)?;
    Ok((len as u32).to_le_bytes())
}
