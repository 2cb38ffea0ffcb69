//! The memory that reading Nostr events in borrowed form takes.

use bumpalo::Bump;
use nostr::canonical::{self, ControlChars};
use nostr::{Event, Limits, Value, verify_many};
use nostr_formats::Format;
use nostr_formats::container::{Item, StreamReader, Writer};
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

#[test]
fn lists_of_tiny_items_take_at_most_16_bytes_for_each_byte_of_any_format() {
    const SHORT: &[Value<'_>] = &[Value::Text("t"), Value::Text("")];
    const WORDS: &[Value<'_>] = &[Value::Text("e"), Value::Text("root")];
    const FOLLOW: &[Value<'_>] = &[Value::Text("p"), Value::Hex(&[7; 32])];
    const VALUES: &[Value<'_>] = &[Value::Text(""); 9_000];
    for (name, tags) in [
        ("empty tags", &[&[][..]; 9_000][..]),
        ("tags of short values", &[SHORT; 9_000]),
        ("tags of words", &[WORDS; 9_000]),
        ("tags of one key", &[FOLLOW; 9_000]),
        ("empty values", &[VALUES; 10]),
    ] {
        for format in Format::ALL {
            let mut bytes = Vec::new();
            if format.encode_batch(&[with_tags(tags); 60], &mut bytes).is_err() {
                continue;
            }
            let (_, taken) = measured(|| {
                let arena = Bump::new();
                format.decode_batch(&bytes, &arena, &Limits::default()).is_ok()
            });
            let max = 16 * bytes.len() + SLACK_BYTES;
            let peak = taken.peak;
            assert!(peak <= max, "{} {name}: {peak} for {}", format.name(), bytes.len());
        }
    }
}

#[test]
fn a_batch_that_a_sender_of_no_encoder_wrote_takes_no_more() {
    let claim = [&60_000u32.to_le_bytes()[..], &[0; 240_000]].concat();
    // 400 events whose content names one key 10,000 times, in three bytes a time.
    let mut heads = Vec::new();
    for event in 0..400 {
        heads.extend_from_slice(if event == 0 { &[0x70] } else { &[0xc0, 0] });
        heads.extend_from_slice(&[0, 1, 0, 0x73, 0x90, 0x4e]);
        heads.extend_from_slice(&[1, 0xc0, 0].repeat(10_000));
        heads.push(0);
    }
    let len = heads.len() as u32;
    let varint = [0, 7, 14, 21].map(|shift| (len >> shift) as u8 & 0x7f | 0x80);
    let counts = [&[0x81, 0x90, 0x03, 1][..], &varint[..3], &[varint[3] & 0x7f]].concat();
    let references = [&counts[..], &[7; 400 * 64 + 32], &heads, &[b'-'; 4_000_000]].concat();
    for (format, bytes) in [(Format::Notepack, claim), (Format::Wireproof, references)] {
        let (is_decoded, taken) =
            measured(|| format.decode_batch(&bytes, &Bump::new(), &Limits::default()).is_ok());
        assert!(!is_decoded);
        let max = 16 * bytes.len() + SLACK_BYTES;
        assert!(taken.peak <= max, "{}: {} for {}", format.name(), taken.peak, bytes.len());
    }
}

#[test]
fn verifying_many_long_events_holds_few_of_their_canonical_forms() {
    let content = "x".repeat(1 << 20);
    let events = vec![Event { content: &content, ..with_tags(&[]) }; 100];
    let (verdicts, taken) = measured(|| verify_many(&events));
    assert!(verdicts.iter().all(Result::is_err));
    assert!(taken.peak <= 16 << 20, "{} bytes", taken.peak);
}

/// An event of these tags, with its id.
#[test]
fn a_container_of_any_length_is_written_and_read_in_the_memory_of_a_block() {
    const TAG: &[Value<'_>] = &[Value::Text("p"), Value::Hex(&[7; 32])];
    let (event, count) = (with_tags(&[TAG; 10]), 100_000);
    let (_, written) = measured(|| {
        let mut writer = Writer::new(std::io::sink(), Format::Notepack);
        (0..count).for_each(|_| writer.push(&event).unwrap());
        writer.finish().unwrap();
    });
    assert!(written.peak <= 4 << 20, "{} bytes", written.peak);

    let mut writer = Writer::new(Vec::new(), Format::Notepack);
    (0..count).for_each(|_| writer.push(&event).unwrap());
    let file = writer.finish().unwrap();
    assert!(file.len() > 40 << 20);
    let (found, read) = measured(|| {
        let (mut reader, mut arena) = (StreamReader::new(&file[..]), Bump::new());
        let mut found = 0;
        while let Some(Item::Block(block)) = reader.next_item().unwrap() {
            arena.reset();
            let decode = |bytes| block.format().decode(bytes, &arena, &Limits::default());
            found += block.events().filter(|bytes| decode(bytes).is_ok()).count();
        }
        found
    });
    assert_eq!(found, count);
    assert!(read.peak <= 8 << 20, "{} bytes for a container of {}", read.peak, file.len());
}

#[test]
fn a_container_reserves_no_length_that_is_only_stated() {
    let content = "x".repeat(12 << 20);
    let mut writer = Writer::new(Vec::new(), Format::Json);
    writer.push(&Event { content: &content, ..with_tags(&[]) }).unwrap();
    let file = writer.finish().unwrap();
    // The head of the block, which states its 12 MiB, without them.
    let (items, taken) = measured(|| {
        let mut reader = StreamReader::new(&file[..500]);
        std::iter::from_fn(|| reader.next_item().unwrap()).count()
    });
    assert_eq!(items, 1);
    assert!(taken.peak <= 256 << 10, "{} bytes", taken.peak);
}

fn with_tags<'a>(tags: &'a [&'a [Value<'a>]]) -> Event<'a> {
    let id = [0; 32];
    let pubkey = [1; 32];
    let sig = [2; 64];
    let mut event =
        Event { id, pubkey, created_at: 1_700_000_000, kind: 3, tags, content: "", sig };
    event.id = canonical::id(&event, ControlChars::Verbatim, &mut Vec::new());
    event
}

/// Memory that a call may take whatever its input: lists of 1 MiB in an arena whose chunks double.
const SLACK_BYTES: usize = 2 << 20;

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
        let id = [0; 32];
        let pubkey = [1; 32];
        let sig = [2; 64];
        let mut event = Event { id, pubkey, created_at: 1_700_000_000, kind, tags, content, sig };
        event.id = canonical::id(&event, ControlChars::Verbatim, &mut Vec::new());
        event
    };
    (0..).zip(LISTS).map(event).collect()
}
