use std::collections::BTreeMap;

use codec::cbor;
use codec::cid::{Cid, Codec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::OperationFault as Fault;
use super::*;

fn genesis() -> Value {
    json!({
        "type": "plc_operation",
        "rotationKeys": ["did:key:zA", "did:key:zB"],
        "verificationMethods": { "atproto": "did:key:zC" },
        "alsoKnownAs": ["at://alice.test"],
        "services": { "atproto_pds": { "type": "AtprotoPersonalDataServer", "endpoint": "https://a.test" } },
        "prev": null,
        "sig": SIG,
    })
}

fn create() -> Value {
    json!({
        "type": "create", "signingKey": "did:key:zA", "recoveryKey": "did:key:zB",
        "handle": "alice.test", "service": "a.test", "prev": null, "sig": SIG,
    })
}

fn tombstone() -> Value {
    json!({ "type": "plc_tombstone", "prev": PREV, "sig": SIG })
}

/// 64 bytes, whose last character has six bits, two of them data.
const SIG: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQ";
const PREV: &str = "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm";

fn parse(json: &Value) -> Result<Operation, Fault> {
    Operation::parse(json.to_string().as_bytes())
}

/// `operation` with `value` under `field`, or without `field` if `value` is `None`.
fn with(mut operation: Value, field: &str, value: Option<Value>) -> Value {
    let object = operation.as_object_mut().unwrap();
    match value {
        Some(value) => drop(object.insert(field.to_owned(), value)),
        None => drop(object.remove(field)),
    }
    operation
}

#[test]
fn every_type_is_read_written_and_canonical() {
    for json in [genesis(), create(), tombstone()] {
        let operation = parse(&json).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&operation.to_json()).unwrap(), json);
        for bytes in [operation.to_bytes(), operation.unsigned().to_bytes()] {
            assert_eq!(cbor::validate(&bytes), Ok(()));
        }
        assert_eq!(operation.cid(), Cid::of(Codec::DagCbor, &operation.to_bytes()));
    }
}

#[test]
fn a_missing_field_is_named() {
    for (operation, is_tombstone) in [(genesis(), false), (create(), false), (tombstone(), true)] {
        for field in operation.as_object().unwrap().keys() {
            let fault = parse(&with(operation.clone(), field, None)).unwrap_err();
            assert!(matches!(fault, Fault::Missing(name) if name == field), "{field}: {fault}");
            let null = parse(&with(operation.clone(), field, Some(Value::Null)));
            match field.as_str() {
                "prev" if is_tombstone => assert_eq!(null, Err(Fault::Field("prev"))),
                "prev" => assert!(null.is_ok()),
                _ => assert!(matches!(null, Err(Fault::Json { .. })), "{field}: {null:?}"),
            }
        }
    }
}

#[test]
fn a_field_of_another_type_of_operation_is_named() {
    let foreign = |operation, field, value| parse(&with(operation, field, Some(value)));
    assert_eq!(foreign(genesis(), "handle", json!("a.test")), Err(Fault::Unexpected("handle")));
    assert_eq!(foreign(create(), "services", json!({})), Err(Fault::Unexpected("services")));
    assert_eq!(
        foreign(tombstone(), "rotationKeys", json!([])),
        Err(Fault::Unexpected("rotationKeys"))
    );
}

#[test]
fn what_no_operation_has_is_rejected() {
    let changed = |field, value| parse(&with(genesis(), field, Some(value)));
    assert_eq!(changed("type", json!("plc_other")), Err(Fault::Type));
    assert_eq!(changed("prev", json!("bafy")), Err(Fault::Field("prev")));
    let is_json = |result| matches!(result, Err(Fault::Json { .. }));
    let is_unknown = |result| matches!(result, Err(Fault::UnknownField { line: 1, .. }));
    assert!(is_unknown(changed("extra", json!(1))));
    assert!(is_json(changed("rotationKeys", json!("did:key:zA"))));
    assert!(is_json(changed("rotationKeys", json!([1]))));
    assert!(is_json(changed("services", json!({ "a": "https://a.test" }))));
    let extra = json!({ "a": { "type": "A", "endpoint": "b", "c": "d" } });
    assert!(is_unknown(changed("services", extra)));
    assert_eq!(parse(&with(create(), "prev", Some(json!(PREV)))), Err(Fault::Field("prev")));
    let twice = genesis().to_string().replace(
        r#"{"atproto":"did:key:zC"}"#,
        r#"{"atproto":"did:key:zC","atproto":"did:key:zD"}"#,
    );
    assert!(is_json(Operation::parse(twice.as_bytes())));
    let twice = tombstone().to_string().replacen('{', r#"{"type":"create","#, 1);
    assert!(is_json(Operation::parse(twice.as_bytes())));
    assert!(is_json(Operation::parse(b"[[[[")));
}

#[test]
fn a_signature_has_one_encoding() {
    let sig = |text: &str| parse(&with(tombstone(), "sig", Some(json!(text)))).map(drop);
    assert_eq!(sig(SIG), Ok(()));
    let stem = &SIG[..85];
    for last in ["R", "S", "f", "B"] {
        assert_eq!(sig(&format!("{stem}{last}")), Err(Fault::SignatureEncoding), "{last}");
    }
    for text in ["{}==", "{}\n", "\n{}", "{} ", "{}\r\n"] {
        assert_eq!(sig(&text.replace("{}", SIG)), Err(Fault::SignatureEncoding), "{text:?}");
    }
    assert_eq!(sig(&SIG.replacen('A', "+", 1)), Err(Fault::SignatureEncoding));
    assert_eq!(sig(&SIG.replacen('A', "-", 1)), Ok(()));
    assert_eq!(sig(""), Err(Fault::SignatureLength(0)));
    assert_eq!(sig(&SIG[..84]), Err(Fault::SignatureLength(63)));
    assert_eq!(sig(&format!("{stem}AA")), Err(Fault::SignatureLength(65)));
}

#[test]
fn an_operation_that_follows_none_creates_a_did() {
    let did = parse(&genesis()).unwrap().did().unwrap();
    assert!(did.as_did().is_plc());
    assert!(parse(&create()).unwrap().did().is_some());
    assert_eq!(parse(&tombstone()).unwrap().did(), None);
    assert_eq!(parse(&with(genesis(), "prev", Some(json!(PREV)))).unwrap().did(), None);
}

#[test]
fn account_data_has_handle_key_and_host() {
    let data = parse(&genesis()).unwrap().unsigned().to_data().unwrap();
    assert_eq!(data.handle().unwrap(), "alice.test");
    assert_eq!(data.signing_key(), Some("did:key:zC"));
    assert_eq!(data.host(), Some("https://a.test"));
    assert_eq!(
        (AccountData::default().handle(), AccountData::default().signing_key()),
        (None, None)
    );
    assert_eq!(parse(&tombstone()).unwrap().unsigned().to_data(), None);
}

#[test]
fn a_legacy_create_is_converted_to_account_data() {
    let data = parse(&create()).unwrap().unsigned().to_data().unwrap();
    assert_eq!(data.rotation_keys, ["did:key:zB", "did:key:zA"]);
    assert_eq!(data.handle().unwrap(), "alice.test");
    assert_eq!(data.signing_key(), Some("did:key:zA"));
    assert_eq!(data.host(), Some("https://a.test"));
}

#[test]
fn a_log_is_read_in_either_form_and_an_error_has_the_index_of_its_entry() {
    let read = |log: Value| Log::parse(log.to_string().as_bytes(), &Limits::default());
    let entry = |operation: Value| {
        json!({
            "did": "did:plc:a", "operation": operation, "cid": PREV, "nullified": false,
            "createdAt": "2026-01-01T00:00:00.000Z", "more": [1],
        })
    };
    assert_eq!(read(json!([])), Ok(Log::Plain(Vec::new())));
    let plain = Log::Plain(vec![parse(&genesis()).unwrap(), parse(&tombstone()).unwrap()]);
    assert_eq!(read(json!([genesis(), tombstone()])), Ok(plain));
    let Ok(Log::Audit(entries)) = read(json!([entry(genesis()), entry(create())])) else {
        panic!("an audit log");
    };
    assert_eq!((entries.len(), entries[1].cid.to_string().as_str()), (2, PREV));
    let fault = |log| read(log).unwrap_err();
    let second =
        |field, value| json!([entry(genesis()), with(entry(create()), field, Some(value))]);
    assert_eq!(fault(second("did", json!("a"))), LogError { index: 1, fault: Fault::Field("did") });
    assert_eq!(fault(second("cid", json!("a"))).fault, Fault::Field("cid"));
    assert_eq!(fault(second("createdAt", json!("a"))).fault, Fault::Field("createdAt"));
    assert!(matches!(
        fault(second("nullified", json!(0))),
        LogError { index: 1, fault: Fault::Json { .. } }
    ));
    assert_eq!(fault(json!([genesis(), {}])), LogError { index: 1, fault: Fault::Missing("sig") });
    assert!(matches!(
        fault(json!([genesis(), 5])),
        LogError { index: 1, fault: Fault::Json { .. } }
    ));
    assert_eq!(fault(json!({})).fault, Fault::NotAList);
}

#[test]
fn an_exceeded_limit_is_named() {
    let limits = Limits::default();
    let exceeded = |name, limit, found| Fault::Limit { name, limit, found };
    let two = json!([genesis(), tombstone()]).to_string();
    let error = |limits: Limits| Log::parse(two.as_bytes(), &limits).unwrap_err();
    let bytes = error(Limits { log_bytes: two.len() - 1, ..limits });
    assert_eq!(
        bytes,
        LogError { index: 0, fault: exceeded("log_bytes", two.len() - 1, two.len()) }
    );
    let operations = error(Limits { operations: 1, ..limits });
    assert_eq!(operations, LogError { index: 1, fault: exceeded("operations", 1, 2) });

    let check = |field, value| limits.check(&parse(&with(genesis(), field, Some(value))).unwrap());
    let many = |count: usize| vec!["at://a.test"; count];
    assert_eq!(check("alsoKnownAs", json!(many(10))), Ok(()));
    assert_eq!(check("alsoKnownAs", json!(many(11))), Err(exceeded("also_known_as", 10, 11)));
    assert_eq!(check("rotationKeys", json!(many(11))), Err(exceeded("rotation_keys", 10, 11)));
    let long = |len: usize| "x".repeat(len);
    let map = |id: usize, value: Value| json!({ long(id): value });
    assert_eq!(check("alsoKnownAs", json!([long(258)])), Ok(()));
    assert_eq!(
        check("alsoKnownAs", json!([long(259)])),
        Err(exceeded("also_known_as_bytes", 258, 259))
    );
    assert_eq!(check("verificationMethods", map(32, json!(long(256)))), Ok(()));
    let keys = "verification_method_key_bytes";
    assert_eq!(
        check("verificationMethods", map(32, json!(long(257)))),
        Err(exceeded(keys, 256, 257))
    );
    let ids = "verification_method_id_bytes";
    assert_eq!(check("verificationMethods", map(33, json!(""))), Err(exceeded(ids, 32, 33)));
    let service = |kind, endpoint| json!({ "type": long(kind), "endpoint": long(endpoint) });
    assert_eq!(check("services", map(32, service(256, 512))), Ok(()));
    let too_much = |id, kind, endpoint| check("services", map(id, service(kind, endpoint)));
    assert_eq!(too_much(33, 0, 0), Err(exceeded("service_id_bytes", 32, 33)));
    assert_eq!(too_much(1, 257, 0), Err(exceeded("service_type_bytes", 256, 257)));
    assert_eq!(too_much(1, 0, 513), Err(exceeded("service_endpoint_bytes", 512, 513)));
    let eleven = |value: Value| -> BTreeMap<String, Value> {
        (0..11).map(|id| (id.to_string(), value.clone())).collect()
    };
    let services = json!(eleven(service(1, 1)));
    assert_eq!(check("services", services), Err(exceeded("services", 10, 11)));
    let methods = json!(eleven(json!("")));
    assert_eq!(
        check("verificationMethods", methods),
        Err(exceeded("verification_methods", 10, 11))
    );
    let small = Limits { operation_bytes: 100, ..limits };
    let operation = parse(&genesis()).unwrap();
    assert_eq!(
        small.check(&operation),
        Err(exceeded("operation_bytes", 100, operation.to_bytes().len()))
    );
}

proptest! {
    #[test]
    fn any_names_of_keys_and_services_give_canonical_bytes(
        names in prop::collection::vec("[a-cé\"]{0,4}", 0..8),
        sig in prop::array::uniform32(any::<u8>()),
    ) {
        let methods = names.iter().map(|name| (name.clone(), name.clone())).collect();
        let service = Service { kind: String::new(), endpoint: "x".to_owned() };
        let services = names.iter().map(|name| (name.clone(), service.clone())).collect();
        let data = AccountData {
            rotation_keys: names.clone(),
            verification_methods: methods,
            also_known_as: names,
            services,
        };
        let sig: [u8; 64] = [sig, sig].concat().try_into().unwrap();
        let operation = UnsignedOperation::Update(Update { data, prev: None }).with_signature(sig);
        prop_assert_eq!(cbor::validate(&operation.to_bytes()), Ok(()));
        prop_assert_eq!(cbor::validate(&operation.unsigned().to_bytes()), Ok(()));
        prop_assert_eq!(Operation::parse(operation.to_json().as_bytes()), Ok(operation));
    }
}
