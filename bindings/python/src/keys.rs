//! The key that a caller gives: itself, or in a DID document, or in a did:plc log.

use atproto::did_document::{self, DidDocument};
use atproto::syntax::DidBuf;
use crypto::PublicKey;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use verify::{identity, plc};

use crate::arguments::wrong_value;
use crate::errors::Class;

/// The arguments by which a caller names the signing key of an account. Exactly one of the three.
pub(crate) struct KeyArguments<'a, 'py> {
    pub(crate) key: Option<&'a str>,
    pub(crate) doc: Option<&'a Bound<'py, PyAny>>,
    pub(crate) plc_log: Option<&'a Bound<'py, PyAny>>,
}

impl KeyArguments<'_, '_> {
    /// The key, and the account that the document or the log is of.
    pub(crate) fn resolve(&self, did: Option<&str>) -> PyResult<(PublicKey, Option<String>)> {
        match (self.key, self.doc, self.plc_log) {
            (Some(key), None, None) => {
                let key = PublicKey::from_did_key(key);
                let key = key.map_err(|error| wrong_value("key", error))?;
                Ok((key, did.map(str::to_owned)))
            }
            (None, Some(document), None) => of_document(document),
            (None, None, Some(log)) => of_log(log, did),
            _ => Err(PyTypeError::new_err("exactly one of key, doc and plc_log must be given")),
        }
    }
}

fn of_document(document: &Bound<'_, PyAny>) -> PyResult<(PublicKey, Option<String>)> {
    let failed = |error: &dyn std::fmt::Display| wrong_value("doc", error);
    let json = json_of(document, "doc")?;
    let document = DidDocument::parse(&json, &did_document::Options::default());
    let document = document.map_err(|error| failed(&error))?;
    let key = identity::signing_key(&document).map_err(|error| failed(&error))?;
    let key = key.ok_or_else(|| failed(&"the document has no #atproto key"))?;
    Ok((key, Some(document.did().to_string())))
}

fn of_log(log: &Bound<'_, PyAny>, did: Option<&str>) -> PyResult<(PublicKey, Option<String>)> {
    let json = json_of(log, "plc_log")?;
    let mut options = plc::Options::default();
    if let Some(did) = did {
        let did = did.parse::<DidBuf>();
        options.did = Some(did.map_err(|error| wrong_value("did", error))?);
    }
    let py = log.py();
    let history = py.detach(|| plc::verify(&json, &options));
    let history = history.map_err(|why| {
        Class::Rejection.error(py, format!("argument 'plc_log': {why}"), why.code(), None)
    })?;
    let key = history.signing_key();
    let key = key.ok_or_else(|| wrong_value("plc_log", "it ends without a signing key"))?;
    Ok((key, Some(history.did().to_string())))
}

/// JSON as its bytes: `bytes` and `str` are JSON already, anything else came from `json.loads`.
fn json_of(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    let json = value.py().import("json")?.call_method1("dumps", (value,));
    let json =
        json.map_err(|error| PyTypeError::new_err(format!("argument '{argument}': {error}")))?;
    Ok(json.cast::<PyString>()?.to_str()?.as_bytes().to_vec())
}
