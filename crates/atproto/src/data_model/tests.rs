use codec::cbor::{Encoder, encode};
use codec::cid::Codec;
use codec::{Cid, json};

use super::*;

const COLLECTION: &str = "app.test.post";

/// The fault of a record with these entries in JSON next to its `$type`.
fn flagged(entries: &str) -> Option<(DataFault, String)> {
    let arena = Bump::new();
    let text = format!(r#"{{"$type": "{COLLECTION}", {entries}}}"#);
    let record = json::decode(&text, &arena).unwrap_or_else(|error| panic!("{text}: {error}"));
    fault_and_path(check_record(&record, COLLECTION))
}

fn fault_and_path(checked: Result<(), DataError>) -> Option<(DataFault, String)> {
    checked.err().map(|error| (error.fault, error.item_path.into()))
}

/// The fault of a record with an item under `n` next to its `$type`.
fn flagged_item(n: impl FnOnce(&mut Encoder)) -> Option<(DataFault, String)> {
    let mut record = Encoder::new();
    record.map(2).text("n");
    n(&mut record);
    record.text("$type").text(COLLECTION);
    fault_and_path(check_block(&record.into_bytes(), COLLECTION))
}

fn blob(reference: &str, rest: &str) -> String {
    format!(r#""image": {{"$type": "blob", "ref": {reference}, {rest}}}"#)
}

fn raw() -> String {
    format!(r#"{{"$link": "{}"}}"#, Cid::of(Codec::Raw, b"pixels"))
}

#[test]
fn what_the_data_model_allows_is_not_flagged() {
    let link = format!(r#""link": {{"$link": "{}"}}"#, Cid::of(Codec::DagCbor, b"\xa0"));
    let whole_blob = blob(&raw(), r#""mimeType": "image/png", "size": 1"#);
    let with_more = blob(&raw(), r#""mimeType": "a", "size": 9007199254740993, "alt": null"#);
    for entries in [
        r#""text": "", "none": null, "yes": true, "list": [], "map": {}, "lists": [[1, null], [[]]]"#,
        r#""least": -9223372036854775808, "most": 9223372036854775807"#,
        r#""bytes": {"$bytes": ""}, "later": {"$from": "a later version", "$": 1}"#,
        r#""facet": {"$type": "app.test.post#facet"}, "odd": {"$type": "no name of anything"}"#,
        r#""legacy": {"cid": "no blob of today", "mimeType": "image/png"}"#,
        &link,
        &whole_blob,
        &with_more,
    ] {
        assert_eq!(flagged(entries), None, "{entries}");
    }
}

#[test]
fn a_number_that_is_not_a_64_bit_integer_is_flagged_with_its_path() {
    let at = |fault, path: &str| Some((fault, path.to_owned()));
    assert_eq!(flagged(r#""a": 0.5"#), at(DataFault::Float, "/a"));
    assert_eq!(flagged(r#""a": [1, {"b/c": [-1.5e-3]}]"#), at(DataFault::Float, "/a/1/b/c/0"));
    assert_eq!(flagged(r#""a": 9223372036854775808"#), at(DataFault::Integer, "/a"));
    let least = flagged_item(|n| encode_into(n, b"\x3b\x80\0\0\0\0\0\0\0"));
    assert_eq!(least, at(DataFault::Integer, "/n"));
}

/// Appends an encoded item.
fn encode_into(out: &mut Encoder, item: &[u8]) {
    let arena = Bump::new();
    out.value(&cbor::decode(item, &arena).unwrap()).unwrap();
}

#[test]
fn a_link_of_another_version_codec_or_hash_is_flagged() {
    let digest = [7; 32];
    let link = |prefix: &[u8], digest: &[u8]| {
        let cid = [&[0], prefix, digest].concat();
        [&[0xd8, 0x2a, 0x58, cid.len() as u8], &cid[..]].concat()
    };
    for (prefix, is_sound) in [
        (&[0x01, 0x71, 0x12, 0x20][..], true),
        (&[0x01, 0x55, 0x12, 0x20], true),
        (&[0x01, 0x70, 0x12, 0x20], false),
        (&[0x01, 0x71, 0x1e, 0x20], false),
        (&[0x12, 0x20], false),
    ] {
        let found = flagged_item(|n| encode_into(n, &link(prefix, &digest)));
        let expected = (!is_sound).then(|| (DataFault::Link, "/n".to_owned()));
        assert_eq!(found, expected, "{prefix:x?}");
    }
}

#[test]
fn a_key_that_is_empty_or_means_something_else_in_json_is_flagged() {
    let at = |fault, path: &str| Some((fault, path.to_owned()));
    assert_eq!(flagged(r#""a": {"": 1}"#), at(DataFault::EmptyKey, "/a/"));
    for (key, path) in [("$link", "/n/$link"), ("$bytes", "/n/$bytes")] {
        let found = flagged_item(|n| {
            n.map(2).text("x").null().text(key).text("bafy");
        });
        assert_eq!(found, at(DataFault::ReservedKey, path));
    }
}

#[test]
fn a_type_that_is_not_text_or_empty_is_flagged_at_every_depth() {
    for item in ["null", "123", r#""""#, r#"["app.test.post"]"#, "{}"] {
        let found = flagged(&format!(r#""a": [{{"$type": {item}}}]"#));
        assert_eq!(found, Some((DataFault::Type, "/a/0/$type".to_owned())), "{item}");
    }
}

#[test]
fn the_type_of_a_record_must_be_its_collection() {
    let fault = |text: &str, collection: &str| {
        let arena = Bump::new();
        let record = json::decode(text, &arena).unwrap();
        check_record(&record, collection).err().map(|error| error.fault)
    };
    assert_eq!(fault(r#"{"$type": "app.test.post"}"#, COLLECTION), None);
    assert_eq!(fault(r#"{"text": "a"}"#, COLLECTION), Some(DataFault::NoRecordType));
    assert_eq!(fault(r#"{}"#, COLLECTION), Some(DataFault::NoRecordType));
    for other in ["app.test.like", "app.test.Post", "App.test.post"] {
        let text = format!(r#"{{"$type": "{other}"}}"#);
        assert_eq!(fault(&text, COLLECTION), Some(DataFault::OtherCollection), "{other}");
    }
    for no_nsid in ["blob", "post", "app.test.post#main", " app.test.post"] {
        let text = format!(r#"{{"$type": "{no_nsid}"}}"#);
        let found = fault(&text, no_nsid);
        assert!(matches!(found, Some(DataFault::RecordType(_) | DataFault::BlobRef)), "{found:?}");
    }
}

#[test]
fn a_blob_must_have_a_ref_a_mime_type_and_a_size() {
    let cbor = format!(r#"{{"$link": "{}"}}"#, Cid::of(Codec::DagCbor, b"\xa0"));
    let sound = r#""mimeType": "image/png", "size": 1"#;
    let cases = [
        (blob(&cbor, sound), DataFault::BlobRef),
        (blob("null", sound), DataFault::BlobRef),
        (blob(r#""bafkrei""#, sound), DataFault::BlobRef),
        (format!(r#""image": {{"$type": "blob", {sound}}}"#), DataFault::BlobRef),
        (blob(&raw(), r#""size": 1"#), DataFault::BlobMimeType),
        (blob(&raw(), r#""size": 1, "mimeType": """#), DataFault::BlobMimeType),
        (blob(&raw(), r#""size": 1, "mimeType": 1"#), DataFault::BlobMimeType),
        (blob(&raw(), r#""mimeType": "image/png""#), DataFault::BlobSize),
        (blob(&raw(), r#""mimeType": "image/png", "size": "1""#), DataFault::BlobSize),
        (blob(&raw(), r#""mimeType": "image/png", "size": 0"#), DataFault::BlobSize),
        (blob(&raw(), r#""mimeType": "image/png", "size": -1"#), DataFault::BlobSize),
    ];
    for (entries, fault) in cases {
        assert_eq!(flagged(&entries), Some((fault, "/image".to_owned())), "{entries}");
    }
}

#[test]
fn a_record_that_is_not_a_map_or_not_canonical_is_flagged_as_a_whole() {
    let whole = |block: &[u8]| fault_and_path(check_block(block, COLLECTION));
    for block in [&b"\xf6"[..], b"\x80", b"\x64blah", b"\x01"] {
        assert_eq!(whole(block), Some((DataFault::Shape, String::new())));
    }
    for block in [&b""[..], b"\xa1", b"\xa0\x00", b"\xbf\xff", b"\xa1\x61n\xf9\x3c\x00"] {
        let found = whole(block);
        assert!(matches!(found, Some((DataFault::Cbor(_), _))), "{found:?}");
    }
}

#[test]
fn the_first_fault_in_the_order_of_the_encoding_is_reported() {
    assert_eq!(flagged(r#""bb": 0.5, "a": {"$type": 1}"#).unwrap().1, "/a/$type");
    assert_eq!(flagged(r#""bb": 0.5, "ccc": 0.5"#).unwrap().1, "/bb");
}

#[test]
fn a_long_path_is_truncated() {
    let key = "ä".repeat(5_000);
    let mut text = "0.5".to_owned();
    for _ in 0..40 {
        text = format!(r#"{{"{key}": {text}}}"#);
    }
    let (fault, path) = flagged(&format!(r#""a": {text}"#)).unwrap();
    assert_eq!((fault, &path[..3]), (DataFault::Float, "/a/"));
    assert!(path.len() < 420, "{}", path.len());
    let arena = Bump::new();
    let record = json::decode(r#"{"$type": "app.test.post", "a\n": 0.5}"#, &arena).unwrap();
    let error = check_record(&record, COLLECTION).unwrap_err();
    assert_eq!(error.to_string(), r#"a float: numbers are integers, at "/a\n""#);
    let error = check_record(&Value::Null, COLLECTION).unwrap_err();
    assert_eq!(error.to_string(), "a record must be a map");
}

#[test]
fn every_rule_has_a_code_that_names_it() {
    let arena = Bump::new();
    let codes = [
        (r#""flat""#, "data/shape"),
        (r#"{"a": 0.5}"#, "data/float"),
        (r#"{"a": 18446744073709551615}"#, "data/integer"),
        (r#"{"": null}"#, "data/key"),
        (r#"{"$type": null}"#, "data/type"),
        (r#"{}"#, "data/record-type"),
        (r#"{"$type": "blob"}"#, "data/blob"),
    ];
    for (text, code) in codes {
        let data = json::decode(text, &arena).unwrap();
        assert_eq!(check_record(&data, COLLECTION).unwrap_err().code(), code, "{text}");
        let block = encode(&data).unwrap();
        assert_eq!(check_block(&block, COLLECTION).unwrap_err().code(), code, "{text}");
    }
    assert_eq!(check_block(b"\xff", COLLECTION).unwrap_err().code(), "data/cbor");
}
