//! All walks over DAG-CBOR give the same answer, and accepted bytes have one encoding.

use bumpalo::Bump;
use codec::cbor::{self, ItemCounts, Reader};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let arena = Bump::new();
    let decoded = cbor::decode(input, &arena);
    let answer = decoded.map(drop);
    assert_eq!(cbor::validate(input), answer);
    let mut scanned = ItemCounts::default();
    assert_eq!(cbor::count(input, &mut scanned), answer);
    let mut reader = Reader::new(input);
    assert_eq!(reader.skip().and_then(|()| reader.finish()), answer);
    match decoded {
        Ok(value) => {
            assert_eq!(cbor::encode(&value).as_deref(), Ok(input));
            let mut built = ItemCounts::default();
            built.add(&value);
            assert_eq!(built, scanned);
        }
        Err(error) => assert!(error.offset <= input.len()),
    }
    let prefix = cbor::decode_prefix(input, &arena);
    assert_eq!(prefix.map(|(_, len)| len), cbor::validate_prefix(input));
}
