//! The class `Event`: an outcome of a stream, with its acknowledgement.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::queue::{Queue, QueuedEvent};
use crate::outcome::{Outcome, State, restored};
use crate::process::Owner;

/// An event of a stream: an `Outcome` with its host, its bytes and its acknowledgement.
///
/// Immutable. It can be pickled, but only the original can be acknowledged.
///
/// ```python
/// for event in wireproof.follow("bsky.network", state="state.sqlite"):
///     store(event)
///     event.ack()
/// ```
#[pyclass(frozen, extends = Outcome, module = "wireproof")]
pub(crate) struct Event {
    host: Cow<'static, str>,
    received: SystemTime,
    /// The queue that it was taken from, and its ticket; `None` of a pickled one.
    source: Option<(Arc<Queue>, u64, Owner)>,
}

impl Event {
    /// The event with its base.
    pub(crate) fn new(
        event: QueuedEvent,
        queue: &Arc<Queue>,
        owner: Owner,
    ) -> PyClassInitializer<Self> {
        let QueuedEvent { judged, host, received, ticket } = event;
        let source = Some((queue.clone(), ticket, owner));
        let host = Cow::Owned(host.to_string());
        PyClassInitializer::from(Outcome::new(judged)).add_subclass(Self { host, received, source })
    }
}

#[pymethods]
impl Event {
    /// Origin of the host that sent it; of a `resync`, name of the server that sent the repository.
    #[getter]
    fn host(&self) -> &str {
        &self.host
    }

    /// Time of arrival, in seconds since 1970.
    #[getter]
    fn received(&self) -> f64 {
        let since = self.received.duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_secs_f64()
    }

    /// Bytes of the frame as received; of the CAR archive for a `resync`.
    #[getter]
    fn frame<'py>(slf: PyRef<'py, Self>) -> Bound<'py, PyBytes> {
        let py = slf.py();
        slf.as_super().judged.frame.to_object(py)
    }

    /// Acknowledge the event: the cursor may move past it, once all before it are acknowledged too.
    ///
    /// It may be called at any time, from any thread, and again. Events that were verified together come again together, if one
    /// of them was not acknowledged.
    ///
    /// Returns:
    ///     Whether it counts; False once `follow` is closed or has ended: a later run gets the event again.
    ///
    /// Raises:
    ///     RuntimeError: the event was pickled, or is of the process that forked this one.
    fn ack(&self) -> PyResult<bool> {
        let Some((queue, ticket, owner)) = &self.source else {
            let message = "a pickled event cannot be acknowledged: acknowledge the original";
            return Err(PyRuntimeError::new_err(message));
        };
        owner.check("the event")?;
        Ok(queue.ack(*ticket))
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let summary = slf.as_super().summary(slf.py());
        format!("Event(host='{}', {summary})", slf.host)
    }

    fn __reduce__(slf: PyRef<'_, Self>) -> PyResult<(Bound<'_, PyAny>, Pickled<'_>)> {
        let py = slf.py();
        let restore = py.import("wireproof._wireproof")?.getattr("_restore_event")?;
        let outcome = slf.as_super();
        let frame = outcome.judged.frame.to_object(py);
        let fields = (outcome.state(py), frame, slf.host.to_string(), slf.received());
        Ok((restore, fields))
    }
}

/// The parts of a pickled event.
type Pickled<'py> = (State, Bound<'py, PyBytes>, String, f64);

/// Makes an event of its pickled parts.
#[pyfunction]
pub(crate) fn _restore_event(
    py: Python<'_>,
    state: State,
    frame: &[u8],
    host: String,
    received: f64,
) -> PyResult<Py<Event>> {
    let judged = restored(state.into_facts(), Bytes::copy_from_slice(frame));
    let since = std::time::Duration::try_from_secs_f64(received).unwrap_or_default();
    let event = Event { host: host.into(), received: UNIX_EPOCH + since, source: None };
    Py::new(py, PyClassInitializer::from(Outcome::new(judged)).add_subclass(event))
}
