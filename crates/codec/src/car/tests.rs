use std::io::{self, Read};

use proptest::prelude::*;

use super::*;
use crate::cid::{Cid, Codec};

fn archive(blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
    let roots: Vec<Cid> = blocks.iter().take(1).map(|(cid, _)| *cid).collect();
    let mut writer = Writer::new(Vec::new(), &roots).unwrap();
    for (cid, data) in blocks {
        writer.block(cid, data).unwrap();
    }
    writer.into_inner()
}

fn block(data: &[u8]) -> (Cid, Vec<u8>) {
    (Cid::of(Codec::DagCbor, data), data.to_vec())
}

/// A source that returns one byte at a time and is interrupted in between.
struct Trickle<'a> {
    bytes: &'a [u8],
    interrupted: bool,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let one = out.len().min(1);
        self.bytes.read(&mut out[..one])
    }
}

type Outcome = (Vec<(Vec<u8>, Vec<u8>, u64, HashProof)>, Option<CarError>);

fn by_slice(bytes: &[u8], options: &Options) -> Outcome {
    let mut seen = Vec::new();
    let blocks = match Blocks::new(bytes, options) {
        Ok(blocks) => blocks,
        Err(error) => return (seen, Some(error)),
    };
    for block in blocks {
        match block {
            Ok(b) => seen.push((b.cid.as_bytes().to_vec(), b.data.to_vec(), b.offset, b.proof)),
            Err(error) => return (seen, Some(error)),
        }
    }
    (seen, None)
}

fn by_stream(source: impl Read, options: &Options) -> Outcome {
    let mut seen = Vec::new();
    let car_error = |error| match error {
        StreamError::Car(error) => error,
        StreamError::Io(error) => panic!("no such failure in this source: {error}"),
    };
    let reader = match StreamReader::new(source, options) {
        Ok(reader) => reader,
        Err(error) => return (seen, Some(car_error(error))),
    };
    for block in reader {
        match block {
            Ok(b) => {
                seen.push((b.cid().as_bytes().to_vec(), b.data().to_vec(), b.offset, b.proof));
            }
            Err(error) => return (seen, Some(car_error(error))),
        }
    }
    (seen, None)
}

/// Reads what is pushed in pieces of `len` bytes, block by block.
fn by_pushes(bytes: &[u8], len: usize, options: &Options) -> Outcome {
    let (mut pushed, mut pieces, mut seen) = (Pushed::default(), bytes.chunks(len), Vec::new());
    let mut feed = |pushed: &mut Pushed| match pieces.next() {
        Some(piece) => pushed.push(piece),
        None => pushed.end(),
    };
    while !pushed.has_header(options) {
        feed(&mut pushed);
    }
    let mut reader = match StreamReader::new(pushed, options) {
        Ok(reader) => reader,
        Err(StreamError::Car(error)) => return (seen, Some(error)),
        Err(StreamError::Io(error)) => panic!("the header was there: {error}"),
    };
    loop {
        match reader.next() {
            None => return (seen, None),
            Some(Ok(b)) => {
                seen.push((b.cid().as_bytes().to_vec(), b.data().to_vec(), b.offset, b.proof));
            }
            Some(Err(StreamError::Car(error))) => return (seen, Some(error)),
            Some(Err(StreamError::Io(error))) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                feed(reader.source_mut());
            }
        }
    }
}

/// Reads by every reader, asserts that they agree, and returns the result.
fn read_by_all(bytes: &[u8], options: &Options) -> Outcome {
    let outcome = by_slice(bytes, options);
    assert_eq!(by_stream(bytes, options), outcome, "stream against slice");
    assert_eq!(by_stream(Trickle { bytes, interrupted: false }, options), outcome, "trickle");
    for len in [1, 53, 100_000] {
        assert_eq!(by_pushes(bytes, len, options), outcome, "pushes of {len}");
    }
    let whole = read(bytes, options).map(|car| car.blocks.len());
    assert_eq!(whole, outcome.1.map_or(Ok(outcome.0.len()), Err), "read whole");
    outcome
}

fn fault_of(bytes: &[u8], options: &Options) -> (u64, CarFault) {
    let error = read_by_all(bytes, options).1.expect("an error");
    (error.offset, error.fault)
}

#[test]
fn blocks_are_read_in_order_with_their_hashes_checked() {
    let blocks: Vec<_> = (0..300).map(|n| block(&vec![n as u8; 2 * n])).collect();
    let bytes = archive(&blocks);
    let (seen, error) = read_by_all(&bytes, &Options::default());
    assert_eq!(error, None);
    assert_eq!(seen.len(), blocks.len());
    for ((cid, data), (seen_cid, seen_data, offset, proof)) in blocks.iter().zip(&seen) {
        assert_eq!((cid.as_bytes().as_slice(), data), (seen_cid.as_slice(), seen_data));
        assert_eq!(*proof, HashProof::Checked);
        let (len, prefix) = kernels::varint::read(&bytes[*offset as usize..]).unwrap();
        assert_eq!(len as usize, Cid::LEN + data.len());
        assert_eq!(&bytes[*offset as usize + prefix..][..Cid::LEN], cid.as_bytes());
    }
    for block in read(&bytes, &Options::default()).unwrap().blocks {
        assert_eq!(&bytes[block.data_offset()..][..block.data.len()], block.data);
    }
}

#[test]
fn a_wrong_block_is_rejected_at_any_position_after_the_blocks_before_it() {
    for at in [0, 1, 127, 128, 129, 199] {
        let mut blocks: Vec<_> = (0..200u8).map(|n| block(&[n; 50])).collect();
        blocks[at].1[3] ^= 1;
        let (seen, error) = read_by_all(&archive(&blocks), &Options::default());
        let error = error.expect("an error");
        assert_eq!((seen.len(), error.fault), (at, CarFault::HashMismatch));

        let trusting = Options { trust_hashes: true, ..Options::default() };
        let (seen, error) = read_by_all(&archive(&blocks), &trusting);
        assert_eq!((seen.len(), error), (200, None));
        assert!(seen.iter().all(|(_, _, _, proof)| *proof == HashProof::Trusted));
    }
}

#[test]
fn a_cut_between_blocks_is_a_shorter_archive_and_any_other_cut_is_rejected() {
    let blocks = [block(b"one"), block(b""), block(&[7; 300])];
    let bytes = archive(&blocks);
    let mut ends = vec![59];
    for (_, data) in &blocks {
        let body = Cid::LEN + data.len();
        ends.push(ends.last().unwrap() + kernels::varint::len(body as u64) + body);
    }
    for cut in 0..=bytes.len() {
        let (seen, error) = read_by_all(&bytes[..cut], &Options::default());
        match ends.iter().position(|end| *end == cut) {
            Some(whole) => assert_eq!((seen.len(), error), (whole, None)),
            None => assert_eq!(error.map(|error| error.fault), Some(CarFault::Truncated), "{cut}"),
        }
    }
}

#[test]
fn headers_are_canonical_version_one_with_any_number_of_roots() {
    let none = archive(&[]);
    assert_eq!(none, b"\x11\xa2\x65roots\x80\x67version\x01");
    let no_roots = read(&none, &Options::default()).unwrap().roots;
    assert_eq!((no_roots.is_empty(), no_roots.len(), no_roots.first()), (true, 0, None));

    let roots = [block(b"a").0, block(b"b").0, block(b"c").0];
    let bytes = Writer::new(Vec::new(), &roots).unwrap().into_inner();
    let car = read(&bytes, &Options::default()).unwrap();
    assert!(car.roots.iter().eq(roots.iter().map(Cid::as_cid_ref)));
    assert!(!car.roots.is_empty() && car.roots.len() == 3);
    let stream = StreamReader::new(&bytes[..], &Options::default()).unwrap();
    assert!(stream.roots().iter().eq(roots.iter().map(Cid::as_cid_ref)));

    let header = |body: &[u8]| [&[body.len() as u8], body].concat();
    let options = Options::default();
    let version_2 = header(b"\xa2\x65roots\x80\x67version\x02");
    assert_eq!(fault_of(&version_2, &options), (1, CarFault::Version(2)));
    // A header of more than 127 bytes has a prefix of two.
    let mut long_version_2 = bytes.clone();
    long_version_2[bytes.len() - 1] = 2;
    assert_eq!(fault_of(&long_version_2, &options), (2, CarFault::Version(2)));
    assert_eq!(fault_of(&header(b"\xa1\x67version\x01"), &options), (1, CarFault::HeaderField));
    assert_eq!(fault_of(&header(b"\xa1\x65roots\x80"), &options), (1, CarFault::HeaderField));
    let unsorted = header(b"\xa2\x67version\x01\x65roots\x80");
    assert!(matches!(fault_of(&unsorted, &options), (1, CarFault::Header(_))));
    let trailing = header(b"\xa2\x65roots\x80\x67version\x01\x00");
    assert!(matches!(fault_of(&trailing, &options), (1, CarFault::Header(_))));
}

#[test]
fn false_lengths_are_rejected_without_being_allocated() {
    let header = archive(&[]);
    let with = |tail: &[u8]| [&header, tail].concat();
    let options = Options::default();
    let at = header.len() as u64;
    assert_eq!(fault_of(&with(b"\x80\x00"), &options), (at, CarFault::Varint));
    assert_eq!(fault_of(&with(&[0xff; 10]), &options), (at, CarFault::Varint));
    let huge = with(b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
    assert_eq!(fault_of(&huge, &options), (at, CarFault::BlockLimit(2 << 20)));
    assert_eq!(fault_of(&with(b"\xff\xff\x7f"), &options), (at, CarFault::Truncated));
    assert_eq!(fault_of(&with(b"\x00"), &options), (at, CarFault::Cid));
    assert_eq!(fault_of(&with(&[&[35][..], &[2; 35]].concat()), &options), (at, CarFault::Cid));
    let one = archive(&[block(b"one")]);
    let after_one = fault_of(&[&one[..], b"\x80\x00"].concat(), &options);
    assert_eq!(after_one, (one.len() as u64, CarFault::Varint));
}

#[test]
fn each_limit_is_reported_by_its_own_error() {
    let bytes = archive(&[block(b"one"), block(b"two")]);
    let limit_fault = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        fault_of(&bytes, &options).1
    };
    assert_eq!(limit_fault(|o| o.max_header_bytes = 57), CarFault::HeaderLimit(57));
    assert_eq!(limit_fault(|o| o.max_block_bytes = 38), CarFault::BlockLimit(38));
    assert_eq!(limit_fault(|o| o.max_blocks = 1), CarFault::BlockCountLimit(1));
    let options = Options { max_total_bytes: bytes.len() as u64 - 1, ..Options::default() };
    assert_eq!(
        read(&bytes, &options).unwrap_err().fault,
        CarFault::TotalLimit(options.max_total_bytes)
    );
    let stream = StreamReader::new(&bytes[..], &options).unwrap().last();
    assert!(
        matches!(stream, Some(Err(StreamError::Car(error))) if matches!(error.fault, CarFault::TotalLimit(_)))
    );
}

#[test]
fn each_rule_has_a_code_of_its_kind() {
    let truncated = cbor::validate(b"").unwrap_err();
    let codes = [
        (CarFault::Header(truncated), "car/header"),
        (CarFault::HeaderField, "car/header"),
        (CarFault::Version(2), "car/version"),
        (CarFault::Truncated, "car/truncated"),
        (CarFault::Varint, "car/varint"),
        (CarFault::Cid, "car/cid"),
        (CarFault::HashMismatch, "car/hash"),
        (CarFault::HeaderLimit(1), "car/limit"),
        (CarFault::BlockLimit(1), "car/limit"),
        (CarFault::TotalLimit(1), "car/limit"),
        (CarFault::BlockCountLimit(1), "car/limit"),
    ];
    for (fault, code) in codes {
        assert_eq!(fault.code(), code);
    }
}

#[test]
fn lengths_and_counts_at_their_limits_are_allowed() {
    let bytes = archive(&[block(b"one"), block(b"two")]);
    let options = Options {
        max_header_bytes: 58,
        max_block_bytes: Cid::LEN + 3,
        max_blocks: 2,
        max_total_bytes: bytes.len() as u64,
        ..Options::default()
    };
    let (seen, error) = read_by_all(&bytes, &options);
    assert_eq!((seen.len(), error), (2, None));
}

#[test]
fn nothing_is_read_after_the_first_error() {
    let mut blocks = [block(b"one"), block(b"two"), block(b"three")];
    blocks[1].1[0] ^= 1;
    let bytes = archive(&blocks);
    let mut reader = Blocks::new(&bytes, &Options::default()).unwrap();
    assert!(reader.next().is_some_and(|block| block.is_ok()));
    assert!(reader.next().is_some_and(|block| block.is_err()));
    assert!(reader.next().is_none());
    let cut = &bytes[..bytes.len() - 1];
    let mut sections = Sections::new(cut, &Options::default()).unwrap();
    assert_eq!(sections.by_ref().filter(Result::is_ok).count(), 2);
    assert!(sections.next().is_none());
    let mut sections = Sections::new(cut, &Options::default()).unwrap();
    assert!(sections.nth(2).is_some_and(|block| block.is_err()));
    assert!(sections.next().is_none());
}

#[test]
fn a_stream_is_read_ahead_by_one_batch() {
    let blocks = vec![block(&[7; 10_000]); 30];
    let bytes = archive(&blocks);
    let mut rest = bytes.as_slice();
    let mut reader = StreamReader::new(&mut rest, &Options::default()).unwrap();
    assert!(reader.next().is_some_and(|block| block.is_ok()));
    drop(reader);
    let read = bytes.len() - rest.len();
    assert!((60_000..90_000).contains(&read), "{read} bytes");
}

/// The numbers of blocks in the batches.
fn batch_lens(bytes: &[u8]) -> Vec<usize> {
    let mut reader = StreamReader::new(bytes, &Options::default()).unwrap();
    std::iter::from_fn(|| reader.next_batch().unwrap()).map(|batch| batch.len()).collect()
}

#[test]
fn a_batch_has_the_blocks_that_are_whole_within_64_kib() {
    let archive =
        |lens: &[usize]| archive(&lens.iter().map(|n| block(&vec![7; *n])).collect::<Vec<_>>());
    assert_eq!(batch_lens(&archive(&[200, 200])), [2]);
    assert_eq!(batch_lens(&archive(&[60_000, 60_000])), [1, 1]);
    // The prefixes and the CIDs have 3 + 36 and 2 + 36 bytes.
    let rest = (64 << 10) - 3 - 36 - 60_000 - 2 - 36;
    assert_eq!(batch_lens(&archive(&[60_000, rest])), [2]);
    assert_eq!(batch_lens(&archive(&[60_000, rest + 1])), [1, 1]);
}

#[test]
fn a_batch_gives_its_blocks_by_index_and_the_reader_its_place() {
    let bytes = archive(&[block(b"one"), block(b"two")]);
    let mut reader = StreamReader::new(&bytes[..], &Options::default()).unwrap();
    assert_eq!(reader.position(), 59);
    let batch = reader.next_batch().unwrap().unwrap();
    assert_eq!((batch.len(), batch.is_empty(), reader.position()), (2, false, bytes.len() as u64));
    let data = [0, 1, 2].map(|at| batch.get(at).map(|block| block.data));
    assert_eq!(data, [Some(&b"one"[..]), Some(&b"two"[..]), None]);
    assert!(reader.next_batch().unwrap().is_none());
}

#[test]
fn the_block_with_a_wrong_hash_is_named() {
    let mut blocks = [block(b"one"), block(b"two"), block(b"three")];
    blocks[1].1[0] ^= 1;
    let bytes = archive(&blocks);
    let mut reader = StreamReader::new(&bytes[..], &Options::default()).unwrap();
    assert_eq!(reader.next_batch().unwrap().unwrap().len(), 1);
    assert!(reader.next_batch().is_err());
    assert_eq!(reader.mismatched_cid(), Some(blocks[1].0.as_cid_ref()));
    assert!(reader.next_batch().unwrap().is_none());
    let cut = &bytes[..bytes.len() - 100];
    let mut reader = StreamReader::new(cut, &Options::default()).unwrap();
    while let Ok(Some(_)) = reader.next_batch() {}
    assert_eq!(reader.mismatched_cid(), None);
}

#[test]
fn a_long_block_is_read_in_few_calls() {
    /// Counts the calls of a source.
    struct Counting<'a>(&'a [u8], usize);
    impl Read for Counting<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            self.0.read(out)
        }
    }
    let bytes = archive(&[block(&vec![7; 1 << 20])]);
    let mut source = Counting(&bytes, 0);
    let reader = StreamReader::new(&mut source, &Options::default()).unwrap();
    assert_eq!(reader.filter(Result::is_ok).count(), 1);
    assert!(source.1 < 20, "{} calls", source.1);
}

#[test]
fn a_block_under_a_foreign_hash_is_returned_unproved_and_never_under_a_blessed_cid() {
    let foreign = [0x01, 0x55, 0x13, 0x02, b'h', b'i'];
    let bytes = with_block_under(&foreign, b"hi");
    let (seen, error) = read_by_all(&bytes, &Options::default());
    assert_eq!(error, None);
    assert_eq!((seen[0].3, seen[1].3), (HashProof::Checked, HashProof::UnknownHash));
    assert_eq!(seen[1].0, foreign);
}

#[test]
fn a_block_under_the_identity_function_must_be_the_one_in_its_cid() {
    let identity = [0x01, 0x55, 0x00, 0x02, b'h', b'i'];
    let (seen, error) = read_by_all(&with_block_under(&identity, b"hi"), &Options::default());
    assert_eq!(error, None);
    assert_eq!((&seen[1].0[..], seen[1].3), (&identity[..], HashProof::Checked));
    for other in [&b"ho"[..], b"h", b"", b"hi!"] {
        let bytes = with_block_under(&identity, other);
        let (seen, error) = read_by_all(&bytes, &Options::default());
        assert_eq!(seen.len(), 1);
        assert_eq!(error.map(|error| error.fault), Some(CarFault::HashMismatch), "{other:?}");
        let (seen, error) =
            read_by_all(&bytes, &Options { trust_hashes: true, ..Options::default() });
        assert_eq!((seen.len(), error), (2, None), "a trusted archive is not compared");
    }
}

/// An archive with a usual block, and one under this CID.
fn with_block_under(cid: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = archive(&[block(b"one")]);
    bytes.push((cid.len() + data.len()) as u8);
    bytes.extend(cid);
    bytes.extend(data);
    bytes
}

#[test]
fn a_failing_source_is_an_error_after_the_blocks_before_it() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let bytes = archive(&[block(b"one")]);
    let mut reader = StreamReader::new(bytes.chain(Broken), &Options::default()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().data(), b"one");
    assert!(matches!(reader.next(), Some(Err(StreamError::Io(_)))));
    assert!(reader.next().is_none());
}

proptest! {
    #[test]
    fn every_reader_says_the_same_of_damaged_archives(
        datas in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..12),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let blocks: Vec<_> = datas.iter().map(|data| block(data)).collect();
        let mut bytes = archive(&blocks);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_by_all(&bytes, &Options::default());
    }
}
