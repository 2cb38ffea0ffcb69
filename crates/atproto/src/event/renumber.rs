//! The sequence number of a frame, which is the part of a frame that a server adds.

use codec::cbor::{Encoder, KeyOrder, Reader};

use super::peek;

/// The frame with another sequence number. Nothing else changes: a commit is signed, the message around it is not. `None` for
/// a message without a sequence number.
///
/// ```
/// use wireproof::atproto::event::{Decoder, Event, Identity, Options, renumbered};
/// let identity = Identity { seq: 7, did: "did:web:a.test", time: "2026-01-01T00:00:00Z", handle: None };
/// let frame = renumbered(&Event::Identity(identity).to_frame(), 900).unwrap();
/// let mut decoder = Decoder::new(Options::default());
/// assert_eq!(decoder.decode(&frame)?, Event::Identity(Identity { seq: 900, ..identity }));
/// # Ok::<(), wireproof::atproto::event::FrameError>(())
/// ```
pub fn renumbered(frame: &[u8], seq: i64) -> Option<Vec<u8>> {
    let (_, payload) = peek(frame).ok()?;
    let mut reader = Reader::starting_at(frame, payload);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map().ok()? {
        if reader.key(&mut keys).ok()? != "seq" {
            reader.skip().ok()?;
            continue;
        }
        let start = reader.offset();
        reader.integer().ok()?;
        let mut number = Encoder::new();
        number.integer(seq);
        return Some([&frame[..start], number.as_bytes(), &frame[reader.offset()..]].concat());
    }
    None
}
