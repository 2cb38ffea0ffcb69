//! The JSON form: official vectors both ways, and the records of real repositories as another
//! implementation printed them.

use atproto::data_model;
use bumpalo::Bump;
use codec::car::{self, Options};
use codec::cbor::Value;
use codec::cid::Codec;
use codec::{Cid, cbor, json};
use data_encoding::BASE64_NOPAD;
use serde_json::Value as Json;
use wireproof_conformance::{Folder, fixtures};

use crate::made::Random;

#[test]
fn official_fixtures_map_to_cbor_and_cid_and_back() {
    let data = fixtures!(Captures);
    assert_maps_both_ways(&data, "atproto/interop/data-model/data-model-fixtures.json");
}

#[test]
fn official_valid_data_is_accepted_and_survives_cbor() {
    let data = fixtures!(Captures);
    assert_all_valid(&data, "atproto/interop/data-model/data-model-valid.json", 5);
}

#[test]
fn official_invalid_data_is_refused_as_json_or_by_the_data_model() {
    let data = fixtures!(Captures);
    assert_all_refused_or_listed(&data, "atproto/interop/data-model/data-model-invalid.json", 12);
}

#[test]
fn data_model_vectors_of_the_indigo_module_hold() {
    let data = fixtures!(Indigo);
    let folder = "atproto/atdata/testdata";
    assert_maps_both_ways(&data, &format!("{folder}/data-model-fixtures.json"));
    assert_all_valid(&data, &format!("{folder}/data-model-valid.json"), 5);
    assert_all_refused_or_listed(&data, &format!("{folder}/data-model-invalid.json"), 12);
}

#[test]
fn every_record_reads_as_another_implementation_printed_it() {
    let data = fixtures!(Captures);
    let mut compared = 0;
    for path in data.files("atproto/cars/expected", ".records.jsonl") {
        let archive = data.bytes(&path.replace("expected/", "").replace(".records.jsonl", ""));
        let blocks = car::read(&archive, &Options::default()).unwrap().blocks;
        for line in data.text(&path).lines() {
            let expected: Json = serde_json::from_str(line).unwrap();
            let cid: Cid = expected["cid"].as_str().unwrap().parse().unwrap();
            let block = blocks.iter().find(|block| block.cid == cid.as_cid_ref()).unwrap();
            assert_reads_as(block.data, &expected["value"], &path);
            compared += 1;
        }
    }
    assert_eq!(compared, 4987);
}

#[test]
fn a_float_is_the_same_after_json() {
    let edges = [0.5, -0.9999999999999999, 1e-323, 82497.63712086187, f64::MIN_POSITIVE, f64::MAX];
    let mut random = Random::new(2);
    let any = (0..10_000).map(|_| f64::from_bits(random.next()));
    for float in edges.into_iter().chain(any).filter(|float| float.is_finite()) {
        // JSON does not distinguish an integral float from an integer, so it may be refused beyond 64 bits.
        let may_be_refused = float.abs() >= BEYOND_64_BITS;
        let text = json::encode(&Value::Float(float)).unwrap();
        match json::decode(&text, &Bump::new()) {
            Ok(Value::Integer(integer)) => assert_eq!(integer as f64, float, "{text}"),
            Ok(read) => assert_eq!(read, Value::Float(float), "{text}"),
            Err(error) => assert!(may_be_refused, "{text}: {error}"),
        }
    }
}

#[test]
fn what_fuzzing_found_in_json_stays_found() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/vectors/json");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let arena = Bump::new();
        if let Ok(value) = json::decode(&text, &arena) {
            let written = json::encode(&value).unwrap();
            assert_eq!(json::decode(&written, &arena).unwrap(), value, "{text}");
            assert_eq!(written, text, "these vectors are spelled as we spell them");
        }
        seen += 1;
    }
    assert!(seen >= 3, "{seen} vectors");
}

#[test]
fn an_integer_in_json_is_refused_or_read_as_itself() {
    let bound = 1i128 << 64;
    for number in
        (-2..=2).flat_map(|near| [near - bound, near - bound / 2, near + bound / 2, near + bound])
    {
        let text = number.to_string();
        let arena = Bump::new();
        match json::decode(&text, &arena) {
            Ok(Value::Integer(read)) => assert_eq!(i128::from(read), number),
            Ok(Value::WideInteger(read)) => assert_eq!(read.get(), number),
            Ok(other) => panic!("{text} was read as {other:?}"),
            Err(_) => assert!(i64::try_from(number).is_err(), "{text} is an integer of 64 bits"),
        }
    }
}

fn assert_reads_as(block: &[u8], expected: &Json, name: &str) {
    let arena = Bump::new();
    let value = cbor::decode(block, &arena).unwrap();
    let text = json::encode(&value).unwrap();
    assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), *expected, "{name}");
    let read = json::decode(&expected.to_string(), &arena).unwrap();
    assert!(cbor::encode(&read).unwrap() == block, "{name}: the printed record is the same block");
}

fn assert_maps_both_ways(data: &Folder, path: &str) {
    let fixtures = cases(data, path);
    assert_eq!(fixtures.len(), 3);
    for fixture in fixtures {
        let bytes = BASE64_NOPAD.decode(text(&fixture["cbor_base64"]).as_bytes()).unwrap();
        assert_eq!(Cid::of(Codec::DagCbor, &bytes).to_string(), text(&fixture["cid"]));
        assert_reads_as(&bytes, &fixture["json"], path);
    }
}

fn assert_all_valid(data: &Folder, path: &str, count: usize) {
    let cases = cases(data, path);
    assert_eq!(cases.len(), count);
    for case in cases {
        let arena = Bump::new();
        let note = text(&case["note"]);
        let value = json::decode(&case["json"].to_string(), &arena)
            .unwrap_or_else(|error| panic!("{note}: {error}"));
        let block = cbor::encode(&value).unwrap();
        assert_eq!(cbor::decode(&block, &arena).unwrap(), value, "{note}");
        assert_eq!(data_model::check(&value), Ok(()), "{note}");
    }
}

fn assert_all_refused_or_listed(data: &Folder, path: &str, count: usize) {
    let cases = cases(data, path);
    assert_eq!(cases.len(), count);
    let mut accepted = Vec::new();
    for case in &cases {
        let note = text(&case["note"]);
        let arena = Bump::new();
        if let Ok(value) = json::decode(&case["json"].to_string(), &arena) {
            accepted.push((note, data_model::check(&value).unwrap_err().code()));
        }
    }
    assert_eq!(accepted, LATER, "what the codec takes is what the table lists");
}

fn cases(data: &Folder, path: &str) -> Vec<Json> {
    serde_json::from_str(&data.text(path)).unwrap()
}

fn text(json: &Json) -> &str {
    json.as_str().expect("text")
}

const BEYOND_64_BITS: f64 = 9_223_372_036_854_775_808.0;

/// Invalid data that is well-formed JSON of a value: its note, and the rule of the data model that it breaks.
const LATER: [(&str, &str); 7] = [
    ("top-level not an object", "data/shape"),
    ("float", "data/float"),
    ("record with $type null", "data/type"),
    ("record with $type wrong type", "data/type"),
    ("record with empty $type string", "data/type"),
    ("blob with string size", "data/blob"),
    ("blob with missing key", "data/blob"),
];
