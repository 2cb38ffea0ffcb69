//! DAG-CBOR as Python objects: maps as `dict`, links as the bytes of their CIDs.

use std::cell::Cell;

use codec::cbor::{DecodeError, Entries, ItemError, Sink, WideInteger, build_prefix};
use codec::cid::CidRef;
use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString};

use crate::key_cache::KeyCache;
use crate::shapes::{Choices, Place};

/// Makes the object of the item at the start of `data`, and returns the item's length.
#[inline]
pub(crate) fn decode_prefix<'py>(
    py: Python<'py>,
    data: &[u8],
    keys: &KeyCache,
) -> Result<(Bound<'py, PyAny>, usize), Fault> {
    let failure = Cell::new(None);
    let mut object = None;
    let len = build_prefix(data, Objects { py, keys, failure: &failure }, &mut object);
    match (len, object, failure.into_inner()) {
        (Ok(len), Some(object), None) => Ok((object, len)),
        (Ok(len), None, None) => Ok((py.None().into_bound(py), len)),
        (_, _, Some(error)) => Err(Fault::Raised(error)),
        (Err(error), ..) => Err(Fault::Decode(error)),
    }
}

/// Why an item has no object.
pub(crate) enum Fault {
    Decode(DecodeError),
    Raised(PyErr),
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Makes objects.
#[derive(Clone, Copy)]
struct Objects<'py, 's> {
    py: Python<'py>,
    keys: &'s KeyCache,
    /// The first error of Python; the objects that follow are of no use.
    failure: &'s Cell<Option<PyErr>>,
}

impl Objects<'_, '_> {
    /// Notes an error, unless it says that text is not UTF-8.
    #[cold]
    fn is_other_fault(self, error: PyErr) -> bool {
        let is_other = !error.is_instance_of::<PyUnicodeDecodeError>(self.py);
        if is_other {
            self.fail(error);
        }
        is_other
    }

    #[cold]
    fn fail(self, error: PyErr) {
        let first = self.failure.take();
        self.failure.set(Some(first.unwrap_or(error)));
    }
}

/// An object that is not made yet, or has been taken.
type Slot<'py> = Option<Bound<'py, PyAny>>;

impl<'a, 'py> Sink<'a> for Objects<'py, '_> {
    type Slot = Slot<'py>;

    #[inline]
    fn integer(self, slot: &mut Slot<'py>, integer: i64) {
        let Ok(integer) = integer.into_pyobject(self.py);
        *slot = Some(integer.into_any());
    }

    fn wide_integer(self, slot: &mut Slot<'py>, integer: WideInteger) {
        let Ok(integer) = integer.get().into_pyobject(self.py);
        *slot = Some(integer.into_any());
    }

    fn float(self, slot: &mut Slot<'py>, float: f64) {
        *slot = Some(PyFloat::new(self.py, float).into_any());
    }

    #[inline]
    fn boolean(self, slot: &mut Slot<'py>, boolean: bool) {
        *slot = Some(PyBool::new(self.py, boolean).to_owned().into_any());
    }

    #[inline]
    fn null(self, slot: &mut Slot<'py>) {
        *slot = Some(self.py.None().into_bound(self.py));
    }

    #[inline]
    fn text(self, slot: &mut Slot<'py>, text: &'a str) {
        self.text_bytes(slot, text.as_bytes());
    }

    #[inline]
    fn text_bytes(self, slot: &mut Slot<'py>, text: &'a [u8]) -> bool {
        let text = if text.len() <= MAX_REPEATED_BYTES {
            self.keys.get_bytes(self.py, text)
        } else {
            PyString::from_bytes(self.py, text)
        };
        match text {
            Ok(text) => *slot = Some(text.into_any()),
            Err(error) => return self.is_other_fault(error),
        }
        true
    }

    #[inline]
    fn bytes(self, slot: &mut Slot<'py>, bytes: &'a [u8]) {
        *slot = Some(PyBytes::new(self.py, bytes).into_any());
    }

    #[inline]
    fn link(self, slot: &mut Slot<'py>, cid: CidRef<'a>) {
        *slot = Some(PyBytes::new(self.py, cid.as_bytes()).into_any());
    }

    #[inline]
    fn array(
        self,
        slot: &mut Slot<'py>,
        count: usize,
        read: impl FnMut(usize, &mut Slot<'py>) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        let mut broken = None;
        let items = Items { py: self.py, at: 0, count, read, broken: &mut broken };
        let list = PyList::new(self.py, items);
        match (list, broken) {
            (_, Some(broken)) => return Err(broken),
            (Ok(list), None) => *slot = Some(list.into_any()),
            (Err(error), None) => self.fail(error),
        }
        Ok(())
    }

    #[inline]
    fn map(
        self,
        slot: &mut Slot<'py>,
        count: usize,
        entries: &mut Entries<'a, Self>,
    ) -> Result<(), ItemError> {
        let dict = PyDict::new(self.py);
        let mut value = None;
        let mut choices = self.keys.shapes.start(count);
        for _ in 0..count {
            let mut place = None;
            let key = entries.next_proposed(
                |word| {
                    place = choices.and_then(|choices| choices.find(word));
                    place.map(|place| &place.key)
                },
                &mut value,
            )?;
            if let Some(key) = key {
                place = choices.and_then(|choices| self.place(choices, key));
            }
            let set = match place {
                Some(place) => dict.set_item(place.string.bind(self.py), value.take()),
                None => self
                    .keys
                    .get(self.py, key.unwrap_or_default())
                    .and_then(|key| dict.set_item(key, value.take())),
            };
            choices = place.map(|place| &place.next);
            if let Err(error) = set {
                self.fail(error);
            }
        }
        *slot = Some(dict.into_any());
        Ok(())
    }
}

impl<'s> Objects<'_, 's> {
    #[cold]
    #[inline(never)]
    fn place(self, choices: &'s Choices, key: &str) -> Option<&'s Place> {
        let string = || Some(self.keys.get(self.py, key).ok()?.unbind());
        self.keys.shapes.place(choices, key, string)
    }
}

/// The items of an array, read one by one into the list.
struct Items<'py, 'r, R> {
    py: Python<'py>,
    at: usize,
    count: usize,
    read: R,
    broken: &'r mut Option<ItemError>,
}

impl<'py, R: FnMut(usize, &mut Slot<'py>) -> Result<(), ItemError>> Iterator for Items<'py, '_, R> {
    type Item = Item<'py>;

    #[inline]
    fn next(&mut self) -> Option<Item<'py>> {
        if self.at == self.count {
            return None;
        }
        let mut slot = None;
        match (self.read)(self.at, &mut slot) {
            Ok(()) => self.at += 1,
            Err(error) => {
                *self.broken = Some(error);
                return Some(Item(None));
            }
        }
        Some(Item(Some(slot.unwrap_or_else(|| self.py.None().into_bound(self.py)))))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count - self.at, Some(self.count - self.at))
    }
}

/// An item of a list; without one, the input is broken.
struct Item<'py>(Slot<'py>);

impl<'py> IntoPyObject<'py> for Item<'py> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[inline]
    fn into_pyobject(self, _: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.ok_or_else(|| PyValueError::new_err("broken input"))
    }
}

/// Texts up to this length are often the same: names of types and languages. Timestamps are longer.
const MAX_REPEATED_BYTES: usize = 23;
