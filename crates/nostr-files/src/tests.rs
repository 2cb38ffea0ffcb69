//! Reading and writing files of events.

use std::fs;
use std::io::Write;
use std::path::Path;

use bumpalo::Bump;
use flate2::Compression;
use flate2::write::GzEncoder;
use nostr::{DecodeError, Event, OwnedEvent, Reason};
use nostr_formats::Format;
use simnet::nostr_events::{Corpus, Spec};

use super::*;
use crate::group::RawRecord;

fn corpus() -> Corpus {
    Corpus::generate(&Spec { events: 60, authors: 5, ..Spec::quick() })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn read<'a>(layout: Layout, bytes: &[u8], arena: &'a Bump) -> Result<Vec<Event<'a>>, FileFault> {
    let mut reader = Reader::new(layout, bytes);
    let mut events = Vec::new();
    loop {
        let first = reader.taken();
        let group = reader.group(arena, 7)?;
        if group.is_empty() {
            return Ok(events);
        }
        for (at, event) in group.into_iter().enumerate() {
            let at = first + at as u64;
            events.push(event.map_err(|fault| FileFault::Event { at, fault })?);
        }
    }
}

#[test]
fn every_layout_round_trips() {
    let (corpus, arena) = (corpus(), Bump::new());
    let events: Vec<_> = corpus.events().iter().map(|event| event.borrow_in(&arena)).collect();
    for name in Layout::names() {
        let layout = Layout::from_name(name).unwrap();
        let file = layout.write(&events, Vec::new()).unwrap();
        let back = match layout {
            // One group; the helper would cut it to seven.
            Layout::Batch(_) | Layout::Container(_) => {
                Reader::new(layout, &file[..]).group(&arena, u64::MAX).unwrap()
            }
            _ => read(layout, &file, &arena).unwrap().into_iter().map(Ok).collect(),
        };
        assert!(back.into_iter().map(Result::unwrap).eq(events.iter().copied()), "{name}");
    }
}

#[test]
fn events_of_a_container_that_are_large_in_memory_alone_share_one_allowance() {
    let (arena, empty) = (Bump::new(), vec![vec![String::new(); 9_000]]);
    let event = OwnedEvent { tags: empty, ..corpus().events()[0].clone() };
    let file = Layout::CONTAINER.write(&vec![event.borrow_in(&arena); 100], Vec::new()).unwrap();
    let mut reader = Reader::new(Layout::CONTAINER, &file[..]);
    let group = reader.next_group(u64::MAX).unwrap().unwrap();
    let arena = Bump::new();
    let entries = group.decode(&arena).unwrap();
    let refused = entries.iter().filter(|entry| entry.event.is_err()).count();
    assert!(entries[0].event.is_ok() && refused > 50, "{refused} of {}", entries.len());
    assert!(arena.allocated_bytes() <= 16 * file.len() + (2 << 20));
}

#[test]
fn records_of_every_framing_are_read_and_every_truncation_is_noticed() {
    let (corpus, arena) = (corpus(), Bump::new());
    let events: Vec<_> = corpus.events()[..3].iter().map(|event| event.borrow_in(&arena)).collect();
    for name in ["pb", "proto-binary.pb", "proto-binary-hex.pb", "notepack-segment"] {
        let layout = Layout::from_name(name).unwrap();
        let file = layout.write(&events, Vec::new()).unwrap();
        let mut ends = 0;
        for len in 0..file.len() {
            match read(layout, &file[..len], &arena) {
                Ok(found) => ends += usize::from(events.starts_with(&found)),
                Err(fault) => assert!(matches!(fault, FileFault::Truncated(_)), "{len}: {fault}"),
            }
        }
        assert_eq!(ends, 3, "{name}: before each event");
    }
    let long = [&u32::MAX.to_le_bytes()[..], &[0; 8]].concat();
    let segment = Layout::from_name("notepack-segment").unwrap();
    assert!(matches!(read(segment, &long, &arena), Err(FileFault::TooLong(0))));
}

#[test]
fn strings_are_read_among_lines_of_json_and_a_wrong_one_is_a_line_of_its_own() {
    let (corpus, arena) = (corpus(), Bump::new());
    let events: Vec<_> = corpus.events()[..2].iter().map(|event| event.borrow_in(&arena)).collect();
    let [json, strings] =
        [Layout::Lines, Layout::Strings].map(|layout| layout.write(&events, Vec::new()).unwrap());
    let file = [&json[..], b" ", &strings, b"notepack_A\n"].concat();
    let mut reader = Reader::new(Layout::Lines, &file[..]);
    let group = reader.next_group(100).unwrap().unwrap();
    let entries = group.decode(&arena).unwrap();
    let found = entries[..4].iter().map(|entry| entry.event.unwrap());
    assert!(found.eq(events.iter().chain(&events).copied()));
    assert!(entries[0].json.is_some() && entries[2].json.is_none());
    assert_eq!((entries[4].line, entries[4].json), (Some(5), Some(&b"notepack_A"[..])));
    assert!(entries[4].event.is_err());
}

#[test]
fn the_text_of_a_record_is_a_line_unless_it_has_several_and_a_fault_has_none() {
    let (one, arena) = (nostr::example::JSON, Bump::new());
    let several = one.replacen(',', ",\n", 1);
    let bytes = [one, &several].concat().into_bytes();
    let fault = DecodeError::new(0, Reason::Truncated);
    let fault = EntryFault::Unreadable(fault);
    let record = |end, key, fault| RawRecord { end, summary_len: 0, key, fault };
    let (end, last) = (one.len(), bytes.len());
    let records = vec![record(end, 3, None), record(last, 9, None), record(last, 10, Some(fault))];
    let group = RawGroup::of_records(7, Format::Json, bytes, records);
    let entries = group.decode(&arena).unwrap();
    let keys: Vec<_> = entries.iter().map(|entry| (entry.key, entry.line)).collect();
    assert_eq!(keys, [(Some(3), None), (Some(9), None), (Some(10), None)]);
    let json: Vec<_> = entries.iter().map(|entry| entry.json).collect();
    assert_eq!(json, [Some(one.as_bytes()), None, None]);
    assert_eq!(entries[0].event.unwrap(), entries[1].event.unwrap());
    assert_eq!(entries[2].event, Err(fault));
}

#[test]
fn a_single_event_is_read_and_written_and_no_other_number_of_them() {
    let (corpus, arena) = (corpus(), Bump::new());
    let event = corpus.events()[0].borrow_in(&arena);
    for format in Format::ALL {
        let layout = Layout::Batch(*format).single();
        let file = layout.write(&[event], Vec::new()).unwrap();
        assert_eq!(read(layout, &file, &arena).unwrap(), [event], "{}", format.name());
        for events in [&[][..], &[event, event]] {
            let error = layout.write(events, Vec::new()).unwrap_err();
            assert!(matches!(error, OutputError::Single(_)), "{error}");
        }
    }
    let many = vec![b' '; 17 << 20];
    let fault = read(Layout::Single(Format::Json), &many, &arena).unwrap_err();
    assert!(matches!(fault, FileFault::TooLong(0)), "{fault}");
}

#[test]
fn lines_end_at_a_line_feed_only_and_the_last_may_lack_it() {
    let (corpus, arena) = (corpus(), Bump::new());
    let file = simnet::nostr_sampling::grouped_lines(&corpus.by_category());
    let count = file.split_terminator('\n').filter(|line| !line.starts_with('#')).count();
    let cut = file.strip_suffix('\n').unwrap();
    for file in [&file, cut] {
        assert_eq!(read(Layout::Lines, file.as_bytes(), &arena).unwrap().len(), count);
    }
}

#[test]
fn blank_lines_are_nothing_and_lines_are_counted_with_them() {
    let arena = Bump::new();
    for file in ["", "\n", " \t\r\n", " ", "# group\n\n", "\n\n \n# group\n"] {
        assert_eq!(read(Layout::Lines, file.as_bytes(), &arena).unwrap().len(), 0, "{file:?}");
    }
    let mut reader = Reader::new(Layout::Lines, &b"\n{}\n \n# group\n[]"[..]);
    let group = reader.next_group(100).unwrap().unwrap();
    let lines: Vec<_> = group.decode(&arena).unwrap().iter().map(|entry| entry.line).collect();
    assert_eq!((group.first, lines), (0, vec![Some(2), Some(5)]));
}

#[test]
fn compressed_lines_are_read_and_every_truncation_is_rejected() {
    let (corpus, arena) = (corpus(), Bump::new());
    let lines = simnet::nostr_sampling::grouped_lines(&corpus.by_category());
    let plain = read(Layout::Lines, lines.as_bytes(), &arena).unwrap();
    let twice = [gzip(lines.as_bytes()), gzip(lines.as_bytes())].concat();
    assert_eq!(read(Layout::Lines, &twice, &arena).unwrap(), [&plain[..], &plain].concat());
    let (few, _) = lines.split_at(lines.find("\n#").unwrap());
    for file in [gzip(few.as_bytes()), zstd::encode_all(few.as_bytes(), 3).unwrap()] {
        assert!(!read(Layout::Lines, &file, &arena).unwrap().is_empty());
        // Shorter ones are not known to be compressed.
        for len in 4..file.len() {
            let fault = read(Layout::Lines, &file[..len], &arena).unwrap_err();
            let is_named = matches!(fault, FileFault::Compressed { .. });
            assert!(is_named && !fault.is_local(), "{len}: {fault}");
        }
    }
}

#[test]
fn a_window_of_zstandard_that_would_take_much_memory_is_refused() {
    let arena = Bump::new();
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&vec![b'x'; 20 << 20]).unwrap();
    let file = encoder.finish().unwrap();
    let fault = read(Layout::Lines, &file, &arena).unwrap_err();
    assert!(matches!(fault, FileFault::Compressed { .. }), "{fault}");
}

#[test]
fn events_in_messages_are_read_and_their_faults_have_offsets_in_the_line() {
    let (corpus, arena) = (corpus(), Bump::new());
    let events: Vec<_> = corpus.events().iter().map(|event| event.borrow_in(&arena)).collect();
    let lines = Layout::Lines.write(&events, Vec::new()).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    for (start, end) in [
        (r#"["EVENT","#, "]"),
        (r#"["EVENT","feed","#, "]"),
        (r#"["EVENT","feed","#, r#",{"seq":1},2]"#),
    ] {
        let messages: String = lines.lines().map(|line| format!("{start}{line}{end}\n")).collect();
        assert_eq!(read(Layout::Lines, messages.as_bytes(), &arena).unwrap(), events);
        let fault = read(Layout::Lines, format!("{start}[1]]").as_bytes(), &arena).unwrap_err();
        let FileFault::Event { at: 0, fault } = fault else { panic!("{fault}") };
        let EntryFault::Unreadable(fault) = fault else { panic!("{fault}") };
        assert_eq!(fault.offset, start.len());
    }
}

#[test]
fn the_name_of_a_file_tells_records_from_compressed_lines() {
    for (name, layout) in [
        ("a.pb.gz", Layout::PB_GZ),
        ("a.gz", Layout::PB_GZ),
        ("segment-1.notepack", Layout::from_name("notepack-segment").unwrap()),
        ("segment-1.notepack.gz", Layout::from_name("notepack-segment.gz").unwrap()),
        ("a.jsonl.gz", Layout::Lines),
        ("a.ndjson.gz", Layout::Lines),
        ("a.jsonl.zst", Layout::Lines),
        ("a.jsonl", Layout::Lines),
        ("-", Layout::Lines),
    ] {
        assert_eq!(Layout::of_path(Path::new(name)), layout, "{name}");
    }
}

#[test]
fn a_file_of_0_bytes_is_an_event_list_only_where_the_format_says_so() {
    let arena = Bump::new();
    for format in Format::ALL {
        let is_list = format.name().starts_with("proto-");
        let found = read(Layout::Batch(*format), b"", &arena);
        assert_eq!(found.is_ok(), is_list, "{}", format.name());
    }
    assert!(matches!(read(Layout::PB_GZ, b"", &arena), Err(FileFault::Compressed { .. })));
}

#[test]
fn a_byte_order_mark_and_a_compressed_list_are_named() {
    let arena = Bump::new();
    let message = |layout, bytes: &[u8]| read(layout, bytes, &arena).unwrap_err().to_string();
    for layout in [Layout::Lines, Layout::Batch(Format::Json)] {
        let found = message(layout, b"\xef\xbb\xbf{}\n");
        assert_eq!(found, "the file begins with a byte order mark: remove its 3 bytes");
    }
    let found = message(Layout::Batch(Format::Json), &gzip(b"[]"));
    assert_eq!(found, "the file is gzip-compressed: decompress it first");
}

#[test]
fn every_truncation_of_a_compressed_file_is_rejected() {
    let arena = Bump::new();
    let corpus = corpus();
    let events: Vec<_> = corpus.events()[..3].iter().map(|event| event.borrow_in(&arena)).collect();
    let file = Layout::PB_GZ.write(&events, Vec::new()).unwrap();
    for len in 0..file.len() {
        let fault = read(Layout::PB_GZ, &file[..len], &arena).unwrap_err();
        assert!(
            matches!(fault, FileFault::Compressed { .. }) && !fault.is_local(),
            "{len}: {fault}"
        );
    }
}

#[test]
fn a_truncated_record_and_a_bad_length_prefix_are_rejected() {
    let arena = Bump::new();
    let fault = |bytes: &[u8]| read(Layout::PB_GZ, &gzip(bytes), &arena).unwrap_err();
    assert!(matches!(fault(&[5, 1, 2]), FileFault::Truncated(0)));
    assert!(matches!(fault(&[0x85]), FileFault::Truncated(0)));
    assert!(matches!(fault(&[0x85, 0]), FileFault::Length(0)));
    assert!(matches!(fault(&[0xff, 0xff, 0xff, 0xff, 0x0f]), FileFault::TooLong(0)));
    assert!(matches!(fault(&[0xff; 9]), FileFault::TooLong(0)));
    let empty = fault(&[0]);
    assert!(matches!(empty, FileFault::Event { at: 0, .. }), "{empty}");
    assert!(matches!(fault(b"{}\n"), FileFault::Truncated(0)));
}

#[test]
fn events_before_a_fault_are_returned_first() {
    let arena = Bump::new();
    let corpus = corpus();
    let events: Vec<_> = corpus.events()[..2].iter().map(|event| event.borrow_in(&arena)).collect();
    let mut bytes = Vec::new();
    for event in &events {
        let mut record = Vec::new();
        Format::ProtoString.encode(event, &mut record).unwrap();
        bytes.extend([record.len() as u8 | 0x80, (record.len() >> 7) as u8]);
        bytes.extend(record);
    }
    bytes.extend([9, 1]);
    let file = gzip(&bytes);
    let mut reader = Reader::new(Layout::PB_GZ, &file[..]);
    assert_eq!(reader.group(&arena, 100).unwrap().len(), 2);
    assert!(matches!(reader.group(&arena, 100), Err(FileFault::Truncated(2))));
}

#[test]
fn an_invalid_event_is_reported_at_its_index() {
    let arena = Bump::new();
    let mut reader = Reader::new(Layout::Lines, &b"{}\n[]\n"[..]);
    let group = reader.group(&arena, 100).unwrap();
    assert_eq!(group.len(), 2);
    let expected = DecodeError { offset: 0, reason: Reason::Expected("an object") };
    assert_eq!(group[1], Err(expected.into()));
    assert!(reader.group(&arena, 100).unwrap().is_empty());
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (corpus, arena) = (corpus(), Bump::new());
    let events: Vec<_> = corpus.events().iter().map(|event| event.borrow_in(&arena)).collect();
    for (name, part) in [("b.pb.gz", &events[..20]), ("a.pb.gz", &events[20..])] {
        let file = Layout::PB_GZ.write(part, Vec::new()).unwrap();
        fs::write(dir.path().join(name), file).unwrap();
    }
    fs::write(dir.path().join("notes.txt"), "no events").unwrap();
    dir
}

#[test]
fn a_folder_is_read_in_the_order_of_names_and_a_limit_is_shared() {
    let dir = folder();
    let corpus = corpus();
    let arena = Bump::new();
    let ids = |limit| {
        let input = Input::open(&[dir.path()], None, limit).unwrap();
        input.load(&arena).unwrap().into_iter().map(|event| event.id).collect::<Vec<_>>()
    };
    let made: Vec<_> = corpus.events().iter().map(|event| event.id).collect();
    assert_eq!(ids(None), [&made[20..], &made[..20]].concat());
    assert_eq!(ids(Some(6)), [&made[20..23], &made[..3]].concat());
    assert_eq!(ids(Some(1)), [made[20], made[0]]);
}

#[test]
fn an_empty_folder_and_a_missing_file_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Input::open(&[dir.path()], None, None).unwrap_err();
    assert!(matches!(fault, InputError::EmptyFolder(_)) && !fault.is_local(), "{fault}");
    let input = Input::open(&["no-such-file"], None, None).unwrap();
    let fault = input.load(&Bump::new()).unwrap_err();
    assert!(fault.is_local() && fault.to_string().starts_with("no-such-file: "), "{fault}");
}
