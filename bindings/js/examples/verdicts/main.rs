//! `verdicts FOLDER COUNT` writes inputs and the verdicts of the library on this machine to `FOLDER/cases.json`: the hostile set, the
//! published vectors, the files in `WIREPROOF_FIXTURES`, and COUNT mutations of them. It also writes a large repository, `large.car`.
//!
//! | key of `cases.json` | content |
//! |---|---|
//! | `seeds` | inputs in base64, with their kind, and what the caller of the kind knows |
//! | `cases` | the index of a seed, its changes, and the verdict |
//! | `changes` | start, number of bytes to remove, and base64 of bytes to insert, to be made in their order |

mod inputs;
mod mutation;

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;

use serde_json::{Value, json};
use wireproof_js::fault::Fault;
use wireproof_js::format::{self, FrameReader};
use wireproof_js::judge::FrameJudge;
use wireproof_js::key::KeyArgument;
use wireproof_js::repository::OptionFields;
use wireproof_js::{nostr_event, plc, repository, signature, slice};

use data_encoding::BASE64;
use inputs::{Kind, Seed};
use mutation::{Change, Mutator};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("usage: verdicts FOLDER COUNT".into());
    };
    let (folder, count): (PathBuf, u32) = (folder.into(), count.parse()?);
    let seeds = inputs::all()?;
    let mut cases: Vec<Value> = Vec::new();
    for (index, seed) in seeds.iter().enumerate() {
        cases.push(case(index, &[], verdict(seed, &seed.bytes)));
    }
    let mut mutator = Mutator::new(SEED);
    let others: Vec<&[u8]> = seeds.iter().map(|seed| &seed.bytes[..]).collect();
    let kinds = Kind::ALL.map(|kind| -> Vec<usize> {
        (0..seeds.len()).filter(|index| seeds[*index].kind == kind).collect()
    });
    for number in 0..count {
        let of_kind = &kinds[number as usize % kinds.len()];
        let index = of_kind[mutator.below(of_kind.len())];
        let (changes, input) = mutator.mutate(&seeds[index].bytes, &others, seeds[index].kind);
        cases.push(case(index, &changes, verdict(&seeds[index], &input)));
    }
    report(&seeds, &cases);
    let seeds: Vec<Value> = seeds.iter().map(Seed::to_value).collect();
    let text = json!({ "seeds": seeds, "cases": cases }).to_string();
    std::fs::write(folder.join("cases.json"), text)?;
    let (car, owner) = inputs::large()?;
    std::fs::write(folder.join("large.car"), car)?;
    std::fs::write(folder.join("large.json"), owner)?;
    Ok(())
}

fn case(seed: usize, changes: &[Change], verdict: Value) -> Value {
    let change =
        |change: &Change| json!([change.start, change.removed, BASE64.encode(&change.inserted)]);
    let changes: Vec<Value> = changes.iter().map(change).collect();
    json!({ "seed": seed, "changes": changes, "verdict": verdict })
}

/// The verdict on an input, as JSON of the same form for every kind.
fn verdict(seed: &Seed, input: &[u8]) -> Value {
    match judge(seed, input) {
        Ok(value) => json!({ "ok": value }),
        Err(fault) => json!({ "fault": fault.to_value() }),
    }
}

fn judge(seed: &Seed, input: &[u8]) -> Result<Value, Fault> {
    let options = OptionFields::default();
    let key = KeyArgument { kind: "key", text: &seed.key };
    let (did, text) = (Some(&*seed.did), String::from_utf8_lossy(input));
    match seed.kind {
        Kind::Repository => parsed(repository::verify(input, Some(key), did, &options)),
        Kind::UnsignedRepository => parsed(repository::verify(input, None, None, &options)),
        Kind::Range => parsed(slice::verify_range(input, &seed.collections, key, did, &options)),
        Kind::Record => parsed(slice::verify_record(input, &seed.path, key, did, &options)),
        Kind::Frames => {
            let mut judge = FrameJudge::new("{}", [7; 16])?;
            judge.set_key(&seed.did, Some(&seed.key))?;
            parsed(Ok(judge.judge(&inputs::split_frames(input), seed.now_micros)))
        }
        Kind::Frame => frame_places(input),
        Kind::Car => Ok(json!(format::car_places(input)?)),
        Kind::Cbor => {
            format::check_cbor(input)?;
            let mut json = Vec::new();
            let has_json = codec::json::append_item(&mut json, input).is_ok();
            Ok(if has_json {
                serde_json::from_slice(&json).unwrap_or_default()
            } else {
                Value::Null
            })
        }
        Kind::PlcLog => parsed(plc::verify(&text, None)),
        Kind::Signature => {
            let (sig, message) = input.split_at(input.len().min(64));
            parsed(signature::verify(message, sig, &seed.key))
        }
        Kind::Event => parsed(nostr_event::verify_many(&[input], "either")),
    }
}

fn parsed(json: Result<String, Fault>) -> Result<Value, Fault> {
    json.map(|json| serde_json::from_str(&json).expect("the library writes JSON"))
}

/// Prints how many inputs of every kind are accepted, and the codes of the others.
fn report(seeds: &[Seed], cases: &[Value]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for case in cases {
        let kind = seeds[case["seed"].as_u64().unwrap_or_default() as usize].kind.name();
        let code = case["verdict"]["fault"]["code"].as_str().unwrap_or("-");
        *counts.entry(format!("{kind:>20} {code}")).or_default() += 1;
    }
    let mut rows: Vec<(String, usize)> = counts.into_iter().collect();
    rows.sort();
    rows.iter().for_each(|(row, count)| println!("{count:>8} {row}"));
    println!("{:>8} inputs of {} seeds", cases.len(), seeds.len());
}

const SEED: u64 = 0x5eed;

/// The places of a frame's blocks.
fn frame_places(frame: &[u8]) -> Result<Value, Fault> {
    let mut reader = FrameReader::default();
    reader.room(frame.len()).copy_from_slice(frame);
    Ok(json!(reader.places(frame.len())?[2..]))
}
