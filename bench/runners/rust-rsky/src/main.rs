//! How fast is the stack of rsky's relay? ciborium reads the header, serde_ipld_dagcbor the payload
//! into typed structs and each block into `Ipld`, and rs-car-sync takes the CAR apart.
//!
//! The relay itself decodes only the blocks it needs; here all are, as the task asks.

mod mst;
mod payload;
mod repo;
mod sigs;

use ipld_core::ipld::Ipld;
use rs_car_sync::CarReader;
use runner_shell::decode::{self, Counts, Sink};
use runner_shell::{Refusal, Runner, Variant, hostile};
use serde::Deserialize;

use payload::Payload;

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

    fn decode<S: Sink>(&mut self, frame: &[u8], sink: &mut S) -> Result<(), Refusal> {
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

fn decode_blocks(mut car: &[u8], verify: bool, sink: &mut impl Sink) -> Result<(), Refusal> {
    for block in CarReader::new(&mut car, verify)? {
        let (cid, bytes) = block?;
        if cid.codec() == DAG_CBOR {
            sink.block(&serde_ipld_dagcbor::from_slice(&bytes)?, tally);
        } else {
            sink.raw_block(&bytes);
        }
    }
    Ok(())
}

fn tally(value: &Ipld, counts: &mut Counts) {
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
            items.iter().for_each(|item| tally(item, counts));
        }
        Ipld::Map(entries) => {
            counts.map(entries.len());
            for (key, value) in entries {
                counts.text(key);
                tally(value, counts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checks_it_claims_are_the_checks_it_makes() {
        runner_shell::decode::experiments::hold_to_claims::<super::Rsky>();
    }
}
