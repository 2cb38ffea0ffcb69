//! Containers: round trips, damage of every kind, and hostile bytes.

use std::io::Cursor;

use bumpalo::Bump;

use super::parts::{
    BLOCK_HEAD_LEN, BlockHead, END_BYTES, HEADER_LEN, Header, MAX_BLOCK_EVENTS, MAX_BODY_BYTES,
};
use super::stream::{MAX_WASTED_BYTES, MAX_WASTED_RATIO};
use super::writer::BlockSize;
use super::*;
use crate::tests::{Random, golden, ordinary};
use nostr::{EncodeError, Event, Limits, OwnedEvent};

/// A container with blocks of so many events.
fn container(format: Format, events: &[OwnedEvent], block_events: usize) -> Vec<u8> {
    let size = BlockSize { events: block_events, bytes: 1 << 20 };
    let (arena, mut writer) = (Bump::new(), Writer::with_block_size(Vec::new(), format, size));
    events.iter().for_each(|event| writer.push(&event.borrow_in(&arena)).unwrap());
    assert_eq!(writer.len(), events.len() as u64);
    writer.finish().unwrap()
}

/// The findings of a reader: the blocks, and the damage.
fn read(bytes: &[u8]) -> (Vec<Block>, Vec<Damage>) {
    let (mut reader, mut found) = (StreamReader::new(bytes), (Vec::new(), Vec::new()));
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::Block(block) => found.0.push(block),
            Item::Damage(damage) => found.1.push(damage),
        }
    }
    assert!(reader.wasted <= MAX_WASTED_BYTES + (MAX_WASTED_RATIO + 2) * bytes.len() as u64);
    assert_eq!(reader.next_item().unwrap(), None);
    found
}

fn decoded(blocks: &[Block]) -> Vec<OwnedEvent> {
    let (arena, limits) = (Bump::new(), Limits::default());
    let event = |block: &Block, bytes: &[u8]| -> OwnedEvent {
        block.format().decode(bytes, &arena, &limits).unwrap().to_owned()
    };
    let all = blocks
        .iter()
        .flat_map(|block| block.events().map(|bytes| event(block, bytes)).collect::<Vec<_>>());
    all.collect()
}

/// The numbers of the first events of blocks.
fn firsts(blocks: &[Block]) -> Vec<u64> {
    blocks.iter().map(Block::first).collect()
}

fn faults(damage: &[Damage]) -> Vec<Fault> {
    damage.iter().map(|damage| damage.fault).collect()
}

/// Different events of little content.
fn short(range: std::ops::Range<usize>) -> Vec<OwnedEvent> {
    let cut = |event: &OwnedEvent| {
        let tags = event.tags.iter().take(1).cloned().collect();
        OwnedEvent { tags, content: String::new(), ..event.clone() }
    };
    ordinary()[range].iter().map(cut).collect()
}

/// A container of seven blocks of three events, and the offsets of its blocks and of the index.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let file = container(Format::Notepack, &short(0..21), 3);
    let (blocks, damage) = read(&file);
    assert_eq!((blocks.len(), damage), (7, vec![]));
    let mut offsets: Vec<usize> = blocks.iter().map(|block| block.offset() as usize).collect();
    let tail = file.len() - 20;
    offsets.push(u64::from_le_bytes(*file[tail..].first_chunk().unwrap()) as usize);
    (file, offsets)
}

#[test]
fn events_come_back_in_order_in_every_format_and_every_size_of_blocks() {
    let events = ordinary();
    for format in Format::ALL {
        for size in [1, 7, 512] {
            let file = container(*format, &events, size);
            let (blocks, damage) = read(&file);
            assert_eq!(damage, [], "{}", format.name());
            assert_eq!(decoded(&blocks), events, "{}", format.name());
            assert!(firsts(&blocks).iter().copied().eq((0..events.len() as u64).step_by(size)));
        }
    }
}

#[test]
fn a_container_without_events_is_a_header_and_an_index() {
    let file = container(Format::Json, &[], 1);
    assert_eq!(file.len(), 28 + 40 + 20);
    assert_eq!(read(&file), (vec![], vec![]));
    let mut reader = IndexedReader::open(Cursor::new(&file)).unwrap();
    assert!(reader.is_empty() && reader.event(0).unwrap().is_none());
}

#[test]
fn every_format_has_a_number_that_names_it() {
    for format in Format::ALL {
        assert_eq!(format_of(number_of(*format)), Ok(*format));
    }
    assert_eq!(format_of(17), Err(Fault::Format(17)));
}

#[test]
fn blocks_are_bounded_in_bytes_and_a_long_event_has_its_own() {
    let long = |len| OwnedEvent { content: "x".repeat(len), ..golden() };
    let events = [long(500), long(500), long(500), long(5_000), long(10), long(10)];
    let size = BlockSize { events: 512, bytes: 2_000 };
    let (arena, mut writer) =
        (Bump::new(), Writer::with_block_size(Vec::new(), Format::Notepack, size));
    events.iter().for_each(|event| writer.push(&event.borrow_in(&arena)).unwrap());
    let (blocks, damage) = read(&writer.finish().unwrap());
    assert_eq!((damage, decoded(&blocks)), (vec![], events.to_vec()));
    assert_eq!(blocks.iter().map(Block::len).collect::<Vec<_>>(), [2, 1, 1, 2]);
}

#[test]
fn an_event_that_the_format_cannot_hold_or_that_is_too_long_leaves_the_others() {
    let arena = Bump::new();
    let mut writer = Writer::new(Vec::new(), Format::Dannypack);
    let values = OwnedEvent { tags: vec![vec![String::new(); 256]], ..golden() };
    let long = OwnedEvent { content: "\u{1}".repeat(MAX_EVENT_BYTES), ..golden() };
    writer.push(&golden().borrow_in(&arena)).unwrap();
    for event in [&values, &long] {
        let error = writer.push(&event.borrow_in(&arena)).unwrap_err();
        assert!(matches!(error, WriteError::Encode(EncodeError::TooMany { .. })), "{error}");
    }
    writer.push(&golden().borrow_in(&arena)).unwrap();
    let (blocks, damage) = read(&writer.finish().unwrap());
    assert_eq!((decoded(&blocks), damage), (vec![golden(); 2], vec![]));
}

#[test]
fn of_every_truncation_the_whole_blocks_are_read_and_the_end_is_reported() {
    let (file, offsets) = sample();
    for len in 0..file.len() {
        let (blocks, damage) = read(&file[..len]);
        let whole = offsets[1..].iter().filter(|end| **end <= len).count();
        assert_eq!(blocks.len(), whole, "{len}");
        let [damage] = damage[..] else { panic!("{len}: {damage:?}") };
        assert_eq!(damage.fault, Fault::Truncated, "{len}");
        assert_eq!(damage.offset + damage.len, len as u64);
        assert!(IndexedReader::open(Cursor::new(&file[..len])).is_err(), "{len}");
    }
}

#[test]
fn a_changed_byte_costs_its_block_alone_and_is_within_the_damage() {
    let (file, offsets) = sample();
    let all = read(&file).0;
    for at in 0..file.len() {
        for flip in [1, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] ^= flip;
            let (blocks, damage) = read(&changed);
            let [damage] = damage[..] else { panic!("{at}: {damage:?}") };
            let touched = offsets.iter().rposition(|start| *start <= at).unwrap_or(usize::MAX);
            let kept = all.iter().enumerate().filter(|(block, _)| *block != touched);
            assert!(blocks.iter().eq(kept.map(|(_, block)| block)), "{at}: {damage}");
            let end = damage.offset + damage.len;
            assert!((damage.offset..end).contains(&(at as u64)), "{at}: {damage}");
            let expected = all.get(touched).map(|block| block.len() as u64);
            assert_eq!(damage.missing.unwrap_or(0), expected.unwrap_or(0), "{at}: {damage}");
        }
    }
}

#[test]
fn bytes_that_are_missing_or_too_many_cost_their_block_alone() {
    let (file, offsets) = sample();
    let all = firsts(&read(&file).0);
    for at in offsets[2] + 8..offsets[3] {
        for count in [1, 5, 200] {
            let end = (at + count).min(offsets[3]);
            let shorter = [&file[..at], &file[end..]].concat();
            let longer = [&file[..at], &vec![0xc1; count], &file[at..]].concat();
            for changed in [shorter, longer] {
                let (blocks, damage) = read(&changed);
                let kept = [&all[..2], &all[3..]].concat();
                assert_eq!(firsts(&blocks), kept, "{at} {count}: {damage:?}");
                assert_eq!(damage.first().map(|damage| damage.missing), Some(Some(3)));
            }
        }
    }
}

#[test]
fn blocks_that_are_moved_repeated_or_missing_are_read_and_their_order_is_reported() {
    let (file, offsets) = sample();
    let (header, index) = (&file[..HEADER_LEN], &file[offsets[7]..]);
    let part = |block: usize| &file[offsets[block]..offsets[block + 1]];
    let order = |found| Fault::Order { found };
    for (blocks, expected) in [
        (vec![0, 1, 3, 2, 4, 5, 6], vec![order(9), order(6), order(12)]),
        (vec![0, 1, 1, 2, 3, 4, 5, 6], vec![order(3)]),
        (vec![0, 1, 2, 4, 5, 6], vec![order(12)]),
        (vec![1, 2, 3, 4, 5, 6], vec![order(3)]),
        (vec![0, 1, 2, 3, 4, 5], vec![order(21)]),
        (vec![], vec![order(21)]),
    ] {
        let parts: Vec<u8> = blocks.iter().flat_map(|block| part(*block).to_vec()).collect();
        let (found, damage) = read(&[header, &parts, index].concat());
        assert!(firsts(&found).into_iter().eq(blocks.iter().map(|block| 3 * *block as u64)));
        assert_eq!(faults(&damage), expected, "{blocks:?}");
    }
}

#[test]
fn what_follows_the_index_is_reported_and_its_blocks_are_read() {
    let (file, offsets) = sample();
    for rest in [&b"\0"[..], b"more bytes", &file[..100]] {
        let (blocks, damage) = read(&[&file[..], rest].concat());
        assert_eq!((blocks.len(), faults(&damage)), (7, vec![Fault::Trailing]));
        assert_eq!((damage[0].offset, damage[0].len), (file.len() as u64, rest.len() as u64));
    }
    let again = &file[offsets[6]..offsets[7]];
    let (blocks, damage) = read(&[&file[..], again].concat());
    assert_eq!((blocks.len(), faults(&damage)), (8, vec![Fault::Trailing]));
    let other = container(Format::Json, &short(30..40), 3);
    let (blocks, damage) = read(&[&file[..], &other].concat());
    assert_eq!((blocks.len(), faults(&damage)), (7, vec![Fault::Trailing]));
}

#[test]
fn a_block_of_another_container_is_not_taken() {
    let (file, offsets) = sample();
    let other = container(Format::Notepack, &short(30..51), 3);
    let (blocks, _) = read(&other);
    let (start, end) = (blocks[2].offset() as usize, blocks[3].offset() as usize);
    let mixed = [&file[..offsets[2]], &other[start..end], &file[offsets[3]..]].concat();
    let (found, damage) = read(&mixed);
    assert_eq!(firsts(&found), [0, 3, 9, 12, 15, 18]);
    assert_eq!((damage[0].fault, damage[0].missing), (Fault::Salt, Some(3)));
}

#[test]
fn an_event_with_a_block_in_it_hides_nothing_when_its_own_block_is_damaged() {
    let (inner, offsets) = sample();
    let planted = kernels::hex::encode(&inner[offsets[1]..offsets[2]]);
    let with_block = OwnedEvent { tags: vec![vec!["x".to_owned(), planted]], ..golden() };
    let events = [&short(0..2)[..], &[with_block], &short(2..5)].concat();
    let mut file = container(Format::Notepack, &events, 1);
    let third = read(&file).0[2].offset() as usize;
    assert!(file[third + 44..].windows(8).any(|part| part == parts::BLOCK));
    file[third + BLOCK_HEAD_LEN] ^= 1;
    let (blocks, damage) = read(&file);
    assert_eq!(firsts(&blocks), [0, 1, 3, 4, 5]);
    assert_eq!((faults(&damage), damage[0].missing), (vec![Fault::Checksum], Some(1)));
}

#[test]
fn without_a_header_no_block_hides_those_of_another_salt() {
    let (inner, offsets) = sample();
    let planted = kernels::hex::encode(&inner[offsets[1]..offsets[2]]);
    let with_block = OwnedEvent { tags: vec![vec!["x".to_owned(), planted]], ..golden() };
    let mut file = container(Format::Notepack, &[&[with_block][..], &short(0..5)].concat(), 1);
    let second = read(&file).0[1].offset() as usize;
    file[..200].fill(0);
    let (blocks, damage) = read(&file);
    assert_eq!(faults(&damage)[0], Fault::Header);
    let after: Vec<u64> =
        blocks.iter().filter(|it| it.offset() as usize >= second).map(Block::first).collect();
    assert_eq!(after, [1, 2, 3, 4, 5]);
}

/// A container whose only block has this head and body.
fn forged(change: impl Fn(&mut BlockHead), body: &[u8]) -> Vec<u8> {
    let mut head = BlockHead {
        salt: [9; 8],
        first: 0,
        count: 1,
        body_len: body.len() as u32,
        format: 0,
        body_checksum: crc32c::crc32c(body),
    };
    change(&mut head);
    let header = Header { version: 1, format: 0, salt: [9; 8] };
    [&header.to_bytes()[..], &head.to_bytes(), body].concat()
}

#[test]
fn counts_and_lengths_that_lie_under_right_checksums_are_rejected() {
    let body = |ends: &[u32], events: &[u8]| {
        let ends: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        [&ends[..], events].concat()
    };
    let fault = |change: &dyn Fn(&mut BlockHead), body: &[u8]| {
        let (blocks, damage) = read(&forged(change, body));
        assert_eq!((blocks.len(), damage.len()), (0, 1));
        damage[0].fault
    };
    let two = |head: &mut BlockHead| head.count = 2;
    for (ends, events) in
        [(&[3, 2][..], &b"ab"[..]), (&[1, 1], b"ab"), (&[1, 3], b"ab"), (&[9, 2], b"ab")]
    {
        assert_eq!(fault(&two, &body(ends, events)), Fault::Lengths, "{ends:?}");
    }
    let one = body(&[2], b"{}");
    assert_eq!(fault(&|head| head.count = 0, &one), Fault::Limit);
    assert_eq!(fault(&|head| head.count = 2, &one[..6]), Fault::Limit);
    assert_eq!(fault(&|head| head.count = MAX_BLOCK_EVENTS + 1, &one), Fault::Limit);
    assert_eq!(fault(&|head| head.body_len = MAX_BODY_BYTES + 1, &one), Fault::Limit);
    assert_eq!(fault(&|head| head.body_len = MAX_BODY_BYTES, &one), Fault::Truncated);
    assert_eq!(fault(&|head| head.first = u64::MAX, &one), Fault::Limit);
    assert_eq!(fault(&|head| head.format = 2, &one), Fault::Format(2));
    assert_eq!(fault(&|head| head.salt = [8; 8], &one), Fault::Salt);
    assert_eq!(fault(&|head| head.body_checksum ^= 1, &one), Fault::Checksum);
    let (blocks, damage) = read(&forged(|_| {}, &one));
    assert_eq!((blocks.len(), faults(&damage)), (1, vec![Fault::Truncated]));
}

#[test]
fn headers_of_other_versions_and_formats_end_the_reading() {
    let (file, _) = sample();
    for (version, format, fault) in [(2, 6, Fault::Version(2)), (1, 99, Fault::Format(99))] {
        let header = Header { version, format, salt: [0; 8] }.to_bytes();
        let changed = [&header[..], &file[HEADER_LEN..]].concat();
        let (blocks, damage) = read(&changed);
        assert_eq!((blocks.len(), faults(&damage)), (0, vec![fault]));
        let error = IndexedReader::open(Cursor::new(&changed)).unwrap_err();
        assert!(matches!(error, LookupError::Damaged(damage) if damage.fault == fault));
    }
}

#[test]
fn an_index_of_other_blocks_is_reported() {
    let (file, offsets) = sample();
    let mut index = index::Index::default();
    index.push(index::Entry { offset: 28, first: 0 }, 21);
    let salt = *file[16..].first_chunk().unwrap();
    let lying = [&file[..offsets[7]], &index.to_bytes(salt, offsets[7] as u64)].concat();
    let (blocks, damage) = read(&lying);
    assert_eq!((blocks.len(), faults(&damage)), (7, vec![Fault::Index]));
    // The heads of blocks contradict it, too.
    let mut reader = IndexedReader::open(Cursor::new(&lying)).unwrap();
    assert!(reader.event(2).unwrap().is_some());
    assert!(matches!(reader.event(3), Err(LookupError::Damaged(_))));
}

#[test]
fn overlapping_bodies_with_wrong_checksums_are_given_up() {
    let header = Header { version: 1, format: 0, salt: [9; 8] }.to_bytes();
    let (heads, rest) = (2_000, 1 << 20);
    let mut file = header;
    for head in (0..heads).rev() {
        let body_len = (head * BLOCK_HEAD_LEN + rest) as u32;
        let head =
            BlockHead { salt: [9; 8], first: 0, count: 1, body_len, format: 0, body_checksum: 0 };
        file.extend(head.to_bytes());
    }
    file.extend(vec![0x20; rest]);
    // Without a limit these are checksums of two gigabytes.
    let (blocks, damage) = read(&file);
    assert_eq!((blocks.len(), faults(&damage)), (0, vec![Fault::Checksum]));
}

#[test]
fn hostile_bytes_do_no_harm() {
    let (file, offsets) = sample();
    let mut random = Random(0xc0_47a1);
    for round in 0..100_000 {
        // A window that begins with the header, so that a round is short.
        let end = offsets[1 + round % 7];
        let mut bytes = [&file[..end], &file[offsets[7]..]].concat();
        random.mutate(&mut bytes);
        if round % 3 == 0 {
            random.mutate(&mut bytes);
        }
        let (blocks, damage) = read(&bytes);
        let mut last = 0;
        for damage in &damage {
            assert!(damage.offset >= last && damage.offset + damage.len <= bytes.len() as u64);
            last = damage.offset;
        }
        for block in &blocks {
            let body = &bytes[block.offset() as usize + BLOCK_HEAD_LEN + END_BYTES * block.len()..];
            assert!(body.starts_with(&block.events().collect::<Vec<_>>().concat()));
        }
        let looked_up = IndexedReader::open(Cursor::new(&bytes));
        if let Ok(mut reader) = looked_up {
            let _ = reader.event(random.below(30) as u64);
        }
    }
}

#[test]
fn every_event_is_found_by_its_number_and_damage_of_its_block_is_reported() {
    let (file, offsets) = sample();
    let expected: Vec<_> = read(&file)
        .0
        .iter()
        .flat_map(|block| block.events().map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect();
    let mut reader = IndexedReader::open(Cursor::new(&file)).unwrap();
    assert_eq!((reader.len(), reader.format()), (21, Format::Notepack));
    for (number, bytes) in expected.iter().enumerate() {
        let found = reader.event(number as u64).unwrap().unwrap();
        assert_eq!((found.format, &found.bytes), (Format::Notepack, bytes));
    }
    assert_eq!(reader.event(21).unwrap(), None);
    let mut changed = file.clone();
    changed[offsets[3] - 1] ^= 1;
    let mut reader = IndexedReader::open(Cursor::new(&changed)).unwrap();
    for number in 0..21 {
        let found = reader.event(number);
        let is_damaged =
            matches!(found, Err(LookupError::Damaged(damage)) if damage.fault == Fault::Checksum);
        assert_eq!(is_damaged, (6..9).contains(&number), "{number}");
    }
}

#[test]
fn events_between_the_entries_of_the_index_are_found() {
    // More than twice as many blocks as entries: every fourth block has one.
    let count = 2 * index::MAX_ENTRIES as u64 + 100;
    let size = BlockSize { events: 1, bytes: 1 << 20 };
    let mut writer = Writer::with_block_size(Vec::new(), Format::Dannypack, size);
    for number in 0..count {
        let id = [0; 32];
        let pubkey = [0; 32];
        let sig = [0; 64];
        let created_at = number as i64;
        writer
            .push(&Event { id, pubkey, created_at, kind: 1, tags: &[], content: "", sig })
            .unwrap();
    }
    let file = writer.finish().unwrap();
    assert_eq!(read(&file).1, []);
    let (mut reader, arena) = (IndexedReader::open(Cursor::new(&file)).unwrap(), Bump::new());
    for number in (0..count).step_by(997).chain([1, 2, 3, 4, count - 1]) {
        let found = reader.event(number).unwrap().unwrap();
        let event = found.format.decode(&found.bytes, &arena, &Limits::default()).unwrap();
        assert_eq!(event.created_at, number as i64);
    }
}

#[test]
fn damage_is_named_with_its_place_and_what_is_missing() {
    let damage =
        |missing| Damage { offset: 72, len: 900, event: 3, missing, fault: Fault::Checksum };
    let text = "at byte 72, 900 bytes: the body of a block has another checksum";
    assert_eq!(damage(None).to_string(), text);
    assert_eq!(damage(Some(1)).to_string(), format!("{text}; event 3 is missing"));
    assert_eq!(
        damage(Some(7)).to_string(),
        format!("{text}; 7 events are missing, from event 3 on")
    );
}
