//! Single signatures of the AT Protocol.

use crypto::PublicKey;
use serde_json::json;
use verify::commit::signature_code;

use crate::fault::Fault;

/// The verdict on a signature over the SHA-256 of a message, by the strict rules, as JSON.
///
/// # Errors
/// If the key is not a did:key.
pub fn verify(message: &[u8], signature: &[u8], key: &str) -> Result<String, Fault> {
    let key = PublicKey::from_did_key(key).map_err(|error| Fault::argument("key", error))?;
    let value = match key.verify(message, signature) {
        Ok(()) => json!({ "verified": true, "code": "verified" }),
        Err(fault) => {
            json!({ "verified": false, "code": signature_code(fault), "rule": fault.to_string() })
        }
    };
    Ok(value.to_string())
}
