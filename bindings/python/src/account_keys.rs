//! The signing keys of accounts, from a caller's mapping or function.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crypto::CompressedKey;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::arguments::{wrong_type, wrong_value};

/// The argument `keys`, and the keys that it gave.
pub(crate) struct AccountKeys {
    source: Py<PyAny>,
    kind: Kind,
    known: Mutex<HashMap<Box<str>, Arc<KnownKey>>>,
}

/// Keys by DID.
pub(crate) type FoundKeys<'a> = HashMap<&'a str, CompressedKey>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Has `get(did)`. It may change, and is asked every time.
    Mapping,
    /// Is called with a DID.
    Function,
    /// Is called with a list of DIDs, and returns a mapping or a sequence.
    BatchFunction,
}

/// A key that was parsed, with its text.
#[derive(Debug)]
struct KnownKey {
    text: Box<str>,
    key: CompressedKey,
}

/// An account, and its key if there is one.
struct Entry<'a> {
    did: &'a str,
    key: Option<Arc<KnownKey>>,
    /// Whether the key is another than before.
    is_new: bool,
}

impl AccountKeys {
    pub(crate) fn new(keys: &Bound<'_, PyAny>, is_batched: bool) -> PyResult<Self> {
        let kind = if keys.hasattr("get")? && !is_batched {
            Kind::Mapping
        } else if !keys.is_callable() {
            return Err(wrong_type("keys", "a mapping or a function", keys));
        } else if is_batched {
            Kind::BatchFunction
        } else {
            Kind::Function
        };
        Ok(Self { source: keys.clone().unbind(), kind, known: Mutex::default() })
    }

    /// The keys of different accounts, as far as there are any.
    pub(crate) fn find<'a>(
        &self,
        py: Python<'_>,
        dids: impl IntoIterator<Item = &'a str> + Send,
    ) -> PyResult<FoundKeys<'a>> {
        let mut entries = py.detach(|| self.known_of(dids));
        let mut asked: Vec<&mut Entry<'a>> =
            entries.iter_mut().filter(|entry| self.is_asked(entry)).collect();
        if !asked.is_empty() {
            self.ask(py, &mut asked)?;
            py.detach(|| self.keep(&asked));
        }
        let key = |entry: Entry<'a>| Some((entry.did, entry.key?.key));
        Ok(entries.into_iter().filter_map(key).collect())
    }

    /// Drops the keys of these accounts, so that the function is asked again.
    pub(crate) fn forget(&self, dids: &[Box<str>]) {
        let mut known = self.lock();
        dids.iter().for_each(|did| drop(known.remove(did)));
    }

    fn known_of<'a>(&self, dids: impl IntoIterator<Item = &'a str>) -> Vec<Entry<'a>> {
        let known = self.lock();
        let entry = |did| Entry { did, key: known.get(did).cloned(), is_new: false };
        dids.into_iter().map(entry).collect()
    }

    fn is_asked(&self, entry: &Entry<'_>) -> bool {
        self.kind == Kind::Mapping || entry.key.is_none()
    }

    fn ask(&self, py: Python<'_>, asked: &mut [&mut Entry<'_>]) -> PyResult<()> {
        let source = self.source.bind(py);
        match self.kind {
            Kind::Mapping => set_each(asked, |did| get(source, did)),
            Kind::Function => set_each(asked, |did| source.call1((did,)).map(Some)),
            Kind::BatchFunction => {
                let dids = PyList::new(py, asked.iter().map(|entry| entry.did))?;
                set_answer(asked, &source.call1((dids,))?)
            }
        }
    }

    fn keep(&self, asked: &[&mut Entry<'_>]) {
        let is_new = |entry: &&&mut Entry<'_>| entry.is_new;
        let count = asked.iter().filter(is_new).count();
        let mut known = self.lock();
        if known.len() + count > MAX_KNOWN {
            known.clear();
        }
        for entry in asked.iter().filter(is_new) {
            if let Some(key) = &entry.key {
                known.insert(entry.did.into(), key.clone());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<KnownKey>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn get<'py>(mapping: &Bound<'py, PyAny>, did: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match mapping.cast::<PyDict>() {
        Ok(dict) => dict.get_item(did),
        Err(_) => mapping.call_method1("get", (did,)).map(Some),
    }
}

/// Sets the keys that a function returned for a list of accounts.
fn set_answer(asked: &mut [&mut Entry<'_>], answer: &Bound<'_, PyAny>) -> PyResult<()> {
    if answer.hasattr("get")? {
        return set_each(asked, |did| get(answer, did));
    }
    let (returned, accounts) = (answer.len()?, asked.len());
    if returned != accounts {
        let why = format!("the function returned {returned} keys for {accounts} accounts");
        return Err(wrong_value("keys", why));
    }
    let mut keys = answer.try_iter()?;
    set_each(asked, |_| keys.next().transpose())
}

fn set_each<'py>(
    asked: &mut [&mut Entry<'_>],
    mut answer: impl FnMut(&str) -> PyResult<Option<Bound<'py, PyAny>>>,
) -> PyResult<()> {
    for entry in asked.iter_mut().map(|entry| &mut **entry) {
        let (before, answer) = (entry.key.take(), answer(entry.did)?);
        if let Some(answer) = answer.filter(|answer| !answer.is_none()) {
            let key = KnownKey::of(entry.did, &answer, before.as_ref())?;
            entry.is_new = before.is_none_or(|before| !Arc::ptr_eq(&before, &key));
            entry.key = Some(key);
        }
    }
    Ok(())
}

impl KnownKey {
    /// The key of an answer, without parsing it if it has the text of the key before.
    fn of(did: &str, answer: &Bound<'_, PyAny>, before: Option<&Arc<Self>>) -> PyResult<Arc<Self>> {
        let Ok(text) = answer.cast::<PyString>() else {
            let expected = format!("did:key text or None for {did}");
            return Err(wrong_type("keys", &expected, answer));
        };
        let text = text.to_str()?;
        if let Some(known) = before.filter(|known| *known.text == *text) {
            return Ok(known.clone());
        }
        let key = CompressedKey::from_did_key(text)
            .map_err(|error| wrong_value("keys", format!("the key of {did}: {error}")))?;
        Ok(Arc::new(Self { text: text.into(), key }))
    }
}

/// Keys that are kept; beyond, all are asked for again.
const MAX_KNOWN: usize = 500_000;
