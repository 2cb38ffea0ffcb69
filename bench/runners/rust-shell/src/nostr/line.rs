//! An event as a user of serde would define it: the type of the peers that decode JSON into a struct, and the source of the
//! types of other peers.

use std::borrow::Cow;

use faster_hex::hex_decode;
use serde::{Deserialize, Serialize};

use super::EventCounts;
use crate::BoxError;

/// An event that borrows texts without escapes from its line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event<'a> {
    #[serde(with = "hex")]
    pub id: [u8; 32],
    #[serde(with = "hex")]
    pub pubkey: [u8; 32],
    pub created_at: i64,
    pub kind: u16,
    #[serde(borrow)]
    pub tags: Vec<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    #[serde(with = "hex")]
    pub sig: [u8; 64],
}

/// The checks that serde's derive makes with every library.
pub const CHECKS: [&str; 2] = ["kind-range", "duplicate-fields"];

/// A tag's value. Inside a `Vec`, a bare `Cow` would never borrow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Event<'_> {
    /// The same event without borrows.
    pub fn into_owned(self) -> Event<'static> {
        let owned = |text: Text<'_>| Text(text.0.into_owned().into());
        Event {
            tags: self.tags.into_iter().map(|tag| tag.into_iter().map(owned).collect()).collect(),
            content: self.content.into_owned().into(),
            ..self
        }
    }

    /// Counts all of the event.
    pub fn count(&self, counts: &mut EventCounts) {
        counts.event(self.kind, self.created_at, &self.content);
        self.tags.iter().for_each(|tag| counts.texts(tag.iter().map(|text| &text.0)));
    }
}

/// The kind alone.
#[derive(Deserialize)]
pub struct Kind {
    pub kind: u16,
}

/// The author alone.
#[derive(Deserialize)]
pub struct Pubkey {
    #[serde(with = "hex")]
    pub pubkey: [u8; 32],
}

/// The kind and the author alone.
#[derive(Deserialize)]
pub struct Both {
    pub kind: u16,
    #[serde(with = "hex")]
    pub pubkey: [u8; 32],
}

/// Calls `use_it` with the bytes of a tag's value that formats with compact hexadecimal store as bytes: an even number of
/// lower-case digits, at least `min_digits`; with `None` for other values.
#[inline]
pub fn with_hex_bytes<T>(
    value: &str,
    min_digits: usize,
    use_it: impl FnOnce(Option<&[u8]>) -> T,
) -> T {
    let digits = value.as_bytes();
    let are_pairs = digits.len() >= min_digits && digits.len().is_multiple_of(2);
    if !are_pairs || digits.iter().any(u8::is_ascii_uppercase) {
        return use_it(None);
    }
    let mut short = [0; 64];
    if let Some(bytes) = short.get_mut(..digits.len() / 2) {
        return use_it(hex_decode(digits, bytes).is_ok().then_some(&*bytes));
    }
    let mut long = vec![0; digits.len() / 2];
    use_it(hex_decode(digits, &mut long).is_ok().then_some(&long))
}

/// Decodes exactly `2 * N` digits.
///
/// # Errors
///
/// If they are not hexadecimal, or another number.
pub fn bytes<const N: usize>(digits: &str) -> Result<[u8; N], BoxError> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return Err(format!("{} digits instead of {}", digits.len(), 2 * N).into());
    }
    hex_decode(digits.as_bytes(), &mut bytes)?;
    Ok(bytes)
}

/// Bytes as hexadecimal, by the fastest library and without heap allocations.
mod hex {
    use std::fmt;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut digits = [0; 128];
        let text = faster_hex::hex_encode(bytes, &mut digits[..2 * N]);
        serializer.serialize_str(text.map_err(serde::ser::Error::custom)?)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        deserializer.deserialize_str(Digits)
    }

    struct Digits<const N: usize>;

    impl<const N: usize> Visitor<'_> for Digits<N> {
        type Value = [u8; N];

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "{} hexadecimal digits", 2 * N)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<[u8; N], E> {
            if text.len() != 2 * N {
                return Err(E::invalid_length(text.len(), &self));
            }
            let mut bytes = [0; N];
            faster_hex::hex_decode(text.as_bytes(), &mut bytes).map_err(E::custom)?;
            Ok(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_escapes_are_borrowed_and_an_event_round_trips() {
        let line = format!(
            r#"{{"id":"{:064x}","pubkey":"{:064x}","created_at":-5,"kind":7,"tags":[["a","b\n"],[]],"content":"é","sig":"{:0128x}"}}"#,
            1, 2, 3
        );
        let event: Event<'_> = serde_json::from_str(&line).unwrap();
        let [tag, empty] = &event.tags[..] else { panic!("{event:?}") };
        assert!(matches!(&tag[..], [Text(Cow::Borrowed("a")), Text(Cow::Owned(_))]), "{tag:?}");
        assert!(empty.is_empty() && matches!(event.content, Cow::Borrowed(_)));
        assert_eq!((event.id[31], event.pubkey[31], event.sig[63]), (1, 2, 3));
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        let owned = event.clone().into_owned();
        assert_eq!(owned, event);
    }

    #[test]
    fn only_enough_pairs_of_lower_case_digits_are_bytes() {
        let decoded =
            |text: &str, min| with_hex_bytes(text, min, |bytes| bytes.map(<[u8]>::to_vec));
        assert_eq!(decoded("00ffa0b1", 8), Some(vec![0, 255, 0xa0, 0xb1]));
        assert_eq!(decoded("00ff", 2), Some(vec![0, 255]));
        assert_eq!(decoded(&"0a".repeat(100), 8), Some(vec![10; 100]));
        for text in ["00ffa0", "00FFA0B1", "00ffa0b1c", "00ffa0bg", "00ffa0\u{e9}"] {
            assert_eq!(decoded(text, 8), None, "{text}");
        }
    }
}
