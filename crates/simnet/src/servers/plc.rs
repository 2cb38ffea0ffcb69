//! The PLC directory: `/{did}`, `/{did}/data`, `/{did}/log`, `/{did}/log/audit`, `/{did}/log/last`.
//!
//! Operations are signed, and DIDs are the hashes of the first ones; so a log from here is worth as
//! much as one from anywhere.

use atproto::plc::AccountData;
use serde_json::{Value, json};

use super::answer::{self, Answer, Question};
use super::fault::{Fault, UNPOISONED};
use super::member::{Member, Registered};
use super::network::{Network, lock};
use super::spec::Server;
use super::stranger;
use crate::keys::{Curve, SigningKey};
use crate::random::Seed;
use crate::tid::datetime;

pub(super) fn answer(network: &Network, question: &Question) -> Answer {
    let path = question.uri().path().trim_start_matches('/');
    let path = path.replace("%3A", ":").replace("%3a", ":");
    let (did, what) = path.split_once('/').unwrap_or((&path, ""));
    match did {
        "_health" => return answer::json(200, &json!({ "version": "simnet" })),
        did if !did.starts_with("did:plc:") => return not_found("Not found"),
        _ => {}
    }
    let Some(member) = network.member_by_did(did) else {
        return answer_stranger(network, did, what);
    };
    let member = lock(&member);
    match what {
        "" => document(network, &member),
        "data" => member.data().map_or_else(|| gone(did), |data| ok(&data_of(did, &data))),
        "log" => ok(&member.log.iter().map(operation).collect()),
        "log/audit" => ok(&member.log.iter().map(|entry| audit_entry(did, entry)).collect()),
        "log/last" => member.log.last().map_or_else(|| gone(did), |last| ok(&operation(last))),
        _ => not_found("Not found"),
    }
}

fn answer_stranger(network: &Network, did: &str, what: &str) -> Answer {
    let strangers = network.strangers().read().expect(UNPOISONED);
    match strangers.get(did).filter(|_| what.is_empty()) {
        Some(stranger) => {
            let endpoint = network.addresses.url(Server::Pds(0));
            said(&stranger::document(did, &stranger.signing_key, &endpoint))
        }
        None => not_found(&format!("DID not registered: {did}")),
    }
}

fn document(network: &Network, member: &Member) -> Answer {
    let faults = &network.faults;
    let hit = |fault| faults.hit(Server::Plc, fault).is_some();
    if hit(Fault::MalformedDocument) {
        return answer::bytes(200, DOCUMENT_TYPE, "<!doctype html><title>Directory</title>");
    }
    let Some(mut data) = member.data() else { return gone(member.did()) };
    if hit(Fault::WrongKey) {
        data.verification_methods.insert("atproto".to_owned(), strange_key(network.spec.seed));
    }
    if hit(Fault::PrivateHost) {
        data.services.values_mut().for_each(|service| service.endpoint = PRIVATE.to_owned());
    }
    let did = if hit(Fault::WrongDocument) { SOMEBODY } else { member.did() };
    said(&document_of(did, &data))
}

/// A key that is nobody's.
fn strange_key(seed: u64) -> String {
    SigningKey::generate(Curve::K256, &mut Seed::new(seed, "a strange key").stream(0)).did_key()
}

fn document_of(did: &str, data: &AccountData) -> Value {
    let methods = data.verification_methods.iter().map(|(id, key)| {
        json!({
            "id": format!("{did}#{id}"),
            "type": "Multikey",
            "controller": did,
            "publicKeyMultibase": key.strip_prefix("did:key:").unwrap_or(key),
        })
    });
    let services = data.services.iter().map(|(id, service)| {
        json!({ "id": format!("#{id}"), "type": service.kind, "serviceEndpoint": service.endpoint })
    });
    json!({
        "@context": [
            "https://www.w3.org/ns/did/v1",
            "https://w3id.org/security/multikey/v1",
            "https://w3id.org/security/suites/secp256k1-2019/v1",
        ],
        "id": did,
        "alsoKnownAs": data.also_known_as,
        "verificationMethod": methods.collect::<Value>(),
        "service": services.collect::<Value>(),
    })
}

fn data_of(did: &str, data: &AccountData) -> Value {
    json!({
        "did": did,
        "verificationMethods": data.verification_methods,
        "rotationKeys": data.rotation_keys,
        "alsoKnownAs": data.also_known_as,
        "services": data.services,
    })
}

fn operation(entry: &Registered) -> Value {
    serde_json::from_str(&entry.operation.to_json()).expect("an operation has JSON")
}

fn audit_entry(did: &str, entry: &Registered) -> Value {
    json!({
        "did": did,
        "operation": operation(entry),
        "cid": entry.operation.cid().to_string(),
        "nullified": false,
        "createdAt": datetime(entry.micros),
    })
}

fn ok(value: &Value) -> Answer {
    answer::json(200, value)
}

fn said(document: &Value) -> Answer {
    answer::bytes(200, DOCUMENT_TYPE, document.to_string())
}

fn gone(did: &str) -> Answer {
    not_found(&format!("DID not available: {did}"))
}

fn not_found(message: &str) -> Answer {
    answer::json(404, &json!({ "message": message }))
}

const DOCUMENT_TYPE: &str = "application/did+ld+json; charset=utf-8";

/// Whose document is given for another's.
const SOMEBODY: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

/// Where nobody may be sent.
pub(super) const PRIVATE: &str = "https://10.0.0.1";
