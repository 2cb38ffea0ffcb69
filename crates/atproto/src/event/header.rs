//! The header of a frame: which message follows.

use codec::cbor::{KeyOrder, Reader};

use super::error::{FrameError, FrameFault, fail};

/// What stands in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The operation: 1 for a message, −1 for an error.
    pub op: i64,
    /// The type of message, such as `#commit`; there is none for an error.
    pub kind: Option<&'a str>,
}

impl Header<'_> {
    /// The operation of a message.
    pub const MESSAGE: i64 = 1;
    /// The operation of an error.
    pub const ERROR: i64 = -1;
}

/// Reads the header of a frame, and answers the offset at which the payload starts. The payload is
/// not looked at.
///
/// # Errors
/// If the frame does not begin with a canonical header.
///
/// ```
/// use wireproof_atproto::event::peek;
/// let (header, payload_at) = peek(b"\xa2\x61t\x67#commit\x62op\x01\xa0")?;
/// assert_eq!((header.op, header.kind, payload_at), (1, Some("#commit"), 15));
/// # Ok::<(), wireproof_atproto::event::FrameError>(())
/// ```
pub fn peek(frame: &[u8]) -> Result<(Header<'_>, usize), FrameError> {
    let mut reader = Reader::new(frame);
    let header = read(&mut reader)?;
    Ok((header, reader.offset()))
}

pub(super) fn read<'a>(reader: &mut Reader<'a>) -> Result<Header<'a>, FrameError> {
    let (mut op, mut kind) = (None, None);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "t" => kind = Some(reader.text()?),
            "op" => op = Some(reader.integer()?),
            _ => reader.skip()?,
        }
    }
    match op {
        None => fail(0, FrameFault::Missing("op")),
        Some(Header::MESSAGE) if kind.is_none() => fail(0, FrameFault::Missing("t")),
        Some(op) => Ok(Header { op, kind }),
    }
}
