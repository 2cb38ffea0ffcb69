//! shrike: frames by its strict DRISL decoder into a bump arena, which its documentation recommends for a firehose,
//! and blocks by its CAR reader for bytes in memory, which does not copy.

mod commit;
mod mst;
mod repo;
mod sigs;

use bumpalo::Bump;
use runner_shell::decode::{self, DecodeCounts, Sink};
use runner_shell::{BoxError, Runner, Variant, hostile};
use shrike::car::{BlockRef, SliceReader};
use shrike::cbor::{BumpValue, Cid, Codec, Decoder};

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "shrike 0.8.2 (cbor::Decoder::decode_bump, car::SliceReader, mst::DetachedTree, \
                 sync::Verifier; crypto with libsecp256k1)",
        version: "0.8.2",
        tasks: &[
            decode::task::<Shrike>(),
            runner_shell::sigs::task::<sigs::Shrike>(),
            runner_shell::mst::task::<mst::Shrike>(),
            runner_shell::repo::task::<repo::Shrike>(),
            runner_shell::commit::task::<commit::Strict>(),
            hostile::task_with_frames::<repo::Import, commit::ByDefault>(),
        ],
    })
}

struct Shrike {
    verify: bool,
    arena: Bump,
    /// Whether all frames share `arena`, or every frame gets a new one.
    reuse: bool,
}

impl decode::Peer for Shrike {
    const VARIANTS: &'static [Variant] = &[
        Variant { name: "verified/arena-reuse", checks: VERIFIED },
        Variant { name: "verified/alloc-per-frame", checks: VERIFIED },
        Variant { name: "unverified/arena-reuse", checks: UNVERIFIED },
        Variant { name: "unverified/alloc-per-frame", checks: UNVERIFIED },
    ];

    fn start(variant: &str) -> Self {
        Shrike {
            verify: variant.starts_with("verified"),
            arena: Bump::new(),
            reuse: variant.ends_with("arena-reuse"),
        }
    }

    fn decode<S: Sink>(&mut self, frame: &[u8], sink: &mut S) -> Result<(), BoxError> {
        if self.reuse {
            self.arena.reset();
            decode_frame(frame, &self.arena, self.verify, sink)
        } else {
            decode_frame(frame, &Bump::new(), self.verify, sink)
        }
    }
}

/// No `float-canonical`: of the floats that are not, it takes one, negative zero.
const VERIFIED: &[&str] = &[
    "cid-sha256",
    "key-order",
    "duplicate-keys",
    "minimal-heads",
    "utf8",
    "indefinite-lengths",
    "only-tag-42",
    "link-shape",
    "trailing-bytes",
    "depth-bound",
];
const UNVERIFIED: &[&str] = VERIFIED.split_at(1).1;

fn decode_frame<'a>(
    frame: &'a [u8],
    arena: &'a Bump,
    verify: bool,
    sink: &mut impl Sink,
) -> Result<(), BoxError> {
    let mut decoder = Decoder::new(frame);
    let header = decoder.decode_bump(arena)?;
    sink.message(&header);
    let payload = last_item(decoder, arena)?;
    sink.message(&payload);
    match get(&header, "t") {
        Some(BumpValue::Text("#commit" | "#sync")) => decode_blocks(&payload, arena, verify, sink),
        Some(BumpValue::Text(_)) => Ok(()),
        _ => Err("a header has a type".into()),
    }
}

fn decode_blocks<'a>(
    payload: &BumpValue<'a, 'a>,
    arena: &'a Bump,
    verify: bool,
    sink: &mut impl Sink,
) -> Result<(), BoxError> {
    let Some(BumpValue::Bytes(car)) = get(payload, "blocks") else {
        return Err("a commit or sync has blocks".into());
    };
    for block in SliceReader::new(car)? {
        let block = block?;
        if verify {
            check_digest(&block)?;
        }
        match block.cid.codec() {
            Codec::Drisl => sink.block(&last_item(Decoder::new(block.data), arena)?, count),
            Codec::Raw => sink.raw_block(block.data),
        }
    }
    Ok(())
}

/// The check of `shrike::car::verify`, for a block in memory.
fn check_digest(block: &BlockRef<'_>) -> Result<(), BoxError> {
    if Cid::compute(block.cid.codec(), block.data) == block.cid {
        Ok(())
    } else {
        Err("a block hashes to its CID".into())
    }
}

/// Like `shrike::cbor::decode`, but into an arena.
#[inline(always)]
fn last_item<'a>(mut decoder: Decoder<'a>, arena: &'a Bump) -> Result<BumpValue<'a, 'a>, BoxError> {
    let value = decoder.decode_bump(arena)?;
    if decoder.is_empty() { Ok(value) } else { Err("nothing follows the item".into()) }
}

fn get<'v, 'a>(map: &'v BumpValue<'a, 'a>, key: &str) -> Option<&'v BumpValue<'a, 'a>> {
    let BumpValue::Map(entries) = map else { return None };
    entries.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

fn count(value: &BumpValue<'_, '_>, counts: &mut DecodeCounts) {
    match *value {
        BumpValue::Unsigned(_) | BumpValue::Signed(_) => counts.integers += 1,
        BumpValue::Float(_) => counts.floats += 1,
        BumpValue::Bool(_) => counts.booleans += 1,
        BumpValue::Null => counts.nulls += 1,
        BumpValue::Text(text) => counts.text(text),
        BumpValue::Bytes(bytes) => counts.byte_string(bytes),
        BumpValue::Cid(_) => counts.links += 1,
        BumpValue::Array(items) => {
            counts.array(items.len());
            items.iter().for_each(|item| count(item, counts));
        }
        BumpValue::Map(entries) => {
            counts.map(entries.len());
            for (key, value) in entries {
                counts.text(key);
                count(value, counts);
            }
        }
    }
}
