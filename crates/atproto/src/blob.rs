//! Blobs: the files that records name by their CIDs.

use bumpalo::Bump;
use codec::Cid;
use codec::cbor::{self, DecodeError, Map, Value};
use codec::cid::Codec;

/// A blob that a record names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobRef {
    /// The CID of its bytes.
    pub cid: Cid,
    /// Its size in bytes, as the record states it; `None` if it does not, as in the first form of references.
    pub size: Option<u64>,
    /// Its media type, as the record states it.
    pub mime_type: Box<str>,
}

/// The blobs that a record names, in the order of the record, each as often as it is named.
///
/// A reference is a map with the `$type` `blob`, whose `ref` is a link to raw bytes; or, as in 2022, a map of exactly `cid` and
/// `mimeType`. Other maps name no blob.
///
/// # Errors
/// If the record is not canonical DAG-CBOR.
pub fn blobs_of_record(record: &[u8]) -> Result<Vec<BlobRef>, DecodeError> {
    let arena = Bump::new();
    let record = cbor::decode(record, &arena)?;
    let (mut blobs, mut items) = (Vec::new(), vec![&record]);
    while let Some(item) = items.pop() {
        match item {
            Value::Map(map) => match reference(*map) {
                Some(blob) => blobs.push(blob),
                None => items.extend(map.iter().rev().map(|(_, value)| value)),
            },
            Value::Array(array) => items.extend(array.iter().rev()),
            _ => {}
        }
    }
    Ok(blobs)
}

fn reference(map: Map<'_>) -> Option<BlobRef> {
    let mime_type = || Some(map.get("mimeType")?.as_text()?.into());
    let (cid, size) = match map.get("$type").map(Value::as_text) {
        Some(Some("blob")) => {
            let size = map.get("size").and_then(Value::as_integer);
            let size = size.and_then(|size| u64::try_from(size).ok()).filter(|size| *size > 0);
            (map.get("ref")?.as_link()?.to_cid()?, size)
        }
        None if map.len() == 2 => (map.get("cid")?.as_text()?.parse().ok()?, None),
        _ => return None,
    };
    (cid.codec() == Codec::Raw).then_some(BlobRef { cid, size, mime_type: mime_type()? })
}

#[cfg(test)]
mod tests {
    use codec::json;

    use super::*;

    const CID: &str = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";

    fn blobs(record: &str) -> Vec<BlobRef> {
        let arena = Bump::new();
        let record = json::decode(record, &arena).unwrap();
        blobs_of_record(&cbor::encode(&record).unwrap()).unwrap()
    }

    fn blob(size: &str) -> String {
        let link = format!(r#"{{"$link": "{CID}"}}"#);
        format!(r#"{{"$type": "blob", "ref": {link}, "mimeType": "image/png"{size}}}"#)
    }

    #[test]
    fn references_are_found_at_every_depth_in_both_forms() {
        let first_form = format!(r#"{{"cid": "{CID}", "mimeType": "image/png"}}"#);
        let record = format!(
            r#"{{"a": [{{"b": {}}}, {first_form}], "c": {}}}"#,
            blob(r#", "size": 12"#),
            blob("")
        );
        let cid: Cid = CID.parse().unwrap();
        let named = |size| BlobRef { cid, size, mime_type: "image/png".into() };
        assert_eq!(blobs(&record), [named(Some(12)), named(None), named(None)]);
    }

    #[test]
    fn maps_that_are_no_reference_name_no_blob() {
        let dag_cbor = "bafyreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";
        for other in [
            format!(r#"{{"cid": "{CID}", "mimeType": "image/png", "more": 1}}"#),
            format!(r#"{{"cid": "{dag_cbor}", "mimeType": "image/png"}}"#),
            r#"{"cid": "no CID", "mimeType": "image/png"}"#.to_owned(),
            blob("").replace(CID, dag_cbor),
            blob("").replace("\"blob\"", "\"image\""),
            blob("").replace("mimeType", "type"),
            format!(r#"{{"ref": {{"$link": "{CID}"}}, "mimeType": "image/png"}}"#),
        ] {
            assert_eq!(blobs(&format!(r#"{{"image": {other}}}"#)), [], "{other}");
        }
    }

    #[test]
    fn a_record_that_is_not_canonical_is_refused() {
        assert!(blobs_of_record(b"\xa1\x61a\x18\x01").is_err());
        assert!(blobs_of_record(b"").is_err());
    }
}
