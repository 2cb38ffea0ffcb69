use serde_json::{Value, json};

use super::*;

const DID: &str = "did:web:example.com";

fn parse(document: &Value) -> Result<DidDocument, DidDocumentError> {
    DidDocument::parse(document.to_string().as_bytes(), &Options::default())
}

/// A document with these entries and the expected id.
fn with(field: &str, entries: Value) -> DidDocument {
    parse(&json!({ "id": DID, field: entries })).unwrap()
}

fn method(id: &str, kind: &str, controller: &str, multibase: &str) -> Value {
    json!({ "id": id, "type": kind, "controller": controller, "publicKeyMultibase": multibase })
}

fn service(id: &str, kind: &str, endpoint: &str) -> Value {
    json!({ "id": id, "type": kind, "serviceEndpoint": endpoint })
}

#[test]
fn the_first_valid_handle_counts() {
    let handle =
        |names: Value| with("alsoKnownAs", names).handle().map(|handle| handle.as_str().to_owned());
    assert_eq!(handle(json!(["at://a.test", "at://b.test"])).as_deref(), Some("a.test"));
    let mixed = json!(["https://a.test", 7, "at://a.test/b", "at://nolabels", "at://b.test"]);
    assert_eq!(handle(mixed).as_deref(), Some("b.test"));
    assert_eq!(handle(json!(["AT://a.test", null, ["at://b.test"]])), None);
    assert_eq!(handle(json!("at://a.test")), None);
    assert_eq!(handle(json!(null)), None);
}

#[test]
fn a_signing_key_is_found_by_a_relative_or_an_absolute_id() {
    for id in ["#atproto", "did:web:example.com#atproto"] {
        let document = with("verificationMethod", json!([method(id, "Multikey", DID, "zKey")]));
        let expected = SigningKey { kind: "Multikey".to_owned(), multibase: "zKey".to_owned() };
        assert_eq!(document.signing_key(), Some(&expected));
    }
    for id in ["atproto", "#atproto_label", "#ATPROTO", "did:web:other.com#atproto", "x#atproto"] {
        let document = with("verificationMethod", json!([method(id, "Multikey", DID, "zKey")]));
        assert_eq!(document.signing_key(), None, "{id}");
    }
}

#[test]
fn the_first_signing_key_that_the_account_controls_decides() {
    let key = |methods: Value| {
        with("verificationMethod", methods).signing_key().map(|key| key.multibase.clone())
    };
    let (first, second) =
        (method("#atproto", "Multikey", DID, "z1"), method("#atproto", "Multikey", DID, "z2"));
    assert_eq!(key(json!([first, second])).as_deref(), Some("z1"));
    let foreign = method("#atproto", "Multikey", "did:web:other.com", "z0");
    assert_eq!(key(json!([foreign, 1, null, {}, second])).as_deref(), Some("z2"));
    let unknown = method("#atproto", "JsonWebKey2020", DID, "z0");
    assert_eq!(key(json!([unknown, second])), None);
    for kind in ["EcdsaSecp256k1VerificationKey2019", "EcdsaSecp256r1VerificationKey2019"] {
        assert_eq!(key(json!([method("#atproto", kind, DID, "z3")])).as_deref(), Some("z3"));
    }
}

#[test]
fn a_host_has_a_name_an_optional_port_and_nothing_else() {
    let host = |endpoint: &str| {
        let services = json!([service("#atproto_pds", HOST_TYPE, endpoint)]);
        with("service", services).host().map(str::to_owned)
    };
    let good =
        "https://example.com https://pds.example.com:8443 https://localhost:3000 https://1.2.3.4";
    for good in good.split(' ') {
        assert_eq!(host(good).as_deref(), Some(good));
    }
    assert_eq!(host("https://example.com/").as_deref(), Some("https://example.com"));
    assert_eq!(host("https://example.com:8443/").as_deref(), Some("https://example.com:8443"));
    let bad = "https:// https:/// http://example.com HTTPS://example.com https://example.com// \
        https://example.com/. https://example.com/path https://example.com?query https://example.com#fragment \
        https://user@example.com https://user:1@example.com https://example.com: \
        https://example.com:0 https://example.com:65536 https://example.com:+80 \
        https://example..com https://example.com. https://-example.com https://exämple.com https://[::1]";
    for bad in bad.split(' ').chain(["", "https://exa mple.com"]) {
        assert_eq!(host(bad), None, "{bad}");
    }
}

#[test]
fn a_host_without_tls_counts_only_where_development_hosts_are_allowed() {
    let host = |endpoint: &str, allow_development_hosts| {
        let services = json!([service("#atproto_pds", HOST_TYPE, endpoint)]);
        let json = json!({ "id": DID, "service": services }).to_string();
        let options = Options { allow_development_hosts, ..Options::default() };
        let document = DidDocument::parse(json.as_bytes(), &options).unwrap();
        document.host().map(str::to_owned)
    };
    for ours in
        ["http://localhost:2583", "http://127.0.0.1:1", "http://pds.test", "http://localhost"]
    {
        assert_eq!(host(ours, false), None, "{ours}");
        assert_eq!(host(ours, true).as_deref(), Some(ours));
        assert_eq!(host(&format!("{ours}/"), true).as_deref(), Some(ours));
    }
    for bad in
        ["http://example.com", "http://10.0.0.1:80", "http://localhost/path", "ws://localhost"]
    {
        assert_eq!(host(bad, true), None, "{bad}");
    }
    assert!(host("https://example.com", true).is_some());
}

#[test]
fn the_first_service_of_the_right_id_and_type_is_the_host() {
    let host = |services: Value| with("service", services).host().map(str::to_owned);
    let good = service("did:web:example.com#atproto_pds", HOST_TYPE, "https://a.test");
    let labeler = service("#atproto_labeler", "AtprotoLabeler", "https://b.test");
    let other = service("#atproto_pds", "OtherServer", "https://c.test");
    let many =
        json!({ "id": "#atproto_pds", "type": HOST_TYPE, "serviceEndpoint": ["https://d.test"] });
    assert_eq!(host(json!([labeler, other, many, good])).as_deref(), Some("https://a.test"));
    let bad = service("#atproto_pds", HOST_TYPE, "ftp://a.test");
    assert_eq!(host(json!([bad, good])), None);
}

#[test]
fn a_document_of_another_did_is_rejected() {
    let json = json!({ "id": DID }).to_string();
    let of = |did| {
        DidDocument::parse_for(Did::parse(did).unwrap(), json.as_bytes(), &Options::default())
    };
    assert_eq!(of(DID).map(|document| document.did().to_buf()), Ok(DID.parse().unwrap()));
    assert_eq!(of("did:web:Example.com"), Err(DidDocumentError::OtherDid));
    assert_eq!(parse(&json!({ "id": "example.com" })), Err(DidDocumentError::Id));
    let options = Options { max_bytes: json.len() - 1, ..Options::default() };
    let length = json.len();
    let error = DidDocument::parse(json.as_bytes(), &options);
    assert_eq!(error, Err(DidDocumentError::TooLong(length)));
}

#[test]
fn what_is_not_json_or_repeats_a_field_is_rejected() {
    let at = |text: &str| match DidDocument::parse(text.as_bytes(), &Options::default()) {
        Err(DidDocumentError::Json { line, column }) => (line, column),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(at(""), (1, 0));
    assert_eq!(at("[]"), (1, 2));
    assert_eq!(at("{}"), (1, 2));
    assert_eq!(at(r#"{"id":7}"#), (1, 7));
    assert_eq!(at("{\"id\":\"did:web:a\",\n\"id\":\"did:web:b\"}"), (2, 4));
    assert_eq!(at(r#"{"id":"did:web:a","service":[],"service":[]}"#), (1, 40));
    assert_eq!(at(r#"{"id":"did:web:a"} x"#), (1, 20));
    at(&format!(r#"{{"id":"did:web:a","x":{}"#, "[".repeat(100_000)));
}

#[test]
fn a_labeler_has_a_key_and_an_address_of_its_own() {
    let methods = json!([
        method("#atproto", "Multikey", DID, "z1"),
        method("#atproto_label", "Multikey", DID, "z2"),
    ]);
    let services = json!([
        service("#atproto_pds", HOST_TYPE, "https://pds.test"),
        service("#atproto_labeler", "AtprotoLabeler", "https://labels.test/"),
    ]);
    let document =
        parse(&json!({ "id": DID, "verificationMethod": methods, "service": services })).unwrap();
    assert_eq!(document.label_key().unwrap().multibase, "z2");
    assert_eq!(document.signing_key().unwrap().multibase, "z1");
    assert_eq!(document.labeler(), Some("https://labels.test"));
    assert_eq!(document.host(), Some("https://pds.test"));
}

#[test]
fn no_other_key_or_service_stands_in_for_those_of_a_labeler() {
    let document = with("verificationMethod", json!([method("#atproto", "Multikey", DID, "z1")]));
    assert_eq!(document.label_key(), None);
    let others = [
        service("#atproto_pds", "AtprotoLabeler", "https://a.test"),
        service("#atproto_labeler", HOST_TYPE, "https://a.test"),
        service("#atproto_labeler", "AtprotoLabeler", "https://a.test/labels"),
    ];
    assert!(
        others
            .map(|other| with("service", json!([other])))
            .iter()
            .all(|document| document.labeler().is_none())
    );
}
