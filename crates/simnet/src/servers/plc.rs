//! The PLC directory: `/{did}`, `/{did}/data`, `/{did}/log`, `/{did}/log/audit`, `/{did}/log/last`, `/export`, `/export/stream`.
//!
//! Operations are signed and DIDs are the hashes of genesis operations, so the logs verify like the live directory's.

use atproto::plc::AccountData;
use serde_json::{Value, json};

use super::fault::{Fault, UNPOISONED};
use super::hosted_account::{HostedAccount, LoggedOperation};
use super::http::{self, HttpRequest, HttpResponse};
use super::network::{NetworkState, lock};
use super::plc_export;
use super::spec::Server;
use crate::keys::{Curve, SigningKey};
use crate::random::Seed;
use crate::time::datetime;

/// The response of the directory.
pub(super) fn response(network: &NetworkState, request: &HttpRequest) -> HttpResponse {
    let path = request.uri().path().trim_start_matches('/');
    let path = path.replace("%3A", ":").replace("%3a", ":");
    let (did, what) = path.split_once('/').unwrap_or((&path, ""));
    match did {
        "_health" => return http::json(200, &json!({ "version": "simnet" })),
        "export" => return plc_export::response(network, request),
        did if !did.starts_with("did:plc:") => return not_found("Not found"),
        _ => {}
    }
    let Some(account) = network.account_by_did(did) else {
        return guest_response(network, did, what);
    };
    let account = lock(&account);
    match what {
        "" => document(network, &account),
        "data" => {
            account.data().map_or_else(|| not_available(did), |data| ok(&data_of(did, &data)))
        }
        "log" => ok(&account.log.iter().map(operation).collect()),
        "log/audit" => ok(&account.log.iter().map(|entry| audit_entry(did, entry)).collect()),
        "log/last" => {
            account.log.last().map_or_else(|| not_available(did), |last| ok(&operation(last)))
        }
        _ => not_found("Not found"),
    }
}

fn guest_response(network: &NetworkState, did: &str, what: &str) -> HttpResponse {
    let guests = network.guests().read().expect(UNPOISONED);
    match guests.get(did).filter(|_| what.is_empty()) {
        Some(guest) => {
            let port = network.addresses.0[&Server::Pds(guest.pds)];
            let name = guest.slow_host.as_deref().unwrap_or("localhost");
            let endpoint = format!("http://{name}:{port}");
            document_response(&guest_document(did, &guest.signing_key, &endpoint))
        }
        None => not_found(&format!("DID not registered: {did}")),
    }
}

fn document(network: &NetworkState, account: &HostedAccount) -> HttpResponse {
    let faults = &network.faults;
    let inject = |fault| faults.inject(Server::Plc, fault).is_some();
    if inject(Fault::MalformedDocument) {
        return http::bytes(200, DOCUMENT_TYPE, "<!doctype html><title>Directory</title>");
    }
    let Some(mut data) = account.data() else { return not_available(account.did()) };
    if inject(Fault::WrongKey) {
        data.verification_methods.insert("atproto".to_owned(), wrong_key(network.spec.seed));
    }
    if inject(Fault::PrivateHost) {
        data.services.values_mut().for_each(|service| service.endpoint = PRIVATE_URL.to_owned());
    }
    if inject(Fault::NoHandle) {
        data.also_known_as.clear();
    }
    let did = if inject(Fault::WrongDocument) { OTHER_DID } else { account.did() };
    document_response(&document_of(did, &data))
}

/// A key of no account.
fn wrong_key(seed: u64) -> String {
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

pub(super) fn operation(entry: &LoggedOperation) -> Value {
    serde_json::from_str(&entry.operation.to_json()).expect("an operation has JSON")
}

fn audit_entry(did: &str, entry: &LoggedOperation) -> Value {
    json!({
        "did": did,
        "operation": operation(entry),
        "cid": entry.operation.cid().to_string(),
        "nullified": false,
        "createdAt": datetime(entry.micros),
    })
}

fn ok(value: &Value) -> HttpResponse {
    http::json(200, value)
}

fn document_response(document: &Value) -> HttpResponse {
    http::bytes(200, DOCUMENT_TYPE, document.to_string())
}

fn not_available(did: &str) -> HttpResponse {
    not_found(&format!("DID not available: {did}"))
}

fn not_found(message: &str) -> HttpResponse {
    http::json(404, &json!({ "message": message }))
}

const DOCUMENT_TYPE: &str = "application/did+ld+json; charset=utf-8";

/// The DID in the document of `Fault::WrongDocument`.
const OTHER_DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

/// A URL in a private network.
pub(super) const PRIVATE_URL: &str = "https://10.0.0.1";

/// The DID document of the account of a hostile case.
fn guest_document(did: &str, signing_key: &str, endpoint: &str) -> Value {
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
