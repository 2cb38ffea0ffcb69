//! Decoded values: small, borrowed, immutable.

use crate::cid::CidRef;

/// A DAG-CBOR item. Text, bytes and links are borrowed from the input, containers from an arena.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// The null value.
    Null,
    /// False or true.
    Boolean(bool),
    /// An integer of 64 bits with a sign: the only numbers that the AT Protocol's data model has.
    Integer(i64),
    /// An integer beyond that, which DAG-CBOR can hold and the AT Protocol forbids.
    WideInteger(WideInteger),
    /// A finite float other than −0, which DAG-CBOR can hold and the AT Protocol forbids.
    Float(f64),
    /// UTF-8 text.
    Text(&'a str),
    /// A byte string.
    Bytes(&'a [u8]),
    /// A link to another block.
    Link(CidRef<'a>),
    /// Items in order.
    Array(&'a [Value<'a>]),
    /// Entries in canonical order.
    Map(Map<'a>),
}

const _: () = assert!(size_of::<Value<'_>>() <= 24, "values are copied often");

/// An integer that needs 65 bits with its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideInteger {
    /// The integer itself, at least 2⁶³.
    Positive(u64),
    /// The integer is −1 − this, which is at least 2⁶³.
    Negative(u64),
}

impl WideInteger {
    /// The integer.
    pub fn get(self) -> i128 {
        match self {
            Self::Positive(number) => i128::from(number),
            Self::Negative(number) => -1 - i128::from(number),
        }
    }
}

impl<'a> Value<'a> {
    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        self.as_map()?.get(key)
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&'a str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The bytes, if this is a byte string.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// The integer, if this is one of 64 bits with a sign.
    pub fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(integer) = self { Some(*integer) } else { None }
    }

    /// The link, if this is a link.
    pub fn as_link(&self) -> Option<CidRef<'a>> {
        if let Self::Link(cid) = self { Some(*cid) } else { None }
    }

    /// The items, if this is an array.
    pub fn as_array(&self) -> Option<&'a [Value<'a>]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The map, if this is a map.
    pub fn as_map(&self) -> Option<Map<'a>> {
        if let Self::Map(map) = self { Some(*map) } else { None }
    }
}

/// The entries of a map, in canonical order, without duplicate keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Map<'a> {
    // Sorted by (key length, key bytes), strictly.
    entries: &'a [(&'a str, Value<'a>)],
}

/// A key that occurs twice among the entries of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key {0:?} occurs twice")]
pub struct DuplicateKey<'a>(pub &'a str);

impl<'a> Map<'a> {
    /// The empty map.
    pub const EMPTY: Self = Self { entries: &[] };

    /// Sorts `entries` into canonical order.
    ///
    /// # Errors
    /// If a key occurs twice.
    pub fn from_entries(entries: &'a mut [(&'a str, Value<'a>)]) -> Result<Self, DuplicateKey<'a>> {
        entries.sort_unstable_by_key(|(key, _)| (key.len(), *key));
        match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(DuplicateKey(pair[0].0)),
            None => Ok(Self { entries }),
        }
    }

    /// Wraps entries that are known to be in order.
    #[inline]
    pub(super) fn from_canonical(entries: &'a [(&'a str, Value<'a>)]) -> Self {
        Self { entries }
    }

    /// The value under `key`.
    pub fn get(self, key: &str) -> Option<&'a Value<'a>> {
        let found = if self.entries.len() <= LINEAR_UP_TO {
            self.entries.iter().find(|(k, _)| *k == key)
        } else {
            let order = |(k, _): &(&str, Value<'_>)| (k.len(), *k).cmp(&(key.len(), key));
            self.entries.binary_search_by(order).ok().map(|at| &self.entries[at])
        };
        found.map(|(_, value)| value)
    }

    /// The number of entries.
    pub fn len(self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in canonical order.
    pub fn iter(self) -> std::slice::Iter<'a, (&'a str, Value<'a>)> {
        self.entries.iter()
    }
}

/// The most entries of a map that is searched linearly: most records have fewer, and their keys mostly
/// differ in length, which costs one comparison per entry.
const LINEAR_UP_TO: usize = 8;
