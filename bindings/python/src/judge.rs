//! The class `Judge`: verifies frames, a batch at a time, without the interpreter's lock.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use atproto::event::{Event, Values, peek};
use codec::cbor::{KeyOrder, Reader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use store::StoreError;
use verify::sync::{self, Judged as JudgedEvent, Outcome as Verdict, Policy};

use crate::account_keys::{AccountKeys, FoundKeys};
use crate::accounts::{State, store_error};
use crate::arguments::{boolean, number, time_of_judgement, value, wrong_type, wrong_value};
use crate::judged::{Facts, FrameBytes, Judged};
use crate::outcome::Outcome;

/// Verifies frames of `com.atproto.sync.subscribeRepos`: signature, operations, and continuity of each account's commits.
///
/// Judges of several threads run in parallel; calls of one judge follow each other. An `#account` decides whether later commits
/// of its account are accepted.
///
/// Args:
///     keys: the signing keys: a mapping of DID to did:key text, which is asked in every batch, or a function from a DID to
///         its did:key text or None. The function is called once for each account of a batch whose key is not known yet; it
///         is called again after an `#identity` of the account, and after a signature that its key did not verify. Frames
///         of accounts without a key are refused as `signature/no-key`, and can be judged again.
///     state: None for a state in memory, the path of a state file (created if missing), or the `State` of another judge. A
///         file gets what changed by `state().save()`, after the outcomes are handled.
///     batched_keys: whether `keys` is a function that is called once a batch, with the list of DIDs, and returns a mapping or
///         as many keys.
///     key_cache_bytes: size in bytes of the cache of prepared keys. Default: 64 MiB, some 47,000 keys.
///     future_window: seconds that a revision may be ahead of `now`. Default: 300.
///     max_frame_bytes: maximum size of a frame in bytes. Default: 5,000,000.
///     max_blocks_bytes: maximum size of the blocks of a `#commit` in bytes. Default: 2,000,000.
///     max_sync_blocks_bytes: maximum size of the blocks of a `#sync` in bytes. Default: 2,000,000.
///     max_ops: maximum number of operations of a commit. Default: 200.
///     max_record_bytes: maximum size of a record in bytes. Default: 1,000,000.
///     strict_records: refuse an event with an invalid record: not canonical DAG-CBOR, or not a map.
///     accept_missing_prev_data: accept a commit without `prevData`, from before sync 1.1, with the chain `unproved`.
///     accept_ops_without_prev: accept updates and deletes that do not say what they replaced, with the chain `unproved`.
///     accept_failed_inversion: accept a commit that continues the known state although undoing its operations does not lead back to
///         `prevData`, with the chain `unproved`.
///     accept_unproved_operations: accept the operations of a signed commit without the tree, with the chain `unproved`: whoever
///         sends it may have invented, changed or left out some.
///     accept_since_mismatch: accept a commit whose `since` is not the known revision, if `prevData` is the known tree.
///     accept_unproved_deletes: accept a delete whose path the blocks do not show.
///     accept_too_big: accept a commit that says `tooBig`, whose missing operations stay unknown.
///     accept_rebase: accept a commit that says `rebase`.
///     accept_any_time: accept an event whose `time` is not a datetime.
///
/// Raises:
///     TypeError: if an argument has another type, or there is no such option.
///     ValueError: if an option has a value that is not allowed.
///     OSError: if the state file cannot be opened, or another process uses it.
///
/// Example:
///     >>> import wireproof
///     >>> judge = wireproof.Judge(lambda did: None, max_frame_bytes=100)
///     >>> [outcome.code for outcome in judge.batch([b"", bytes(200)])]
///     ['frame/cbor', 'frame/limit']
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct Judge {
    keys: AccountKeys,
    state: Py<State>,
    judge: Mutex<sync::Judge>,
}

#[pymethods]
impl Judge {
    #[new]
    #[pyo3(signature = (keys, state = None, **options))]
    #[pyo3(
        text_signature = "(keys, state=None, *, batched_keys=False, key_cache_bytes=67108864, future_window=300.0, max_frame_bytes=5000000, max_blocks_bytes=2000000, max_sync_blocks_bytes=2000000, max_ops=200, max_record_bytes=1000000, strict_records=False, accept_missing_prev_data=False, accept_ops_without_prev=False, accept_failed_inversion=False, accept_unproved_operations=False, accept_since_mismatch=False, accept_unproved_deletes=False, accept_too_big=False, accept_rebase=False, accept_any_time=False)"
    )]
    fn new(
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        state: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let Options { batched_keys, judge } = Options::new(options)?;
        let keys = AccountKeys::new(keys, batched_keys)?;
        Ok(Self { keys, state: state_of(py, state)?, judge: Mutex::new(judge) })
    }

    /// Judge frames in their order, and return their outcomes.
    ///
    /// Frames of one account must be in the order of the stream. A refused frame changes no state.
    ///
    /// Args:
    ///     frames: iterable of `bytes`, each a whole frame: header and payload.
    ///     now: the time: `datetime` with a time zone, ISO text, or int in microseconds since 1970. Default: the clock.
    ///
    /// Returns:
    ///     list of `Outcome`, one for every frame.
    ///
    /// Raises:
    ///     TypeError: if a frame is not `bytes`, or a key is neither text nor None.
    ///     ValueError: if a key is not a did:key, or the time is none.
    ///     OSError: if the state file cannot be read.
    ///     Exception: what the function of the keys raises; nothing is judged then.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> info = bytes.fromhex("a261746523696e666f626f7001a1646e616d656e4f75746461746564437572736f72")
    ///     >>> [outcome] = wireproof.Judge({}).batch([info], now="2026-07-01T00:00:00Z")
    ///     >>> outcome.kind, outcome.code
    ///     ('info', 'unchecked')
    #[pyo3(signature = (frames, now = None))]
    fn batch<'py>(
        &self,
        py: Python<'py>,
        frames: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let frames = frames_of(frames)?;
        let now_micros = time_of_judgement(now)?;
        let bytes: Vec<&[u8]> = frames.iter().map(|frame| frame.as_bytes()).collect();
        let routes = py.detach(|| Route::of_all(&bytes));
        let keys = self.find_keys(py, &routes)?;
        let judged = py.detach(|| self.judge(&bytes, &routes, &keys, now_micros));
        let judged = judged.map_err(store_error)?;
        let outcomes = frames.into_iter().zip(judged).map(|(frame, facts)| {
            let frame = FrameBytes::Python(frame.unbind());
            Py::new(py, Outcome::new(Arc::new(Judged { frame, facts })))
        });
        PyList::new(py, outcomes.collect::<PyResult<Vec<_>>>()?)
    }

    /// The state of the accounts, which other judges can share.
    ///
    /// Returns:
    ///     `State`.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> first = wireproof.Judge({})
    ///     >>> second = wireproof.Judge({}, first.state())
    ///     >>> second.state() is first.state()
    ///     True
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, State> {
        self.state.bind(py).clone()
    }

    fn __repr__(&self) -> String {
        format!("Judge(state={})", self.state.get().text())
    }
}

impl Judge {
    /// The judge that an argument is, or one with the argument as its keys.
    pub(crate) fn of(judge_or_keys: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        match judge_or_keys.cast::<Self>() {
            Ok(judge) => Ok(judge.clone().unbind()),
            Err(_) => {
                let py = judge_or_keys.py();
                Py::new(py, Self::new(py, judge_or_keys, None, None)?)
            }
        }
    }

    /// The keys of the accounts of frames.
    pub(crate) fn find_keys<'f>(
        &self,
        py: Python<'_>,
        routes: &[Route<'f>],
    ) -> PyResult<FoundKeys<'f>> {
        self.state.get().check_process()?;
        let dids: HashSet<&str> = routes.iter().filter_map(|route| route.did).collect();
        self.keys.find(py, dids)
    }

    /// Judges frames in parts: an `#account` is the last of its part, as it decides about the commits after it.
    pub(crate) fn judge(
        &self,
        frames: &[&[u8]],
        routes: &[Route<'_>],
        keys: &FoundKeys<'_>,
        now_micros: u64,
    ) -> Result<Vec<Facts>, StoreError> {
        let mut judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
        let mut accounts = self.state.get().lock();
        let key_of = |did: &str| keys.get(did).copied();
        let (mut facts, mut stale) = (Vec::with_capacity(frames.len()), Vec::new());
        let mut rest = frames;
        while !rest.is_empty() {
            let len = part_len(&routes[facts.len()..]);
            let (part, others) = rest.split_at(len);
            rest = others;
            let judged = judge.judge_batch(part, &key_of, &mut *accounts, now_micros)?;
            for (frame, of) in part.iter().zip(&judged) {
                facts.push(Facts::of_outcome(frame, of.event, &of.outcome));
                stale.extend(stale_key(of));
            }
            if let Some(JudgedEvent { outcome: Verdict::Unjudged(Event::Account(event)), .. }) =
                judged.last()
            {
                // Nothing is stored for accounts without a key: anyone can invent them.
                if key_of(event.did).is_some() {
                    accounts.set_active(event.did, event.active)?;
                }
            }
        }
        self.keys.forget(&stale);
        Ok(facts)
    }
}

/// The account of a frame.
#[derive(Clone, Copy)]
pub(crate) struct Route<'f> {
    did: Option<&'f str>,
    is_account: bool,
}

impl<'f> Route<'f> {
    pub(crate) fn of_all(frames: &[&'f [u8]]) -> Vec<Self> {
        frames.iter().map(|frame| Self::of(frame)).collect()
    }

    fn of(frame: &'f [u8]) -> Self {
        let Ok((header, at)) = peek(frame) else { return Self { did: None, is_account: false } };
        let is_account = header.kind == Some("#account");
        let field = match header.kind {
            Some("#commit") => "repo",
            Some("#sync" | "#account") => "did",
            _ => return Self { did: None, is_account },
        };
        Self { did: text_field(&frame[at..], field), is_account }
    }
}

/// The text of a field of a map.
fn text_field<'f>(map: &'f [u8], name: &str) -> Option<&'f str> {
    let (mut reader, mut keys) = (Reader::new(map), KeyOrder::new());
    for _ in 0..reader.map().ok()? {
        if reader.key(&mut keys).ok()? == name {
            return reader.text().ok();
        }
        reader.skip().ok()?;
    }
    None
}

/// Number of frames of the next part.
fn part_len(routes: &[Route<'_>]) -> usize {
    let routes = &routes[..routes.len().min(MAX_PART)];
    routes.iter().position(|route| route.is_account).map_or(routes.len(), |at| at + 1)
}

/// The account whose key should be asked for again.
fn stale_key(judged: &JudgedEvent<'_>) -> Option<Box<str>> {
    let is_stale = match &judged.outcome {
        Verdict::Unjudged(Event::Identity(_)) => true,
        Verdict::Rejected(why) => why.code().starts_with("signature/"),
        _ => false,
    };
    match judged.event.filter(|_| is_stale)? {
        Event::Commit(commit) => Some(commit.repo.into()),
        Event::Sync(sync) => Some(sync.did.into()),
        Event::Identity(identity) => Some(identity.did.into()),
        _ => None,
    }
}

fn frames_of<'py>(frames: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let expected = "an iterable of bytes";
    if frames.is_instance_of::<PyBytes>() || frames.is_instance_of::<PyString>() {
        return Err(wrong_type("frames", expected, frames));
    }
    let items = frames.try_iter().map_err(|_| wrong_type("frames", expected, frames))?;
    let frame = |(at, item): (usize, PyResult<Bound<'py, PyAny>>)| {
        let wrong = |item: &Bound<'_, PyAny>| wrong_type(&format!("frames[{at}]"), "bytes", item);
        item?.cast_into::<PyBytes>().map_err(|error| wrong(&error.into_inner()))
    };
    items.enumerate().map(frame).collect()
}

fn state_of(py: Python<'_>, state: Option<&Bound<'_, PyAny>>) -> PyResult<Py<State>> {
    let Some(state) = state else { return Py::new(py, State::in_memory()) };
    if let Ok(shared) = state.cast::<State>() {
        return Ok(shared.clone().unbind());
    }
    let path: PathBuf = value("state", "None, a path or a State", state)?;
    Py::new(py, py.detach(|| State::open(&path)).map_err(store_error)?)
}

/// The options of a judge by name.
struct Options {
    batched_keys: bool,
    judge: sync::Judge,
}

impl Options {
    fn new(options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut policy = Policy::default();
        // Records become Python objects when they are asked for, and no values before.
        policy.values = Values::ValidateOnly;
        let (mut builder, mut batched_keys) = (sync::Judge::builder(), false);
        for (name, option) in options.into_iter().flatten() {
            let name: String = name.extract()?;
            match &*name {
                "batched_keys" => batched_keys = boolean(&name, &option)?,
                "key_cache_bytes" => builder = builder.key_cache_bytes(size(&name, &option)?),
                _ => set_option(&mut policy, &name, &option)?,
            }
        }
        Ok(Self { batched_keys, judge: builder.policy(policy).build() })
    }
}

/// The options of a policy with their default values, which signatures state.
#[pyfunction]
pub(crate) fn _policy_defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let policy = Policy::default();
    let defaults = PyDict::new(py);
    defaults.set_item("future_window", policy.future_window_micros as f64 / 1e6)?;
    defaults.set_item("max_frame_bytes", policy.max_frame_bytes)?;
    defaults.set_item("max_blocks_bytes", policy.max_blocks_bytes)?;
    defaults.set_item("max_sync_blocks_bytes", policy.max_sync_blocks_bytes)?;
    defaults.set_item("max_ops", policy.max_ops)?;
    defaults.set_item("max_record_bytes", policy.max_record_bytes)?;
    defaults.set_item("strict_records", policy.strict_records)?;
    defaults.set_item("accept_missing_prev_data", policy.accept_missing_prev_data)?;
    defaults.set_item("accept_ops_without_prev", policy.accept_ops_without_prev)?;
    defaults.set_item("accept_failed_inversion", policy.accept_failed_inversion)?;
    defaults.set_item("accept_unproved_operations", policy.accept_unproved_operations)?;
    defaults.set_item("accept_since_mismatch", policy.accept_since_mismatch)?;
    defaults.set_item("accept_unproved_deletes", policy.accept_unproved_deletes)?;
    defaults.set_item("accept_too_big", policy.accept_too_big)?;
    defaults.set_item("accept_rebase", policy.accept_rebase)?;
    defaults.set_item("accept_any_time", policy.accept_any_time)?;
    Ok(defaults)
}

/// Sets an option of the policy.
pub(crate) fn set_option(
    policy: &mut Policy,
    name: &str,
    option: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let is_set = || boolean(name, option);
    match name {
        "future_window" => policy.future_window_micros = window_micros(name, option)?,
        "max_frame_bytes" => policy.max_frame_bytes = size(name, option)?,
        "max_blocks_bytes" => policy.max_blocks_bytes = size(name, option)?,
        "max_sync_blocks_bytes" => policy.max_sync_blocks_bytes = size(name, option)?,
        "max_ops" => policy.max_ops = size(name, option)?,
        "max_record_bytes" => policy.max_record_bytes = size(name, option)?,
        "strict_records" => policy.strict_records = is_set()?,
        "accept_missing_prev_data" => policy.accept_missing_prev_data = is_set()?,
        "accept_ops_without_prev" => policy.accept_ops_without_prev = is_set()?,
        "accept_failed_inversion" => policy.accept_failed_inversion = is_set()?,
        "accept_unproved_operations" => policy.accept_unproved_operations = is_set()?,
        "accept_since_mismatch" => policy.accept_since_mismatch = is_set()?,
        "accept_unproved_deletes" => policy.accept_unproved_deletes = is_set()?,
        "accept_too_big" => policy.accept_too_big = is_set()?,
        "accept_rebase" => policy.accept_rebase = is_set()?,
        "accept_any_time" => policy.accept_any_time = is_set()?,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "argument '{name}': there is no such option"
            )));
        }
    }
    Ok(())
}

fn size(name: &str, option: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(usize::try_from(number(name, 0, option)?).unwrap_or(usize::MAX))
}

fn window_micros(name: &str, option: &Bound<'_, PyAny>) -> PyResult<u64> {
    let seconds: f64 = value(name, "a number of seconds", option)?;
    if seconds >= 0.0 {
        Ok((seconds * 1e6) as u64)
    } else {
        Err(wrong_value(name, "expected at least 0 seconds"))
    }
}

/// Frames that are judged together: enough to fill the signature lanes, few enough to stay in the cache.
const MAX_PART: usize = 512;
