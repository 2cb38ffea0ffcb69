//! The JSON form of DAG-CBOR values (AT Protocol data model): links as `{"$link": "b…"}`, bytes as
//! `{"$bytes": "…"}` in base64.
//!
//! Reading is strict where readers could differ: no duplicate keys, `$link` and `$bytes` alone in their
//! object, links in the blessed text form, at most [`MAX_DEPTH`] containers inside each other, as in the bytes. Base64 is
//! read with or without padding, and written without. A number with a zero fraction is an integer, and
//! must fit 64 bits with a sign.
//!
//! JSON itself is read and written by `serde_json`, except for the structure and the texts that [`append`] and [`append_item`] write.

mod item;

use std::fmt;

use bumpalo::collections::Vec as ArenaVec;
use kernels::json::plain_len;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use crate::cbor::{Arena, Bytes, MAX_DEPTH, Map, Value, WideInteger, decode_base64};
use crate::cid::Cid;

pub use item::{ItemJsonError, append_item};

/// Why text is not the JSON form of a value: the rule, the line and the column.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JsonError(#[from] serde_json::Error);

/// The JSON of `value`, on one line.
///
/// # Errors
/// If `value` has no JSON form: a map that would read back as a link or as bytes, or a float that is
/// not finite.
///
/// ```
/// use wireproof::codec::{cbor::Value, json};
/// assert_eq!(json::encode(&Value::Bytes(b"hi!?")).unwrap(), r#"{"$bytes":"aGkhPw"}"#);
/// ```
pub fn encode(value: &Value<'_>) -> Result<String, JsonError> {
    Ok(serde_json::to_string(&Json(value))?)
}

/// Appends the JSON of `value` to `out`, as [`encode`]; faster where most of it is text without escapes, as in records.
///
/// # Errors
/// As [`encode`]; `out` then ends with a part of the JSON.
///
/// ```
/// use wireproof::codec::{cbor::Value, json};
/// let mut line = b"record: ".to_vec();
/// json::append(&mut line, &Value::Text("plain"))?;
/// assert_eq!(line, b"record: \"plain\"");
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn append(out: &mut Vec<u8>, value: &Value<'_>) -> Result<(), JsonError> {
    match value {
        Value::Text(text) => append_text(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                append_comma(out, at);
                append(out, item)?;
            }
            out.push(b']');
        }
        Value::Map(map) => {
            check_keys::<serde_json::Error>(*map)?;
            out.push(b'{');
            for (at, (key, item)) in map.iter().enumerate() {
                append_comma(out, at);
                append_text(out, key);
                out.push(b':');
                append(out, item)?;
            }
            out.push(b'}');
        }
        other => serde_json::to_writer(out, &Json(other))?,
    }
    Ok(())
}

/// Appends a text as a JSON string.
pub fn append_text(out: &mut Vec<u8>, text: &str) {
    if plain_len(text.as_bytes()) < text.len() {
        return serde_json::to_writer(out, text)
            .expect("text has a JSON form, and memory is written");
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

fn append_comma(out: &mut Vec<u8>, at: usize) {
    if at > 0 {
        out.push(b',');
    }
}

/// Reads the JSON form of a value into `arena`.
///
/// # Errors
/// If `text` is not JSON, or breaks a rule of the mapping.
///
/// ```
/// use wireproof::codec::{cbor::Value, json};
/// let arena = wireproof::codec::cbor::Arena::new();
/// assert_eq!(json::decode(r#"{"$bytes":"aGkhPw=="}"#, &arena).unwrap(), Value::Bytes(b"hi!?"));
/// ```
pub fn decode<'a>(text: &str, arena: &'a Arena) -> Result<Value<'a>, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // `ItemSeed` bounds the depth.
    deserializer.disable_recursion_limit();
    let value = ItemSeed { arena, depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// A value that serde serializes in the JSON form.
#[derive(Clone, Copy, Debug)]
pub struct Json<'v, 'a>(pub &'v Value<'a>);

impl Serialize for Json<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Value::Integer(integer) => serializer.serialize_i64(*integer),
            Value::WideInteger(WideInteger::Positive(number)) => serializer.serialize_u64(*number),
            Value::WideInteger(number) => serializer.serialize_i128(number.get()),
            Value::Float(float) if float.is_finite() => serializer.serialize_f64(*float),
            Value::Float(_) => Err(S::Error::custom("a float that is not finite has no JSON form")),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => Bytes(bytes).serialize(serializer),
            Value::Link(cid) => cid.serialize(serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Json)),
            Value::Map(map) => write_map(serializer, *map),
        }
    }
}

fn write_map<S: Serializer>(serializer: S, map: Map<'_>) -> Result<S::Ok, S::Error> {
    check_keys::<S::Error>(map)?;
    serializer.collect_map(map.iter().map(|(key, value)| (key, Json(value))))
}

/// Rejects a map that would read back as a link or as bytes.
fn check_keys<E: serde::ser::Error>(map: Map<'_>) -> Result<(), E> {
    match map.get(LINK).or_else(|| map.get(BYTES)) {
        None => Ok(()),
        Some(_) => Err(E::custom(AMBIGUOUS)),
    }
}

/// Reads one item of the text into the arena.
#[derive(Clone, Copy)]
struct ItemSeed<'a> {
    arena: &'a Arena,
    /// Containers around it.
    depth: u32,
}

impl<'a> ItemSeed<'a> {
    fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Rejects a container inside [`MAX_DEPTH`] others.
    fn check_depth<E: de::Error>(self) -> Result<(), E> {
        if self.depth < MAX_DEPTH {
            Ok(())
        } else {
            Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")))
        }
    }

    /// Rejects an object that is too deep even for a link or bytes, which are not containers.
    fn check_object_depth<E: de::Error>(self) -> Result<(), E> {
        if self.depth == MAX_DEPTH { Ok(()) } else { self.check_depth() }
    }
}

impl<'de, 'a> DeserializeSeed<'de> for ItemSeed<'a> {
    type Value = Value<'a>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'a>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, 'a> Visitor<'de> for ItemSeed<'a> {
    type Value = Value<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value<'a>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Value<'a>, E> {
        Ok(Value::Boolean(boolean))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Value<'a>, E> {
        Ok(Value::Integer(integer))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value<'a>, E> {
        let wide = Value::WideInteger(WideInteger::Positive(number));
        Ok(i64::try_from(number).map_or(wide, Value::Integer))
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Value<'a>, E> {
        // The bounds of i64 that a float can hold; within them the cast is exact. The lower one is left out: integers
        // just below it arrive here rounded to it.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        if float.fract() == 0.0 && float.abs() < LIMIT {
            return Ok(Value::Integer(float as i64));
        }
        if float.fract() == 0.0 {
            return Err(E::custom("a whole number beyond 64 bits"));
        }
        if float.is_finite() {
            Ok(Value::Float(float))
        } else {
            Err(E::custom("not a finite number"))
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'a>, E> {
        Ok(Value::Text(self.arena.alloc_str(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'a>, A::Error> {
        self.check_depth()?;
        let mut array = ArenaVec::new_in(self.arena);
        while let Some(item) = items.next_element_seed(self.inside())? {
            array.push(item);
        }
        Ok(Value::Array(array.into_bump_slice()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value<'a>, A::Error> {
        self.check_object_depth()?;
        let mut object = ArenaVec::new_in(self.arena);
        while let Some(key) = entries.next_key_seed(JsonKey(self.arena))? {
            object.push((key, entries.next_value_seed(self.inside())?));
        }
        let map = Map::from_entries(object.into_bump_slice_mut()).map_err(de::Error::custom)?;
        if let Some(link) = map.get(LINK) {
            return read_link(map, link, self.arena).map_err(de::Error::custom);
        }
        if let Some(bytes) = map.get(BYTES) {
            return read_bytes(map, bytes, self.arena).map_err(de::Error::custom);
        }
        self.check_depth()?;
        Ok(Value::Map(map))
    }
}

struct JsonKey<'a>(&'a Arena);

impl<'de, 'a> DeserializeSeed<'de> for JsonKey<'a> {
    type Value = &'a str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'a str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for JsonKey<'a> {
    type Value = &'a str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<&'a str, E> {
        Ok(self.0.alloc_str(key))
    }
}

fn read_link<'a>(map: Map<'a>, link: &Value<'a>, arena: &'a Arena) -> Result<Value<'a>, String> {
    let text = alone(map, link, LINK)?;
    let cid: Cid = text.parse().map_err(|error| format!("{LINK}: {error}"))?;
    Ok(Value::Link(arena.alloc(cid).as_cid_ref()))
}

fn read_bytes<'a>(map: Map<'a>, bytes: &Value<'a>, arena: &'a Arena) -> Result<Value<'a>, String> {
    let text = alone(map, bytes, BYTES)?;
    let bytes = decode_base64(text).map_err(|error| format!("{BYTES}: {error}"))?;
    Ok(Value::Bytes(arena.alloc_slice_copy(&bytes)))
}

/// The text of a marker that must be the only key of its object.
fn alone<'a>(map: Map<'a>, marker: &Value<'a>, key: &str) -> Result<&'a str, String> {
    if map.len() != 1 {
        return Err(format!("{key} must be the only key of its object"));
    }
    marker.as_text().ok_or_else(|| format!("{key} must be a string"))
}

/// Why some maps have no JSON form.
const AMBIGUOUS: &str = "a map with the key $link or $bytes has no JSON form";

const LINK: &str = "$link";
const BYTES: &str = "$bytes";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cbor;
    use crate::cid::Codec;

    fn rejection(text: &str) -> String {
        decode(text, &Arena::new()).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn links_bytes_and_numbers_read_both_ways() {
        let arena = Arena::new();
        let cid = Cid::of(Codec::Raw, b"blob");
        let text = format!(
            r#"{{"a":[1,-2,null,true,"x"],"b":{{"$bytes":"AP8"}},"c":{{"$link":"{cid}"}}}}"#
        );
        let value = decode(&text, &arena).unwrap();
        assert_eq!(value.get("c").and_then(|v| v.as_link()), Some(cid.as_cid_ref()));
        assert_eq!(value.get("b").and_then(|v| v.as_bytes()), Some(b"\x00\xff".as_slice()));
        assert_eq!(encode(&value).unwrap(), text);
    }

    #[test]
    fn numbers_keep_their_kind() {
        let arena = Arena::new();
        let read = |text| decode(text, &arena).unwrap();
        assert_eq!(read("123.0"), Value::Integer(123));
        assert_eq!(read("-1e3"), Value::Integer(-1000));
        assert_eq!(read("123.456"), Value::Float(123.456));
        assert_eq!(read("-9223372036854775808"), Value::Integer(i64::MIN));
        assert_eq!(encode(&Value::Float(1.5)).unwrap(), "1.5");
        let wide = Value::WideInteger(WideInteger::Positive(u64::MAX));
        assert_eq!(read("18446744073709551615"), wide);
        assert_eq!(encode(&wide).unwrap(), "18446744073709551615");
    }

    #[test]
    fn ambiguous_json_is_rejected() {
        let cases = [
            (r#"{"a":1,"a":2}"#, "occurs twice"),
            (r#"{"$link":"x","y":1}"#, "only key"),
            (r#"{"$bytes":"AA","y":1}"#, "only key"),
            (r#"{"$link":1}"#, "must be a string"),
            (r#"{"$bytes":[1]}"#, "must be a string"),
            (r#"{"$link":"."}"#, "59 characters"),
            (r#"{"$bytes":"AB"}"#, "$bytes"),
            (r#"{"$bytes":"A"}"#, "$bytes"),
            (r#"{"$bytes":"AA="}"#, "$bytes"),
            (r#"{"$bytes":"_-8"}"#, "$bytes"),
            ("1 2", "trailing"),
            ("", "EOF"),
            ("1e999", "number"),
            ("9223372036854775808.0", "beyond 64 bits"),
            ("-9223372036854775808.0", "beyond 64 bits"),
            ("-9223372036854775809", "beyond 64 bits"),
        ];
        for (text, reason) in cases {
            let rejection = rejection(text);
            assert!(rejection.contains(reason), "{text}: {rejection}");
        }
    }

    #[test]
    fn what_no_json_holds_is_rejected_from_other_formats() {
        type Error = de::value::Error;
        let arena = Arena::new();
        let seed = ItemSeed { arena: &arena, depth: 0 };
        let infinite = de::value::F64Deserializer::<Error>::new(f64::INFINITY);
        assert_eq!(seed.deserialize(infinite).unwrap_err().to_string(), "not a finite number");
        let bytes = de::value::BytesDeserializer::<Error>::new(b"bytes");
        let error = seed.deserialize(bytes).unwrap_err().to_string();
        assert!(error.ends_with("expected a JSON value"), "{error}");
        let error = JsonKey(&arena).deserialize(bytes).unwrap_err().to_string();
        assert!(error.ends_with("expected a key"), "{error}");
    }

    #[test]
    fn nesting_is_bounded_as_in_the_bytes() {
        let levels = MAX_DEPTH as usize;
        let too_deep = format!("{MAX_DEPTH} levels");
        for (head, tail) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |levels, inner: &str| head.repeat(levels) + inner + &tail.repeat(levels);
            // Links and bytes are objects in JSON alone.
            let scalars = ["0".to_owned(), r#"{"$bytes":"AP8"}"#.to_owned(), link()];
            for inner in &scalars {
                let text = nested(levels, inner);
                let arena = Arena::new();
                let value = decode(&text, &arena).unwrap();
                assert_eq!(encode(&value).unwrap(), text);
                let bytes = cbor::encode(&value).unwrap();
                assert_eq!(cbor::decode(&bytes, &arena).unwrap(), value);
                assert!(rejection(&nested(levels + 1, inner)).contains(&too_deep), "{inner}");
            }
            for inner in ["[]", "{}", r#"{"a":[]}"#, r#"{"$bytes":[]}"#, r#"{"$link":{}}"#] {
                assert!(rejection(&nested(levels, inner)).contains(&too_deep), "{inner}");
            }
            let bomb = std::thread::Builder::new().stack_size(1 << 20);
            let bomb = bomb.spawn(|| rejection(&head.repeat(10_000_000))).unwrap();
            assert!(bomb.join().unwrap().contains(&too_deep));
        }
    }

    /// A link in JSON.
    fn link() -> String {
        format!(r#"{{"$link":"{}"}}"#, Cid::of(Codec::Raw, b"blob"))
    }

    #[test]
    fn values_that_would_read_back_as_others_have_no_json_form() {
        let link = [("$link", Value::Null)];
        let arena = Arena::new();
        let map = Map::from_entries(arena.alloc_slice_copy(&link)).unwrap();
        for value in [Value::Map(map), Value::Float(f64::NAN), Value::Array(&[Value::Map(map)])] {
            let appended = append(&mut Vec::new(), &value).unwrap_err();
            assert_eq!(encode(&value).unwrap_err().to_string(), appended.to_string());
        }
    }

    #[test]
    fn every_value_is_appended_as_it_is_encoded() {
        let arena = Arena::new();
        let cid = Cid::of(Codec::Raw, b"blob");
        let text = format!(
            r#"[{{}},[],{{"a":{{"b":[null,true,-7,1.5,18446744073709551615]}},"c\"\u0001":"\\n\u0000é\u2028"}},{{"$link":"{cid}"}}]"#
        );
        let value = decode(&text, &arena).unwrap();
        let mut appended = Vec::new();
        append(&mut appended, &value).unwrap();
        assert_eq!(String::from_utf8(appended).unwrap(), encode(&value).unwrap());
    }

    proptest! {
        #[test]
        fn canonical_bytes_survive_the_round_trip_through_json(
            numbers in proptest::collection::vec(any::<i64>(), 0..6),
            bytes in proptest::collection::vec(any::<u8>(), 0..50),
            text in ".{0,20}",
        ) {
            let arena = Arena::new();
            let cid = Cid::of(Codec::DagCbor, &bytes);
            let numbers: Vec<_> = numbers.into_iter().map(Value::Integer).collect();
            let mut entries = [
                ("n", Value::Array(&numbers)),
                ("bytes", Value::Bytes(&bytes)),
                ("link", Value::Link(cid.as_cid_ref())),
                ("text", Value::Text(&text)),
            ];
            let value = Value::Map(Map::from_entries(&mut entries).unwrap());
            let json = encode(&value).unwrap();
            let mut appended = b"before".to_vec();
            append(&mut appended, &value).unwrap();
            prop_assert_eq!(appended, [b"before", json.as_bytes()].concat());
            prop_assert_eq!(decode(&json, &arena).unwrap(), value);
            let written = cbor::encode(&value).unwrap();
            let read = cbor::decode(&written, &arena).unwrap();
            prop_assert_eq!(encode(&read).unwrap(), json);
        }
    }
}
