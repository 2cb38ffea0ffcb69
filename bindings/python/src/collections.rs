//! All records of some collections of an account, proved by a slice of its repository.

use std::collections::BTreeMap;
use std::sync::Arc;

use atproto::syntax::CollectionPatternBuf;
use net::xrpc::{FetchError, FetchedSlice, SliceError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyTuple};
use verify::record::Options;

use crate::account::{self, Download, download_error};
use crate::arguments::{boolean, wrong_value};
use crate::errors::{self, Class};
use crate::keys::KeyArguments;
use crate::record::Record;
use crate::resolve::Identity;
use crate::source::Source;

/// All records of some collections of an account, and the proof that these collections have no others.
#[pyclass(frozen, get_all, module = "wireproof")]
pub(crate) struct CollectionsProof {
    /// The account.
    did: String,
    /// The revision of the repository.
    rev: String,
    /// The CID of the signed commit as text.
    root: String,
    /// The collections, as they were given.
    collections: Py<PyTuple>,
    /// The records, in the order of their paths.
    records: Py<PyTuple>,
    /// The rules that invalid records break, by the paths of the records.
    invalid: BTreeMap<String, String>,
    /// The account, as its DID document describes it: of `verify_account_collections`, otherwise None.
    identity: Option<Py<Identity>>,
    /// The archive of the slice that was downloaded, which proves the same offline; None if it was given.
    slice: Option<Py<PyBytes>>,
    /// Number of bytes that were downloaded.
    received_bytes: u64,
    /// Why the whole repository was downloaded, if it was: it costs less, or the server has no `getBlocks`.
    whole_repository: Option<String>,
}

#[pymethods]
impl CollectionsProof {
    fn __len__(&self, py: Python<'_>) -> usize {
        self.records.bind(py).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.records.bind(py).try_iter()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (did, rev, collections) = (&self.did, &self.rev, self.collections.bind(py).repr()?);
        let records = self.__len__(py);
        Ok(format!(
            "CollectionsProof(did={did:?}, rev={rev:?}, collections={collections}, records={records})"
        ))
    }
}

/// Prove all records of some collections, and that these have no others, from a slice of the repository.
///
/// `wireproof verify ACCOUNT --collection NSID --save slice.car` downloads such a slice, and so does `verify_account_collections`. A whole
/// repository is one too.
///
/// Args:
///     slice: the archive of the slice, as `bytes`, or the path of a file (`str` or `os.PathLike`).
///     collections: names of collections, such as `app.bsky.feed.post`, or `app.bsky.feed.*` for all collections below it.
///     key, doc, plc_log, did, strict_records: as for `verify_repo`.
///
/// Returns:
///     The proved records.
///
/// Raises:
///     CarError, Rejection: as `verify_repo`, or a node that can have keys of the collections is missing.
///     TypeError, ValueError: an argument is of a wrong type or cannot be read.
///     OSError: the file cannot be read.
///
/// ```python
/// proof = wireproof.verify_collections(pathlib.Path("posts.car"), ["app.bsky.feed.post"], doc=document)
/// print(len(proof), "posts, and no others, at", proof.rev)
/// ```
#[pyfunction]
#[pyo3(signature = (slice, collections, key = None, *, doc = None, plc_log = None, did = None, strict_records = false))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn verify_collections(
    py: Python<'_>,
    slice: &Bound<'_, PyAny>,
    collections: &Bound<'_, PyAny>,
    key: Option<&str>,
    doc: Option<&Bound<'_, PyAny>>,
    plc_log: Option<&Bound<'_, PyAny>>,
    did: Option<&str>,
    strict_records: bool,
) -> PyResult<CollectionsProof> {
    let collections = patterns(collections)?;
    let (key, of_key) = KeyArguments { key, doc, plc_log }.resolve(did)?;
    let expected = did.or(of_key.as_deref());
    let source = Source::of(slice, "slice")?;
    let mut options = Options::default();
    options.strict_records = strict_records;
    let proof =
        py.detach(|| verify::collections::verify(&source, &collections, expected, &key, &options));
    let proof = proof.map_err(|why| errors::of_repository(py, &why))?;
    CollectionsProof::new(py, &collections, &proof)
}

/// Prove all records of some collections of an account end to end: the handle, the DID, its document, and the part of the repository
/// that proves these records complete. Only this part is downloaded, where that costs less than the whole repository.
///
/// Args:
///     account: as for `verify_account`.
///     collections: names of collections, such as `app.bsky.feed.post`, or `app.bsky.feed.*` for all collections below it.
///     host, strict_records, max_bytes, max_seconds, max_silent_seconds, min_rate, plc, development, development_port: as for
///         `verify_account`. The limits are for all requests together.
///
/// Returns:
///     The proved records. `slice` proves them again offline, with `verify_collections`.
///
/// Raises:
///     TypeError, ValueError, IdentityError, NetworkError, CarError: as `verify_account`.
///     Rejection: as `verify_account`, or the server withholds a part of the proof.
///
/// ```python
/// proof = wireproof.verify_account_collections("atproto.com", ["app.bsky.feed.post"])
/// for post in proof:
///     print(post.uri, post.value["text"])
/// ```
#[pyfunction]
#[pyo3(signature = (
    account, collections, *, host = None, strict_records = None, max_bytes = None, max_seconds = None,
    max_silent_seconds = None, min_rate = None, plc = None, development = None, development_port = None,
))]
#[pyo3(
    text_signature = "(account, collections, *, host=None, strict_records=False, max_bytes=536870912, max_seconds=300.0, max_silent_seconds=30.0, min_rate=4096, plc=None, development=False, development_port=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn verify_account_collections(
    py: Python<'_>,
    account: &Bound<'_, PyAny>,
    collections: &Bound<'_, PyAny>,
    host: Option<&Bound<'_, PyAny>>,
    strict_records: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'_, PyAny>>,
    max_seconds: Option<&Bound<'_, PyAny>>,
    max_silent_seconds: Option<&Bound<'_, PyAny>>,
    min_rate: Option<&Bound<'_, PyAny>>,
    plc: Option<&Bound<'_, PyAny>>,
    development: Option<&Bound<'_, PyAny>>,
    development_port: Option<&Bound<'_, PyAny>>,
) -> PyResult<CollectionsProof> {
    let limits = account::LimitArguments { max_bytes, max_seconds, max_silent_seconds, min_rate }
        .limits()?;
    let download = Download::of_arguments(account, host, plc, development, development_port)?;
    let collections = patterns(collections)?;
    let mut options = Options::default();
    options.archive.max_total_bytes = limits.max_bytes;
    if let Some(strict_records) = strict_records {
        options.strict_records = boolean("strict_records", strict_records)?;
    }
    let (identity, key, slice) = py.detach(|| {
        download.run(async |xrpc, host, did| {
            let fetched = xrpc.fetch_collections(host, did, &collections, &limits).await;
            fetched.map_err(slice_error)
        })
    })?;
    let did = identity.did().to_owned();
    let FetchedSlice { archive, received, whole, .. } = slice;
    let verified = py
        .detach(|| verify::collections::verify(&archive, &collections, Some(&did), &key, &options));
    let verified = verified.map_err(|why| errors::of_repository(py, &why))?;
    Ok(CollectionsProof {
        identity: Some(Py::new(py, identity)?),
        slice: Some(PyBytes::new(py, &archive).unbind()),
        received_bytes: received,
        whole_repository: whole.map(|reason| reason.to_string()),
        ..CollectionsProof::new(py, &collections, &verified)?
    })
}

impl CollectionsProof {
    fn new(
        py: Python<'_>,
        collections: &[CollectionPatternBuf],
        proof: &verify::collections::CollectionsProof<'_>,
    ) -> PyResult<Self> {
        let did: Arc<str> = proof.commit().did.into();
        let mut records = Vec::with_capacity(proof.records().len());
        let mut invalid = BTreeMap::new();
        for record in proof.records() {
            let block = PyBytes::new(py, record.bytes).unbind();
            let (did, path) = (did.clone(), record.path.as_str().into());
            records.push(Py::new(py, Record { did, path, cid: record.cid, block })?);
            if let Some(broken) = &record.invalid {
                invalid.insert(record.path.clone(), broken.error.to_string());
            }
        }
        Ok(Self {
            did: did.to_string(),
            rev: proof.commit().rev.to_owned(),
            root: proof.root().to_string(),
            collections: PyTuple::new(py, collections.iter().map(CollectionPatternBuf::as_str))?
                .unbind(),
            records: PyTuple::new(py, records)?.unbind(),
            invalid,
            identity: None,
            slice: None,
            received_bytes: 0,
            whole_repository: None,
        })
    }
}

fn patterns(collections: &Bound<'_, PyAny>) -> PyResult<Vec<CollectionPatternBuf>> {
    if let Ok(text) = collections.extract::<String>() {
        let why = format!("a list is expected: write [{text:?}]");
        return Err(wrong_value("collections", why));
    }
    let names: Vec<String> =
        collections.try_iter()?.map(|name| name?.extract()).collect::<PyResult<_>>()?;
    let pattern = |name: &String| {
        name.parse().map_err(|error| wrong_value("collections", format!("{name:?}: {error}")))
    };
    let patterns: Vec<_> = names.iter().map(pattern).collect::<PyResult<_>>()?;
    if patterns.is_empty() {
        return Err(wrong_value("collections", "no collection is named".to_owned()));
    }
    Ok(patterns)
}

/// The error of a download: of the network, or of an answer that breaks a rule.
fn slice_error(error: SliceError) -> PyErr {
    let option = match &error {
        SliceError::Size(_) => " (the limit of max_bytes)",
        SliceError::Time(_) => " (the limit of max_seconds)",
        _ => "",
    };
    let (message, code) = (format!("{error}{option}"), error.code());
    let class = match error {
        SliceError::Xrpc(error) => return download_error(FetchError::Remote(error)),
        SliceError::Archive { .. } => Class::Car,
        _ if code.is_some() => Class::Rejection,
        _ => Class::Network,
    };
    Python::attach(|py| class.error(py, message, code.unwrap_or("network/repository"), None))
}
