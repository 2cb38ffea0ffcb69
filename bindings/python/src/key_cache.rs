//! Map keys as Python strings, kept from one map to the next: records have few different keys, and a kept string has its
//! hash already.

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::shapes::Shapes;

/// The keys and short texts of this thread that were used last.
pub(crate) struct KeyCache {
    slots: Box<[RefCell<Option<Kept>>]>,
    pub(crate) shapes: Shapes,
}

struct Kept {
    ends: Ends,
    key: Box<[u8]>,
    string: Py<PyString>,
}

impl KeyCache {
    /// Calls `with` with the cache of this thread.
    #[inline]
    pub(crate) fn using<T>(with: impl FnOnce(&Self) -> T) -> T {
        KEYS.with(|kept| {
            // Taken while it is used: an allocation can start a collection, which can run a finalizer, which can call in
            // here.
            let mut cache = kept.take().unwrap_or_else(Self::empty);
            let result = with(&cache);
            if cache.shapes.is_full() {
                cache.shapes = Shapes::new();
            }
            kept.set(Some(cache));
            result
        })
    }

    #[cold]
    #[inline(never)]
    fn empty() -> Box<Self> {
        let slots = (0..SLOTS).map(|_| RefCell::default()).collect();
        Box::new(Self { slots, shapes: Shapes::new() })
    }

    /// The key as a string.
    #[inline]
    pub(crate) fn get<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyString>> {
        self.get_bytes(py, key.as_bytes())
    }

    /// The key as a string.
    ///
    /// # Errors
    /// If it is not UTF-8.
    #[inline]
    pub(crate) fn get_bytes<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
    ) -> PyResult<Bound<'py, PyString>> {
        let ends = Ends::of(key);
        let slot = &self.slots[ends.slot()];
        match &*slot.borrow() {
            Some(kept) if kept.ends == ends && (key.len() <= 16 || *kept.key == *key) => {
                return Ok(kept.string.bind(py).clone());
            }
            _ => {}
        }
        Self::keep(py, slot, ends, key)
    }

    #[cold]
    #[inline(never)]
    fn keep<'py>(
        py: Python<'py>,
        slot: &RefCell<Option<Kept>>,
        ends: Ends,
        key: &[u8],
    ) -> PyResult<Bound<'py, PyString>> {
        let string = PyString::from_bytes(py, key)?;
        if key.len() <= MAX_KEY_BYTES {
            slot.replace(Some(Kept { ends, key: key.into(), string: string.clone().unbind() }));
        }
        Ok(string)
    }
}

/// The first and the last eight bytes of a key, which may overlap, and its length. Up to 16 bytes they are the key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends {
    first: u64,
    last: u64,
    len: usize,
}

impl Ends {
    /// Without a copy of the bytes through memory, which takes twice as long as the rest.
    #[inline]
    fn of(key: &[u8]) -> Self {
        let (first, last) = match key {
            [] => (0, 0),
            [one] => (u64::from(*one), 0),
            [one, two] => (u64::from(*one), u64::from(*two)),
            [one, two, three] => (u64::from(*one), u64::from(*two) | u64::from(*three) << 8),
            _ => match (key.first_chunk(), key.last_chunk()) {
                (Some(first), Some(last)) => {
                    (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
                }
                _ => {
                    let half =
                        |half: Option<&[u8; 4]>| half.map_or(0, |half| u32::from_le_bytes(*half));
                    (half(key.first_chunk()).into(), half(key.last_chunk()).into())
                }
            },
        };
        Self { first, last, len: key.len() }
    }

    #[inline]
    fn slot(self) -> usize {
        let mixed = self.first ^ self.last.rotate_left(29) ^ self.len as u64;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize
    }
}

thread_local! {
    static KEYS: Cell<Option<Box<KeyCache>>> = const { Cell::new(None) };
}

const SLOT_BITS: u32 = 9;
const SLOTS: usize = 1 << SLOT_BITS;

/// Longer keys are not kept.
const MAX_KEY_BYTES: usize = 64;
