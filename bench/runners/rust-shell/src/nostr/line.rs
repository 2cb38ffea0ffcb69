//! What would someone write down as an event who has nothing but serde? The two peers that read JSON into
//! a struct of their user read into this one, and whoever needs another type makes it from this.

use std::borrow::Cow;

use faster_hex::hex_decode;
use serde::{Deserialize, Serialize};

use super::Tally;
use crate::Refusal;

/// An event, borrowed from its line as far as no escapes are in the way.
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

/// The checks that serde's derive makes of it, whatever the library that reads.
pub const CHECKS: [&str; 2] = ["kind-range", "duplicate-fields"];

/// A tag's value. Inside a `Vec`, a bare `Cow` would never borrow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Event<'_> {
    /// The same event on its own.
    pub fn into_owned(self) -> Event<'static> {
        let owned = |text: Text<'_>| Text(text.0.into_owned().into());
        Event {
            tags: self.tags.into_iter().map(|tag| tag.into_iter().map(owned).collect()).collect(),
            content: self.content.into_owned().into(),
            ..self
        }
    }

    /// Walks all of it.
    pub fn tell(&self, tally: &mut Tally) {
        tally.event(self.kind, self.created_at, &self.content);
        self.tags.iter().for_each(|tag| tally.texts(tag.iter().map(|text| &text.0)));
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

/// Hands over the bytes that a tag's value spells, where the formats that compact hexadecimal have it as
/// bytes: an even number of lower-case digits, at least as many as `least_digits`.
#[inline]
pub fn with_spelled<T>(
    value: &str,
    least_digits: usize,
    use_it: impl FnOnce(Option<&[u8]>) -> T,
) -> T {
    let digits = value.as_bytes();
    let are_pairs = digits.len() >= least_digits && digits.len().is_multiple_of(2);
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

/// As many bytes as these digits must spell.
///
/// # Errors
///
/// If they are not hexadecimal, or not as many.
pub fn bytes<const N: usize>(digits: &str) -> Result<[u8; N], Refusal> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return Err(format!("{} digits instead of {}", digits.len(), 2 * N).into());
    }
    hex_decode(digits.as_bytes(), &mut bytes)?;
    Ok(bytes)
}

/// Bytes as hexadecimal, by the fastest library for it and without the heap.
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
    fn what_has_no_escapes_is_borrowed_and_all_is_written_as_it_was() {
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
    fn only_pairs_of_lower_case_digits_spell_bytes_and_not_too_few() {
        let spelled =
            |text: &str, least| with_spelled(text, least, |bytes| bytes.map(<[u8]>::to_vec));
        assert_eq!(spelled("00ffa0b1", 8), Some(vec![0, 255, 0xa0, 0xb1]));
        assert_eq!(spelled("00ff", 2), Some(vec![0, 255]));
        assert_eq!(spelled(&"0a".repeat(100), 8), Some(vec![10; 100]));
        for text in ["00ffa0", "00FFA0B1", "00ffa0b1c", "00ffa0bg", "00ffa0\u{e9}"] {
            assert_eq!(spelled(text, 8), None, "{text}");
        }
    }
}
