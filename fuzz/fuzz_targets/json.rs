//! What is read from JSON survives JSON and DAG-CBOR.

#![no_main]

use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use wireproof::codec::{cbor, json};

fuzz_target!(|text: &str| {
    let arena = Bump::new();
    let Ok(value) = json::decode(text, &arena) else { return };
    let written = json::encode(&value).expect("what was read from JSON has a JSON form");
    let again = json::decode(&written, &arena).expect("what was written is read");
    assert_eq!(again, value, "{written}");
    let block = cbor::encode(&value).expect("what was read from JSON has a canonical form");
    assert_eq!(cbor::decode(&block, &arena), Ok(value));
});
