//! The keys of accounts from a caller's mapping or function, asked for once a batch.

use std::collections::HashMap;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use wireproof::crypto::CompressedKey;

/// The keys that were found, by DID.
pub(crate) type FoundKeys = HashMap<String, CompressedKey>;

/// The argument `keys`.
pub(crate) struct AccountKeys {
    keys: Py<PyAny>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Has `get(did)`.
    Mapping,
    /// Is called with a DID.
    Function,
    /// Is called with a list of DIDs, and returns a mapping or a sequence.
    BatchFunction,
}

impl AccountKeys {
    pub(crate) fn new(keys: &Bound<'_, PyAny>, is_batched: bool) -> PyResult<Self> {
        let kind = if keys.hasattr("get")? && !is_batched {
            Kind::Mapping
        } else if !keys.is_callable() {
            let name = keys.get_type().name()?;
            let message = format!("argument 'keys': expected a dict or a function, not {name}");
            return Err(PyTypeError::new_err(message));
        } else if is_batched {
            Kind::BatchFunction
        } else {
            Kind::Function
        };
        Ok(Self { keys: keys.clone().unbind(), kind })
    }

    /// The keys of these accounts, as far as they are known. The caller must not hold the interpreter's lock for long: this
    /// takes it.
    pub(crate) fn look_up(&self, dids: &[&str]) -> PyResult<FoundKeys> {
        if dids.is_empty() {
            return Ok(FoundKeys::new());
        }
        Python::attach(|py| {
            let keys = self.keys.bind(py);
            match self.kind {
                Kind::Mapping => look_up_each(dids, |did| match keys.cast::<PyDict>() {
                    Ok(keys) => keys.get_item(did),
                    Err(_) => keys.call_method1("get", (did,)).map(Some),
                }),
                Kind::Function => look_up_each(dids, |did| keys.call1((did,)).map(Some)),
                Kind::BatchFunction => {
                    look_up_answer(dids, &keys.call1((PyList::new(py, dids)?,))?)
                }
            }
        })
    }
}

/// Reads what a function returned for a list of accounts.
fn look_up_answer(dids: &[&str], answer: &Bound<'_, PyAny>) -> PyResult<FoundKeys> {
    if answer.hasattr("get")? {
        return look_up_each(dids, |did| answer.call_method1("get", (did,)).map(Some));
    }
    if answer.len()? != dids.len() {
        let message = format!(
            "argument 'keys': the function returned {} keys for {} accounts",
            answer.len()?,
            dids.len()
        );
        return Err(PyValueError::new_err(message));
    }
    let mut keys = answer.try_iter()?;
    look_up_each(dids, |_| keys.next().transpose())
}

fn look_up_each<'py>(
    dids: &[&str],
    mut get: impl FnMut(&str) -> PyResult<Option<Bound<'py, PyAny>>>,
) -> PyResult<FoundKeys> {
    let mut found = FoundKeys::with_capacity(dids.len());
    for did in dids {
        if let Some(key) = get(did)?.filter(|key| !key.is_none()) {
            found.insert((*did).to_owned(), key_of(did, &key)?);
        }
    }
    Ok(found)
}

fn key_of(did: &str, key: &Bound<'_, PyAny>) -> PyResult<CompressedKey> {
    let Ok(text) = key.cast::<PyString>() else {
        let name = key.get_type().name()?;
        let message = format!("argument 'keys': the key of {did} is {name} instead of str or None");
        return Err(PyTypeError::new_err(message));
    };
    CompressedKey::from_did_key(text.to_str()?).map_err(|error| {
        PyValueError::new_err(format!("argument 'keys': the key of {did}: {error}"))
    })
}
