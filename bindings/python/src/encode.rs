//! Python objects as canonical DAG-CBOR.

use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::mem;

use codec::cbor::{Encoder, KnownKey, Value, WideInteger};
use codec::cid::CidRef;
use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
use smallvec::SmallVec;

/// The bytes of an object, at most as deep as `max_depth` allows, which is asked where it can matter. `bytes` that are a CID
/// are a link, as the decoder gives it.
pub(crate) fn encode<'py>(
    object: &Bound<'py, PyAny>,
    max_depth: impl FnOnce() -> PyResult<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    STATE.with(|kept| {
        // Taken while it is used, as an error can run code of Python, which can call in here.
        let mut state = kept.take().unwrap_or_default();
        state.buffer.clear();
        let encoder = Encoder::appending_to(mem::take(&mut state.buffer));
        let mut encoding = Encoding { encoder, shapes: &state.shapes, max_depth: ANY_DEPTH };
        let mut result = encoding.value(object, 0);
        if encoding.max_depth == TOO_DEEP {
            encoding.encoder.truncate(0);
            encoding.max_depth = max_depth()?;
            result = encoding.value(object, 0);
        }
        let bytes = result.map(|()| PyBytes::new(object.py(), encoding.encoder.as_bytes()));
        let buffer = encoding.encoder.into_bytes();
        if buffer.capacity() <= MAX_KEPT_BYTES {
            state.buffer = buffer;
        }
        if state.shapes.misses.get() >= MAX_MISSES {
            state.shapes = Shapes::default();
        }
        kept.set(Some(state));
        bytes
    })
}

/// The state that a thread keeps from call to call.
#[derive(Default)]
struct State {
    /// Growth to the size of a record costs as much as the record.
    buffer: Vec<u8>,
    shapes: Shapes,
}

/// The sets of keys of earlier maps, by their number, all in canonical order. A map that has as many entries as a set, and
/// all of its keys, has the keys of the set: its entries are looked up in canonical order, without sorting.
#[derive(Default)]
struct Shapes {
    by_count: [Candidates; 1 + MAX_ENTRIES],
    /// Maps that had the keys of no set.
    misses: Cell<usize>,
}

#[derive(Default)]
struct Candidates {
    // Filled from the start.
    shapes: [OnceCell<Shape>; MAX_CANDIDATES],
    /// The one that was right last.
    last: Cell<usize>,
}

/// Keys in canonical order.
type Shape = Box<[(Py<PyString>, KnownKey)]>;

/// The values of a map.
type Values<'py> = SmallVec<[Bound<'py, PyAny>; MAX_ENTRIES]>;

impl Shapes {
    /// The keys of a map, whose values are put into `values` in the same order.
    #[inline]
    fn find<'py>(&self, map: &Bound<'py, PyDict>, values: &mut Values<'py>) -> Option<&Shape> {
        let candidates = self.by_count.get(map.len())?;
        let last = candidates.last.get();
        let shape = candidates.shapes.get(last)?.get()?;
        if has_keys(map, shape, values) {
            return Some(shape);
        }
        let other = |(at, shape): (usize, &'_ OnceCell<Shape>)| {
            let is_right = at != last && has_keys(map, shape.get()?, values);
            is_right.then_some(at)
        };
        let at = candidates.shapes.iter().enumerate().find_map(other)?;
        candidates.last.set(at);
        candidates.shapes.get(at)?.get()
    }

    /// Keeps the keys of a map, which are in canonical order.
    #[cold]
    fn keep(&self, entries: &[(&str, &Bound<'_, PyString>, &Bound<'_, PyAny>)]) {
        self.misses.set(self.misses.get() + 1);
        let Some(candidates) = self.by_count.get(entries.len()) else { return };
        let Some(free) = candidates.shapes.iter().find(|shape| shape.get().is_none()) else {
            return;
        };
        // A string of a subclass could be equal to another.
        let known = entries.iter().map(|(text, key, _)| {
            let is_plain = key.is_exact_instance_of::<PyString>();
            KnownKey::new(text).filter(|_| is_plain).map(|known| ((*key).clone().unbind(), known))
        });
        if let Some(shape) = known.collect() {
            let _ = free.set(shape);
        }
    }
}

/// Whether a map has these keys; if so, `values` are theirs.
#[inline]
fn has_keys<'py>(map: &Bound<'py, PyDict>, shape: &Shape, values: &mut Values<'py>) -> bool {
    values.clear();
    for (key, _) in shape {
        match map.get_item(key.bind(map.py())) {
            Ok(Some(value)) => values.push(value),
            _ => return false,
        }
    }
    true
}

struct Encoding<'k> {
    encoder: Encoder,
    shapes: &'k Shapes,
    max_depth: usize,
}

impl Encoding<'_> {
    #[inline]
    fn value(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        // By exact type, in the order of their frequency in records; subclasses are rare.
        if let Ok(text) = object.cast_exact::<PyString>() {
            self.encoder.text(text.to_str()?);
        } else if let Ok(map) = object.cast_exact::<PyDict>() {
            return self.map(map, depth);
        } else if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            self.bytes(bytes.as_bytes());
        } else if let Ok(integer) = object.cast_exact::<PyInt>() {
            return self.integer(integer);
        } else if let Ok(items) = object.cast_exact::<PyList>() {
            return self.list(items, depth);
        } else if object.is_none() {
            self.encoder.null();
        } else {
            return self.rare_value(object, depth);
        }
        Ok(())
    }

    #[cold]
    fn rare_value(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if let Ok(boolean) = object.cast::<PyBool>() {
            self.encoder.boolean(boolean.is_true());
        } else if let Ok(float) = object.cast::<PyFloat>() {
            return self.float(float.value());
        } else if let Ok(integer) = object.cast::<PyInt>() {
            return self.integer(integer);
        } else if let Ok(items) = object.cast::<PyList>() {
            return self.list(items, depth);
        } else if let Ok(map) = object.cast::<PyDict>() {
            return self.map(map, depth);
        } else if let Ok(text) = object.cast::<PyString>() {
            self.encoder.text(text.to_str()?);
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            self.bytes(bytes.as_bytes());
        } else {
            let kind = object.get_type().name()?;
            return Err(error(&format!("Unknown tag: a `{kind}` has no form in DAG-CBOR")));
        }
        Ok(())
    }

    #[inline(never)]
    fn map(&mut self, map: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        self.enter(depth)?;
        let mut values = SmallVec::new();
        let Some(shape) = self.shapes.find(map, &mut values) else {
            return self.other_map(map, depth);
        };
        self.encoder.map(values.len());
        for ((_, key), value) in shape.iter().zip(&values) {
            self.encoder.known_key(key);
            self.value(value, depth + 1)?;
        }
        Ok(())
    }

    /// A map whose keys are sorted.
    #[cold]
    #[inline(never)]
    fn other_map(&mut self, map: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        let mut entries = Vec::with_capacity(map.len());
        // Without the lock of an interpreter, this holds the lock of the map.
        let all_strings = map.iter().fold(true, |all, (key, value)| {
            let key = key.cast_into::<PyString>();
            let all = all && key.is_ok();
            entries.extend(key.map(|key| (key, value)));
            all
        });
        if !all_strings {
            return Err(error("Map keys must be strings"));
        }
        let mut sorted = Vec::with_capacity(entries.len());
        for (key, value) in &entries {
            sorted.push((key.to_str()?, key, value));
        }
        sorted.sort_unstable_by(|(a, ..), (b, ..)| canonical(a, b));
        self.shapes.keep(&sorted);
        self.encoder.map(sorted.len());
        for (key, _, value) in sorted {
            self.encoder.text(key);
            self.value(value, depth + 1)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn list(&mut self, items: &Bound<'_, PyList>, depth: usize) -> PyResult<()> {
        self.enter(depth)?;
        let count = items.len();
        self.encoder.array(count);
        for at in 0..count {
            let item =
                items.get_item(at).map_err(|_| error("a list changed while it was encoded"))?;
            self.value(&item, depth + 1)?;
        }
        Ok(())
    }

    #[inline]
    fn enter(&mut self, depth: usize) -> PyResult<()> {
        if depth <= self.max_depth { Ok(()) } else { self.refuse_depth() }
    }

    #[cold]
    fn refuse_depth(&mut self) -> PyResult<()> {
        if self.max_depth == ANY_DEPTH {
            self.max_depth = TOO_DEEP;
        }
        let message = "maximum recursion depth exceeded in DAG-CBOR encoding";
        Err(PyRecursionError::new_err(message))
    }

    fn integer(&mut self, integer: &Bound<'_, PyInt>) -> PyResult<()> {
        if let Ok(integer) = integer.extract::<i64>() {
            self.encoder.integer(integer);
            return Ok(());
        }
        let out_of_range = || error("Number out of range: integers have 64 bits and a sign");
        let wide: i128 = integer.extract().map_err(|_| out_of_range())?;
        let wide = match u64::try_from(wide) {
            Ok(positive) => WideInteger::Positive(positive),
            Err(_) => WideInteger::Negative(u64::try_from(-1 - wide).map_err(|_| out_of_range())?),
        };
        self.encode(&Value::WideInteger(wide))
    }

    fn float(&mut self, float: f64) -> PyResult<()> {
        // -0.0 is not canonical, and equal to 0.0.
        self.encode(&Value::Float(if float == 0.0 { 0.0 } else { float }))
    }

    fn encode(&mut self, value: &Value<'_>) -> PyResult<()> {
        let out_of_range = |why| error(&format!("Number out of range: {why}"));
        self.encoder.value(value).map(drop).map_err(out_of_range)
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        // The first byte of a CID of version 1 and of version 0.
        let cid = match bytes {
            [0x01 | 0x12, ..] => CidRef::from_bytes(bytes),
            _ => None,
        };
        match cid {
            Some(cid) => self.encoder.link(cid),
            None => self.encoder.bytes(bytes),
        };
    }
}

/// The canonical order of keys: by length, then by bytes.
#[inline]
fn canonical(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn error(what: &str) -> PyErr {
    PyValueError::new_err(format!("Failed to encode DAG-CBOR. {what}"))
}

thread_local! {
    static STATE: Cell<Option<Box<State>>> = const { Cell::new(None) };
}

/// The keys of maps with more entries are not kept.
const MAX_ENTRIES: usize = 16;

/// Sets of as many keys that are kept.
const MAX_CANDIDATES: usize = 8;

/// After as many maps with other keys, the kept sets are given up: they are of no use to the maps of today.
const MAX_MISSES: usize = 1024;

/// A buffer of more bytes is not kept.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Maximum depth for which Python's limit is not asked.
const ANY_DEPTH: usize = 64;

/// Used instead of the maximum depth: it was exceeded before Python's limit was asked.
const TOO_DEEP: usize = 0;
