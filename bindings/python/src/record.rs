//! Records, and the proof of one from a slice of its repository.

use std::sync::Arc;

use codec::json::{self, ItemJsonError};
use codec::{Cid, cbor};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use verify::record::{self, Options};

use crate::errors::{self, Class};
use crate::key_cache::KeyCache;
use crate::keys::KeyArguments;
use crate::objects::{self, Fault};
use crate::source::Source;

/// A record of an account.
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct Record {
    pub(crate) did: Arc<str>,
    pub(crate) path: Box<str>,
    pub(crate) cid: Cid,
    pub(crate) block: Py<PyBytes>,
}

#[pymethods]
impl Record {
    /// The account.
    #[getter]
    fn did(&self) -> &str {
        &self.did
    }

    /// The collection and the record key, with a slash between.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The collection.
    #[getter]
    fn collection(&self) -> &str {
        split(&self.path).0
    }

    /// The record key.
    #[getter]
    fn rkey(&self) -> &str {
        split(&self.path).1
    }

    /// The `at://` URI.
    #[getter]
    fn uri(&self) -> String {
        format!("at://{}/{}", self.did, self.path)
    }

    /// The CID as text.
    #[getter]
    fn cid(&self) -> String {
        self.cid.to_string()
    }

    /// The DAG-CBOR of the record.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> Py<PyBytes> {
        self.block.clone_ref(py)
    }

    /// The record as an object, made anew by each access. CIDs are `bytes`.
    ///
    /// Raises:
    ///     DecodeError: the record is not canonical DAG-CBOR.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value(py, self.block.as_bytes(py))
    }

    /// The JSON of the record.
    ///
    /// Raises:
    ///     DecodeError: the record is not canonical DAG-CBOR, or has no JSON form.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let mut json = Vec::new();
        match json::append_item(&mut json, self.block.as_bytes(py)) {
            Ok(()) => Ok(String::from_utf8(json)?),
            Err(ItemJsonError::Cbor(error)) => Err(errors::of_cbor(py, error)),
            Err(error) => Err(Class::Decode.error(py, error.to_string(), "json", None)),
        }
    }

    fn __repr__(&self) -> String {
        format!("Record({:?}, cid={:?})", self.uri(), self.cid())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.did == other.did && self.path == other.path && self.cid == other.cid
    }

    fn __hash__(&self) -> isize {
        let end = self.cid.digest().last_chunk().copied().unwrap_or_default();
        isize::from_le_bytes(end)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, RecordParts)> {
        let (py, record) = (slf.py(), slf.get());
        let parts = (record.did.to_string(), record.path.to_string(), record.block.clone_ref(py));
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    #[classmethod]
    fn _restore(_: &Bound<'_, PyType>, did: &str, path: &str, block: Bound<'_, PyBytes>) -> Self {
        let cid = Cid::of(codec::cid::Codec::DagCbor, block.as_bytes());
        Self { did: did.into(), path: path.into(), cid, block: block.unbind() }
    }
}

/// DID, path and bytes.
type RecordParts = (String, String, Py<PyBytes>);

/// The collection and the record key of a path.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.split_once('/').unwrap_or((path, ""))
}

/// The object of a record.
pub(crate) fn value<'py>(py: Python<'py>, block: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let decoded = KeyCache::using(|keys| objects::decode_prefix(py, block, keys));
    let (value, len) = decoded.map_err(|fault| match fault {
        Fault::Decode(error) => errors::of_cbor(py, error),
        Fault::Raised(error) => error,
    })?;
    if len == block.len() {
        Ok(value)
    } else {
        let reason = cbor::Reason::TrailingBytes;
        Err(errors::of_cbor(py, cbor::DecodeError { offset: len, reason }))
    }
}

/// What an account's repository has at a path: a record, or proof that there is none.
#[pyclass(frozen, get_all, module = "wireproof")]
pub(crate) struct RecordProof {
    /// The account.
    did: String,
    /// The revision of the repository.
    rev: String,
    /// The CID of the signed commit as text.
    root: String,
    /// The path.
    path: String,
    /// The record; `None` if the repository has none at the path.
    record: Option<Py<Record>>,
    /// The rule that the record breaks, if it is signed and not valid.
    invalid: Option<String>,
}

#[pymethods]
impl RecordProof {
    fn __repr__(&self) -> String {
        let what = if self.record.is_some() { "present" } else { "absent" };
        format!("RecordProof(did={:?}, rev={:?}, path={:?}, {what})", self.did, self.rev, self.path)
    }

    fn __bool__(&self) -> bool {
        self.record.is_some()
    }
}

/// Prove a record, or that there is none, from a slice of its repository as `com.atproto.sync.getRecord` gives it.
///
/// Args:
///     slice: the archive of the slice, as `bytes`, or the path of a file (`str` or `os.PathLike`).
///     path: the `at://` URI of the record, or its collection and record key with a slash between.
///     key, doc, plc_log, did, strict_records: as for `verify_repo`. The account in the URI is expected too.
///
/// Returns:
///     `RecordProof`, which is true if the record is there.
///
/// Raises:
///     CarError, Rejection: as `verify_repo`, or a node on the path is missing.
///     TypeError, ValueError: an argument is of a wrong type or cannot be read.
///     OSError: the file cannot be read.
#[pyfunction]
#[pyo3(signature = (slice, path, key = None, *, doc = None, plc_log = None, did = None, strict_records = false))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn verify_record(
    py: Python<'_>,
    slice: &Bound<'_, PyAny>,
    path: &str,
    key: Option<&str>,
    doc: Option<&Bound<'_, PyAny>>,
    plc_log: Option<&Bound<'_, PyAny>>,
    did: Option<&str>,
    strict_records: bool,
) -> PyResult<RecordProof> {
    let (named, path) = match path.strip_prefix("at://").and_then(|rest| rest.split_once('/')) {
        Some((did, path)) => (Some(did), path),
        None => (None, path),
    };
    let (key, of_key) = KeyArguments { key, doc, plc_log }.resolve(did.or(named))?;
    let expected = did.or(named).or(of_key.as_deref());
    let source = Source::of(slice, "slice")?;
    let mut options = Options::default();
    options.strict_records = strict_records;
    let proof = py.detach(|| record::verify(&source, path, expected, &key, &options));
    let proof = proof.map_err(|why| errors::of_repository(py, &why))?;
    let did: Arc<str> = proof.commit().did.into();
    let record = match proof.record() {
        None => None,
        Some((cid, bytes)) => {
            let block = PyBytes::new(py, bytes).unbind();
            Some(Py::new(py, Record { did: did.clone(), path: path.into(), cid, block })?)
        }
    };
    Ok(RecordProof {
        did: did.to_string(),
        rev: proof.commit().rev.to_owned(),
        root: proof.root().to_string(),
        path: path.to_owned(),
        record,
        invalid: proof.invalid_record().map(|invalid| invalid.error.to_string()),
    })
}
