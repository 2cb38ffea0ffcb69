//! A hand-written loop: minicbor reads the heads, bumpalo holds the values, text and bytes stay in the frame,
//! and the CAR is split in place.
//!
//! It represents code that is written for speed on top of two small crates. It bounds depth and
//! lengths, so malformed frames are safe, and makes no other check of canonical form.

mod car;
mod value;

use bumpalo::Bump;
use minicbor::Decoder;
use runner_shell::decode::{self, DecodeCounts, Sink};
use runner_shell::{BoxError, Runner, Variant};
use sha2::{Digest, Sha256};

use car::Car;
use value::{Malformed, Value};

const DAG_CBOR: u8 = 0x71;

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "minicbor 2.3.1 + bumpalo 3.20.3 + sha2 0.11.1",
        version: "minicbor 2.3.1",
        tasks: &[decode::task::<Raw>()],
    })
}

struct Raw {
    verify: bool,
    arena: Bump,
    /// Whether all frames share `arena`, or every frame gets a new one.
    reuse: bool,
}

impl decode::Peer for Raw {
    const VARIANTS: &'static [Variant] = &[
        Variant { name: "verified/arena-reuse", checks: VERIFIED },
        Variant { name: "verified/alloc-per-frame", checks: VERIFIED },
        Variant { name: "unverified/arena-reuse", checks: UNVERIFIED },
        Variant { name: "unverified/alloc-per-frame", checks: UNVERIFIED },
    ];

    fn start(variant: &str) -> Self {
        Raw {
            verify: variant.starts_with("verified"),
            arena: Bump::new(),
            reuse: variant.ends_with("arena-reuse"),
        }
    }

    fn decode<S: Sink>(&mut self, frame: &[u8], sink: &mut S) -> Result<(), BoxError> {
        let outcome = if self.reuse {
            self.arena.reset();
            decode_frame(frame, &self.arena, self.verify, sink)
        } else {
            decode_frame(frame, &Bump::new(), self.verify, sink)
        };
        Ok(outcome?)
    }
}

const VERIFIED: &[&str] =
    &["cid-sha256", "utf8", "indefinite-lengths", "only-tag-42", "trailing-bytes", "depth-bound"];
const UNVERIFIED: &[&str] = VERIFIED.split_at(1).1;

fn decode_frame<'a>(
    frame: &'a [u8],
    arena: &'a Bump,
    verify: bool,
    sink: &mut impl Sink,
) -> Result<(), Malformed> {
    let mut decoder = Decoder::new(frame);
    let header = Value::decode(&mut decoder, arena)?;
    sink.message(&header);
    let payload = Value::decode_last(&mut decoder, arena)?;
    sink.message(&payload);
    match header.get("t") {
        Some(Value::Text("#commit" | "#sync")) => decode_blocks(&payload, arena, verify, sink),
        Some(Value::Text(_)) => Ok(()),
        _ => Err(Malformed("a header has a type")),
    }
}

fn decode_blocks<'a>(
    payload: &Value<'a>,
    arena: &'a Bump,
    verify: bool,
    sink: &mut impl Sink,
) -> Result<(), Malformed> {
    let Some(&Value::Bytes(car)) = payload.get("blocks") else {
        return Err(Malformed("a commit or sync has blocks"));
    };
    for block in Car::open(car, arena)? {
        let block = block?;
        if verify && *block.digest != *Sha256::digest(block.bytes) {
            return Err(Malformed("a block hashes to its CID"));
        }
        if block.codec == DAG_CBOR {
            let value = Value::decode_last(&mut Decoder::new(block.bytes), arena)?;
            sink.block(&value, count);
        } else {
            sink.raw_block(block.bytes);
        }
    }
    Ok(())
}

fn count(value: &Value<'_>, counts: &mut DecodeCounts) {
    match *value {
        Value::Integer(_) => counts.integers += 1,
        Value::Float(_) => counts.floats += 1,
        Value::Bool(_) => counts.booleans += 1,
        Value::Null => counts.nulls += 1,
        Value::Text(text) => counts.text(text),
        Value::Bytes(bytes) => counts.byte_string(bytes),
        Value::Link(_) => counts.links += 1,
        Value::Array(items) => {
            counts.array(items.len());
            items.iter().for_each(|item| count(item, counts));
        }
        Value::Map(entries) => {
            counts.map(entries.len());
            for (key, value) in entries {
                counts.text(key);
                count(value, counts);
            }
        }
    }
}
