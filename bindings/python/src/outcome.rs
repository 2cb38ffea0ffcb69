//! The classes `Outcome` and `Operation`: views of a judged frame.

use std::sync::Arc;

use bytes::Bytes;
use codec::CidRef;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};

use crate::judged::{Facts, FrameBytes, Judged, OpFacts, Part};
use crate::key_cache::KeyCache;
use crate::objects::{self, Fault};

/// The verdict about one frame, and what the frame says.
///
/// Immutable, and can be pickled. Its parts become Python objects when they are asked for.
///
/// Example:
///     >>> import wireproof
///     >>> [outcome] = wireproof.Judge({}).batch([b"not a frame"])
///     >>> outcome.code, outcome.verdict, outcome.verified, outcome.ops
///     ('frame/cbor', 'refused', False, ())
#[pyclass(frozen, subclass, module = "wireproof")]
pub(crate) struct Outcome {
    pub(crate) judged: Arc<Judged>,
    ops: PyOnceLock<Py<PyTuple>>,
}

impl Outcome {
    pub(crate) fn new(judged: Arc<Judged>) -> Self {
        Self { judged, ops: PyOnceLock::new() }
    }

    fn facts(&self) -> &Facts {
        &self.judged.facts
    }

    fn text<'a>(&'a self, py: Python<'a>, part: &'a Option<Part>) -> Option<&'a str> {
        let frame = self.judged.frame.as_slice(py);
        part.as_ref().map(|part| part.str(frame))
    }

    /// The pickled state.
    pub(crate) fn state(&self, py: Python<'_>) -> State {
        State::of(self.facts(), self.judged.frame.as_slice(py))
    }

    /// The summary of the outcome in a text about it.
    pub(crate) fn summary(&self, py: Python<'_>) -> String {
        let facts = self.facts();
        let did = self.text(py, &facts.did).map_or("None".to_owned(), |did| format!("'{did}'"));
        let seq = facts.seq.map_or("None".to_owned(), |seq| seq.to_string());
        let code = &facts.code;
        let kind = &facts.kind;
        let ops = facts.ops.len();
        format!("code='{code}', kind='{kind}', seq={seq}, did={did}, ops={ops}")
    }
}

#[pymethods]
impl Outcome {
    /// Stable name of the verdict: `verified`, `verified/broken`, `signature/wrong`, ...
    #[getter]
    fn code(&self) -> &str {
        &self.facts().code
    }

    /// Whether the frame is proved to be its account's.
    #[getter]
    fn verified(&self) -> bool {
        self.facts().is_verified
    }

    /// `verified`, `ignored`, `refused`, `unchecked` or `unknown-key`.
    #[getter]
    fn verdict(&self) -> &str {
        &self.facts().verdict
    }

    /// `commit`, `sync`, `identity`, `account`, `info`, `error`, `unknown` or `undecodable`; `resync` of a repository
    /// that `follow` fetched.
    #[getter]
    fn kind(&self) -> &str {
        &self.facts().kind
    }

    /// Sequence number at the host, or None.
    #[getter]
    fn seq(&self) -> Option<u64> {
        self.facts().seq
    }

    /// The account, or None. Proved only if `verified`.
    #[getter]
    fn did<'a>(&'a self, py: Python<'a>) -> Option<&'a str> {
        self.text(py, &self.facts().did)
    }

    /// Revision of the commit, or None. Proved only if `verified`.
    #[getter]
    fn rev<'a>(&'a self, py: Python<'a>) -> Option<&'a str> {
        self.text(py, &self.facts().rev)
    }

    /// The time that the frame states, as text, or None. Never proved.
    #[getter]
    fn time<'a>(&'a self, py: Python<'a>) -> Option<&'a str> {
        self.text(py, &self.facts().time)
    }

    /// How a verified frame continues the known state of its account: `intact`, `first-seen`, `broken`, `still-
    /// desynchronized` or `unproved`; otherwise None.
    #[getter]
    fn chain(&self) -> Option<&str> {
        self.facts().chain.as_deref()
    }

    /// Explanation of `code` for a person, or None.
    #[getter]
    fn message(&self) -> Option<&str> {
        self.facts().message.as_deref()
    }

    /// Tuple of the operations of a verified commit; otherwise empty.
    #[getter]
    fn ops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let create = || {
            let ops = (0..self.facts().ops.len()).map(|index| Operation::new(&self.judged, index));
            let ops = ops.map(|op| Py::new(py, op)).collect::<PyResult<Vec<_>>>()?;
            Ok::<_, PyErr>(PyTuple::new(py, ops)?.unbind())
        };
        Ok(self.ops.get_or_try_init(py, create)?.bind(py).clone())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("Outcome({})", self.summary(py))
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> bool {
        self.state(py) == other.state(py)
    }

    fn __hash__(&self, py: Python<'_>) -> isize {
        let facts = self.facts();
        let key = (facts.seq, self.text(py, &facts.did), self.text(py, &facts.rev), &*facts.code);
        key.into_bound_py_any(py).and_then(|key| key.hash()).unwrap_or_default()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (State,))> {
        let restore = py.import("wireproof._wireproof")?.getattr("_restore_outcome")?;
        Ok((restore, (self.state(py),)))
    }
}

/// One operation of a verified commit on a record.
///
/// Immutable, and can be pickled.
///
/// ```python
/// for operation in outcome.ops:
///     print(operation.action, operation.path, operation.record)
/// ```
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct Operation {
    judged: Arc<Judged>,
    index: usize,
    record: PyOnceLock<Py<PyAny>>,
}

impl Operation {
    fn new(judged: &Arc<Judged>, index: usize) -> Self {
        Self { judged: judged.clone(), index, record: PyOnceLock::new() }
    }

    fn facts(&self) -> &OpFacts {
        &self.judged.facts.ops[self.index]
    }

    fn state(&self, py: Python<'_>) -> OpState {
        OpState::of(self.facts(), self.judged.frame.as_slice(py))
    }

    fn record_slice<'a>(&'a self, py: Python<'a>) -> Option<&'a [u8]> {
        let frame = self.judged.frame.as_slice(py);
        Some(self.facts().record.as_ref()?.bytes(frame))
    }

    fn parts<'a>(&'a self, py: Python<'a>) -> (&'a str, &'a str) {
        let path = self.path(py);
        path.split_once('/').unwrap_or((path, ""))
    }
}

#[pymethods]
impl Operation {
    /// `create`, `update` or `delete`.
    #[getter]
    fn action(&self) -> &str {
        &self.facts().action
    }

    /// `collection/rkey`.
    #[getter]
    fn path<'a>(&'a self, py: Python<'a>) -> &'a str {
        self.facts().path.str(self.judged.frame.as_slice(py))
    }

    /// The collection, such as `app.bsky.feed.post`.
    #[getter]
    fn collection<'a>(&'a self, py: Python<'a>) -> &'a str {
        self.parts(py).0
    }

    /// The record key.
    #[getter]
    fn rkey<'a>(&'a self, py: Python<'a>) -> &'a str {
        self.parts(py).1
    }

    /// CID of the record as text; None for a delete.
    #[getter]
    fn cid(&self, py: Python<'_>) -> Option<String> {
        let cid = self.facts().cid.as_ref()?.bytes(self.judged.frame.as_slice(py));
        CidRef::from_bytes(cid).map(|cid| cid.to_string())
    }

    /// The record as Python objects, made at the first access, the same object each time: maps as `dict`, links as the
    /// `bytes` of their CIDs. None for a delete, and for a record that is invalid: not canonical DAG-CBOR, or not a
    /// map.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let create = || Ok::<_, PyErr>(record_object(py, self.record_slice(py))?.unbind());
        Ok(self.record.get_or_try_init(py, create)?.bind(py).clone())
    }

    /// The DAG-CBOR of the record as `bytes`, whose hash is that of `cid`; None for a delete.
    #[getter]
    fn record_bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.record_slice(py).map(|record| PyBytes::new(py, record))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let cid = self.cid(py).map_or("None".to_owned(), |cid| format!("'{cid}'"));
        format!("Operation(action='{}', path='{}', cid={cid})", self.action(), self.path(py))
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> bool {
        self.state(py) == other.state(py)
    }

    fn __hash__(&self, py: Python<'_>) -> isize {
        let key = (self.action(), self.path(py), self.cid(py));
        key.into_bound_py_any(py).and_then(|key| key.hash()).unwrap_or_default()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (OpState,))> {
        let restore = py.import("wireproof._wireproof")?.getattr("_restore_operation")?;
        Ok((restore, (self.state(py),)))
    }
}

/// The object of a record; None if it is missing or invalid.
fn record_object<'py>(py: Python<'py>, record: Option<&[u8]>) -> PyResult<Bound<'py, PyAny>> {
    let none = || Ok(py.None().into_bound(py));
    let Some(record) = record else { return none() };
    match KeyCache::using(|keys| objects::decode_prefix(py, record, keys)) {
        Ok((object, len)) if len == record.len() && record[0] >> 5 == MAP => Ok(object),
        Err(Fault::Raised(error)) => Err(error),
        _ => none(),
    }
}

/// Major type of a map in CBOR.
const MAP: u8 = 5;

/// A pickled outcome.
#[derive(FromPyObject, IntoPyObject, PartialEq, Eq)]
#[pyo3(from_item_all)]
pub(crate) struct State {
    code: String,
    verdict: String,
    kind: String,
    chain: Option<String>,
    is_verified: bool,
    seq: Option<u64>,
    did: Option<Vec<u8>>,
    rev: Option<Vec<u8>>,
    time: Option<Vec<u8>>,
    ops: Vec<OpState>,
    message: Option<String>,
}

/// A pickled operation: action, path, and the bytes of CID and record.
#[derive(FromPyObject, IntoPyObject, PartialEq, Eq)]
#[pyo3(from_item_all)]
pub(crate) struct OpState {
    action: String,
    path: Vec<u8>,
    cid: Option<Vec<u8>>,
    record: Option<Vec<u8>>,
}

impl State {
    /// The state of the facts about a frame.
    pub(crate) fn of(facts: &Facts, frame: &[u8]) -> Self {
        let bytes = |part: &Option<Part>| part.as_ref().map(|part| part.bytes(frame).to_vec());
        Self {
            code: facts.code.to_string(),
            verdict: facts.verdict.to_string(),
            kind: facts.kind.to_string(),
            chain: facts.chain.as_ref().map(ToString::to_string),
            is_verified: facts.is_verified,
            seq: facts.seq,
            did: bytes(&facts.did),
            rev: bytes(&facts.rev),
            time: bytes(&facts.time),
            ops: facts.ops.iter().map(|op| OpState::of(op, frame)).collect(),
            message: facts.message.as_deref().map(str::to_owned),
        }
    }

    pub(crate) fn into_facts(self) -> Facts {
        Facts {
            code: self.code.into(),
            verdict: self.verdict.into(),
            kind: self.kind.into(),
            chain: self.chain.map(Into::into),
            is_verified: self.is_verified,
            seq: self.seq,
            did: own(self.did),
            rev: own(self.rev),
            time: own(self.time),
            ops: self.ops.into_iter().map(OpState::into_facts).collect(),
            message: self.message.map(String::into_boxed_str),
        }
    }
}

impl OpState {
    fn of(op: &OpFacts, frame: &[u8]) -> Self {
        let bytes = |part: &Part| part.bytes(frame).to_vec();
        Self {
            action: op.action.to_string(),
            path: bytes(&op.path),
            cid: op.cid.as_ref().map(bytes),
            record: op.record.as_ref().map(bytes),
        }
    }

    fn into_facts(self) -> OpFacts {
        OpFacts {
            action: self.action.into(),
            path: Part::Own(self.path.into()),
            cid: own(self.cid),
            record: own(self.record),
        }
    }
}

fn own(bytes: Option<Vec<u8>>) -> Option<Part> {
    bytes.map(|bytes| Part::Own(bytes.into()))
}

/// A judged frame of pickled facts.
pub(crate) fn restored(facts: Facts, frame: Bytes) -> Arc<Judged> {
    Arc::new(Judged { frame: FrameBytes::Shared(frame), facts })
}

/// Makes an outcome of its pickled state.
#[pyfunction]
pub(crate) fn _restore_outcome(state: State) -> Outcome {
    Outcome::new(restored(state.into_facts(), Bytes::new()))
}

/// Makes an operation of its pickled state.
#[pyfunction]
pub(crate) fn _restore_operation(state: OpState) -> Operation {
    let mut facts = Facts::of_kind("commit");
    facts.ops = Box::new([state.into_facts()]);
    Operation::new(&restored(facts, Bytes::new()), 0)
}
