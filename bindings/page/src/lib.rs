//! Verified and refused inputs as the page shows them: plain data for pictures, lists and hex views.
//!
//! | module | input |
//! |---|---|
//! | [`answer`] | every one of these, by a question in JSON |
//! | [`repository`] | an export, as nodes and records with their places in the file |
//! | [`record`] | a slice that proves one record or its absence |
//! | [`frame`] | a message of `subscribeRepos` |
//! | [`nostr`] | Nostr events, one per line or in an array |
//! | [`identity`] | a DID log or a DID document |
//!
//! Every verdict comes from the libraries. This module adds places: a [`Refusal`] points at bytes of the input, even if
//! the broken rule is about something that is missing.

pub mod answer;
#[cfg(target_family = "wasm")]
mod exports;
pub mod frame;
pub mod identity;
pub mod nostr;
pub mod record;
pub mod repository;

use serde::Serialize;

/// A broken rule and the bytes that show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The stable code.
    pub code: String,
    /// The broken rule.
    pub rule: String,
    /// Bytes from the start of the input to the marked place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// Length of the marked place in bytes.
    pub length: usize,
    /// The marked bytes, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'static str>,
    /// The block that broke the rule or that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cid: Option<String>,
    /// The path of the record, or the key of the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The account that the input names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did: Option<String>,
    /// The index of the entry, in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

/// A verdict of this module.
pub type Result<T, E = Box<Refusal>> = std::result::Result<T, E>;

impl Refusal {
    /// A broken rule without a place.
    pub fn new(code: &str, rule: impl ToString) -> Self {
        Self { code: code.to_owned(), rule: rule.to_string(), ..Self::default() }
    }

    /// Marks the byte at `offset`.
    #[must_use]
    pub fn at(self, offset: usize) -> Self {
        Self { offset: Some(offset), length: 1, ..self }
    }

    /// Marks the first copy of `needle` in `input`, unless a place is marked already.
    #[must_use]
    pub fn or_find(self, input: &[u8], needle: &[u8], place: &'static str) -> Self {
        match find(input, needle) {
            Some(offset) if self.offset.is_none() => {
                Self { offset: Some(offset), length: needle.len(), place: Some(place), ..self }
            }
            _ => self,
        }
    }

    /// Extends the mark to the end of the first copy of `needle` after its start, if that is near.
    #[must_use]
    pub fn through(self, input: &[u8], needle: &[u8], place: &'static str) -> Self {
        let rest = self.offset.and_then(|offset| input.get(offset..)).unwrap_or_default();
        let near = &rest[..rest.len().min(needle.len() + MAX_VARINT)];
        match find(near, needle) {
            Some(inside) => Self { length: inside + needle.len(), place: Some(place), ..self },
            None => self,
        }
    }

    /// Counts the place from an earlier start.
    #[must_use]
    pub fn shifted(self, by: usize) -> Self {
        Self { offset: self.offset.map(|offset| offset + by), ..self }
    }
}

/// Most bytes of a length before a CID.
const MAX_VARINT: usize = 10;

/// The JSON of a value.
///
/// # Panics
/// Never: the values here have text keys and no failing parts.
pub fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data has a JSON form")
}

/// The place of the first copy of `needle`.
pub(crate) fn find(input: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = input.get(from..)?.iter().position(|byte| *byte == first) {
        if input[from + at..].starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// Bytes from the start of `input` to `part`, a part of it.
pub(crate) fn offset_in(input: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).wrapping_sub(input.as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_is_found_where_it_begins_and_nowhere_else() {
        assert_eq!(find(b"ababac", b"abac"), Some(2));
        assert_eq!(find(b"ababac", b"ac"), Some(4));
        assert_eq!(find(b"ababac", b"acc"), None);
        assert_eq!((find(b"", b"a"), find(b"a", b"")), (None, None));
    }

    #[test]
    fn a_place_that_is_known_is_kept() {
        let refusal = Refusal::new("a/b", "rule").at(7).or_find(b"xyz", b"y", "the y");
        assert_eq!((refusal.offset, refusal.length, refusal.place), (Some(7), 1, None));
        let refusal = Refusal::new("a/b", "rule").or_find(b"xyz", b"yz", "the y").shifted(10);
        assert_eq!((refusal.offset, refusal.length, refusal.place), (Some(11), 2, Some("the y")));
    }
}
