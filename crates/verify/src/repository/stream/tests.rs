//! A stream gets the verdict of the whole export, in any order of blocks and at any size of reads.

use std::cell::Cell;
use std::io::{Cursor, Error, ErrorKind, Seek, SeekFrom, Write};

use atproto::mst::node::Writer as NodeWriter;
use codec::car;
use codec::cid::Codec;
use proptest::prelude::*;

use super::held::HeldBlocks;
use super::*;
use crate::repository::records::NODE_START;
use crate::repository::tests::{DID, Parts, path, record, secret};
use crate::repository::{self, WholeRepository, collect_rejections};

/// The statements of a proof.
#[derive(Debug, PartialEq)]
struct Proof {
    root: Cid,
    signature: SignatureProof,
    tree: Summary,
    blocks: u64,
    bytes: u64,
    extra: BlockTotals,
    invalid: InvalidRecords,
    flagged: Flagged,
}

type Verdict = Result<Proof, RepositoryRejection>;

fn of_export(export: &[u8], options: &Options) -> Verdict {
    let whole = repository::verify(export, Some(DID), &secret().public_key(), options)?;
    let whole: &WholeRepository<'_> = &whole;
    Ok(Proof {
        root: whole.root(),
        signature: whole.signature(),
        tree: whole.tree(),
        blocks: whole.archive().block_count(),
        bytes: export.len() as u64,
        extra: whole.extra(),
        invalid: whole.invalid_records().clone(),
        flagged: Flagged::of_repository(whole),
    })
}

fn of_stream(source: impl Read, options: &StreamOptions) -> Result<Proof, StreamFailure> {
    verify(source, Some(DID), &secret().public_key(), options).map(|whole| proof(&whole))
}

fn proof(whole: &StreamedRepository) -> Proof {
    assert_eq!(cid_of(whole.commit_block()), whole.root());
    Proof {
        root: whole.root(),
        signature: whole.signature(),
        tree: whole.tree(),
        blocks: whole.blocks(),
        bytes: whole.bytes(),
        extra: whole.extra(),
        invalid: whole.invalid_records().clone(),
        flagged: whole.flagged_records().clone(),
    }
}

fn open_spill() -> io::Result<Box<dyn Spill>> {
    Ok(Box::new(Cursor::new(Vec::new())))
}

fn options(repository: &Options, max_held_bytes: usize) -> StreamOptions {
    let (repository, spill) = (*repository, Some(open_spill as OpenSpill));
    let seed = (max_held_bytes == 100).then_some([5; 16]);
    StreamOptions { repository, max_held_bytes, spill, flag_records: true, seed }
}

/// A reader that gives at most `len` bytes at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.len.min(out.len());
        self.rest.read(&mut out[..len])
    }
}

/// Asserts that the stream has the verdict of the export, with all blocks held in memory and with some in a file.
fn assert_same_under(export: &[u8], limits: &Options) -> Verdict {
    let expected = of_export(export, limits);
    for max_held_bytes in [usize::MAX, 100] {
        let verdict = match of_stream(export, &options(limits, max_held_bytes)) {
            Ok(proof) => Ok(proof),
            Err(StreamFailure::Rejected(rejection)) => Err(*rejection),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(verdict, expected);
        let len = if max_held_bytes == 100 { 97 } else { 100_000 };
        let pushed = of_pushes(export, len, &options(limits, max_held_bytes));
        assert_eq!(pushed, expected, "pushes of {len}");
    }
    expected
}

/// The verdict on an export that is pushed in pieces of `len` bytes.
fn of_pushes(export: &[u8], len: usize, options: &StreamOptions) -> Verdict {
    let mut feed = RepositoryFeed::new(Some(DID), &secret().public_key(), options);
    let mut read = FeedProgress::default();
    let rejected = |failure| match failure {
        StreamFailure::Rejected(rejection) => *rejection,
        other => panic!("{other}"),
    };
    for piece in export.chunks(len) {
        feed.push(piece).map_err(rejected)?;
        let now = feed.progress();
        assert!(now.bytes >= read.bytes || now == FeedProgress::default(), "{now:?} {read:?}");
        read = now;
    }
    feed.finish().map(|whole| proof(&whole)).map_err(rejected)
}

fn assert_same(export: &[u8]) -> Verdict {
    assert_same_under(export, &Options::default())
}

fn strict() -> Options {
    Options { strict_records: true, ..Options::default() }
}

/// The blocks of an export, and the export of blocks.
fn split(export: &[u8]) -> Vec<(Cid, Vec<u8>)> {
    let blocks = car::read(export, &car::Options::default()).unwrap().blocks;
    blocks.iter().map(|block| (block.cid.to_cid().unwrap(), block.data.to_vec())).collect()
}

fn join(root: Cid, blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
    let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
    blocks.iter().for_each(|(cid, data)| writer.block(cid, data).unwrap());
    writer.into_inner()
}

/// The export of the parts in streamable order.
fn streamable(parts: &Parts) -> Vec<u8> {
    let export = parts.export();
    let whole = repository::verify_without_signature(&export, &Options::default()).unwrap();
    whole.export(Vec::new()).unwrap()
}

fn cid_of(block: &[u8]) -> Cid {
    Cid::of(Codec::DagCbor, block)
}

/// The commit and the nodes, then all other blocks, the last ones first.
fn nodes_first(blocks: &[(Cid, Vec<u8>)]) -> Vec<(Cid, Vec<u8>)> {
    let is_node = |(_, block): &&(Cid, Vec<u8>)| block.starts_with(NODE_START);
    let nodes = blocks[1..].iter().filter(is_node);
    let others = blocks[1..].iter().filter(|block| !is_node(block)).rev();
    blocks[..1].iter().chain(nodes).chain(others).cloned().collect()
}

#[test]
fn a_stream_has_the_verdict_of_the_export_in_any_order_of_blocks() {
    for count in [0, 1, 2, 100, 1000] {
        let parts = Parts::of(count);
        let ordered = streamable(&parts);
        let mut blocks = split(&ordered);
        let root = blocks[0].0;
        assert_same(&parts.export()).unwrap();
        assert_same(&ordered).unwrap();
        blocks.reverse();
        assert_same(&join(root, &blocks)).unwrap();
        blocks.sort();
        assert_same(&join(root, &blocks)).unwrap();
    }
}

#[test]
fn an_archive_in_streamable_order_has_no_block_held_and_one_in_another_needs_a_spill_file() {
    let parts = Parts::of(500);
    let ordered = streamable(&parts);
    let without = StreamOptions { spill: None, ..options(&Options::default(), 0) };
    assert_eq!(
        of_stream(&*ordered, &without).unwrap(),
        of_export(&ordered, &Options::default()).unwrap()
    );
    let mut blocks = split(&ordered);
    let root = blocks[0].0;
    blocks[1..].reverse();
    let reversed = join(root, &blocks);
    assert!(matches!(of_stream(&*reversed, &without), Err(StreamFailure::Unordered)));
    assert_same(&reversed).unwrap();
}

#[test]
fn records_after_all_nodes_are_not_held() {
    let parts = Parts::of(500);
    let ordered = streamable(&parts);
    let is_record =
        |(_, block): &(Cid, Vec<u8>)| block.windows(6).any(|window| window == b"number");
    let (records, mut blocks): (Vec<_>, Vec<_>) = split(&ordered).into_iter().partition(is_record);
    let root = blocks[0].0;
    blocks.extend(records.into_iter().rev());
    let nodes_first = join(root, &blocks);
    let without = StreamOptions { spill: None, ..options(&Options::default(), 0) };
    assert!(of_stream(&*nodes_first, &without).is_ok());
    assert_same(&nodes_first).unwrap();
}

#[test]
fn reads_of_every_size_give_the_same_verdict() {
    let sound = streamable(&Parts::of(60));
    let mut wrong = sound.clone();
    *wrong.last_mut().unwrap() ^= 1;
    for export in [&sound[..], &wrong, &sound[..sound.len() - 9]] {
        let expected = of_export(export, &Options::default());
        for len in (1..40).chain([63, 64, 65, 1000, 65_536]) {
            let verdict = of_stream(Pieces { rest: export, len }, &options(&Options::default(), 0));
            match (verdict, &expected) {
                (Ok(proof), Ok(expected)) => assert_eq!(proof, *expected),
                (Err(StreamFailure::Rejected(found)), Err(expected)) => {
                    assert_eq!(*found, *expected)
                }
                (verdict, _) => panic!("reads of {len}: {verdict:?}"),
            }
        }
    }
}

#[test]
fn pushes_of_every_size_give_the_verdict_of_the_export() {
    let ordered = streamable(&Parts::of(50));
    let last_first: Vec<_> = split(&ordered).into_iter().rev().collect();
    let mut damaged = ordered.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for export in
        [&ordered, &join(split(&ordered)[0].0, &last_first), &damaged, &ordered[..900].to_vec()]
    {
        let expected = of_export(export, &Options::default());
        for len in [1, 2, 3, 39, 500, 4_096] {
            let options = options(&Options::default(), usize::MAX);
            assert_eq!(of_pushes(export, len, &options), expected, "pushes of {len}");
        }
    }
}

#[test]
fn a_feed_ends_at_a_fault_of_the_archive_and_ignores_what_comes_after() {
    let mut export = streamable(&Parts::of(1_000));
    let middle = export.len() / 2;
    export[middle] ^= 1;
    let mut feed = RepositoryFeed::without_signature(&StreamOptions::default());
    let ends = export.chunks(1_000).position(|piece| feed.push(piece).is_err());
    assert!(ends.is_some_and(|piece| piece * 1_000 < middle + 100_000), "{ends:?}");
    assert!(feed.push(b"more").is_ok());
    assert!(matches!(feed.finish(), Err(StreamFailure::Io(_))));
}

#[test]
fn a_feed_without_a_limit_of_memory_to_spare_says_that_it_is_unordered() {
    let blocks = split(&streamable(&Parts::of(200)));
    let export = join(blocks[0].0, &blocks.iter().cloned().rev().collect::<Vec<_>>());
    let limits = StreamOptions { max_held_bytes: 100, ..StreamOptions::default() };
    let mut feed = RepositoryFeed::without_signature(&limits);
    let pushed = export.chunks(1_000).try_for_each(|piece| feed.push(piece));
    let verdict = pushed.and_then(|()| feed.finish());
    assert!(matches!(verdict, Err(StreamFailure::Unordered)), "{verdict:?}");
}

#[test]
fn every_truncation_and_every_flipped_byte_is_rejected_for_the_same_reason() {
    let parts = Parts::of(5);
    for mut export in [parts.export(), streamable(&parts)] {
        for at in 0..export.len() {
            assert!(assert_same(&export[..at]).is_err());
            for bit in [0x01, 0x80] {
                export[at] ^= bit;
                assert!(assert_same(&export).is_err(), "byte {at}");
                export[at] ^= bit;
            }
        }
    }
}

#[test]
fn each_block_that_is_left_out_moved_or_repeated_gives_the_same_verdict() {
    let blocks = split(&streamable(&Parts::of(40)));
    let root = blocks[0].0;
    for at in 0..blocks.len() {
        let mut without = blocks.clone();
        let block = without.remove(at);
        assert!(assert_same(&join(root, &without)).is_err());
        for to in [0, at / 2, without.len()] {
            let mut moved = without.clone();
            moved.insert(to, block.clone());
            assert_same(&join(root, &moved)).unwrap();
            moved.insert(at, block.clone());
            assert_same(&join(root, &moved)).unwrap();
        }
    }
}

#[test]
fn invalid_shared_and_odd_records_are_counted_alike() {
    let mut parts = Parts::of(20);
    for number in 1000..1050 {
        parts.put(&path(number), b"\x80".to_vec());
        parts.put(&path(number + 100), record("the same"));
        parts.put(&path(number + 200), record(&format!("number {}", number % 20)));
        parts.put(&path(number + 300), b"\xa1\x61a\x01".to_vec());
    }
    parts.put(&path(2000), record(&"long".repeat(1 << 18)));
    let blocks = {
        let mut blocks = split(&streamable(&parts));
        blocks.push((cid_of(b"\x61a"), b"\x61a".to_vec()));
        blocks.push((Cid::of(Codec::Raw, b"raw"), b"raw".to_vec()));
        blocks
    };
    let root = blocks[0].0;
    let mut reversed = blocks.clone();
    reversed[1..].reverse();
    for blocks in [&blocks, &reversed, &nodes_first(&blocks)] {
        let export = join(root, blocks);
        let proof = assert_same(&export).unwrap();
        assert_eq!((proof.invalid.records, proof.extra.blocks), (51, 2));
        assert_eq!(proof.flagged.records, 50);
        assert_eq!(assert_same_under(&export, &strict()).unwrap_err().code(), "record/shape");
    }
    let none = Options { max_extra_blocks: 1, ..Options::default() };
    assert_eq!(assert_same_under(&join(root, &blocks), &none).unwrap_err().code(), "car/extra");
}

#[test]
fn a_block_under_a_short_cid_does_not_hide_the_invalid_record_before_it() {
    // Six bytes: a CID with an identity hash of one byte, and an empty map.
    let unlinked = b"\x06\x01\x71\x00\x01\xa0\xa0";
    for padding in 0..64 {
        let mut parts = Parts::of(0);
        parts.put(&path(0), record(&"-".repeat(padding)));
        parts.put(&path(1), b"\x80".to_vec());
        let blocks = split(&streamable(&parts));
        assert_eq!(blocks.last().unwrap().1, b"\x80", "the invalid record is the last block");
        for blocks in [&blocks, &nodes_first(&blocks)] {
            let export = [&join(blocks[0].0, blocks)[..], unlinked].concat();
            let proof = assert_same(&export).unwrap();
            assert_eq!((proof.invalid.records, proof.extra.blocks), (1, 1), "{padding}");
            assert_eq!(assert_same_under(&export, &strict()).unwrap_err().code(), "record/shape");
            let faults = collect_rejections(&export, None, None, &strict(), 10);
            assert_eq!(
                faults.iter().map(RepositoryRejection::code).collect::<Vec<_>>(),
                ["record/shape"]
            );
        }
    }
}

#[test]
fn a_record_that_collections_share_is_flagged_for_each_that_is_not_its_type() {
    let mut parts = Parts::of(30);
    for (collection, number) in [("aaa", 3), ("zzz", 4), ("zzz", 5), ("zzy", 4)] {
        let path = format!("app.test.{collection}/{number}");
        parts.put(&path, record(&format!("number {number}")));
    }
    let mut blocks = split(&streamable(&parts));
    let root = blocks[0].0;
    let proof = assert_same(&join(root, &blocks)).unwrap();
    assert_eq!(proof.flagged.records, 4);
    assert_same(&join(root, &nodes_first(&blocks))).unwrap();
    blocks[1..].reverse();
    assert_same(&join(root, &blocks)).unwrap();
}

#[test]
fn a_shared_record_has_its_collection_among_many_thousands() {
    let mut parts = Parts::of(4_300);
    let mut own = codec::cbor::Encoder::new();
    own.map(2).text("text").text("of its own type").text("$type").text("app.test.sss");
    parts.put("app.test.sss/1", own.into_bytes());
    // Another record of the first collection, whose type is that.
    parts.put("app.test.sss/2", record("number 2000"));
    let blocks = split(&streamable(&parts));
    let root = blocks[0].0;
    let proof = assert_same(&join(root, &blocks)).unwrap();
    assert_eq!(proof.flagged.records, 1);
}

#[test]
fn a_record_that_arrives_between_two_references_is_flagged_for_all() {
    let mut parts = Parts::of(0);
    for number in 0..300 {
        let path = format!("app.test.bbb/{number:013}");
        parts.put(&path, record(&format!("number {number}")));
    }
    let shared = record("shared");
    for path in ["app.test.aaa/1", "app.test.bbb/0", "app.test.bbb/9"] {
        parts.put(path, shared.clone());
    }
    let mut blocks = split(&streamable(&parts));
    let root = blocks[0].0;
    let block = blocks.remove(blocks.iter().position(|(_, block)| *block == shared).unwrap());
    for at in [50, 100, 200] {
        let mut late = blocks.clone();
        late.insert(at, block.clone());
        let proof = assert_same(&join(root, &late)).unwrap();
        assert_eq!(proof.flagged.records, 303);
    }
}

#[test]
fn a_tree_node_that_is_a_record_too_is_flagged_if_flags_are_wanted() {
    let parts = Parts::of(200);
    let (tree, nodes) = parts.nodes();
    let mut count = 0;
    for (cid, node) in nodes.iter().filter(|(cid, _)| *cid != tree) {
        let mut parts = parts.clone();
        parts.put("app.test.zzz/node", node.clone());
        if !parts.nodes().1.iter().any(|(other, _)| other == cid) {
            continue;
        }
        let export = streamable(&parts);
        assert_eq!(assert_same(&export).unwrap().flagged.records, 1);
        let without = StreamOptions { flag_records: false, ..options(&Options::default(), 0) };
        assert_eq!(of_stream(&*export, &without).unwrap().flagged, Flagged::default());
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn a_node_that_the_tree_names_twice_is_rejected() {
    let mut keys = (0..).map(path);
    let [first, low, second] = [1, 0, 1]
        .map(|height| keys.find(|key| atproto::mst::key_height(key.as_bytes()) == height).unwrap());
    let block = record("a record");
    let (value, mut child) = (cid_of(&block), Vec::new());
    let mut writer = NodeWriter::new(&mut child, 1);
    writer.entry(0, low.as_bytes(), value.as_cid_ref(), None);
    writer.finish(None);
    let link = Some(cid_of(&child));
    let shared = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    let twice =
        of_nodes(&[(0, &first, value, link), (shared, &second, value, link)], &[child, block]);
    assert_eq!(assert_same(&twice).unwrap_err().code(), "tree/repeated-node");
}

#[test]
fn any_key_is_allowed_if_the_options_say_so() {
    let mut parts = Parts::of(5);
    parts.put("zzz no path", record("a"));
    let export = parts.export();
    assert_eq!(assert_same(&export).unwrap_err().code(), "record/path");
    let any_key = Options { allow_any_key: true, ..Options::default() };
    assert_eq!(assert_same_under(&export, &any_key).unwrap().tree.records, 6);
}

#[test]
fn a_stream_can_be_read_to_its_end_without_a_proof() {
    let mut export = streamable(&Parts::of(5));
    let read = |export: &[u8]| open(export, &StreamOptions::default()).unwrap().read_to_end();
    assert!(read(&export).is_ok());
    *export.last_mut().unwrap() ^= 1;
    let failure = read(&export).unwrap_err();
    assert!(matches!(&failure, StreamFailure::Rejected(found) if found.code() == "car/hash"));
    assert_eq!(
        failure.to_string(),
        of_export(&export, &Options::default()).unwrap_err().to_string()
    );
    assert!(StreamFailure::Unordered.to_string().contains("provide a spill file"));
    let io = StreamFailure::from(Error::from(ErrorKind::StorageFull));
    assert_eq!(io.to_string(), Error::from(ErrorKind::StorageFull).to_string());
}

/// A spill file that counts the bytes written to it.
struct CountingSpill(Cursor<Vec<u8>>);

thread_local!(static SPILLED: Cell<usize> = const { Cell::new(0) });

impl Read for CountingSpill {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl Write for CountingSpill {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SPILLED.set(SPILLED.get() + bytes.len());
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for CountingSpill {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

fn open_counting_spill() -> io::Result<Box<dyn Spill>> {
    Ok(Box::new(CountingSpill(Cursor::new(Vec::new()))))
}

#[test]
fn an_invalid_record_is_at_its_first_copy() {
    let mut parts = Parts::of(9);
    parts.put(&path(7_000), b"\x80".to_vec());
    let mut blocks = split(&streamable(&parts));
    let root = blocks[0].0;
    let invalid = blocks.iter().find(|(_, block)| block == b"\x80").unwrap().clone();
    for at in [0, 1, blocks.len()] {
        blocks.insert(at, invalid.clone());
        let rejection = assert_same_under(&join(root, &blocks), &strict()).unwrap_err();
        assert_eq!(rejection.code(), "record/shape");
        blocks.remove(at);
    }
}

#[test]
fn what_is_not_yet_written_to_a_spill_file_is_bounded() {
    let mut held =
        HeldBlocks::new(0, Some(open_counting_spill), super::tables::TableState::new(None));
    SPILLED.set(0);
    let mut all = 0;
    for (number, len) in [300_000].into_iter().chain([10_000; 100]).enumerate() {
        let cid = cid_of(&number.to_be_bytes());
        assert!(held.insert(cid, 0, &vec![0; len]).is_ok());
        all += len;
        assert!(all - SPILLED.get() <= 300_000, "{all} bytes, {} written", SPILLED.get());
    }
}

#[test]
fn a_record_of_many_collections_is_spilled_at_most_twice() {
    let long = "x".repeat(300_000);
    let mut of_other_type = codec::cbor::Encoder::new();
    of_other_type.map(2).text("text").text(&long).text("$type").text("app.test.other");
    let mut node_like = codec::cbor::Encoder::new();
    node_like.map(2).text("e").text(&long).text("l").integer(1);
    let invalid = [&b"\x81"[..], &vec![b'a'; 300_000]].concat();
    for shared in [of_other_type.into_bytes(), node_like.into_bytes(), invalid] {
        let mut parts = Parts::of(3);
        for number in 0..50 {
            parts.put(&format!("app.test.collection{number}/self"), shared.clone());
        }
        let mut blocks = split(&streamable(&parts));
        let root = blocks[0].0;
        for is_first in [false, true] {
            let at = blocks.iter().position(|(_, block)| *block == shared).unwrap();
            let block = blocks.remove(at);
            blocks.insert(if is_first { 0 } else { blocks.len() }, block);
            let export = join(root, &blocks);
            assert_same(&export).unwrap();
            SPILLED.set(0);
            let counting = Some(open_counting_spill as OpenSpill);
            let limits = StreamOptions { spill: counting, ..options(&Options::default(), 0) };
            let proof = of_stream(&*export, &limits).unwrap();
            assert_eq!(proof.invalid.records.max(proof.flagged.records), 50);
            assert!(SPILLED.get() < 700_000, "{} bytes", SPILLED.get());
        }
    }
}

#[test]
fn paths_of_records_that_arrive_late_are_bounded_by_what_was_read() {
    let mut parts = Parts::of(3);
    let part = "long".repeat(15);
    for number in 0..2_000 {
        let path = format!("app.{part}.{part}.{part}.record/{number}");
        parts.put(&path, record(&number.to_string()));
    }
    let (nodes, records): (Vec<_>, Vec<_>) = split(&streamable(&parts))
        .into_iter()
        .partition(|(_, block)| !block.windows(6).any(|window| window == b"app.te"));
    assert!(records.len() > 1_900, "{}", records.len());
    let root = nodes[0].0;
    let late = join(root, &[nodes, records].concat());
    let with_limit = |limit| of_stream(&*late, &options(&Options::default(), limit));
    assert_eq!(with_limit(1 << 20).unwrap(), of_export(&late, &Options::default()).unwrap());
    let failed = with_limit(0);
    assert!(matches!(failed, Err(StreamFailure::Unordered)), "{failed:?}");
}

#[test]
fn paths_of_records_that_have_arrived_and_further_paths_of_a_collection_are_not_held() {
    let part = "long".repeat(15);
    let long = |number: usize| format!("app.{part}.{part}.{part}.record/{number}");
    let mut parts = Parts::of(0);
    for number in 0..2_000 {
        parts.put(&long(number), record(&number.to_string()));
    }
    let mut blocks = split(&streamable(&parts));
    let root = blocks[0].0;
    // The records of every node in reverse.
    let is_node = |(_, block): &(Cid, Vec<u8>)| block.starts_with(NODE_START);
    blocks[1..].chunk_by_mut(|a, b| is_node(a) == is_node(b)).for_each(<[_]>::reverse);
    let one = {
        let mut parts = Parts::of(0);
        for number in 0..2_000 {
            parts.put(&long(number), record("shared"));
        }
        let blocks = split(&streamable(&parts));
        join(blocks[0].0, &nodes_first(&blocks))
    };
    for export in [join(root, &blocks), one] {
        let proof = of_stream(&*export, &options(&Options::default(), 16 << 10)).unwrap();
        assert_eq!(proof.tree.records, 2_000);
    }
}

#[test]
fn a_block_may_be_node_record_and_commit_at_once() {
    let mut parts = Parts::of(200);
    let (tree, nodes) = parts.nodes();
    let other = nodes.iter().find(|(cid, _)| *cid != tree).unwrap();
    parts.put("app.test.zzz/node", other.1.clone());
    parts.put("app.test.aaa/node", nodes.last().unwrap().1.clone());
    parts.put("app.test.aaa/commit", parts.commit());
    let ordered = streamable(&parts);
    let mut blocks = split(&ordered);
    let root = blocks[0].0;
    assert_same(&ordered).unwrap();
    blocks.reverse();
    assert_same(&join(root, &blocks)).unwrap();
}

/// An archive whose tree is the node with these entries: key, record and child after it.
fn of_node(entries: &[(&str, Cid, Option<Cid>)], others: &[Vec<u8>]) -> Vec<u8> {
    let entries: Vec<_> = entries.iter().map(|(key, cid, right)| (0, *key, *cid, *right)).collect();
    of_nodes(&entries, others)
}

/// As `of_node`, with the length of the prefix that every key shares with the one before.
fn of_nodes(entries: &[(usize, &str, Cid, Option<Cid>)], others: &[Vec<u8>]) -> Vec<u8> {
    let mut node = Vec::new();
    let mut writer = NodeWriter::new(&mut node, entries.len());
    for (shared, key, value, right) in entries {
        writer.entry(*shared, &key.as_bytes()[*shared..], value.as_cid_ref(), right.as_ref());
    }
    writer.finish(None);
    let data = cid_of(&node);
    let unsigned =
        atproto::commit::UnsignedCommit { did: DID, rev: "3mptbypluud2a", data, prev: None };
    let commit = unsigned.with_signature(&secret().sign(&unsigned.to_bytes()));
    let root = cid_of(&commit);
    let mut blocks = vec![(root, commit), (data, node)];
    blocks.extend(others.iter().map(|block| (cid_of(block), block.clone())));
    join(root, &blocks)
}

#[test]
fn a_child_that_is_a_record_the_commit_or_its_own_parent_is_rejected_at_its_place() {
    let key = (0..).map(path).find(|key| atproto::mst::key_height(key.as_bytes()) == 1).unwrap();
    let two_fields = record("two fields");
    let mut other = codec::cbor::Encoder::new();
    other.map(1).text("a").integer(1);
    let other = other.into_bytes();
    for child in [two_fields.clone(), other, b"\x80".to_vec(), b"\xa1\x61a\x18\x01".to_vec()] {
        let cid = cid_of(&child);
        let both = of_node(&[(&key, cid, Some(cid))], std::slice::from_ref(&child));
        assert!(assert_same(&both).unwrap_err().offset.is_some());
        let first =
            of_node(&[(&key, cid_of(&two_fields), Some(cid))], &[child, two_fields.clone()]);
        assert!(assert_same(&first).is_err());
    }
    let parent = of_node(&[(&key, cid_of(&two_fields), None)], std::slice::from_ref(&two_fields));
    let blocks = split(&parent);
    for child in [blocks[0].0, blocks[1].0] {
        let again = of_node(
            &[(&key, cid_of(&two_fields), Some(child))],
            &[two_fields.clone(), blocks[1].1.clone()],
        );
        assert!(assert_same(&again).is_err());
    }
}

#[test]
fn a_fault_after_a_missing_record_does_not_hide_it() {
    let mut parts = Parts::of(50);
    parts.put("zzz no path", record("a"));
    let mut blocks = split(&parts.export());
    let root = blocks[0].0;
    assert_eq!(assert_same(&join(root, &blocks)).unwrap_err().code(), "record/path");
    let missing = cid_of(&record("number 20"));
    blocks.retain(|(cid, _)| *cid != missing);
    let rejection = assert_same(&join(root, &blocks)).unwrap_err();
    assert_eq!((rejection.code(), rejection.cid), ("record/missing", Some(missing)));
    // A fault of the archive comes first, wherever it is.
    blocks.last_mut().unwrap().1[3] ^= 1;
    assert_eq!(assert_same(&join(root, &blocks)).unwrap_err().code(), "car/hash");
}

#[test]
fn without_a_commit_or_a_right_signature_the_archive_is_still_read_to_its_end() {
    let parts = Parts::of(30);
    let blocks = split(&parts.export());
    let root = blocks[0].0;
    let stranger = Parts { did: "did:plc:somebodyelse".to_owned(), ..parts.clone() };
    let other = split(&stranger.export());
    let mut forged = blocks[0].1.clone();
    *forged.last_mut().unwrap() ^= 1;
    let forged_root = cid_of(&forged);
    let mut with_forged = blocks.clone();
    with_forged[0] = (forged_root, forged);
    for (root, blocks) in [
        (cid_of(b"none"), &blocks),
        (Cid::of(Codec::Raw, b"raw"), &blocks),
        (blocks[1].0, &blocks),
        (other[0].0, &other),
        (forged_root, &with_forged),
    ] {
        let mut export = join(root, blocks);
        let rejection = assert_same(&export).unwrap_err();
        *export.last_mut().unwrap() ^= 1;
        assert_eq!(assert_same(&export).unwrap_err().code(), "car/hash", "{rejection}");
    }
    let no_root =
        [&b"\x11\xa2\x65roots\x80\x67version\x01"[..], &join(root, &blocks)[59..]].concat();
    assert_eq!(assert_same(&no_root).unwrap_err().fault, RepositoryFault::NoRoot);
}

#[test]
fn a_stream_or_a_spill_file_that_fails_is_no_verdict() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::ConnectionReset.into())
        }
    }
    let ordered = streamable(&Parts::of(30));
    for cut in [0, 20, 100, 300, ordered.len() / 2, ordered.len()] {
        let broken = ordered[..cut].chain(Broken);
        let failed = of_stream(broken, &options(&Options::default(), 0));
        assert!(matches!(failed, Err(StreamFailure::Io(_))), "{cut}: {failed:?}");
    }
    fn full() -> io::Result<Box<dyn Spill>> {
        Err(Error::from(ErrorKind::StorageFull))
    }
    let mut blocks = split(&ordered);
    let root = blocks[0].0;
    blocks.reverse();
    let without = StreamOptions { spill: Some(full), ..options(&Options::default(), 0) };
    let failed = of_stream(&*join(root, &blocks), &without);
    assert!(
        matches!(failed, Err(StreamFailure::Io(error)) if error.kind() == ErrorKind::StorageFull)
    );
}

#[test]
fn limits_of_archive_and_tree_are_those_of_the_export() {
    let export = streamable(&Parts::of(40));
    let mut blocks = Options::default();
    blocks.archive.max_blocks = 10;
    let mut block = Options::default();
    block.archive.max_block_bytes = 90;
    let mut nodes = Options::default();
    nodes.tree.max_nodes = 3;
    let mut records = Options::default();
    records.tree.max_records = 20;
    for limits in [blocks, block, nodes, records] {
        let code = assert_same_under(&export, &limits).unwrap_err().code();
        assert!(code.ends_with("/limit"), "{code}");
    }
    let mut total = Options::default();
    total.archive.max_total_bytes = export.len() as u64 - 1;
    let Err(StreamFailure::Rejected(rejection)) = of_stream(&*export, &options(&total, 0)) else {
        panic!("not rejected");
    };
    assert_eq!(rejection.code(), of_export(&export, &total).unwrap_err().code());
}

proptest! {
    #[test]
    fn any_order_omission_repetition_and_damage_gives_the_same_verdict(
        count in 0usize..60,
        order in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80),
        removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..2),
        repeated in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
        damage in proptest::option::of((any::<prop::sample::Index>(), 1u8..)),
        is_strict in any::<bool>(),
    ) {
        let mut parts = Parts::of(count);
        parts.put(&path(7_000), b"\x80".to_vec());
        parts.put(&path(7_001), b"\x80".to_vec());
        parts.put(&path(7_002), record("number 3"));
        let mut blocks = split(&streamable(&parts));
        let root = blocks[0].0;
        for (a, b) in order {
            let (a, b) = (a.index(blocks.len()), b.index(blocks.len()));
            blocks.swap(a, b);
        }
        for at in removed {
            blocks.remove(at.index(blocks.len()));
        }
        for (from, to) in repeated {
            let block = blocks[from.index(blocks.len())].clone();
            blocks.insert(to.index(blocks.len() + 1), block);
        }
        let mut export = join(root, &blocks);
        if let Some((at, change)) = damage {
            let at = at.index(export.len());
            export[at] ^= change;
        }
        let limits = if is_strict { strict() } else { Options::default() };
        let _ = assert_same_under(&export, &limits);
    }
}
