//! Nostr events: verdicts of many at once, and every format.

use kernels::hex;
use nostr::canonical::ControlChars;
use nostr::{
    Arena, DecodeError, Event, EventFault, IdSerialization, Limits, OwnedEvent, verify_many_with,
};
use nostr_formats::Format;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyType};

use crate::arguments::{wrong_type, wrong_value};
use crate::errors::Class;

/// What is proved of an event.
#[pyclass(frozen, get_all, eq, module = "wireproof.nostr")]
#[derive(PartialEq)]
pub(crate) struct EventVerdict {
    /// Whether the id and the signature are right.
    verified: bool,
    /// `verified`, or the code of the broken rule.
    code: String,
    /// The id in hexadecimal; `None` if the event cannot be read.
    id: Option<String>,
    /// An explanation for a person; `None` if the event is verified.
    message: Option<String>,
}

#[pymethods]
impl EventVerdict {
    fn __bool__(&self) -> bool {
        self.verified
    }

    fn __repr__(&self) -> String {
        format!("EventVerdict(code={:?}, id={:?})", self.code, self.id.as_deref().unwrap_or("None"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, VerdictParts)> {
        let verdict = slf.get();
        let parts =
            (verdict.verified, verdict.code.clone(), verdict.id.clone(), verdict.message.clone());
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    #[classmethod]
    fn _restore(
        _: &Bound<'_, PyType>,
        verified: bool,
        code: String,
        id: Option<String>,
        message: Option<String>,
    ) -> Self {
        Self { verified, code, id, message }
    }
}

type VerdictParts = (bool, String, Option<String>, Option<String>);

/// Verify the ids and signatures of events as JSON, all in one batch. Other Python threads run meanwhile.
///
/// Args:
///     events: the events, each a JSON object as `str` or `bytes`.
///     ids: which serialization of control characters makes an id: `either`, `verbatim` (NIP-01 to the letter) or `escaped`
///         (as nostr-tools and rust-nostr write them).
///
/// Returns:
///     A verdict for every event, in their order.
///
/// Raises:
///     TypeError: an event is neither `str` nor `bytes`.
///     ValueError: `ids` has another value.
#[pyfunction]
#[pyo3(signature = (events, *, ids = "either"))]
pub(crate) fn verify_batch(
    py: Python<'_>,
    events: &Bound<'_, PyAny>,
    ids: &str,
) -> PyResult<Vec<EventVerdict>> {
    let ids = serialization(ids)?;
    let events = events_of(events)?;
    Ok(py.detach(|| verdicts(&events, ids)))
}

/// The serialization of this name.
pub(crate) fn serialization(ids: &str) -> PyResult<IdSerialization> {
    let named = IdSerialization::ALL.into_iter().find(|of| of.name() == ids);
    named.ok_or_else(|| wrong_value("ids", format!("{ids:?} is not either, verbatim or escaped")))
}

/// The texts of events.
fn events_of(events: &Bound<'_, PyAny>) -> PyResult<Vec<PyBackedBytes>> {
    if events.is_instance_of::<PyString>() || events.is_instance_of::<PyBytes>() {
        return Err(wrong_type("events", "a list of events", events));
    }
    events.try_iter()?.enumerate().map(|(at, event)| event_of(&event?, at)).collect()
}

fn event_of(event: &Bound<'_, PyAny>, at: usize) -> PyResult<PyBackedBytes> {
    if let Ok(text) = event.cast::<PyString>() {
        return Ok(PyBackedBytes::from(PyBytes::new(event.py(), text.to_str()?.as_bytes())));
    }
    event.extract().map_err(|_| wrong_type(&format!("events[{at}]"), "str or bytes", event))
}

fn verdicts(events: &[PyBackedBytes], ids: IdSerialization) -> Vec<EventVerdict> {
    let (arena, limits) = (Arena::new(), Limits::default());
    let decoded: Vec<Result<Event<'_>, DecodeError>> =
        events.iter().map(|event| Format::Json.decode(event, &arena, &limits)).collect();
    let readable: Vec<Event<'_>> = decoded.iter().flatten().copied().collect();
    let mut verified = verify_many_with(&readable, ids).into_iter();
    let of_each = |event| match event {
        Ok(event) => verdict(&event, verified.next().unwrap_or(Err(EventFault::Id))),
        Err(error) => unreadable(error),
    };
    decoded.into_iter().map(of_each).collect()
}

fn unreadable(error: DecodeError) -> EventVerdict {
    let message = Some(error.to_string());
    EventVerdict { verified: false, code: "event/unreadable".to_owned(), id: None, message }
}

fn verdict(event: &Event<'_>, result: Result<ControlChars, EventFault>) -> EventVerdict {
    EventVerdict {
        verified: result.is_ok(),
        code: code(&result).to_owned(),
        id: Some(hex::encode(&event.id)),
        message: result.err().map(|fault| fault.to_string()),
    }
}

/// `verified`, or the code of the broken rule.
pub(crate) fn code(result: &Result<ControlChars, EventFault>) -> &'static str {
    match result {
        Ok(_) => "verified",
        Err(EventFault::Id) => "event/id",
        Err(EventFault::IdForm(_)) => "event/id-form",
        Err(EventFault::Signature(_)) => "signature/wrong",
        Err(_) => "event/refused",
    }
}

/// The names of the formats of events, such as `json` and `cbor-packed`.
#[pyfunction]
pub(crate) fn formats() -> Vec<&'static str> {
    Format::ALL.iter().map(|format| format.name()).collect()
}

/// Decode an event of a format, without verifying it: a `dict` with the keys of NIP-01.
///
/// Args:
///     format: the name of a format.
///     data: the event.
///
/// Raises:
///     DecodeError: the bytes are not one event of the format.
///     ValueError: no format has the name; `formats()` has all.
#[pyfunction]
pub(crate) fn decode<'py>(
    py: Python<'py>,
    format: &str,
    data: &[u8],
) -> PyResult<Bound<'py, PyDict>> {
    let (format, arena) = (named(format)?, Arena::new());
    let event = format.decode(data, &arena, &Limits::default());
    to_dict(py, &event.map_err(|error| decode_error(py, error))?)
}

/// Decode a batch of events of a format, without verifying them: a `dict` for each, as of `decode`.
///
/// Args:
///     format: the name of a format.
///     data: the batch, as `encode_batch` makes it, or a file of `wireproof nostr convert --to`.
///
/// Raises:
///     DecodeError: the bytes are not a batch of the format.
///     ValueError: no format has the name; `formats()` has all.
#[pyfunction]
pub(crate) fn decode_batch<'py>(
    py: Python<'py>,
    format: &str,
    data: &[u8],
) -> PyResult<Bound<'py, PyList>> {
    let (format, arena) = (named(format)?, Arena::new());
    let events = format.decode_batch(data, &arena, &Limits::default());
    let list = PyList::empty(py);
    for event in events.map_err(|error| decode_error(py, error))? {
        list.append(to_dict(py, event)?)?;
    }
    Ok(list)
}

/// Encode an event, a `dict` with the keys of NIP-01, in a format.
///
/// Args:
///     format: the name of a format.
///     event: the event.
///
/// Raises:
///     DecodeError: the format cannot hold the event.
///     TypeError, ValueError: a key is missing or has a wrong value, or no format has the name.
#[pyfunction]
pub(crate) fn encode<'py>(
    py: Python<'py>,
    format: &str,
    event: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let format = named(format)?;
    let arena = Arena::new();
    let mut out = Vec::new();
    let event = from_mapping(event)?;
    let encoded = format.encode(&event.borrow_in(&arena), &mut out);
    encoded
        .map_err(|error| Class::Decode.error(py, error.to_string(), "event/unencodable", None))?;
    Ok(PyBytes::new(py, &out))
}

/// Encode events in a format as one batch.
///
/// Args:
///     format: the name of a format.
///     events: the events, as of `encode`.
///
/// Raises:
///     DecodeError: the format cannot hold an event.
///     TypeError, ValueError: a key is missing or has a wrong value, or no format has the name.
#[pyfunction]
pub(crate) fn encode_batch<'py>(
    py: Python<'py>,
    format: &str,
    events: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let format = named(format)?;
    let arena = Arena::new();
    let mut out = Vec::new();
    let owned: Vec<OwnedEvent> =
        events.try_iter()?.map(|event| from_mapping(&event?)).collect::<PyResult<_>>()?;
    let borrowed: Vec<Event<'_>> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
    let encoded = format.encode_batch(&borrowed, &mut out);
    encoded
        .map_err(|error| Class::Decode.error(py, error.to_string(), "event/unencodable", None))?;
    Ok(PyBytes::new(py, &out))
}

pub(crate) fn named(format: &str) -> PyResult<Format> {
    Format::from_name(format).ok_or_else(|| {
        wrong_value("format", format!("{format:?} is none of {}", formats().join(", ")))
    })
}

pub(crate) fn decode_error(py: Python<'_>, error: DecodeError) -> PyErr {
    Class::Decode.error(py, error.to_string(), "event/unreadable", Some(error.offset as u64))
}

/// The event of NIP-01 as a `dict`.
fn to_dict<'py>(py: Python<'py>, event: &Event<'_>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("id", hex::encode(&event.id))?;
    dict.set_item("pubkey", hex::encode(&event.pubkey))?;
    dict.set_item("created_at", event.created_at)?;
    dict.set_item("kind", event.kind)?;
    let tags = PyList::empty(py);
    for tag in event.tags {
        tags.append(PyList::new(py, tag.iter().map(|value| value.to_text()))?)?;
    }
    dict.set_item("tags", tags)?;
    dict.set_item("content", event.content)?;
    dict.set_item("sig", hex::encode(&event.sig))?;
    Ok(dict)
}

fn from_mapping(event: &Bound<'_, PyAny>) -> PyResult<OwnedEvent> {
    Ok(OwnedEvent {
        id: hex_field(event, "id")?,
        pubkey: hex_field(event, "pubkey")?,
        created_at: field(event, "created_at")?,
        kind: field(event, "kind")?,
        tags: field(event, "tags")?,
        content: field(event, "content")?,
        sig: hex_field(event, "sig")?,
    })
}

/// A field of an event.
fn field<'py, T>(event: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let missing = |_| PyTypeError::new_err(format!("argument 'event': `{name}` is missing"));
    let value = event.get_item(name).map_err(missing)?;
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        PyTypeError::new_err(format!("argument 'event': `{name}`: {error}"))
    })
}

fn hex_field<const N: usize>(event: &Bound<'_, PyAny>, name: &str) -> PyResult<[u8; N]> {
    let (text, mut bytes): (String, _) = (field(event, name)?, [0; N]);
    if text.len() == 2 * N && hex::decode(text.as_bytes(), &mut bytes) {
        return Ok(bytes);
    }
    let digits = 2 * N;
    Err(wrong_value("event", format!("`{name}` is not {digits} lower-case hexadecimal digits")))
}
