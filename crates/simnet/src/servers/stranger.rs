//! Accounts of the hostile set, as guests of the first PDS.
//!
//! Their DIDs are no hashes of anything, so that the directory knows documents of them and no logs.

use serde_json::{Value, json};

use super::told::{EventKind, EventSubject, Told};
use crate::hostile;

/// What is known of such an account.
#[derive(Clone, Debug, Default)]
pub(super) struct Stranger {
    /// Its key, as a `did:key`.
    pub(super) signing_key: String,
    /// Its repository, whatever that is.
    pub(super) archive: Option<Vec<u8>>,
}

impl Stranger {
    /// The account of a case.
    pub(super) fn of(case: &hostile::Case) -> Self {
        let archive = (case.kind == hostile::InputKind::Repo).then(|| case.bytes.clone());
        Self { signing_key: case.signing_key.clone(), archive }
    }
}

/// The events of a case: none if it is a repository.
pub(super) fn events(case: &hostile::Case, now: u64) -> Vec<Told> {
    if case.kind == hostile::InputKind::Repo {
        return Vec::new();
    }
    let frames = atproto::corpus::read(&case.bytes).expect("the hostile set writes whole files");
    let subject = EventSubject {
        did: case.did.clone(),
        kind: EventKind::Hostile,
        rev: String::new(),
        jetstream_events: 0,
    };
    frames.iter().map(|frame| Told::from_bytes(subject.clone(), now, frame)).collect()
}

/// The DID document.
pub(super) fn document(did: &str, signing_key: &str, endpoint: &str) -> Value {
    json!({
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": did,
        "alsoKnownAs": [],
        "verificationMethod": [{
            "id": format!("{did}#atproto"),
            "type": "Multikey",
            "controller": did,
            "publicKeyMultibase": signing_key.strip_prefix("did:key:").unwrap_or(signing_key),
        }],
        "service": [{
            "id": "#atproto_pds",
            "type": "AtprotoPersonalDataServer",
            "serviceEndpoint": endpoint,
        }],
    })
}
