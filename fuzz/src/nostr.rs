//! Events of every Nostr format survive decoding and encoding, and other input does no harm.

use std::io::Cursor;

use ::nostr::{Event, Limits, example};
use bumpalo::Bump;
use nostr_formats::container::{IndexedReader, Item, StreamReader, Writer};
use nostr_formats::packed_event::PackedEvent;
use nostr_formats::{Format, notepack};

/// Reads `bytes` as an event and as a batch, and as a patch of a signed event.
pub(crate) fn run(format: Format, bytes: &[u8]) {
    alone(format, bytes);
    batch(format, bytes);
    alone(format, &patched(format, bytes));
}

/// Like [`run`], for CBOR by position, in which an event has one encoding.
pub(crate) fn run_cbor_packed(bytes: &[u8]) {
    run(Format::CborPacked, bytes);
    let (arena, mut again) = (Bump::new(), Vec::new());
    let Ok(event) = Format::CborPacked.decode(bytes, &arena, &Limits::default()) else { return };
    Format::CborPacked.encode(&event, &mut again).expect("it was just read");
    assert_eq!(again, bytes);
}

/// Like [`run`], for Notepack, whose events also have a text form.
pub(crate) fn run_notepack(bytes: &[u8]) {
    run(Format::Notepack, bytes);
    let (arena, limits) = (Bump::new(), Limits::default());
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(event) = notepack::decode_string(text, &arena, &limits)
    {
        let mut again = String::new();
        notepack::encode_string(&event, &mut again).expect("it was just read");
        assert_eq!(notepack::decode_string(&again, &arena, &limits), Ok(event));
    }
}

/// Reads `bytes`, and a patched container, as a container: damage is in order and within the bytes, and an event by number
/// equals the stream's.
pub(crate) fn run_container(bytes: &[u8]) {
    container(bytes);
    let mut file = sample_container();
    patch(&mut file, bytes);
    container(&file);
}

/// A container of three events.
pub(crate) fn sample_container() -> Vec<u8> {
    let (arena, mut writer) = (Bump::new(), Writer::new(Vec::new(), Format::Notepack));
    let json = example::JSON.as_bytes();
    let event = Format::Json.decode(json, &arena, &Limits::default()).expect("an example");
    (0..3).for_each(|_| writer.push(&event).expect("Notepack holds every event"));
    writer.finish().expect("memory does not fail")
}

fn container(bytes: &[u8]) {
    let mut reader = StreamReader::new(bytes);
    let mut events = Vec::new();
    let mut last = 0;
    while let Some(item) = reader.next_item().expect("a slice does not fail") {
        match item {
            Item::Block(block) => {
                let numbers = block.first()..;
                events.extend(numbers.zip(block.events().map(<[u8]>::to_vec)));
            }
            Item::Damage(damage) => {
                assert!(last <= damage.offset && damage.offset + damage.len <= bytes.len() as u64);
                last = damage.offset;
            }
        }
    }
    let Ok(mut indexed) = IndexedReader::open(Cursor::new(bytes)) else { return };
    for (number, expected) in &events {
        // Blocks may be there twice: the index knows one of them.
        if let Ok(Some(found)) = indexed.event(*number) {
            let same = |(other, bytes): &(u64, Vec<u8>)| other == number && *bytes == found.bytes;
            assert!(found.bytes == *expected || events.iter().any(same));
        }
    }
}

/// The parts of an accepted summary of strfry cover all of its bytes.
pub(crate) fn run_packed_event(bytes: &[u8]) {
    match PackedEvent::new(bytes) {
        Ok(summary) => {
            let tags: usize = summary.tags().map(|tag| 2 + tag.value.len()).sum();
            assert_eq!(88 + tags, bytes.len());
        }
        Err(error) => assert!(error.offset <= bytes.len(), "{error}"),
    }
}

/// Rejected input is rejected at a place in it; an accepted event survives encoding.
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

/// An event in which some bytes are replaced.
fn patched(format: Format, with: &[u8]) -> Vec<u8> {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    let json = example::JSON.as_bytes();
    let event = Format::Json.decode(json, &arena, &Limits::default()).expect("an example");
    format.encode(&event, &mut bytes).expect("every format holds the example");
    patch(&mut bytes, with);
    bytes
}

/// Replaces some bytes: the patch is two bytes for the place, one for the number, and the new bytes.
fn patch(bytes: &mut Vec<u8>, patch: &[u8]) {
    if let [high, low, count, new @ ..] = patch {
        let start = usize::from(u16::from_be_bytes([*high, *low])) % bytes.len();
        let end = bytes.len().min(start + usize::from(*count));
        bytes.splice(start..end, new.iter().copied());
    }
}
