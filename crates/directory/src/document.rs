//! DID documents with the text of the reference server.

use atproto::plc::AccountData;
use atproto::syntax::Did;
use crypto::{Curve, PublicKey};
use serde::Serialize;

/// The DID document of an account, as JSON.
pub(crate) fn document(did: Did<'_>, data: &AccountData) -> String {
    let mut context = vec!["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"];
    let mut verification_method = Vec::new();
    for (id, key) in data.ordered_verification_methods() {
        if let Some(named) = context_of(key).filter(|named| !context.contains(named)) {
            context.push(named);
        }
        verification_method.push(VerificationMethod {
            id: format!("{did}#{id}"),
            kind: "Multikey",
            controller: did.as_str(),
            public_key_multibase: key.strip_prefix("did:key:").unwrap_or(key),
        });
    }
    let services = data.ordered_services().map(|(id, service)| Service {
        id: format!("#{id}"),
        kind: &service.kind,
        service_endpoint: &service.endpoint,
    });
    let document = Document {
        context,
        id: did.as_str(),
        also_known_as: &data.also_known_as,
        verification_method,
        service: services.collect(),
    };
    serde_json::to_string(&document).expect("text and lists of text have JSON")
}

/// The context of a key of a curve of the AT Protocol; `None` for other keys and texts.
fn context_of(key: &str) -> Option<&'static str> {
    match PublicKey::from_did_key(key).ok()?.curve() {
        Curve::P256 => Some("https://w3id.org/security/suites/ecdsa-2019/v1"),
        Curve::K256 => Some("https://w3id.org/security/suites/secp256k1-2019/v1"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d> {
    #[serde(rename = "@context")]
    context: Vec<&'static str>,
    id: &'d str,
    also_known_as: &'d [String],
    verification_method: Vec<VerificationMethod<'d>>,
    service: Vec<Service<'d>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VerificationMethod<'d> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    controller: &'d str,
    public_key_multibase: &'d str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Service<'d> {
    id: String,
    #[serde(rename = "type")]
    kind: &'d str,
    service_endpoint: &'d str,
}
