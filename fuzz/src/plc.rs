//! Judging a log and reading a DID document survive any input, and accepted logs and documents are
//! consistent.

use atproto::did_document::{self, DidDocument};
use atproto::plc::Operation;
use codec::cbor;
use verify::{identity, plc};

/// Runs the target on one input.
pub(crate) fn run(json: &[u8]) {
    if let Ok(operation) = Operation::parse(json) {
        assert_eq!(cbor::validate(&operation.to_bytes()), Ok(()));
        assert_eq!(cbor::validate(&operation.unsigned().to_bytes()), Ok(()));
        assert_eq!(Operation::parse(operation.to_json().as_bytes()), Ok(operation));
    }
    match plc::verify(json, &plc::Options::default()) {
        Ok(history) => assert_holds_together(&history),
        Err(rejection) => assert!(!rejection.code().is_empty() && rejection.index <= json.len()),
    }
    if let Ok(document) = DidDocument::parse(json, &did_document::Options::default()) {
        let _ = identity::signing_key(&document);
    }
}

/// The operations that were not nullified are a log of their own with the same result.
fn assert_holds_together(history: &plc::History) {
    let kept = history.operations().iter().filter(|judged| !judged.nullified);
    let kept: Vec<Operation> = kept.map(|judged| judged.operation.clone()).collect();
    assert_eq!(kept[0].did().unwrap().as_did(), history.did());
    let again = plc::verify_plain_log(kept, &plc::Options::default()).unwrap();
    assert_eq!((again.did(), again.data()), (history.did(), history.data()));
}
