//! How does Notepack travel as text?

use bumpalo::Bump;
use data_encoding::BASE64_NOPAD;

use super::{decode, encode};
use crate::{DecodeError, EncodeError, Event, Limits, Reason};

/// Appends `event` as `notepack_` and base64.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode_string(event: &Event<'_>, out: &mut String) -> Result<(), EncodeError> {
    let mut bytes = Vec::new();
    encode(event, &mut bytes)?;
    out.push_str(PREFIX);
    BASE64_NOPAD.encode_append(&bytes, out);
    Ok(())
}

/// The event that `text` is, with its bytes in `arena`.
///
/// # Errors
/// If `text` is not `notepack_` and base64 without padding, at a place in `text`; or if the bytes are
/// no event, at a place in the bytes.
pub fn decode_string<'a>(
    text: &str,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let prefix = DecodeError::new(0, Reason::Expected("`notepack_`"));
    let digits = text.strip_prefix(PREFIX).ok_or(prefix)?.as_bytes();
    let fault =
        |at| DecodeError::new(PREFIX.len() + at, Reason::Expected("base64 without padding"));
    let len = BASE64_NOPAD.decode_len(digits.len()).map_err(|error| fault(error.position))?;
    let bytes = arena.alloc_slice_fill_copy(len, 0);
    match BASE64_NOPAD.decode_mut(digits, bytes) {
        Ok(_) => decode(bytes, arena, limits),
        Err(partial) => Err(fault(partial.error.position)),
    }
}

const PREFIX: &str = "notepack_";
