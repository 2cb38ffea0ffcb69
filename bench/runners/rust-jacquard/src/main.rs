//! jacquard: frames by the message type of its generated API, which here borrows its text, blocks by its CAR
//! reader, and their values in `Ipld`.
//!
//! Its own value types decode through the same library but encode every link in base32 while decoding: `RawData` makes a
//! pass 1.6 times and `Data` 2.9 times as long. It never hashes a block.

mod commit;
mod mst;
mod repo;
mod shared;

use ipld_core::ipld::Ipld;
use jacquard_api::com_atproto::sync::subscribe_repos::SubscribeReposMessage as Message;
use jacquard_repo::car::parse_car_bytes;
use runner_shell::decode::{self, DecodeCounts, Sink};
use runner_shell::{BoxError, Runner, Variant, hostile, poll_once};

const DAG_CBOR: u64 = 0x71;

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "jacquard 0.12.2 (jacquard-repo, iroh-car 0.5.1, serde_ipld_dagcbor 0.6.4, k256 and p256 0.13)",
        version: "0.12.2",
        tasks: &[
            decode::task::<Jacquard>(),
            runner_shell::mst::task::<mst::Jacquard>(),
            runner_shell::repo::task::<repo::Jacquard>(),
            runner_shell::commit::task::<commit::Jacquard>(),
            hostile::task_with_frames::<repo::Listing, commit::Jacquard>(),
        ],
    })
}

struct Jacquard;

impl decode::Peer for Jacquard {
    const VARIANTS: &'static [Variant] = &[Variant { name: "unverified", checks: UNVERIFIED }];

    fn start(_: &str) -> Self {
        Jacquard
    }

    fn decode<S: Sink>(&mut self, frame: &[u8], sink: &mut S) -> Result<(), BoxError> {
        let message: Message<&str> = Message::decode_framed(frame)?;
        sink.message(&message);
        match &message {
            Message::Commit(commit) => decode_blocks(&commit.blocks, sink),
            Message::Sync(sync) => decode_blocks(&sync.blocks, sink),
            _ => Ok(()),
        }
    }
}

/// No `link-shape`: of the malformed links it takes one, a CID with a byte after it.
const UNVERIFIED: &[&str] = &[
    "duplicate-keys",
    "utf8",
    "indefinite-lengths",
    "only-tag-42",
    "trailing-bytes",
    "depth-bound",
];

fn decode_blocks(car: &[u8], sink: &mut impl Sink) -> Result<(), BoxError> {
    for (cid, bytes) in &poll_once(parse_car_bytes(car))??.blocks {
        if cid.codec() == DAG_CBOR {
            sink.block(&serde_ipld_dagcbor::from_slice(bytes)?, count);
        } else {
            sink.raw_block(bytes);
        }
    }
    Ok(())
}

fn count(value: &Ipld, counts: &mut DecodeCounts) {
    match value {
        Ipld::Integer(_) => counts.integers += 1,
        Ipld::Float(_) => counts.floats += 1,
        Ipld::Bool(_) => counts.booleans += 1,
        Ipld::Null => counts.nulls += 1,
        Ipld::String(text) => counts.text(text),
        Ipld::Bytes(bytes) => counts.byte_string(bytes),
        Ipld::Link(_) => counts.links += 1,
        Ipld::List(items) => {
            counts.array(items.len());
            items.iter().for_each(|item| count(item, counts));
        }
        Ipld::Map(entries) => {
            counts.map(entries.len());
            for (key, value) in entries {
                counts.text(key);
                count(value, counts);
            }
        }
    }
}
