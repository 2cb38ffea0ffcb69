//! Python objects as canonical DAG-CBOR.

use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::mem;

use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
use wireproof::codec::cbor::{Encoder, KnownKey, Value, WideInteger};
use wireproof::codec::cid::CidRef;

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
        let mut encoding = Encoding { encoder, keys: &state.keys, max_depth: ANY_DEPTH };
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
        if state.keys.misses.get() >= MAX_MISSES {
            state.keys = EncodedKeys::default();
        }
        kept.set(Some(state));
        bytes
    })
}

/// What a thread keeps from call to call.
#[derive(Default)]
struct State {
    /// Growth to the size of a record costs as much as the record.
    buffer: Vec<u8>,
    keys: EncodedKeys,
}

/// Encoded keys, by the identity of their strings: keys are the same objects in many maps, whether they are literals of a
/// program or come from the decoder.
struct EncodedKeys {
    slots: Box<[OnceCell<(Py<PyAny>, KnownKey)>]>,
    misses: Cell<usize>,
}

impl Default for EncodedKeys {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| OnceCell::new()).collect(), misses: Cell::new(0) }
    }
}

impl EncodedKeys {
    /// The encoded form of a key, if it is a short string and its slot is not another's.
    #[inline]
    fn get(&self, key: &Bound<'_, PyAny>) -> Option<&KnownKey> {
        // A multiplication spreads addresses, which differ in their middle bits.
        let at = (key.as_ptr().addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS);
        let slot = self.slots.get(at as usize)?;
        match slot.get() {
            Some((string, known)) if string.is(key) => Some(known),
            _ => self.keep(slot, key),
        }
    }

    #[cold]
    #[inline(never)]
    fn keep<'s>(
        &self,
        slot: &'s OnceCell<(Py<PyAny>, KnownKey)>,
        key: &Bound<'_, PyAny>,
    ) -> Option<&'s KnownKey> {
        self.misses.set(self.misses.get() + 1);
        let known = KnownKey::new(key.cast_exact::<PyString>().ok()?.to_str().ok()?)?;
        slot.set((key.clone().unbind(), known)).ok()?;
        slot.get().map(|(_, known)| known)
    }
}

/// The text of a key.
#[inline]
fn string<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    match key.cast_exact::<PyString>() {
        Ok(key) => key.to_str(),
        Err(_) => key.cast::<PyString>().map_err(|_| not_a_string())?.to_str(),
    }
}

struct Encoding<'k> {
    encoder: Encoder,
    keys: &'k EncodedKeys,
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

    /// A map whose entries are in canonical order, as decoded ones are, is encoded as it is read; at the first entry that is
    /// not, what was written is taken back.
    #[inline(never)]
    fn map(&mut self, map: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        self.enter(depth)?;
        // Another thread could change the map meanwhile.
        if cfg!(Py_GIL_DISABLED) {
            return self.unsorted_map(map, depth);
        }
        let start = self.encoder.as_bytes().len();
        self.encoder.map(map.len());
        let mut last: Option<Bound<'_, PyAny>> = None;
        let mut last_known: Option<&KnownKey> = None;
        let keys = self.keys;
        for (key, value) in map {
            let known = keys.get(&key);
            let follows = match (&last, last_known, known) {
                (None, ..) => true,
                (_, Some(last), Some(known)) if last.is_surely_before(known) => true,
                (Some(last), ..) => canonical(string(last)?, string(&key)?) == Ordering::Less,
            };
            if !follows {
                self.encoder.truncate(start);
                return self.unsorted_map(map, depth);
            }
            match known {
                Some(known) => self.encoder.known_key(known),
                None => self.encoder.text(string(&key)?),
            };
            self.value(&value, depth + 1)?;
            (last, last_known) = (Some(key), known);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn unsorted_map(&mut self, map: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        let mut entries = Vec::with_capacity(map.len());
        // Without the lock of an interpreter, this holds that of the map.
        let all_strings = map.iter().fold(true, |all, (key, value)| {
            let key = key.cast_into::<PyString>();
            let all = all && key.is_ok();
            entries.extend(key.map(|key| (key, value)));
            all
        });
        if !all_strings {
            return Err(not_a_string());
        }
        let mut texts = Vec::with_capacity(entries.len());
        for (key, value) in &entries {
            texts.push((key.to_str()?, value));
        }
        texts.sort_unstable_by(|(a, _), (b, _)| canonical(a, b));
        self.encoder.map(texts.len());
        for (key, value) in texts {
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

#[cold]
fn not_a_string() -> PyErr {
    error("Map keys must be strings")
}

thread_local! {
    static STATE: Cell<Option<Box<State>>> = const { Cell::new(None) };
}

const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;

/// After as many keys that were not kept, what is kept is given up: it is of no use to the maps of today.
const MAX_MISSES: usize = 4 * SLOTS;

/// A buffer of more bytes is not kept.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Maximum depth for which Python's limit is not asked.
const ANY_DEPTH: usize = 64;

/// In the place of the maximum depth: it was exceeded before Python's limit was asked.
const TOO_DEEP: usize = 0;
