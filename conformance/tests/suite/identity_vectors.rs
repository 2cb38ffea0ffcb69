//! External DID documents and logs of `did:plc`: valid ones, invalid ones, and valid ones with
//! one thing changed.

use atproto::did_document::{DidDocument, DidDocumentError, Options as DocumentOptions};
use atproto::plc::{Limits, Log, Operation};
use atproto::syntax::Did;
use codec::cbor;
use crypto::PublicKey;
use serde_json::{Value as Json, json};
use verify::plc::{History, Options, PlcRejection, verify};
use verify::{Verified, identity};
use wireproof_conformance::{Folder, fixtures};

#[test]
fn documents_of_the_directory_and_of_domains_are_read() {
    let data = fixtures!(Captures);
    let read = |name: &str| document(&data.bytes(&format!("atproto/did/{name}.json")));
    let dholms = read("dholms");
    assert_eq!(dholms.did(), "did:plc:yk4dd2qkboz2yv6tpubpc6co");
    assert_eq!(dholms.handle().unwrap(), "dholms.xyz");
    assert_eq!(dholms.host(), Some("https://pds.dholms.xyz"));
    let witchcraft = read("witchcraft");
    assert_eq!(witchcraft.handle().unwrap(), "witchcraft.systems");
    assert!(identity::signing_key(&witchcraft).unwrap().is_some());
    let feed = read("did_web_doc");
    assert_eq!(feed.did(), "did:web:discover.bsky.social");
    assert_eq!((feed.handle(), feed.host()), (None, None));
    assert_eq!(identity::signing_key(&feed), Ok(None));
}

#[test]
fn a_key_is_the_same_in_its_old_and_its_new_spelling() {
    let data = fixtures!(Captures);
    let key = |name: &str| {
        let document = document(&data.bytes(&format!("atproto/did/{name}.json")));
        (document.signing_key().unwrap().kind.clone(), identity::signing_key(&document).unwrap())
    };
    let (new, old) = (key("did_plc_doc"), key("did_plc_doc_legacy"));
    assert_eq!((&*new.0, &*old.0), ("Multikey", "EcdsaSecp256k1VerificationKey2019"));
    assert_eq!(new.1, old.1);
}

#[test]
fn documents_of_real_accounts_give_handle_key_and_host() {
    let data = fixtures!(Captures);
    let text = data.text("atproto/frames/did_docs_dev.json");
    let documents: serde_json::Map<String, Json> = serde_json::from_str(&text).unwrap();
    assert_eq!(documents.len(), 61);
    for (did, json) in &documents {
        let did = Did::parse(did).unwrap();
        let json = json.to_string();
        let parse = |did| DidDocument::parse_for(did, json.as_bytes(), &DocumentOptions::default());
        let document = parse(did).unwrap();
        assert!(identity::signing_key(&document).unwrap().is_some(), "{did}");
        assert!(document.handle().is_some() && document.host().is_some(), "{did}");
        let other = Did::parse("did:web:example.com").unwrap();
        assert_eq!(parse(other), Err(DidDocumentError::OtherDid));
    }
}

#[test]
fn a_key_of_another_curve_is_no_signing_key() {
    let method = json!({
        "id": "#atproto", "type": "Multikey", "controller": "did:web:example.com",
        "publicKeyMultibase": "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
    });
    let json = json!({ "id": "did:web:example.com", "verificationMethod": [method] });
    let document = document(json.to_string().as_bytes());
    assert!(document.signing_key().is_some());
    assert!(identity::signing_key(&document).is_err());
    let text = &document.signing_key().unwrap().multibase;
    assert!(PublicKey::from_multikey(text).is_err());
}

#[test]
fn captured_accounts_have_one_key_in_document_and_log() {
    for account in accounts(&fixtures!(Captures)) {
        let document = document(account["didDoc"].to_string().as_bytes());
        let history = judge_json(&account["plcAuditLog"]).unwrap();
        assert_eq!(document.did(), history.did());
        assert_eq!(document.handle(), history.data().unwrap().handle());
        let key = identity::signing_key(&document).unwrap();
        assert!(key.is_some());
        assert_eq!(key, history.signing_key());
        // Captured on one machine, where no host has a certificate.
        assert_eq!((document.host(), history.data().unwrap().host()), (None, None));
    }
}

#[test]
fn valid_logs_are_accepted() {
    let data = fixtures!(Captures);
    let undone = |name: &str| {
        let history = verify(&data.bytes(&format!("atproto/plc/{name}.json")), &Options::default());
        let history = history.unwrap_or_else(|rejection| panic!("{name}: {rejection}"));
        let flags = history.operations().iter();
        flags.map(|judged| if judged.nullified { '-' } else { '+' }).collect::<String>()
    };
    assert_eq!(undone("audit_log_bsky"), "++++");
    assert_eq!(undone("audit_log_shinyakato_2023"), "+++++");
    assert_eq!(undone("log_bskyapp"), "++");
    assert_eq!(undone("log_duplicate_rotation_keys"), "+");
    assert_eq!(undone("log_legacy_dholms"), "+++++");
    assert_eq!(undone("log_nullification"), "+-+");
    assert_eq!(undone("log_tombstone"), "++");
}

#[test]
fn the_last_valid_operation_determines_the_state() {
    let data = fixtures!(Captures);
    let read = |name: &str| {
        verify(&data.bytes(&format!("atproto/plc/{name}.json")), &Options::default()).unwrap()
    };
    let dholms = read("log_legacy_dholms");
    assert_eq!(dholms.data().unwrap().handle().unwrap(), "dholms.xyz");
    assert!(dholms.signing_key().is_some());
    let document = document(&data.bytes("atproto/did/dholms.json"));
    assert_eq!(dholms.did(), document.did());
    assert!(read("log_tombstone").is_tombstoned());
    assert_eq!(read("log_duplicate_rotation_keys").data().unwrap().signing_key(), None);
}

#[test]
fn invalid_logs_are_refused_for_what_is_wrong_with_them() {
    let data = fixtures!(Captures);
    let code = |name: &str| {
        let json = data.bytes(&format!("atproto/plc/log_invalid_{name}.json"));
        let rejection = verify(&json, &Options::default()).unwrap_err();
        (rejection.index, rejection.code())
    };
    // In DER, and ground to be 64 bytes long.
    assert_eq!(code("sig_der"), (0, "signature/wrong"));
    assert_eq!(code("sig_k256_high_s"), (0, "signature/high-s"));
    assert_eq!(code("update_tombstoned"), (2, "plc/tombstoned"));
}

#[test]
fn every_log_that_is_at_hand_is_named_in_a_test() {
    assert_eq!(fixtures!(Captures).files("atproto/plc", ".json").len(), 10);
}

#[test]
fn operations_have_the_cids_that_the_directory_gives_them_and_canonical_bytes() {
    for log in valid_logs(&fixtures!(Captures)) {
        for entry in log.as_array().unwrap() {
            let json = entry["operation"].to_string();
            let operation = Operation::parse(json.as_bytes()).unwrap();
            assert_eq!(operation.cid().to_string(), entry["cid"]);
            assert_eq!(cbor::validate(&operation.to_bytes()), Ok(()));
            assert_eq!(cbor::validate(&operation.unsigned().to_bytes()), Ok(()));
            let written: Json = serde_json::from_str(&operation.to_json()).unwrap();
            assert_eq!(written, entry["operation"]);
        }
    }
}

#[test]
fn the_operations_of_a_valid_log_that_hold_are_a_valid_plain_log() {
    for log in valid_logs(&fixtures!(Captures)) {
        let entries = log.as_array().unwrap().iter();
        let plain: Json = entries
            .filter(|entry| entry["nullified"] == false)
            .map(|entry| entry["operation"].clone())
            .collect();
        let (audited, plain) = (judge_json(&log).unwrap(), judge_json(&plain).unwrap());
        assert_eq!(audited.data(), plain.data());
        assert_eq!(audited.did(), plain.did());
    }
}

#[test]
fn a_valid_log_with_one_thing_changed_is_refused() {
    let mut changes = 0;
    for log in valid_logs(&fixtures!(Captures)) {
        for place in places(&log) {
            for (what, changed) in changed(&log, &place) {
                assert!(judge_json(&changed).is_err(), "{what} at {place}: {changed}");
                changes += 1;
            }
        }
    }
    assert!(changes > 1000, "{changes}");
}

#[test]
fn a_valid_log_that_lacks_an_entry_in_front_of_another_is_refused() {
    for log in valid_logs(&fixtures!(Captures)) {
        let entries = log.as_array().unwrap();
        for missing in 0..entries.len().saturating_sub(1) {
            let mut entries = entries.clone();
            // A log is valid without an operation that was nullified.
            let was_undone = entries.remove(missing)["nullified"] == true;
            let rest = Json::Array(entries);
            assert_eq!(judge_json(&rest).is_ok(), was_undone, "without {missing}");
        }
    }
}

#[test]
fn a_log_cut_anywhere_is_refused() {
    let json = fixtures!(Captures).bytes("atproto/plc/log_nullification.json");
    let end = json.iter().rposition(|byte| *byte == b']').unwrap();
    for len in 0..=end {
        assert!(Log::parse(&json[..len], &Limits::default()).is_err(), "{len}");
    }
}

fn document(json: &[u8]) -> DidDocument {
    DidDocument::parse(json, &DocumentOptions::default()).unwrap()
}

fn judge_json(log: &Json) -> Result<Verified<History>, PlcRejection> {
    verify(log.to_string().as_bytes(), &Options::default())
}

fn accounts(data: &Folder) -> Vec<Json> {
    let accounts: Vec<Json> = serde_json::from_str(&data.text("pds/accounts.json")).unwrap();
    assert_eq!(accounts.len(), 10);
    accounts
}

/// All audit logs that are valid.
fn valid_logs(data: &Folder) -> Vec<Json> {
    let files = data.files("atproto/plc", ".json");
    let valid = files.iter().filter(|path| !path.contains("invalid"));
    let mut logs: Vec<Json> =
        valid.map(|path| serde_json::from_slice(&data.bytes(path)).unwrap()).collect();
    assert_eq!(logs.len(), 7);
    logs.extend(accounts(data).iter().map(|account| account["plcAuditLog"].clone()));
    logs
}

/// The JSON pointers of everything in a value but the value itself.
fn places(value: &Json) -> Vec<String> {
    let children: Vec<(String, &Json)> = match value {
        Json::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect()
        }
        Json::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), value)).collect(),
        _ => Vec::new(),
    };
    let below = |(key, child): (String, &Json)| {
        let mut found: Vec<String> =
            places(child).into_iter().map(|place| format!("/{key}{place}")).collect();
        found.push(format!("/{key}"));
        found
    };
    children.into_iter().flat_map(below).collect()
}

/// The log with the value at `place` replaced, or with one more or less in it.
fn changed(log: &Json, place: &str) -> Vec<(&'static str, Json)> {
    let value = log.pointer(place).unwrap();
    let mut found = Vec::new();
    let mut with = |what, new: Json| {
        let mut log = log.clone();
        *log.pointer_mut(place).unwrap() = new;
        found.push((what, log));
    };
    with("a number", json!(7));
    match value {
        Json::String(text) => {
            with("a longer text", json!(format!("{text}x")));
            with("a shorter text", json!(text[..text.len() - 1]));
            with("no text", json!(""));
            with("null", Json::Null);
        }
        Json::Bool(boolean) => with("the opposite", json!(!boolean)),
        Json::Null => with("a text", json!("x")),
        Json::Array(items) => {
            with("one more item", json!([&items[..], &[json!("x")]].concat()));
            if !items.is_empty() {
                with("one item less", json!(items[1..]));
            }
        }
        Json::Object(entries) => {
            for key in entries.keys() {
                let mut fewer = entries.clone();
                fewer.remove(key);
                with("one entry less", Json::Object(fewer));
            }
            // A directory may add fields to the entry of an operation.
            if place.matches('/').count() > 1 {
                let mut more = entries.clone();
                more.insert("more".to_owned(), json!("x"));
                with("one entry more", Json::Object(more));
            }
        }
        Json::Number(_) => {}
    }
    found
}
