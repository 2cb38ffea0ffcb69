//! The memory that reading Nostr events in borrowed form takes.

use bumpalo::Bump;
use wireproof::nostr::canonical::{self, ControlChars};
use wireproof::nostr::formats::Format;
use wireproof::nostr::{Event, Limits, Value};
use wireproof_conformance::fixtures;

use crate::{MAX_WARM_UP_PASSES, measured};

#[test]
fn an_event_of_any_format_is_read_into_a_warm_arena_without_allocating() {
    assert_warm_reading_allocates_nothing(&made_events());
}

#[test]
fn a_real_event_of_any_format_is_read_into_a_warm_arena_without_allocating() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let decode = |line| Format::Json.decode(line, &arena, &Limits::default()).unwrap();
    let events: Vec<Event<'_>> = lines.map(decode).collect();
    assert_warm_reading_allocates_nothing(&events);
}

fn assert_warm_reading_allocates_nothing(events: &[Event<'_>]) {
    for format in Format::ALL {
        let (mut singly, mut batches) = (Vec::new(), Vec::new());
        for group in events.chunks(100) {
            let held = group.iter().filter(|event| format.encode(event, &mut Vec::new()).is_ok());
            let held: Vec<Event<'_>> = held.copied().collect();
            batches.push(written(|out| format.encode_batch(&held, out).unwrap()));
            singly
                .extend(held.iter().map(|event| written(|out| format.encode(event, out).unwrap())));
        }
        let limits = Limits::default();
        assert_warm(format.name(), &singly, |bytes, arena| {
            format.decode(bytes, arena, &limits).is_ok()
        });
        assert_warm(&format!("{}/batch", format.name()), &batches, |bytes, arena| {
            format.decode_batch(bytes, arena, &limits).is_ok()
        });
    }
}

/// That after a few passes no pass allocates any more.
fn assert_warm(name: &str, inputs: &[Vec<u8>], decode: impl Fn(&[u8], &Bump) -> bool) {
    let mut arena = Bump::new();
    let mut pass = || {
        let (are_read, taken) = measured(|| {
            inputs.iter().all(|bytes| {
                arena.reset();
                decode(bytes, &arena)
            })
        });
        assert!(are_read, "{name}");
        taken.allocations
    };
    let warm_up = (0..MAX_WARM_UP_PASSES).find(|_| pass() == 0);
    assert!(warm_up.is_some_and(|passes| passes > 0), "{name}: warm behind pass {warm_up:?}");
    assert_eq!((pass(), pass()), (0, 0), "{name}");
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

/// Events of no tags and of many, with text and with digits, that need no unescaping.
fn made_events() -> Vec<Event<'static>> {
    const TAG: &[Value<'_>] =
        &[Value::Text("p"), Value::Hex(&[7; 32]), Value::Text("wss://a.test")];
    const OTHER: &[Value<'_>] = &[Value::Text("e"), Value::Hex(&[8; 32]), Value::Text("DEADBEEF")];
    const LISTS: [&[&[Value<'_>]]; 4] = [&[], &[TAG], &[OTHER, TAG, &[]], &[TAG; 500]];
    let event = |(kind, tags)| {
        let content = ["", "hello", "\u{1f30d} and more"][kind as usize % 3];
        let (id, pubkey, sig) = ([0; 32], [1; 32], [2; 64]);
        let mut event = Event { id, pubkey, created_at: 1_700_000_000, kind, tags, content, sig };
        event.id = canonical::id(&event, ControlChars::Verbatim, &mut Vec::new());
        event
    };
    (0..).zip(LISTS).map(event).collect()
}
