//! What holds of any bytes that are read in a format of Nostr events.

use bumpalo::Bump;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{Event, Limits, example};

/// Reads `bytes` as an event and as a batch, and as a patch of a signed event.
pub fn events(format: Format, bytes: &[u8]) {
    alone(format, bytes);
    batch(format, bytes);
    alone(format, &patched(format, bytes));
}

/// What is refused is refused at a place in it; what is accepted comes back as it was.
fn alone(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    match format.decode(bytes, &arena, &Limits::default()) {
        Ok(event) => comes_back(format, &event, &arena),
        Err(error) => assert!(error.offset <= bytes.len(), "{error}"),
    }
    bounded(bytes, &arena);
}

fn batch(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    match format.decode_batch(bytes, &arena, &Limits::default()) {
        Ok(events) => events.iter().for_each(|event| comes_back(format, event, &Bump::new())),
        Err(error) => assert!(error.offset <= bytes.len(), "{error}"),
    }
    bounded(bytes, &arena);
}

fn comes_back(format: Format, event: &Event<'_>, arena: &Bump) {
    let mut bytes = Vec::new();
    let written = format.encode(event, &mut bytes);
    if written.is_err() && matches!(format, Format::CapnpPacked | Format::CapnpSchemaPacked) {
        return; // What unpacks to much more than its length is not written, but may have been longer.
    }
    written.expect("what was read from a format has a place in it");
    let arena_of_copy = Bump::new();
    let again = format.decode(&bytes, &arena_of_copy, &Limits::default());
    assert_eq!(again.as_ref(), Ok(event));
    let fields = format.fields(&bytes, arena, &Limits::default()).expect("it was just read");
    assert_eq!((fields.kind(), fields.pubkey()), (Ok(event.kind), Ok(event.pubkey)));
}

/// Memory is in proportion to the bytes.
fn bounded(bytes: &[u8], arena: &Bump) {
    assert!(arena.allocated_bytes() <= 512 * bytes.len() + (64 << 10));
}

/// An event in which some bytes are replaced: the patch is two bytes for where, one for how many, and
/// what stands there then.
fn patched(format: Format, patch: &[u8]) -> Vec<u8> {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    let json = example::JSON.as_bytes();
    let event = Format::Json.decode(json, &arena, &Limits::default()).expect("an example");
    format.encode(&event, &mut bytes).expect("every format holds the example");
    if let [high, low, count, new @ ..] = patch {
        let start = usize::from(u16::from_be_bytes([*high, *low])) % bytes.len();
        let end = bytes.len().min(start + usize::from(*count));
        bytes.splice(start..end, new.iter().copied());
    }
    bytes
}
