//! Hostile bytes: every input yields a specific error or a different valid value, at a bounded cost, on a
//! small stack.

use std::thread;

use atproto::corpus;
use atproto::event::{Decoder, Event, FrameError, Options, peek};
use bumpalo::Bump;
use codec::car::{self, CarError, CarFault, HashProof, StreamError, StreamReader};
use codec::cbor::{self, DecodeError, ItemCounts, Reader, Reason};
use codec::{CidRef, json};

use crate::made;

#[test]
fn a_frame_cut_anywhere_is_refused() {
    for (name, frame) in made::frames() {
        assert!(decoder().decode(&frame).is_ok(), "{name}");
        for cut in 0..frame.len() {
            assert!(decoder().decode(&frame[..cut]).is_err(), "{name} cut at {cut}");
        }
    }
}

#[test]
fn an_archive_cut_anywhere_is_refused_or_ends_at_a_block() {
    let archive = made::archive(&[b"\xa1\x61c\x01", b"\xa2\x61e\x80\x61l\xf6", &made::record()]);
    let whole = car::read(&archive, &car::Options::default()).unwrap().blocks;
    let boundary = |cut: usize| whole.iter().position(|block| block.offset == cut as u64);
    let mut shorter = 0;
    for cut in 0..archive.len() {
        let read = car_readers_agree(&archive[..cut]);
        match boundary(cut) {
            Some(count) => {
                assert_eq!(read, Ok(count), "cut at {cut}");
                shorter += 1;
            }
            None => assert!(read.is_err(), "cut at {cut}"),
        }
    }
    assert_eq!(shorter, whole.len());
}

#[test]
fn a_block_cut_anywhere_is_refused() {
    let block = made::record();
    assert_eq!(decoders_agree(&block), Ok(()));
    for cut in 0..block.len() {
        assert!(decoders_agree(&block[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_corpus_cut_anywhere_is_refused() {
    let frames = made::frames();
    let file = corpus::write(frames.iter().map(|(_, frame)| &frame[..]));
    for cut in 0..file.len() {
        assert!(corpus::read(&file[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_frame_with_one_bit_flipped_is_refused_or_says_something_else() {
    for (name, frame) in made::frames() {
        let (mut first, mut second) = (decoder(), decoder());
        let original = first.decode(&frame).unwrap();
        // The name of the null of a delete: under another one it is an unknown field, and the delete lacks the field, as it may.
        let null_cid = b"\x63cid\xf6";
        let null_cid = frame.windows(null_cid.len()).position(|field| field == null_cid);
        let null_name = null_cid.map_or(0..0, |at| at + 1..at + 4);
        for_each_flip(&frame, |flipped, bit| {
            // The flipped bit must show in the decoded event.
            if let Ok(event) = second.decode(flipped) {
                let is_name_of_null = null_name.contains(&(bit / 8));
                assert_eq!(event == original, is_name_of_null, "{name}: bit {bit}");
                assert_survives_writing(&event, bit);
            }
        });
    }
}

#[test]
fn an_archive_with_one_bit_flipped_is_refused_or_proves_nothing_new() {
    let archive = made::archive(&[b"\xa1\x61c\x01", &made::record()]);
    let original = car::read(&archive, &car::Options::default()).unwrap().blocks;
    let mut accepted = 0;
    for_each_flip(&archive, |flipped, bit| match car_readers_agree(flipped) {
        // The root, and the codec and hash function of a block, are not covered by a hash.
        Ok(_) => {
            accepted += 1;
            let blocks = car::read(flipped, &car::Options::default()).unwrap().blocks;
            let checked = blocks.iter().filter(|block| block.proof == HashProof::Checked);
            for block in checked {
                assert!(original.iter().any(|known| known.data == block.data), "bit {bit}");
            }
        }
        Err(error) => assert!(error.offset <= archive.len() as u64, "bit {bit}"),
    });
    // All of a root's digest, and a few bits in front of every digest.
    assert!((256..350).contains(&accepted), "{accepted} flips are accepted");
}

#[test]
fn a_block_with_one_bit_flipped_is_refused_or_another_block() {
    let block = made::record();
    for_each_flip(&block, |flipped, bit| {
        let arena = Bump::new();
        assert_eq!(cbor::decode(flipped, &arena).map(drop), decoders_agree(flipped), "bit {bit}");
        if let Ok(value) = cbor::decode(flipped, &arena) {
            assert_eq!(cbor::encode(&value).unwrap(), flipped, "bit {bit}");
        }
    });
}

#[test]
fn a_number_near_the_largest_is_refused_as_a_length_in_every_place() {
    let (commit, record) = (made::commit_frame(), made::record());
    let archive = made::archive(&[&record]);
    let mut decoder = decoder();
    for_each_absurd_number(&commit, |bytes, kind, at| match decoder.decode(bytes) {
        // An integer may be that large, so it can replace another.
        Ok(event) => {
            assert_eq!(kind, Kind::Integer, "frame, head at {at}");
            assert!(event.to_frame() != commit, "frame, head at {at}");
        }
        Err(error) => assert!(error.offset <= bytes.len(), "frame, head at {at}"),
    });
    for_each_absurd_number(&archive, |bytes, _, at| {
        assert!(car_readers_agree(bytes).is_err(), "archive, head at {at}");
    });
    for_each_absurd_number(&record, |bytes, kind, at| match decoders_agree(bytes) {
        Ok(()) => assert_eq!(kind, Kind::Integer, "block, head at {at}"),
        Err(error) => assert!(error.offset <= bytes.len(), "block, head at {at}"),
    });
}

#[test]
fn a_varint_of_any_absurd_length_is_refused_by_every_reader() {
    for prefix in [
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        &[0xff, 0xff, 0xff, 0x7f],
    ] {
        let mut header = prefix.to_vec();
        header.extend(made::record());
        assert!(car_readers_agree(&header).is_err(), "as the header's length: {prefix:x?}");
        let mut block = made::archive(&[&made::record()]);
        block.extend(prefix);
        block.extend(made::record());
        assert!(car_readers_agree(&block).is_err(), "as a block's length: {prefix:x?}");
    }
}

#[test]
fn a_container_that_claims_more_than_is_left_is_refused_at_its_head() {
    for major in [0x40, 0x60, 0x80, 0xa0] {
        for claim in ABSURD {
            let mut bytes = vec![0x82, 0x00, major | 27];
            bytes.extend(claim.to_be_bytes());
            bytes.extend([0; 64]);
            let expected = DecodeError { offset: 2, reason: Reason::LengthBeyondInput };
            assert_eq!(decoders_agree(&bytes), Err(expected), "major {major:x}, {claim:x}");
        }
    }
}

#[test]
fn a_bomb_of_ten_million_levels_is_refused_at_the_depth_bound() {
    on_a_small_stack(|| {
        for (name, level, reason) in BOMBS {
            let bomb = level.repeat(LEVELS);
            let error = decoders_agree(&bomb).unwrap_err();
            assert_eq!(error.reason, reason, "{name}");
            // The input is rejected at the limit, without reading the rest.
            assert!(error.offset <= cbor::MAX_DEPTH as usize * level.len(), "{name}");
        }
    });
}

#[test]
fn the_deepest_value_that_is_allowed_fits_a_small_stack() {
    on_a_small_stack(|| {
        for (name, level) in [("arrays", &b"\x81"[..]), ("maps", b"\xa1\x61a")] {
            let mut deepest = level.repeat(cbor::MAX_DEPTH as usize);
            deepest.push(0xf6);
            assert_eq!(decoders_agree(&deepest), Ok(()), "{name}");
            let arena = Bump::new();
            let value = cbor::decode(&deepest, &arena).unwrap();
            assert_eq!(cbor::encode(&value).unwrap(), deepest, "{name}");
            let text = json::encode(&value).unwrap();
            assert_eq!(json::decode(&text, &arena).unwrap(), value, "{name}");
            let mut deeper = level.to_vec();
            deeper.extend(&deepest);
            assert_eq!(decoders_agree(&deeper).unwrap_err().reason, Reason::Depth, "{name}");
        }
    });
}

#[test]
fn a_bomb_in_any_part_of_a_frame_is_refused() {
    on_a_small_stack(|| {
        for (name, level, _) in BOMBS {
            let bomb = level.repeat(LEVELS);
            let mut options = Options::default();
            options.max_frame_bytes = usize::MAX;
            let mut decoder = Decoder::new(options);
            let refused = |result: Result<Event<'_>, FrameError>| result.is_err();
            assert!(refused(decoder.decode(&bomb)), "{name} as the header");
            assert!(peek(&bomb).is_err(), "{name} as the header, peeked");
            let payload = [b"\xa2\x61t\x66#label\x62op\x01", &bomb[..]].concat();
            assert!(refused(decoder.decode(&payload)), "{name} as an unknown payload");
            let field = [b"\xa2\x61t\x67#commit\x62op\x01\xa1\x61x", &bomb[..]].concat();
            assert!(refused(decoder.decode(&field)), "{name} as an unknown field");
            let header = [b"\xa2\x61a", &bomb[..]].concat();
            assert!(refused(decoder.decode(&header)), "{name} as an unknown header field");
        }
    });
}

#[test]
fn a_bomb_in_an_archive_header_is_refused() {
    on_a_small_stack(|| {
        for (name, level, _) in BOMBS {
            let bomb = [b"\xa1\x61x", &level.repeat(10_000)[..]].concat();
            let bomb = &bomb[..bomb.len().min(60_000)];
            let mut archive = vec![0x80 | (bomb.len() as u8 & 0x7f)];
            archive.extend([0x80 | (bomb.len() >> 7) as u8 & 0x7f, (bomb.len() >> 14) as u8]);
            archive.extend(bomb);
            let error = car_readers_agree(&archive).unwrap_err();
            assert!(matches!(error.fault, CarFault::Header(_) | CarFault::Varint), "{name}");
        }
    });
}

#[test]
fn a_bomb_of_json_is_refused() {
    on_a_small_stack(|| {
        for level in ["[", "{\"a\":", "[{\"a\":"] {
            let bomb = level.repeat(1_000_000);
            assert!(json::decode(&bomb, &Bump::new()).is_err(), "{level}");
        }
    });
}

#[test]
fn bytes_of_any_kind_are_answered_alike_by_every_reader() {
    let mut random = made::Random::new(1);
    let samples = [made::record(), made::archive(&[&made::record()]), made::commit_frame()];
    let mut decoder = decoder();
    for _ in 0..20_000 {
        let mut bytes = samples[random.below(samples.len())].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.next() as u8,
                1 => drop(bytes.splice(at..at, [random.next() as u8])),
                _ => drop(bytes.remove(at)),
            }
        }
        // Both functions assert; the verdict is not relevant here.
        let _ = decoders_agree(&bytes);
        let _ = car_readers_agree(&bytes);
        if let Some((cid, rest)) = CidRef::from_prefix(&bytes) {
            assert_eq!(cid.as_bytes().len() + rest.len(), bytes.len());
        }
        if let Ok(event) = decoder.decode(&bytes) {
            assert_survives_writing(&event, 0);
        }
    }
}

/// The result of all four walks over DAG-CBOR, which must be equal.
fn decoders_agree(bytes: &[u8]) -> Result<(), DecodeError> {
    let answer = cbor::validate(bytes);
    let arena = Bump::new();
    assert_eq!(cbor::decode(bytes, &arena).map(drop), answer);
    assert_eq!(cbor::count(bytes, &mut ItemCounts::default()), answer);
    let mut reader = Reader::new(bytes);
    assert_eq!(reader.skip().and_then(|()| reader.finish()), answer);
    answer
}

/// The number of blocks that all three archive readers find, or the error of all three.
fn car_readers_agree(bytes: &[u8]) -> Result<usize, CarError> {
    let options = car::Options::default();
    let answer = car::read(bytes, &options).map(|archive| archive.blocks.len());
    let stepped = car::Blocks::new(bytes, &options)
        .and_then(|blocks| blocks.map(|block| block.map(drop)).collect::<Result<Vec<_>, _>>());
    assert_eq!(stepped.map(|blocks| blocks.len()), answer);
    let streamed = StreamReader::new(bytes, &options)
        .and_then(|blocks| blocks.map(|block| block.map(drop)).collect::<Result<Vec<_>, _>>());
    let streamed = streamed.map(|blocks| blocks.len()).map_err(|error| match error {
        StreamError::Car(error) => error,
        error => panic!("a slice does not fail: {error}"),
    });
    assert_eq!(streamed, answer);
    answer
}

fn assert_survives_writing(event: &Event<'_>, bit: usize) {
    let frame = event.to_frame();
    let mut again = decoder();
    assert_eq!(again.decode(&frame), Ok(*event), "bit {bit}");
}

fn for_each_flip(bytes: &[u8], mut check: impl FnMut(&[u8], usize)) {
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        check(&flipped, bit);
    }
}

/// The kinds of heads with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    LengthOrTag,
}

/// Puts a head of every kind with an absurd number in place of every byte.
fn for_each_absurd_number(bytes: &[u8], mut check: impl FnMut(&[u8], Kind, usize)) {
    for at in 0..bytes.len() {
        for major in 0..7 {
            let kind = if major < 2 { Kind::Integer } else { Kind::LengthOrTag };
            for number in ABSURD {
                let mut bad = bytes[..at].to_vec();
                bad.push(major << 5 | 27);
                bad.extend(number.to_be_bytes());
                bad.extend(&bytes[at + 1..]);
                check(&bad, kind, at);
            }
        }
    }
}

fn on_a_small_stack(check: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(128 << 10).spawn(check);
    thread.expect("a thread").join().expect("no panic on a small stack");
}

fn decoder() -> Decoder {
    Decoder::new(Options::default())
}

const LEVELS: usize = 10_000_000;

/// The repeated item, and the rule that rejects the repetition.
const BOMBS: [(&str, &[u8], Reason); 7] = [
    ("arrays", b"\x81", Reason::Depth),
    ("arrays of two", b"\x82\x00", Reason::Depth),
    ("maps", b"\xa1\x61a", Reason::Depth),
    ("maps in arrays", b"\x81\xa1\x61a", Reason::Depth),
    ("links", b"\xd8\x2a", Reason::Link),
    ("other tags", b"\xc1", Reason::Tag),
    ("arrays without end", b"\x9f", Reason::IndefiniteLength),
];

const ABSURD: [u64; 7] =
    [u64::MAX, u64::MAX - 1, u64::MAX - 8, 1 << 63, (1 << 63) - 1, 1 << 62, u32::MAX as u64 + 1];
