//! Segments of the simulator are read, and every broken rule is refused with its code.

use simnet::jetstream_segment::{SealedSegment, SegmentEvent, compress, compress_with};
use simnet::random::{Random, Seed};

use super::*;

fn event(seq: u64, kind: u8) -> SegmentEvent {
    let is_operation = !(4..=6).contains(&kind);
    SegmentEvent {
        seq,
        witnessed: 1_700_000_000_000_000 + seq as i64,
        indexed: if seq.is_multiple_of(3) { 5 } else { 0 },
        kind,
        did: format!("did:web:account{}.test", seq % 3),
        collection: if is_operation { "app.bsky.feed.post".to_owned() } else { String::new() },
        rkey: if is_operation { format!("key{seq}") } else { String::new() },
        rev: if is_operation { "3l3qo2vutsw2b".to_owned() } else { String::new() },
        payload: if kind == 3 { Vec::new() } else { vec![0xa0; seq as usize % 5 + 1] },
    }
}

fn events() -> Vec<SegmentEvent> {
    (1..=23).map(|seq| event(seq * 2, (seq % 7) as u8 + 1)).collect()
}

fn sealed() -> SealedSegment {
    SealedSegment::write(&events(), 5)
}

fn read_events(bytes: &[u8]) -> Result<Vec<SegmentEvent>, SegmentError> {
    let segment = Segment::read(bytes)?;
    let mut events = Vec::new();
    for number in 0..segment.blocks().len() {
        let block = segment.block(number)?;
        for row in block.rows() {
            let row = row?;
            events.push(SegmentEvent {
                seq: row.seq,
                witnessed: row.witnessed,
                indexed: row.indexed,
                kind: row.kind as u8 + 1,
                did: row.did.to_owned(),
                collection: row.collection.to_owned(),
                rkey: row.rkey.to_owned(),
                rev: row.rev.to_owned(),
                payload: row.payload.to_vec(),
            });
        }
    }
    Ok(events)
}

/// The code of the refusal of a segment after a change, with the checksum of the changed bytes.
fn code(change: impl FnOnce(&mut SealedSegment)) -> &'static str {
    let mut segment = sealed();
    change(&mut segment);
    if segment.bytes.len() > HEADER_LEN {
        segment.seal();
    }
    read_events(&segment.bytes).unwrap_err().code()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn offset(segment: &SealedSegment, field: usize) -> usize {
    u64_at(&segment.bytes, field) as usize
}

/// The code of the refusal of a block of these columns.
fn block_code(columns: &[u8]) -> &'static str {
    let block = Block::read(&compress(columns));
    let block = match block {
        Ok(block) => block.rows().collect::<Result<Vec<_>, _>>().unwrap_err(),
        Err(error) => error,
    };
    block.code()
}

fn columns(events: &[SegmentEvent]) -> Vec<u8> {
    let segment = SealedSegment::write(events, events.len());
    let frame = segment.frame(0).unwrap();
    zstd::decode_all(frame).unwrap()
}

#[test]
fn a_segment_has_the_events_that_were_written() {
    let segment = sealed();
    assert_eq!(read_events(&segment.bytes).unwrap(), events());
    let read = Segment::read(&segment.bytes).unwrap();
    let header = read.header();
    assert_eq!((header.blocks, header.events, header.accounts), (5, 23, 3));
    assert_eq!((header.min_seq, header.max_seq), (2, 46));
    assert_eq!(format!("{:016x}", header.checksum), segment.checksum());
    for number in 0..5 {
        let block = Block::read(segment.frame(number).unwrap()).unwrap();
        assert_eq!(block.len(), read.blocks()[number].events as usize);
    }
}

#[test]
fn blocks_whose_events_were_all_removed_are_empty() {
    let all = events();
    let segment = SealedSegment::of_blocks(&[&all[..5], &[], &all[5..]]);
    assert_eq!(read_events(&segment.bytes).unwrap(), all);
    let empty = SealedSegment::of_blocks(&[]);
    assert_eq!(read_events(&empty.bytes).unwrap(), []);
}

#[test]
fn every_broken_rule_of_header_and_footer_has_its_code() {
    assert_eq!(code(|segment| segment.bytes[0] = b'x'), "jss/magic");
    assert_eq!(code(|segment| segment.bytes.truncate(2)), "jss/magic");
    assert_eq!(code(|segment| segment.bytes.truncate(200)), "jss/truncated");
    assert_eq!(code(|segment| put(&mut segment.bytes, 12, &[2])), "jss/version");
    let mut unsealed = sealed();
    put(&mut unsealed.bytes, 4, &[0; 8]);
    assert_eq!(read_events(&unsealed.bytes).unwrap_err().code(), "jss/unsealed");
    let mut wrong = sealed();
    wrong.bytes[26] ^= 1;
    assert_eq!(read_events(&wrong.bytes).unwrap_err().code(), "jss/checksum");
    for field in [66, 74, 82, 90] {
        let beyond = |segment: &mut SealedSegment| put(&mut segment.bytes, field, &[0xff; 8]);
        assert_eq!(code(beyond), "jss/offsets", "the offset at {field}");
    }
    let more = |segment: &mut SealedSegment| put(&mut segment.bytes, 14, &6u32.to_le_bytes());
    assert_eq!(code(more), "jss/offsets");
    let most = |segment: &mut SealedSegment| put(&mut segment.bytes, 14, &[0xff; 4]);
    assert_eq!(code(most), "jss/limit");
    let events = |segment: &mut SealedSegment| put(&mut segment.bytes, 18, &[1]);
    assert_eq!(code(events), "jss/offsets");
    assert_eq!(code(|segment| segment.bytes.extend([0; 3])), "jss/compression");
    let cut = |segment: &mut SealedSegment| {
        let at = offset(segment, 82) + 10;
        segment.bytes.truncate(at);
    };
    assert_eq!(code(cut), "jss/collection-index");
    for field in 0..4 {
        let change = |segment: &mut SealedSegment| {
            let at = offset(segment, 82) + field * 4;
            segment.bytes[at] ^= 0x20;
        };
        let refused = code(change);
        assert!(["jss/collection-index", "jss/compression"].contains(&refused), "{refused}");
    }
    let names = |segment: &mut SealedSegment| {
        let at = offset(segment, 82);
        put(&mut segment.bytes, at, &[0xff; 4]);
    };
    assert_eq!(code(names), "jss/limit");
}

#[test]
fn every_contradiction_of_the_index_of_blocks_is_refused() {
    // Offset, both sizes, number of events, first and last sequence number.
    for (field, len) in [(0, 8), (8, 4), (16, 4), (20, 8), (28, 8)] {
        let change = |segment: &mut SealedSegment| {
            let at = offset(segment, 58) + index::ENTRY_LEN + field;
            put(&mut segment.bytes, at, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..len]);
        };
        let refused = code(change);
        assert!(["jss/block-index", "jss/offsets"].contains(&refused), "field {field}: {refused}");
    }
    let size = |segment: &mut SealedSegment| {
        let at = offset(segment, 58) + 12;
        segment.bytes[at] ^= 1;
    };
    assert_eq!(code(size), "jss/compression");
    let large = |segment: &mut SealedSegment| {
        let at = offset(segment, 58) + 12;
        put(&mut segment.bytes, at, &[0xff; 4]);
    };
    assert_eq!(code(large), "jss/limit");
    // The length before the block.
    let length = |segment: &mut SealedSegment| {
        let at = segment.blocks[1].start - 8;
        segment.bytes[at] ^= 1;
    };
    assert_eq!(code(length), "jss/block-index");
}

#[test]
fn only_one_frame_with_a_checksum_is_decompressed() {
    let columns = columns(&events());
    let frame = compress(&columns);
    let refused = |frame: &[u8]| Block::read(frame).unwrap_err().code();
    let unsummed = compress_with(&columns, false, None).unwrap();
    assert_eq!(refused(&unsummed), "jss/no-content-checksum");
    let unstated = compress_with(&columns, true, None).unwrap();
    assert_eq!(Block::read(&unstated).unwrap().len(), events().len());
    assert_eq!(refused(&[]), "jss/compression");
    assert_eq!(refused(&frame[..frame.len() - 1]), "jss/compression");
    assert_eq!(refused(&[&frame[..], &frame[..]].concat()), "jss/compression");
    // Some bits of a frame do not change its content, such as the size of the window.
    let rows = |block: &Block| block.rows().map(|row| format!("{row:?}")).collect::<Vec<_>>();
    let good = rows(&Block::read(&frame).unwrap());
    for at in 0..frame.len() {
        let mut damaged = frame.clone();
        damaged[at] ^= 0x10;
        if let Ok(block) = Block::read(&damaged) {
            assert_eq!(rows(&block), good, "a damaged byte at {at}");
        }
    }
}

#[test]
fn a_bomb_ends_at_the_limit() {
    let content = vec![0; MAX_BLOCK_BYTES as usize + 1];
    for len in [None, Some(content.len() as u64)] {
        let bomb = compress_with(&content, true, len).unwrap();
        assert!(bomb.len() < 1 << 20);
        assert_eq!(Block::read(&bomb).unwrap_err().code(), "jss/limit");
    }
}

#[test]
fn every_broken_rule_of_columns_has_its_code() {
    let good = columns(&events());
    let count = events().len();
    for len in 0..good.len() {
        assert_eq!(block_code(&good[..len]), "jss/columns", "cut at {len}");
    }
    assert_eq!(block_code(&[&good[..], &[0]].concat()), "jss/columns");
    let changed = |at: usize, value: &[u8]| {
        let mut columns = good.clone();
        put(&mut columns, at, value);
        block_code(&columns)
    };
    assert_eq!(changed(0, &[0xff; 4]), "jss/limit");
    assert_eq!(changed(0, &[1, 0, 0, 0]), "jss/columns");
    assert_eq!(changed(4, &[0; 8]), "jss/seq");
    assert_eq!(changed(4, &[0xff; 8]), "jss/seq");
    assert_eq!(changed(12, &2u64.to_le_bytes()), "jss/seq");
    for kind in [0, 8, 255] {
        assert_eq!(changed(4 + count * 24, &[kind]), "jss/kind");
    }
    assert_eq!(changed(4 + count * 30, &[0xff; 4]), "jss/columns");
    assert_eq!(changed(4 + count * 34, &[0xff]), "jss/text");
}

#[test]
fn random_bytes_are_refused_without_a_panic() {
    let mut random: Random = Seed::new(1, "damaged segments").stream(0);
    let good = sealed();
    for _ in 0..2_000 {
        let mut segment = good.clone();
        for _ in 0..random.between(1, 4) {
            let at = random.below(segment.bytes.len() as u64) as usize;
            segment.bytes[at] = random.next_u64() as u8;
        }
        // A footer beyond the end has no checksum.
        if offset(&segment, 58) <= segment.bytes.len() {
            segment.seal();
        }
        if let Ok(events) = read_events(&segment.bytes) {
            assert!(events.len() <= 23);
        }
    }
}

#[test]
fn random_columns_are_refused_or_read_whole() {
    let mut random: Random = Seed::new(2, "damaged columns").stream(0);
    let good = columns(&events());
    for _ in 0..5_000 {
        let mut columns = good.clone();
        for _ in 0..random.between(1, 6) {
            let at = random.below(columns.len() as u64) as usize;
            columns[at] = random.next_u64() as u8;
        }
        columns.truncate(columns.len() - (random.below(3) * random.below(40)) as usize);
        if let Ok(block) = Block::read(&compress(&columns)) {
            // After an error there is no row more.
            let rows: Vec<_> = block.rows().collect();
            let errors = rows.iter().filter(|row| row.is_err()).count();
            assert!(errors == 0 && rows.len() == block.len() || errors == 1);
            assert!(rows.iter().rev().skip(1).all(Result::is_ok));
        }
    }
}
