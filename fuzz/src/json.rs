//! Values read from JSON survive JSON and DAG-CBOR.

use bumpalo::Bump;
use codec::{cbor, json};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let arena = Bump::new();
    let Ok(value) = json::decode(text, &arena) else { return };
    let written = json::encode(&value).expect("what was read from JSON has a JSON form");
    let again = json::decode(&written, &arena).expect("what was written is read");
    assert_eq!(again, value, "{written}");
    let block = cbor::encode(&value).expect("what was read from JSON has a canonical form");
    assert_eq!(cbor::decode(&block, &arena), Ok(value));
}
