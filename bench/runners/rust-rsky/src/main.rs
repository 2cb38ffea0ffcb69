//! The stack of rsky's relay: ciborium reads the header, serde_ipld_dagcbor the payload into typed structs and
//! every block into `Ipld`, and rs-car-sync takes the CAR apart.
//!
//! The relay itself decodes only the blocks it needs; here all are decoded, as the task requires.

mod mst;
mod repo;
mod sigs;

use ipld_core::cid::Cid;
use ipld_core::ipld::Ipld;
use rs_car_sync::CarReader;
use runner_shell::decode::{self, DecodeCounts, Sink};
use runner_shell::{BoxError, Runner, Variant, hostile};
use serde::Deserialize;
use serde_ipld_dagcbor::from_slice;

const DAG_CBOR: u64 = 0x71;

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "ciborium 0.2.2 + serde_ipld_dagcbor 0.6.4 + rs-car-sync 0.5.1, k256 0.13.4 + p256 0.13.2",
        version: "serde_ipld_dagcbor 0.6.4",
        tasks: &[
            decode::task::<Rsky>(),
            runner_shell::sigs::task::<sigs::Rsky>(),
            runner_shell::mst::task::<mst::Rsky>(),
            runner_shell::repo::task::<repo::Rsky>(),
            hostile::task::<repo::Rsky>(),
        ],
    })
}

struct Rsky {
    verify: bool,
}

impl decode::Peer for Rsky {
    const VARIANTS: &'static [Variant] = &[
        Variant { name: "verified", checks: VERIFIED },
        Variant { name: "unverified", checks: UNVERIFIED },
    ];

    fn start(variant: &str) -> Self {
        Rsky { verify: variant == "verified" }
    }

    fn decode<S: Sink>(&mut self, frame: &[u8], sink: &mut S) -> Result<(), BoxError> {
        let mut rest = frame;
        let header: Header = ciborium::from_reader(&mut rest)?;
        sink.message(&header);
        let payload = Payload::decode(&header.t, rest)?;
        sink.message(&payload);
        match payload.blocks() {
            Some(car) => decode_blocks(car, self.verify, sink),
            None => Ok(()),
        }
    }
}

/// No `link-shape`: of the malformed links it takes one, a CID with a byte after it.
const VERIFIED: &[&str] = &[
    "cid-sha256",
    "duplicate-keys",
    "utf8",
    "indefinite-lengths",
    "only-tag-42",
    "trailing-bytes",
    "depth-bound",
];
const UNVERIFIED: &[&str] = VERIFIED.split_at(1).1;

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
struct Header {
    op: i8,
    t: String,
}

fn decode_blocks(mut car: &[u8], verify: bool, sink: &mut impl Sink) -> Result<(), BoxError> {
    for block in CarReader::new(&mut car, verify)? {
        let (cid, bytes) = block?;
        if cid.codec() == DAG_CBOR {
            sink.block(&from_slice(&bytes)?, count);
        } else {
            sink.raw_block(&bytes);
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

/// A payload: a struct per type of event, as in rsky's relay, with borrowed fields where the relay copies.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all payloads are commits, which a box would slow down"
)]
enum Payload<'a> {
    Commit(Commit<'a>),
    Sync(Sync<'a>),
    #[expect(dead_code, reason = "a user would read what is only decoded here")]
    Identity(Identity<'a>),
    #[expect(dead_code, reason = "a user would read what is only decoded here")]
    Account(Account<'a>),
    #[expect(dead_code, reason = "a user would read what is only decoded here")]
    Other(Ipld),
}

impl<'a> Payload<'a> {
    /// Decodes `bytes`, which are the payload to the last one.
    fn decode(event: &str, bytes: &'a [u8]) -> Result<Self, BoxError> {
        Ok(match event {
            "#commit" => Payload::Commit(from_slice(bytes)?),
            "#sync" => Payload::Sync(from_slice(bytes)?),
            "#identity" => Payload::Identity(from_slice(bytes)?),
            "#account" => Payload::Account(from_slice(bytes)?),
            _ => Payload::Other(from_slice(bytes)?),
        })
    }

    /// The CAR of a payload that has one.
    fn blocks(&self) -> Option<&'a [u8]> {
        match self {
            Payload::Commit(commit) => Some(commit.blocks),
            Payload::Sync(sync) => Some(sync.blocks),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
struct Commit<'a> {
    seq: i64,
    rebase: bool,
    too_big: bool,
    repo: &'a str,
    commit: Cid,
    rev: &'a str,
    since: Option<&'a str>,
    blocks: &'a [u8],
    #[serde(borrow)]
    ops: Vec<Operation<'a>>,
    blobs: Vec<Cid>,
    prev_data: Option<Cid>,
    time: &'a str,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
struct Operation<'a> {
    action: &'a str,
    path: &'a str,
    cid: Option<Cid>,
    prev: Option<Cid>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
struct Sync<'a> {
    seq: i64,
    did: &'a str,
    blocks: &'a [u8],
    rev: &'a str,
    time: &'a str,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
struct Identity<'a> {
    seq: i64,
    did: &'a str,
    time: &'a str,
    handle: Option<&'a str>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
struct Account<'a> {
    seq: i64,
    did: &'a str,
    time: &'a str,
    active: bool,
    status: Option<&'a str>,
}
