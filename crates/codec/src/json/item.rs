//! The JSON form of an encoded item, in one pass over its bytes.

use data_encoding::BASE64_NOPAD;
use serde::ser::Error as _;

use super::{AMBIGUOUS, BYTES, JsonError, LINK, append_comma, append_text};
use crate::cbor::{DecodeError, Entries, ItemError, Sink, WideInteger, build};
use crate::cid::CidRef;

/// Why an encoded item cannot be converted to JSON.
#[derive(Debug, thiserror::Error)]
pub enum ItemJsonError {
    /// It is not canonical DAG-CBOR.
    #[error(transparent)]
    Cbor(#[from] DecodeError),
    /// It has a value without a JSON form.
    #[error(transparent)]
    Json(#[from] JsonError),
}

/// Appends the JSON of the canonical item `item` to `json`: the result of [`encode`](super::encode) for its value, without building
/// one.
///
/// # Errors
/// If `item` is not exactly one canonical item, or has no JSON form; `json` then ends with a part of the JSON.
///
/// ```
/// use wireproof::codec::json;
/// let mut line = b"record: ".to_vec();
/// json::append_item(&mut line, b"\xa1\x61a\x82\x01\xf6")?;
/// assert_eq!(line, br#"record: {"a":[1,null]}"#);
/// # Ok::<(), json::ItemJsonError>(())
/// ```
pub fn append_item(json: &mut Vec<u8>, item: &[u8]) -> Result<(), ItemJsonError> {
    let mut output = Output { json: std::mem::take(json), is_ambiguous: false };
    let built = build(item, ToJson, &mut output);
    *json = output.json;
    built?;
    match output.is_ambiguous {
        false => Ok(()),
        true => Err(JsonError::from(serde_json::Error::custom(AMBIGUOUS)).into()),
    }
}

/// The JSON until now.
struct Output {
    json: Vec<u8>,
    /// Whether a map would read back as a link or as bytes.
    is_ambiguous: bool,
}

impl Output {
    /// Writes a number as `serde_json` does.
    fn number(&mut self, number: impl serde::Serialize) {
        serde_json::to_writer(&mut self.json, &number).expect("finite numbers have a JSON form");
    }

    /// Writes an object with one entry, whose texts have no escapes.
    fn object(&mut self, key: &str, text: &str) {
        for piece in ["{\"", key, "\":\"", text, "\"}"] {
            self.json.extend_from_slice(piece.as_bytes());
        }
    }
}

/// The sink that writes JSON.
#[derive(Clone, Copy)]
struct ToJson;

impl<'a> Sink<'a> for ToJson {
    type Slot = Output;

    fn integer(self, output: &mut Output, integer: i64) {
        output.number(integer);
    }
    fn wide_integer(self, output: &mut Output, integer: WideInteger) {
        output.number(integer.get());
    }
    fn float(self, output: &mut Output, float: f64) {
        output.number(float);
    }
    fn boolean(self, output: &mut Output, boolean: bool) {
        output.json.extend_from_slice(if boolean { b"true" } else { b"false" });
    }
    fn null(self, output: &mut Output) {
        output.json.extend_from_slice(b"null");
    }
    #[inline]
    fn text(self, output: &mut Output, text: &'a str) {
        append_text(&mut output.json, text);
    }
    fn bytes(self, output: &mut Output, bytes: &'a [u8]) {
        output.object(BYTES, &BASE64_NOPAD.encode(bytes));
    }
    fn link(self, output: &mut Output, cid: CidRef<'a>) {
        output.object(LINK, &cid.to_string());
    }
    fn array(
        self,
        output: &mut Output,
        count: usize,
        mut read: impl FnMut(usize, &mut Output) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        output.json.push(b'[');
        for at in 0..count {
            append_comma(&mut output.json, at);
            read(at, output)?;
        }
        output.json.push(b']');
        Ok(())
    }
    fn map(
        self,
        output: &mut Output,
        count: usize,
        entries: &mut Entries<'a, Self>,
    ) -> Result<(), ItemError> {
        output.json.push(b'{');
        for at in 0..count {
            append_comma(&mut output.json, at);
            entries.next_with(output, |output, key| {
                output.is_ambiguous |= key == LINK || key == BYTES;
                append_text(&mut output.json, key);
                output.json.push(b':');
            })?;
        }
        output.json.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cbor::{self, Arena, Map, Value};
    use crate::cid::{Cid, Codec};
    use crate::json;

    /// The JSON of a value. The JSON of its encoding must be the same.
    fn both_ways(value: &Value<'_>) -> String {
        let encoded = cbor::encode(value).unwrap();
        let mut appended = b"before".to_vec();
        append_item(&mut appended, &encoded).unwrap();
        let expected = json::encode(value).unwrap();
        assert_eq!(appended, ["before", &expected].concat().as_bytes());
        expected
    }

    #[test]
    fn every_kind_of_item_is_written_as_its_value_is() {
        let arena = Arena::new();
        let cid = Cid::of(Codec::Raw, b"blob");
        let text = format!(
            r#"[{{}},[],{{"a":{{"b":[null,true,false,-7,1.5,18446744073709551615]}},"c\"\u0001":"é"}},{{"$link":"{cid}"}},{{"$bytes":"AP8"}}]"#
        );
        assert_eq!(both_ways(&json::decode(&text, &arena).unwrap()), text);
        both_ways(&Value::Float(1e300));
        both_ways(&Value::WideInteger(WideInteger::Negative(u64::MAX)));
        let every_byte: String = (0..=0x7f_u8).map(char::from).collect();
        both_ways(&Value::Text(&every_byte));
        both_ways(&Value::Text(&every_byte.repeat(3)[1..]));
    }

    #[test]
    fn what_is_not_one_canonical_item_or_has_no_form_is_refused() {
        let refusal = |item: &[u8]| append_item(&mut Vec::new(), item).unwrap_err();
        for item in [&b""[..], b"\x18\x02", b"\x01\x01", b"\xa2\x61b\x01\x61a\x01", b"\x61\xff"] {
            let expected = cbor::decode(item, &Arena::new()).unwrap_err();
            assert!(matches!(refusal(item), ItemJsonError::Cbor(error) if error == expected));
        }
        for key in ["$link", "$bytes"] {
            let mut entries = [(key, Value::Null), ("a", Value::Null)];
            let map = Value::Map(Map::from_entries(&mut entries).unwrap());
            let item = cbor::encode(&Value::Array(&[map])).unwrap();
            let expected = json::encode(&map).unwrap_err().to_string();
            assert_eq!(refusal(&item).to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn text_is_written_as_its_value_is(text in "[\\x00-\\x7fé\u{2028}😀]{0,80}") {
            let mut entries = [(&*text, Value::Text(&text))];
            both_ways(&Value::Map(Map::from_entries(&mut entries).unwrap()));
        }

        #[test]
        fn bytes_are_refused_as_they_are_by_the_decoder(item in proptest::collection::vec(any::<u8>(), 0..40)) {
            let arena = Arena::new();
            let expected = cbor::decode(&item, &arena).map_err(ItemJsonError::from).and_then(|value| Ok(json::encode(&value)?));
            let mut appended = Vec::new();
            let result = append_item(&mut appended, &item).map(|()| String::from_utf8(appended).unwrap());
            prop_assert_eq!(result.map_err(|error| error.to_string()), expected.map_err(|error| error.to_string()));
        }
    }
}
