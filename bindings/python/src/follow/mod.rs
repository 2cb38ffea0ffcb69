//! `follow`: the verified events of a stream, for a program that takes them one after the other.

mod event;
mod handler;
mod options;
mod queue;
mod run;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use net::firehose::{RunError, StopSignal};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Class;
use crate::logging::WARNING;
use crate::network::identity_error;
use crate::process::Owner;
pub(crate) use event::{_restore_event, Event};
use options::FollowOptions;
use queue::{Failure, Queue, Taken};
use run::Run;

/// The native half of `follow`: a run on threads of its own, and the queue of its events.
#[pyclass(frozen, module = "wireproof._wireproof")]
pub(crate) struct _Follower {
    options: FollowOptions,
    queue: Arc<Queue>,
    stop: StopSignal,
    state: Mutex<RunState>,
    /// The ticket of the last event that was taken, if taking the next one acknowledges it.
    last: Mutex<Option<u64>>,
    /// Whether the warning was logged that too many events are not acknowledged.
    has_warned: AtomicBool,
}

enum RunState {
    New,
    Running(Owner, JoinHandle<()>),
    /// The thread was joined, or the run never started.
    Closed,
}

#[pymethods]
impl _Follower {
    /// Reads the arguments. The run starts later.
    #[new]
    fn new(hosts: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = FollowOptions::new(hosts, options)?;
        let (queue, stop) = (Arc::new(Queue::new(options.queue)), StopSignal::new());
        let state = Mutex::new(RunState::New);
        let last = Mutex::default();
        let has_warned = false.into();
        Ok(Self { options, queue, stop, state, last, has_warned })
    }

    /// Starts the run, unless it has started or is closed.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.state();
            match &*state {
                RunState::New => {}
                RunState::Running(owner, _) => return owner.check("the running follow"),
                RunState::Closed => return Ok(()),
            }
            let run = Run::open(self.options.clone())?;
            let (queue, stop) = (self.queue.clone(), self.stop.clone());
            let work = move || run.run(&queue, &stop);
            let thread = std::thread::Builder::new().name("wireproof-follow".to_owned());
            let thread = thread.spawn(work).map_err(os_error)?;
            *state = RunState::Running(Owner::current(), thread);
            Ok(())
        })
    }

    /// Takes the next event. Waits for it if asked to, and checks for signals meanwhile.
    ///
    /// Returns None if there is none yet, and raises `StopIteration` if there will be none.
    #[pyo3(signature = (wait))]
    fn take(&self, py: Python<'_>, wait: bool) -> PyResult<Option<Py<Event>>> {
        self.start(py)?;
        let owner = match &*self.state() {
            RunState::Running(owner, _) => *owner,
            _ => return Err(ended()),
        };
        self.ack_last();
        self.warn_of_limit();
        loop {
            self.write_log(py)?;
            let taken = match self.queue.take(Duration::ZERO) {
                Taken::Nothing if wait => py.detach(|| self.queue.take(SIGNAL_INTERVAL)),
                taken => taken,
            };
            match taken {
                Taken::Event(event) => {
                    if self.options.auto_ack {
                        *lock(&self.last) = Some(event.ticket);
                    }
                    return Py::new(py, Event::new(event, &self.queue, owner)).map(Some);
                }
                Taken::Nothing if wait => py.check_signals()?,
                Taken::Nothing => return Ok(None),
                Taken::Ended(None) => return Err(ended()),
                Taken::Ended(Some(failure)) => return Err(raised(py, failure)),
            }
        }
    }

    /// Calls `waker`, on any thread, as soon as there is an event or the run has ended.
    fn notify(&self, py: Python<'_>, waker: Py<PyAny>) {
        self.queue.notify(py, waker);
    }

    /// Ends the deliveries and asks the run to end, without waiting for it.
    fn stop(&self, py: Python<'_>) {
        if self.is_here() {
            py.detach(|| self.request_end());
        }
    }

    /// Whether nothing is left of the run.
    #[getter]
    fn has_ended(&self) -> bool {
        match &*self.state() {
            RunState::Running(owner, _) => !owner.is_here() || self.queue.wait_end(Duration::ZERO),
            _ => true,
        }
    }

    /// Ends the run, and waits until nothing is left of it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.is_here() {
            return Ok(());
        }
        py.detach(|| self.request_end());
        while self.is_started() && !py.detach(|| self.queue.wait_end(SIGNAL_INTERVAL)) {
            py.check_signals()?;
        }
        py.detach(|| self.join());
        self.write_log(py)?;
        match self.queue.take_failure() {
            Some(failure @ Failure::Run(RunError::Journal(_) | RunError::State(_))) => {
                Err(raised(py, failure))
            }
            _ => Ok(()),
        }
    }

    /// Number of events that wait for the program, and of delivered events that are not acknowledged.
    #[getter]
    fn sizes(&self) -> (usize, usize) {
        self.queue.sizes()
    }
}

impl _Follower {
    fn state(&self) -> MutexGuard<'_, RunState> {
        lock(&self.state)
    }

    /// Whether the run is not a parent process's.
    fn is_here(&self) -> bool {
        match &*self.state() {
            RunState::Running(owner, _) => owner.is_here(),
            _ => true,
        }
    }

    fn is_started(&self) -> bool {
        matches!(&*self.state(), RunState::Running(..))
    }

    fn ack_last(&self) {
        let last = lock(&self.last).take();
        if let Some(ticket) = last {
            self.queue.ack(ticket);
        }
    }

    /// Logs once that nothing more is received.
    fn warn_of_limit(&self) {
        let (waiting, unacknowledged) = self.queue.sizes();
        let is_at_limit = waiting == 0 && unacknowledged >= self.options.in_flight;
        if is_at_limit && !self.has_warned.swap(true, Ordering::Relaxed) {
            let text = format!(
                "{unacknowledged} events are not acknowledged: nothing more is received until some are"
            );
            self.queue.log(WARNING, text);
        }
    }

    fn request_end(&self) {
        self.queue.close();
        self.stop.request();
    }

    /// Waits for the thread of the run.
    fn join(&self) {
        let state = std::mem::replace(&mut *self.state(), RunState::Closed);
        if let RunState::Running(_, thread) = state {
            // A panic was recorded as the end of the run.
            let _ = thread.join();
        }
    }

    /// Writes the run's messages to the logger `wireproof`.
    fn write_log(&self, py: Python<'_>) -> PyResult<()> {
        self.queue.take_log().write(py)
    }
}

impl Drop for _Follower {
    /// Ends the run as [`close`](Self::close) does.
    fn drop(&mut self) {
        if self.is_started() && self.is_here() {
            let end = || {
                self.request_end();
                self.join();
            };
            // Threads of the run may wait for the interpreter. One that is ending lets none of them go on.
            Python::try_attach(|py| py.detach(end));
        }
    }
}

fn ended() -> PyErr {
    pyo3::exceptions::PyStopIteration::new_err(())
}

/// The exception for the failure of a run.
fn raised(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Identity(error) => identity_error(py, &error),
        Failure::Runtime(error) => os_error(error),
        Failure::Run(RunError::Feed(error)) => {
            Class::Network.error(py, error.to_string(), "network/stream", None)
        }
        Failure::Run(error @ (RunError::Journal(_) | RunError::State(_) | RunError::Thread(_))) => {
            PyOSError::new_err(error.to_string())
        }
        Failure::Run(error) => PyRuntimeError::new_err(error.to_string()),
    }
}

fn os_error(error: std::io::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time between two checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);
