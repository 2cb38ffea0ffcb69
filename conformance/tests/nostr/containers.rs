//! Containers: the bytes of the page, and real events in every format.

use std::io::Cursor;

use bumpalo::Bump;
use nostr::{Event, Limits, OwnedEvent, example};
use nostr_formats::Format;
use nostr_formats::container::{IndexedReader, Item, StreamReader, WriteError, Writer};
use wireproof_conformance::fixtures;

const PAGE: &str = include_str!("../../../docs/formats/nostr/container.md");

#[test]
fn the_test_vector_of_the_page_is_what_is_written_and_read() {
    let (_, vector) = PAGE.split_once("## Test vector").unwrap();
    let block = |mark: &str| vector.split(mark).nth(1).unwrap().split("```").next().unwrap();
    let json = block("```json").trim();
    assert_eq!(json, example::JSON);
    let digits =
        |line: &str| line.split_once("  ").map_or("", |(_, digits)| digits).replace(' ', "");
    let digits: String = block("```text").lines().map(digits).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    let expected: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect();
    assert!(vector.contains(&format!("{} bytes below", expected.len())));

    let arena = Bump::new();
    let event = Format::Json.decode(json.as_bytes(), &arena, &Limits::default()).unwrap();
    let mut writer = Writer::new(Vec::new(), Format::Notepack);
    writer.push(&event).unwrap();
    assert_eq!(writer.finish().unwrap(), expected);
    assert_eq!(read(&expected), [event.to_owned()]);
}

#[test]
fn the_numbers_of_formats_are_those_of_the_page() {
    for format in Format::ALL {
        let file = Writer::new(Vec::new(), *format).finish().unwrap();
        let number = u32::from_le_bytes(*file[12..].first_chunk().unwrap());
        let cells = PAGE.lines().filter(|line| line.starts_with("| ")).flat_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            cells
                .windows(2)
                .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
                .collect::<Vec<_>>()
        });
        let row = (number.to_string(), format!("`{}`", format.name()));
        assert!(cells.into_iter().any(|cell| cell == row), "{row:?}");
    }
}

#[test]
fn real_events_come_back_from_a_container_of_every_format() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let decode = |line| Format::Json.decode(line, &arena, &Limits::default()).unwrap();
    let events: Vec<Event<'_>> = lines.map(decode).collect();
    for format in Format::ALL {
        let mut writer = Writer::new(Vec::new(), *format);
        let held = |event: &&Event<'_>| match writer.push(event) {
            Ok(()) => true,
            Err(WriteError::Encode(_)) => false,
            Err(WriteError::Io(error)) => panic!("{error}"),
        };
        let held: Vec<OwnedEvent> = events.iter().filter(held).map(Event::to_owned).collect();
        assert!(held.len() >= events.len() - 3, "{}", format.name());
        let container = writer.finish().unwrap();
        assert!(read(&container) == held, "{}", format.name());
        let mut reader = IndexedReader::open(Cursor::new(&container)).unwrap();
        for number in (0..held.len()).step_by(331) {
            let found = reader.event(number as u64).unwrap().unwrap();
            let event = found.format.decode(&found.bytes, &arena, &Limits::default()).unwrap();
            assert!(event.to_owned() == held[number], "{} {number}", format.name());
        }
    }
}

/// The events of a container without damage.
fn read(container: &[u8]) -> Vec<OwnedEvent> {
    let (mut reader, mut events) = (StreamReader::new(container), Vec::new());
    while let Some(item) = reader.next_item().unwrap() {
        let block = match item {
            Item::Block(block) => block,
            Item::Damage(damage) => panic!("{damage}"),
        };
        let arena = Bump::new();
        let decode = |bytes| block.format().decode(bytes, &arena, &Limits::default());
        events.extend(block.events().map(|bytes| decode(bytes).unwrap().to_owned()));
    }
    events
}
