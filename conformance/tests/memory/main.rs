//! The memory use of decoding and verifying.
//!
//! All tests here use a counting allocator. It counts by thread, so concurrent tests do not affect each other.

mod nostr;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;

use atproto::corpus;
use atproto::event::{Decoder, Event, Identity, Options, Sync};
use bumpalo::Bump;
use codec::{Cid, car, cbor, cid::Codec, json};
use crypto::PublicKey;
use mapping::MappedFile;
use simnet::repository_corpus::{BlockOrder, Corpus, Spec};
use verify::repository;
use verify::repository::stream::{self, StreamOptions};
use wireproof_conformance::fixtures;

#[test]
fn a_decoder_that_is_warm_allocates_nothing() {
    let file = small_corpus();
    let frames = corpus::read(&file).unwrap();
    assert_warm_passes_allocate_nothing(&frames);
}

#[test]
fn a_warm_decoder_allocates_nothing_for_captured_frames() {
    let file = fixtures!(Captures).bytes("pds/frames.bin");
    let frames = corpus::read(&file).unwrap();
    assert_warm_passes_allocate_nothing(&frames);
}

#[test]
fn decoding_a_captured_corpus_takes_the_corpus_and_16_megabytes() {
    let data = fixtures!(Captures);
    let (len, taken) = measured(|| {
        let file = data.bytes("pds/frames.bin");
        decode_all(&mut Decoder::new(Options::default()), &corpus::read(&file).unwrap());
        file.len()
    });
    assert!(taken.peak <= len + (16 << 20), "{} bytes for {len}", taken.peak);
}

#[test]
fn hostile_frames_take_memory_in_proportion_to_their_length() {
    for (name, block) in hostile_items(400_000) {
        let frame = sync_frame(1, [block]);
        let mut decoder = Decoder::new(Options::default());
        let (_, taken) = measured(|| decoder.decode(&frame).is_ok());
        assert_bounded(name, ARENA_BYTES, frame.len(), taken);
    }
}

#[test]
fn hostile_blocks_take_memory_in_proportion_to_their_length() {
    for (name, block) in hostile_items(400_000) {
        let (_, taken) = measured(|| {
            let arena = Bump::new();
            cbor::decode(&block, &arena).is_ok()
        });
        assert_bounded(name, ARENA_BYTES, block.len(), taken);
    }
}

#[test]
fn judging_and_counting_take_no_memory() {
    for (name, block) in hostile_items(400_000) {
        let (_, taken) = measured(|| {
            let valid = cbor::validate(&block).is_ok();
            assert_eq!(cbor::count(&block, &mut cbor::ItemCounts::default()).is_ok(), valid);
        });
        assert_eq!(taken, Taken { allocations: 0, peak: 0 }, "{name}");
    }
}

#[test]
fn a_claimed_count_reserves_nothing() {
    for claim in [u64::MAX, 1 << 62, 1 << 32, 1 << 31] {
        for major in [2u8, 3, 4, 5] {
            let mut item = vec![0x81, 0x81, major << 5 | 27];
            item.extend(claim.to_be_bytes());
            let (is_ok, taken) = measured(|| cbor::decode(&item, &Bump::new()).is_ok());
            assert!(!is_ok);
            assert!(taken.peak <= 4 << 10, "{claim:x} of kind {major}: {} bytes", taken.peak);
        }
        let mut file = (claim as u32).max(u32::MAX / 2).to_be_bytes().to_vec();
        file.extend([0; 8]);
        let (is_ok, taken) = measured(|| corpus::read(&file).is_ok());
        assert!(!is_ok && taken.peak <= 4 << 10, "a corpus of {claim:x}: {} bytes", taken.peak);
    }
}

#[test]
fn a_stream_of_any_length_is_read_in_bounded_memory() {
    let blocks: Vec<Vec<u8>> = (0..4_000u64).map(block_of_a_kilobyte).collect();
    let mut writer = car::Writer::new(Vec::new(), &[]).unwrap();
    for block in &blocks {
        writer.block(&Cid::of(Codec::DagCbor, block), block).unwrap();
    }
    let archive = writer.into_inner();
    let (count, taken) = measured(|| {
        let stream = car::StreamReader::new(&archive[..], &car::Options::default()).unwrap();
        stream.map(Result::unwrap).count()
    });
    assert_eq!(count, blocks.len());
    assert!(taken.peak <= 512 << 10, "{} bytes for an archive of {}", taken.peak, archive.len());
}

#[test]
fn a_stream_reserves_no_length_that_is_only_claimed() {
    let mut archive = car::Writer::new(Vec::new(), &[]).unwrap().into_inner();
    // The length of a block of nearly 2 MiB, without its bytes.
    archive.extend([0xf0, 0xff, 0x7f, 0x01]);
    let (ended, taken) = measured(|| {
        let stream = car::StreamReader::new(&archive[..], &car::Options::default()).unwrap();
        stream.map(|block| block.is_err()).collect::<Vec<_>>()
    });
    assert_eq!(ended, [true]);
    assert!(taken.peak <= 64 << 10, "{} bytes", taken.peak);
}

#[test]
fn proving_a_mapped_repository_takes_less_than_half_of_its_length_in_any_order() {
    for order in [BlockOrder::Streamable, BlockOrder::Shuffled] {
        let corpus = Corpus::generate(&Spec { order, ..Spec::quick() });
        let export = tempfile::NamedTempFile::new().unwrap();
        fs::write(export.path(), corpus.to_file()).unwrap();
        let account = corpus.repository().account();
        let key = PublicKey::from_did_key(&account.key().did_key()).unwrap();
        let mapped = MappedFile::open(export.path()).unwrap();
        let (records, taken) = measured(|| {
            let options = repository::Options::default();
            let whole = repository::verify(&mapped, Some(account.did()), &key, &options).unwrap();
            whole.tree().records
        });
        assert_eq!(records, 10_000);
        let len = mapped.len();
        assert!(taken.peak <= len / 2, "{order:?}: {} bytes for {len}", taken.peak);
    }
}

#[test]
fn proving_a_streamed_repository_takes_memory_for_its_index_alone() {
    let corpus = Corpus::generate(&Spec::quick());
    let export = corpus.to_file();
    let account = corpus.repository().account();
    let key = PublicKey::from_did_key(&account.key().did_key()).unwrap();
    let (blocks, taken) = measured(|| {
        let options = StreamOptions::default();
        let whole = stream::verify(&export[..], Some(account.did()), &key, &options).unwrap();
        whole.blocks()
    });
    // Tables double when they are full, and both are there meanwhile.
    let bound = 80 * blocks as usize + STREAM_BYTES;
    assert!(taken.peak <= bound, "{} bytes for {blocks} blocks", taken.peak);
}

#[test]
fn a_streamed_repository_in_another_order_takes_no_more_memory_than_may_be_held() {
    let corpus = Corpus::generate(&Spec { order: BlockOrder::Shuffled, ..Spec::quick() });
    let export = corpus.to_file();
    let mut options = StreamOptions::default();
    options.max_held_bytes = 100_000;
    options.spill = Some(|| Ok(Box::new(tempfile::tempfile()?)));
    let (blocks, taken) = measured(|| {
        let opened = stream::open(&export[..], &options).unwrap();
        opened.without_signature().verify().unwrap().blocks()
    });
    let bound = options.max_held_bytes + 240 * blocks as usize + STREAM_BYTES;
    assert!(taken.peak <= bound, "{} bytes for {blocks} blocks", taken.peak);
    assert!(taken.peak <= export.len(), "{} bytes for {}", taken.peak, export.len());
}

#[test]
fn hostile_json_takes_memory_in_proportion_to_its_length() {
    let repeated = |item: &str| format!("[{}0]", item.repeat(400_000 / item.len()));
    let deep = format!("{}{}", "[[0],".repeat(60), "[".repeat(100_000));
    for (name, text) in [
        ("many items", repeated("0,")),
        ("many arrays of one", repeated("[0],")),
        ("many maps of one", repeated("{\"\":0},")),
        ("deep", deep),
    ] {
        let (_, taken) = measured(|| json::decode(&text, &Bump::new()).is_ok());
        assert_bounded(name, JSON_BYTES, text.len(), taken);
    }
}

/// The memory use of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    allocations: usize,
    /// The peak of allocated bytes above the bytes allocated before.
    peak: usize,
}

fn assert_bounded(name: &str, bytes_each: usize, input_len: usize, taken: Taken) {
    let bound = bytes_each * input_len + SLACK_BYTES;
    assert!(taken.peak <= bound, "{name}: {} bytes for {input_len}, over {bound}", taken.peak);
}

fn assert_warm_passes_allocate_nothing(frames: &[&[u8]]) {
    let mut decoder = Decoder::new(Options::default());
    let warm_up = (0..MAX_WARM_UP_PASSES).find(|_| {
        let (_, taken) = measured(|| decode_all(&mut decoder, frames));
        taken.allocations == 0
    });
    assert!(warm_up.is_some_and(|passes| passes > 0), "a pass that allocates nothing: {warm_up:?}");
    for _ in 0..3 {
        let (errors, taken) = measured(|| decode_all(&mut decoder, frames));
        assert_eq!((errors, taken.allocations), (0, 0));
    }
}

/// Decodes in batches, and answers how many frames were refused.
fn decode_all(decoder: &mut Decoder, frames: &[&[u8]]) -> usize {
    let refused = |batch| decoder.decode_batch(batch).iter().filter(|event| event.is_err()).count();
    frames.chunks(64).map(refused).sum()
}

fn small_corpus() -> Vec<u8> {
    let frames: Vec<Vec<u8>> = (0..500i64)
        .map(|seq| match seq % 2 {
            0 => Event::Identity(Identity { seq, did: DID, time: TIME, handle: None }).to_frame(),
            _ => sync_frame(seq, (0..1 + seq as u64 % 9).map(block_of_a_kilobyte)),
        })
        .collect();
    corpus::write(frames.iter().map(|frame| &frame[..]))
}

fn sync_frame(seq: i64, blocks: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut writer = car::Writer::new(Vec::new(), &[]).unwrap();
    for block in blocks {
        writer.block(&Cid::of(Codec::DagCbor, &block), &block).unwrap();
    }
    let (car, rev) = (&writer.into_inner()[..], "3mptbypluud2a");
    Event::Sync(Sync { seq, did: DID, car, root: None, blocks: &[], rev, time: TIME }).to_frame()
}

fn block_of_a_kilobyte(index: u64) -> Vec<u8> {
    let mut out = cbor::Encoder::new();
    out.map(2).text("n").integer(index as i64).text("pad").bytes(&[7; 1000]);
    out.into_bytes()
}

/// Items of about `len` bytes that cost a decoder the most memory for their length.
fn hostile_items(len: usize) -> Vec<(&'static str, Vec<u8>)> {
    let array = |items: usize| {
        let mut out = cbor::Encoder::new();
        out.array(items);
        out.into_bytes()
    };
    let flat = [array(len), vec![0; len]].concat();
    let unfinished = [array(len), vec![0; len - 1], vec![0xff]].concat();
    let short = [array(len / 2), b"\x81\x00".repeat(len / 2)].concat();
    let empty = [array(len), vec![0x80; len]].concat();
    let maps = [array(len / 4), b"\xa1\x60\xa0\xf6".repeat(len / 4)].concat();
    let pairs = [array(len / 3), b"\xa1\x60\xf6".repeat(len / 3)].concat();
    let mut nested = Vec::new();
    for _ in 0..60 {
        let left = len - nested.len();
        nested.extend(array(left / 2));
    }
    nested.resize(len, 0);
    vec![
        ("one array", flat),
        ("one array that ends badly", unfinished),
        ("arrays of one", short),
        ("arrays of none", empty),
        ("maps with more behind", maps),
        ("maps of one", pairs),
        ("arrays that each claim half of the rest", nested),
    ]
}

fn measured<T>(work: impl FnOnce() -> T) -> (T, Taken) {
    let before = LIVE.get();
    ALLOCATIONS.set(0);
    PEAK.set(before);
    let answer = work();
    let peak = PEAK.get().saturating_sub(before).max(0) as usize;
    (answer, Taken { allocations: ALLOCATIONS.get(), peak })
}

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Allocated bytes. Negative if a thread frees memory of another.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn note_allocated(bytes: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    LIVE.set(LIVE.get() + bytes as isize);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

fn note_freed(bytes: usize) {
    LIVE.set(LIVE.get() - bytes as isize);
}

/// The system's allocator, watched.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator cannot be written, or watched, without it")]
// SAFETY: every call is forwarded unchanged to the system's allocator; the counters are plain thread locals
// that need no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note_allocated(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note_freed(layout.size());
        // SAFETY: the pointer came from `System`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note_allocated(new_size);
        note_freed(layout.size());
        // SAFETY: the pointer came from `System`, with this layout.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// The most that an arena holds for a byte of DAG-CBOR: 24 for the value, as `cbor` promises, and as
/// much again because every chunk of an arena is twice the one before.
const ARENA_BYTES: usize = 2 * 24;

/// The same for a byte of JSON, where counts are not stated ahead and containers grow as they go.
const JSON_BYTES: usize = 4 * 24;

const SLACK_BYTES: usize = 64 << 10;

/// Bytes that a stream takes in addition to its index: two batches of blocks, and a spill file's last ones.
const STREAM_BYTES: usize = 640 << 10;

/// The decoder's arena doubles until a batch fits; that takes a few passes.
const MAX_WARM_UP_PASSES: usize = 8;

const DID: &str = "did:web:a.test";
const TIME: &str = "2026-07-04T14:38:07.517Z";
