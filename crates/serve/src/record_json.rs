//! A record as Jetstreams write it: keys in the order of their bytes, and the escapes of Go's `encoding/json`.

use codec::cbor::Value;
use codec::json;
use data_encoding::BASE64_NOPAD;

/// Appends the JSON of a record. `None` if a float in it is not finite.
pub(crate) fn append(out: &mut Vec<u8>, value: &Value<'_>) -> Option<()> {
    match value {
        Value::Text(text) => append_text(out, text),
        Value::Bytes(bytes) => append_only(out, "$bytes", &BASE64_NOPAD.encode(bytes)),
        Value::Link(cid) => append_only(out, "$link", &cid.to_string()),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                separate(out, at);
                append(out, item)?;
            }
            out.push(b']');
        }
        Value::Map(map) => {
            let mut entries: Vec<_> = map.iter().copied().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (at, (key, item)) in entries.into_iter().enumerate() {
                separate(out, at);
                append_text(out, key);
                out.push(b':');
                append(out, &item)?;
            }
            out.push(b'}');
        }
        other => serde_json::to_writer(out, &json::Json(other)).ok()?,
    }
    Some(())
}

/// Appends a text as a JSON string. `<`, `>`, `&` and the line separators of JavaScript are escaped.
pub(crate) fn append_text(out: &mut Vec<u8>, text: &str) {
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json::append_text(out, text);
    }
    out.push(b'"');
    for part in text.split_inclusive(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        let mut characters = part.chars();
        let escaped = characters.next_back().and_then(escape);
        let plain = if escaped.is_some() { characters.as_str() } else { part };
        let start = out.len();
        json::append_text(out, plain);
        // Without the quotes.
        out.pop();
        out.remove(start);
        out.extend_from_slice(escaped.unwrap_or_default().as_bytes());
    }
    out.push(b'"');
}

fn escape(character: char) -> Option<&'static str> {
    match character {
        '<' => Some("\\u003c"),
        '>' => Some("\\u003e"),
        '&' => Some("\\u0026"),
        '\u{2028}' => Some("\\u2028"),
        '\u{2029}' => Some("\\u2029"),
        _ => None,
    }
}

/// Appends an object with one text, which has no escapes.
fn append_only(out: &mut Vec<u8>, key: &str, text: &str) {
    for part in ["{\"", key, "\":\"", text, "\"}"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn separate(out: &mut Vec<u8>, at: usize) {
    if at > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use codec::cbor::Arena;
    use proptest::prelude::*;

    use super::*;

    fn json_of(text: &str) -> String {
        let arena = Arena::new();
        let value = json::decode(text, &arena).unwrap();
        let mut out = Vec::new();
        append(&mut out, &value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_are_in_the_order_of_their_bytes() {
        // In DAG-CBOR, shorter keys are first.
        let record =
            r#"{"text":"a","$type":"t","createdAt":"2026","a":{"zz":1,"b":[null,true,-7]}}"#;
        let sorted =
            r#"{"$type":"t","a":{"b":[null,true,-7],"zz":1},"createdAt":"2026","text":"a"}"#;
        assert_eq!(json_of(record), sorted);
    }

    #[test]
    fn five_characters_are_escaped_that_json_does_not_require() {
        let written = json_of(r#"["<a href=\"b\">&\u2028\u2029é😀\n"]"#);
        assert_eq!(written, r#"["\u003ca href=\"b\"\u003e\u0026\u2028\u2029é😀\n"]"#);
    }

    proptest! {
        #[test]
        fn texts_read_back_as_they_were(text in "[<>&\"\\\\\\x00-\\x1f a-zé\u{2028}]{0,40}") {
            let mut out = Vec::new();
            append_text(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
