//! The key sequences of earlier maps, as a tree: a record has the keys of other records, in the same order.
//!
//! A map is read along a path of the tree. Every key is proposed to the scanner, which compares bytes; the string of the
//! key is at hand, with its hash. The end of the path has an empty twin of the map, whose copy needs no growth and no
//! insertion, only values.

use std::cell::{Cell, OnceCell};

use codec::cbor::KnownKey;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The key sequences that this thread has seen.
pub(crate) struct Shapes {
    /// The first keys of maps, by the number of entries.
    first: [Choices; 1 + MAX_ENTRIES],
    /// The number of keys in the tree.
    len: Cell<usize>,
}

impl Shapes {
    pub(crate) fn new() -> Self {
        Self { first: [const { Choices(OnceCell::new()) }; 1 + MAX_ENTRIES], len: Cell::new(0) }
    }

    /// The keys with which a map of `count` entries can start; `None` if maps of this size are not kept.
    #[inline]
    pub(crate) fn start(&self, count: usize) -> Option<&Choices> {
        self.first.get(count)
    }

    /// Whether no more keys are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.len.get() >= MAX_KEYS
    }

    /// The place of a key that was not proposed; `None` if there is no room for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn place<'s>(
        &'s self,
        choices: &'s Choices,
        key: &str,
        string: impl FnOnce() -> Option<Py<PyString>>,
    ) -> Option<&'s Place> {
        let mut cell = &choices.0;
        for _ in 0..MAX_CHOICES {
            match cell.get() {
                Some(place) if place.key.text() == key => return Some(place),
                Some(place) => cell = &place.other.0,
                None if self.is_full() => return None,
                None => {
                    let key = KnownKey::new(key)?;
                    let string = string()?;
                    self.len.set(self.len.get() + 1);
                    return Some(cell.get_or_init(|| Box::new(Place::new(key, string))));
                }
            }
        }
        None
    }
}

/// Keys that were seen at one place.
pub(crate) struct Choices(OnceCell<Box<Place>>);

impl Choices {
    /// The key that can start with these eight encoded bytes.
    #[inline]
    pub(crate) fn find(&self, word: u64) -> Option<&Place> {
        let mut place = self.0.get()?;
        while !place.key.may_start(word) {
            place = place.other.0.get()?;
        }
        Some(place)
    }
}

/// A key after the keys before it.
pub(crate) struct Place {
    pub(crate) key: KnownKey,
    pub(crate) string: Py<PyString>,
    pub(crate) next: Choices,
    other: Choices,
}

impl Place {
    fn new(key: KnownKey, string: Py<PyString>) -> Self {
        let [next, other] = [const { Choices(OnceCell::new()) }; 2];
        Self { key, string, next, other }
    }
}

/// Maps with more entries are not kept.
const MAX_ENTRIES: usize = 16;

/// Keys that are kept of one place.
const MAX_CHOICES: usize = 8;

/// Keys that are kept in all, in some 200 kB.
const MAX_KEYS: usize = 1024;
