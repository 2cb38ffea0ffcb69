//! Logs of did:plc.

use atproto::syntax::DidBuf;
use serde_json::{Value, json};
use verify::plc::{self, AcceptedOperation, History, Options};

use crate::fault::Fault;

/// The options for the log of this account, if one is expected.
///
/// # Errors
/// If `did` is not a DID.
pub fn options_for(did: Option<&str>) -> Result<Options, Fault> {
    let did = did.map(|did| did.parse::<DidBuf>().map_err(|error| Fault::argument("did", error)));
    let mut options = Options::default();
    options.did = did.transpose()?;
    Ok(options)
}

/// Verifies a log, and returns the account's data and the operations as JSON.
///
/// # Errors
/// If the log breaks a rule.
pub fn verify(json: &str, did: Option<&str>) -> Result<String, Fault> {
    let history = plc::verify(json.as_bytes(), &options_for(did)?)?;
    Ok(to_value(&history).to_string())
}

fn to_value(history: &History) -> Value {
    let data = history.data();
    json!({
        "did": history.did().to_string(),
        "handle": data.and_then(|data| data.handle()).map(|handle| handle.to_string()),
        "host": data.and_then(|data| data.host()),
        "signingKey": history.signing_key().map(|key| key.to_did_key()),
        "rotationKeys": data.map(|data| data.rotation_keys.clone()).unwrap_or_default(),
        "alsoKnownAs": data.map(|data| data.also_known_as.clone()).unwrap_or_default(),
        "tombstoned": history.is_tombstoned(),
        "operations": history.operations().iter().map(operation).collect::<Vec<_>>(),
    })
}

fn operation(accepted: &AcceptedOperation) -> Value {
    json!({
        "cid": accepted.cid.to_string(),
        "prev": accepted.operation.prev().map(|cid| cid.to_string()),
        "signer": accepted.signer,
        "createdAt": accepted.created_at_micros.map(|micros| micros as f64 / 1e3),
        "nullified": accepted.nullified,
    })
}
