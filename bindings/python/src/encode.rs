//! Python objects as canonical DAG-CBOR.

use std::cmp::Ordering;

use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
use wireproof::codec::cbor::{Encoder, Value, WideInteger};
use wireproof::codec::cid::CidRef;

/// The bytes of an object. `bytes` that are a CID are a link, as the decoder gives it.
pub(crate) fn encode(object: &Bound<'_, PyAny>, max_depth: usize) -> PyResult<Vec<u8>> {
    let mut encoding = Encoding { encoder: Encoder::new(), max_depth };
    encoding.value(object, 0)?;
    Ok(encoding.encoder.into_bytes())
}

struct Encoding {
    encoder: Encoder,
    max_depth: usize,
}

impl Encoding {
    fn value(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        // By exact type, in the order of their frequency in records; subclasses are rare.
        if let Ok(text) = object.cast_exact::<PyString>() {
            self.encoder.text(text.to_str()?);
        } else if let Ok(map) = object.cast_exact::<PyDict>() {
            self.map(map, depth)?;
        } else if let Ok(integer) = object.cast_exact::<PyInt>() {
            self.integer(integer)?;
        } else if let Ok(items) = object.cast_exact::<PyList>() {
            self.list(items, depth)?;
        } else if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            self.bytes(bytes.as_bytes());
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

    fn map(&mut self, map: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        self.enter(depth)?;
        let mut entries = Vec::with_capacity(map.len());
        for (key, value) in map.iter() {
            let key = key.cast_into::<PyString>().map_err(|_| error("Map keys must be strings"))?;
            entries.push((key, value));
        }
        // Every key has its UTF-8 form from here on: `to_str` of each succeeds again.
        for (key, _) in &entries {
            key.to_str()?;
        }
        let text =
            |key: &Bound<'_, PyString>| key.to_str().map_or_else(|_| String::new(), str::to_owned);
        let order =
            |a: &Bound<'_, PyString>, b: &Bound<'_, PyString>| match (a.to_str(), b.to_str()) {
                (Ok(a), Ok(b)) => canonical(a, b),
                _ => canonical(&text(a), &text(b)),
            };
        entries.sort_unstable_by(|(a, _), (b, _)| order(a, b));
        self.encoder.map(entries.len());
        for (key, value) in &entries {
            self.encoder.text(key.to_str()?);
            self.value(value, depth + 1)?;
        }
        Ok(())
    }

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

    fn enter(&self, depth: usize) -> PyResult<()> {
        if depth > self.max_depth {
            let message = "maximum recursion depth exceeded in DAG-CBOR encoding";
            return Err(PyRecursionError::new_err(message));
        }
        Ok(())
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

    fn bytes(&mut self, bytes: &[u8]) {
        match CidRef::from_bytes(bytes) {
            Some(cid) => self.encoder.link(cid),
            None => self.encoder.bytes(bytes),
        };
    }
}

/// The canonical order of keys: by length, then by bytes.
fn canonical(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn error(what: &str) -> PyErr {
    PyValueError::new_err(format!("Failed to encode DAG-CBOR. {what}"))
}
