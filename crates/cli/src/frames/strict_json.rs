//! JSON of a stranger, read strictly: no key twice in an object, and a bounded depth.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads exactly one JSON value with at most `max_depth` containers inside each other.
///
/// # Errors
/// If the text is not JSON, has a key twice in one object, or is deeper.
pub(super) fn read(text: &[u8], max_depth: usize) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    // `Strict` bounds the depth.
    deserializer.disable_recursion_limit();
    let value = Strict { depth_left: max_depth }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth_left: usize,
}

impl Strict {
    fn inside<E: de::Error>(self) -> Result<Self, E> {
        let depth_left = self.depth_left.checked_sub(1);
        depth_left.map(|depth_left| Self { depth_left }).ok_or_else(|| E::custom("nested too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Value, E> {
        Ok(boolean.into())
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Value, E> {
        Ok(integer.into())
    }

    fn visit_u64<E>(self, integer: u64) -> Result<Value, E> {
        Ok(integer.into())
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Value, E> {
        let number = Number::from_f64(float);
        number.map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key {key:?} is there twice")));
            }
            object.insert(key, entries.next_value_seed(inside)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, max_depth: usize) -> String {
        read(text.as_bytes(), max_depth).unwrap_err().to_string()
    }

    #[test]
    fn a_value_is_read_as_by_a_lenient_reader() {
        let text =
            r#"{"a":[null,true,-1,18446744073709551615,1.0,1e300,"\u00e9\n"],"b":{},"c":[]}"#;
        let lenient: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(text.as_bytes(), 2).unwrap(), lenient);
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_at_every_depth_and_in_every_spelling() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"c":2,"\u0061":1}}]"#] {
            assert!(refusal(text, 9).contains(r#""a" is there twice"#), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for (head, tail) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |levels: usize| [&head.repeat(levels), "1", &tail.repeat(levels)].concat();
            assert!(read(nested(200).as_bytes(), 200).is_ok());
            assert!(refusal(&nested(201), 200).contains("nested too deep"));
            assert!(refusal(&head.repeat(1_000_000), 200).contains("nested too deep"));
        }
    }

    #[test]
    fn what_follows_the_value_is_refused() {
        assert!(refusal("{} {}", 9).contains("trailing"));
        assert!(refusal("", 9).contains("EOF"));
    }
}
