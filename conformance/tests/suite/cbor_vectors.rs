//! Blocks that other implementations accept as canonical are accepted, have the CID in their name, and are written back
//! byte for byte.

use bumpalo::Bump;
use codec::cbor::{self, ItemCounts, Value, WideInteger};
use codec::cid::Codec;
use codec::{Cid, CidRef, json};
use serde_json::Value as Json;
use wireproof_conformance::{Manifest, fixtures};

#[test]
fn every_codec_fixture_is_accepted_and_written_back_under_its_cid() {
    let data = fixtures!(Captures);
    let paths = data.files(CODEC_FIXTURES, ".dag-cbor");
    assert_eq!(paths.len(), 128);
    for path in paths {
        let bytes = data.bytes(&path);
        assert_round_trip(&bytes, &path);
        assert_eq!(Cid::of(Codec::DagCbor, &bytes).to_string(), stem(&path), "{path}");
    }
}

#[test]
fn codec_fixtures_have_the_json_that_stands_beside_them() {
    let data = fixtures!(Captures);
    let mut unreadable = 0;
    for path in data.files(CODEC_FIXTURES, ".dag-cbor") {
        let bytes = data.bytes(&path);
        let folder = path.rsplit_once('/').unwrap().0;
        let dag_json = data.text(&data.files(folder, ".dag-json")[0]);
        let parsed: Json = serde_json::from_str(&dag_json).unwrap();
        let beside = in_our_form(parsed.clone());
        let arena = Bump::new();
        let value = cbor::decode(&bytes, &arena).unwrap();
        let ours: Json = serde_json::from_str(&json::encode(&value).unwrap()).unwrap();
        assert_eq!(ours, beside, "{path}");
        // Where the two forms do not differ, the text itself is read, digit by digit.
        let text = if beside == parsed { dag_json } else { beside.to_string() };
        match json::decode(&text, &arena) {
            Ok(read) => assert_eq!(cbor::encode(&read).unwrap(), bytes, "{path}"),
            Err(error) => {
                assert!(is_beyond_our_json(&value), "{path}: {error}");
                unreadable += 1;
            }
        }
    }
    assert_eq!(unreadable, BEYOND_OUR_JSON);
}

#[test]
fn real_blocks_are_accepted_and_written_back() {
    let data = fixtures!(Captures);
    let manifest = Manifest::of(&data);
    let blocks: Vec<_> =
        manifest.rows().filter(|(path, _)| path.starts_with("cbor/blocks/")).collect();
    assert_eq!(blocks.len(), 7);
    for (path, facts) in blocks {
        assert_eq!(facts, "canonical", "{path}");
        assert_round_trip(&data.bytes(&format!("atproto/{path}")), path);
    }
}

#[test]
fn blocks_of_the_indigo_module_are_accepted_and_written_back() {
    let data = fixtures!(Indigo);
    for path in data.files("testing/testdata", ".cbor") {
        assert_round_trip(&data.bytes(&path), &path);
    }
}

fn assert_round_trip(bytes: &[u8], name: &str) {
    let arena = Bump::new();
    let value = cbor::decode(bytes, &arena).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(cbor::validate(bytes), Ok(()), "{name}");
    assert!(cbor::encode(&value).unwrap() == bytes, "{name} is written back byte for byte");
    let (mut built, mut scanned) = (ItemCounts::default(), ItemCounts::default());
    built.add(&value);
    cbor::count(bytes, &mut scanned).unwrap();
    assert_eq!(built, scanned, "{name}");
}

fn stem(path: &str) -> &str {
    path.rsplit('/').next().unwrap().split('.').next().unwrap()
}

/// DAG-JSON in the AT Protocol's form: `{"/": cid}` is a link, `{"/": {"bytes": …}}` is bytes. CIDs
/// of version 0 are printed as we print them, in base32.
fn in_our_form(dag_json: Json) -> Json {
    match dag_json {
        Json::Array(items) => items.into_iter().map(in_our_form).collect(),
        Json::Object(map) if map.len() == 1 && map.contains_key("/") => special(&map["/"]),
        Json::Object(map) => map.into_iter().map(|(key, item)| (key, in_our_form(item))).collect(),
        scalar => scalar,
    }
}

fn special(content: &Json) -> Json {
    match content {
        Json::String(cid) => {
            let version_0 =
                cid.starts_with("Qm").then(|| bs58::decode(cid).into_vec().expect("base58"));
            let version_0 = version_0.map(|cid| CidRef::from_bytes(&cid).unwrap().to_string());
            serde_json::json!({"$link": version_0.as_deref().unwrap_or(cid)})
        }
        bytes => serde_json::json!({"$bytes": bytes["bytes"]}),
    }
}

/// Whether something in `value` may be refused when it is read from JSON: links that are not blessed,
/// and negative integers of more than 64 bits. It must never be read as something else.
fn is_beyond_our_json(value: &Value<'_>) -> bool {
    match value {
        Value::Link(cid) => cid.to_cid().is_none(),
        Value::WideInteger(WideInteger::Negative(_)) => true,
        Value::Array(items) => items.iter().any(is_beyond_our_json),
        Value::Map(map) => map.iter().any(|(_, item)| is_beyond_our_json(item)),
        _ => false,
    }
}

const CODEC_FIXTURES: &str = "atproto/cbor/codec-fixtures";

/// 43 fixtures with links that are not blessed, one with an integer below −2⁶³.
const BEYOND_OUR_JSON: usize = 44;
