//! DAG-CBOR as Python objects: maps as `dict`, links as the bytes of their CIDs.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString};
use smallvec::SmallVec;
use wireproof::codec::cbor::{DecodeError, ItemError, Sink, WideInteger, build_prefix};
use wireproof::codec::cid::CidRef;

use crate::key_cache::KeyCache;

/// Makes the object of the item at the start of `data`, and returns the item's length.
pub(crate) fn decode_prefix<'py>(
    py: Python<'py>,
    data: &[u8],
    keys: &KeyCache,
) -> Result<(PyResult<Bound<'py, PyAny>>, usize), DecodeError> {
    let failure = Cell::new(None);
    let mut object = None;
    let len = build_prefix(data, Objects { py, keys, failure: &failure }, &mut object)?;
    let object = match failure.take() {
        None => Ok(object.unwrap_or_else(|| py.None().into_bound(py))),
        Some(error) => Err(error),
    };
    Ok((object, len))
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
        let text = match text.len() <= MAX_REPEATED_BYTES {
            true => self.keys.get(self.py, text),
            false => PyString::new(self.py, text),
        };
        *slot = Some(text.into_any());
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
        mut read: impl FnMut(usize, &mut Slot<'py>) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        let mut items = SmallVec::<[Bound<'py, PyAny>; 8]>::new();
        let mut item = None;
        for at in 0..count {
            read(at, &mut item)?;
            items.extend(item.take());
        }
        match PyList::new(self.py, items) {
            Ok(list) => *slot = Some(list.into_any()),
            Err(error) => self.fail(error),
        }
        Ok(())
    }

    #[inline]
    fn map(
        self,
        slot: &mut Slot<'py>,
        count: usize,
        mut read: impl FnMut(usize, &mut Slot<'py>) -> Result<&'a str, ItemError>,
    ) -> Result<(), ItemError> {
        let dict = PyDict::new(self.py);
        let mut value = None;
        for at in 0..count {
            let key = self.keys.get(self.py, read(at, &mut value)?);
            if let Err(error) = dict.set_item(key, value.take()) {
                self.fail(error);
            }
        }
        *slot = Some(dict.into_any());
        Ok(())
    }
}

/// Texts up to this length are often the same: names of types and languages. Timestamps are longer.
const MAX_REPEATED_BYTES: usize = 23;
