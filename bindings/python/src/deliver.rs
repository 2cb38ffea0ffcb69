//! `deliver`: a stream into destinations, by the follower of the library.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use follower::{Failure, Follower, FollowerBuilder, VerifyLevel};
use net::firehose::StopSignal;
use program::library_messages;
use program::log::Level;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::runtime::Builder;

use crate::arguments::{
    account, boolean, number, path, start, texts, value, wrong_type, wrong_value,
};
use crate::errors::Class;
use crate::logging::{DEBUG, ERROR, INFO, LogLines, WARNING};
use crate::network::SHUTDOWN_TIMEOUT;

/// Delivers until the number of events is reached, `stop` is set or a signal has an exception.
///
/// Returns the number of events by their code.
#[pyfunction]
pub(crate) fn _deliver(
    py: Python<'_>,
    hosts: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<BTreeMap<&'static str, u64>> {
    let DeliverOptions { builder, stop } = DeliverOptions::new(hosts, options)?;
    let follower = builder.build().map_err(|failure| raised(py, failure))?;
    let stop_signal = follower.stop_signal();
    library_messages::pass(
        |_| true,
        |level, text| messages().add(number_of(level), text.to_owned()),
    );
    let (sender, ended) = channel();
    let work = move || {
        // Without a receiver the call has ended.
        let _ = sender.send(run(follower));
    };
    let thread = std::thread::Builder::new().name("wireproof-deliver".to_owned()).spawn(work);
    let thread = thread.map_err(|error| PyOSError::new_err(error.to_string()))?;
    let ended = wait(py, &Mutex::new(ended), &stop_signal, stop.as_ref());
    // A panic was reported by the missing result.
    py.detach(|| drop(thread.join()));
    std::mem::take(&mut *messages()).write(py)?;
    ended
}

/// Runs the follower on threads of its own.
fn run(follower: Follower) -> Result<BTreeMap<&'static str, u64>, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Local(error.to_string()))?;
    let counts = runtime.block_on(follower.run());
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    Ok(counts?.verdicts)
}

/// Waits for the end of a run, and writes its messages meanwhile. The first exception of Python ends the run.
fn wait(
    py: Python<'_>,
    ended: &Mutex<Receiver<Result<BTreeMap<&'static str, u64>, Failure>>>,
    stop_signal: &StopSignal,
    stop: Option<&Bound<'_, PyAny>>,
) -> PyResult<BTreeMap<&'static str, u64>> {
    let mut exception = None;
    loop {
        match py.detach(|| lock(ended).recv_timeout(SIGNAL_INTERVAL)) {
            Ok(result) => {
                return match exception {
                    None => result.map_err(|failure| raised(py, failure)),
                    Some(exception) => Err(exception),
                };
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("a thread of the run has panicked"));
            }
            Err(RecvTimeoutError::Timeout) if exception.is_some() => {}
            Err(RecvTimeoutError::Timeout) => match is_wanted(py, stop) {
                Ok(true) => {}
                Ok(false) => stop_signal.request(),
                Err(error) => {
                    stop_signal.request();
                    exception = Some(error);
                }
            },
        }
    }
}

/// Whether the run is to go on.
fn is_wanted(py: Python<'_>, stop: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    py.check_signals()?;
    let lines = std::mem::take(&mut *messages());
    lines.write(py)?;
    match stop {
        None => Ok(true),
        Some(stop) => Ok(!stop.call_method0("is_set")?.extract::<bool>()?),
    }
}

/// The options of a call.
struct DeliverOptions<'py> {
    builder: FollowerBuilder,
    /// Ends the run once it is set.
    stop: Option<Bound<'py, PyAny>>,
}

impl<'py> DeliverOptions<'py> {
    /// Reads the arguments; `None` of an option is its default.
    fn new(hosts: &Bound<'py, PyAny>, given: &Bound<'py, PyDict>) -> PyResult<Self> {
        let hosts = texts("hosts", hosts)?;
        if hosts.is_empty() {
            return Err(wrong_value("hosts", "expected at least one"));
        }
        let builder = hosts.into_iter().fold(Follower::builder(), FollowerBuilder::host);
        let mut options = Self { builder, stop: None };
        let (mut development, mut port) = (false, None);
        for (name, option) in given.iter().filter(|(_, option)| !option.is_none()) {
            let name: String = name.extract()?;
            match &*name {
                "development" => development = boolean(&name, &option)?,
                "development_port" => port = Some(small_number(&name, &option)?),
                "stop" if option.hasattr("is_set")? => options.stop = Some(option),
                "stop" => return Err(wrong_type(&name, "threading.Event", &option)),
                _ => options.builder = set(options.builder, &name, &option)?,
            }
        }
        if development || port.is_some() {
            options.builder = options.builder.development(port);
        }
        Ok(options)
    }
}

/// The options with one more.
fn set(
    builder: FollowerBuilder,
    name: &str,
    option: &Bound<'_, PyAny>,
) -> PyResult<FollowerBuilder> {
    let if_true = |with: fn(FollowerBuilder) -> FollowerBuilder, builder| {
        Ok(if boolean(name, option)? { with(builder) } else { builder })
    };
    match name {
        "to" => {
            let to = |builder: FollowerBuilder, uri: String| builder.to(&uri);
            let built = texts(name, option)?.into_iter().try_fold(builder, to);
            built.map_err(|failure| raised(option.py(), failure))
        }
        "state" => Ok(builder.state(path(name, option)?)),
        "dids" => {
            let dids = texts(name, option)?;
            let dids: PyResult<Vec<_>> = dids.iter().map(|text| account(name, text)).collect();
            Ok(builder.accounts(dids?))
        }
        "collections" => Ok(builder.collections(texts(name, option)?)),
        "cursor" => Ok(builder.start(start(name, option)?)),
        "restart" => Ok(builder.restart(start(name, option)?)),
        "backfill" => if_true(FollowerBuilder::backfill, builder),
        "all_from" => Ok(texts(name, option)?.into_iter().fold(builder, FollowerBuilder::all_from)),
        "ops" => if_true(FollowerBuilder::ops, builder),
        "events" => Ok(builder.events(number(name, 1, option)?)),
        "verify" => Ok(builder.verify(level(name, option)?)),
        "workers" => Ok(builder.workers(small_number(name, option)?)),
        "metrics" => {
            let address: String = value(name, "str", option)?;
            let address = address.parse().map_err(|error| wrong_value(name, error))?;
            Ok(builder.metrics(address))
        }
        "webhook_secret" => Ok(builder.webhook_secret_file(path(name, option)?)),
        "plc" => {
            let url: String = value(name, "str", option)?;
            let url = url.parse().map_err(|error| wrong_value(name, error))?;
            Ok(builder.plc(url))
        }
        _ => Err(wrong_value(name, "there is no such option")),
    }
}

/// A number of at least 1 in 16 bits.
fn small_number(name: &str, option: &Bound<'_, PyAny>) -> PyResult<u16> {
    let number = number(name, 1, option)?;
    u16::try_from(number).map_err(|_| wrong_value(name, "expected at most 65,535"))
}

fn level(name: &str, option: &Bound<'_, PyAny>) -> PyResult<VerifyLevel> {
    let text: String = value(name, "str", option)?;
    match &*text {
        "full" => Ok(VerifyLevel::Full),
        "signature" => Ok(VerifyLevel::Signature),
        "none" => Ok(VerifyLevel::None),
        _ => Err(wrong_value(name, "expected 'full', 'signature' or 'none'")),
    }
}

/// The exception for a failure of a run.
fn raised(py: Python<'_>, failure: Failure) -> PyErr {
    let message = failure.to_string();
    match failure {
        Failure::Usage(_) | Failure::Refused(_) => PyValueError::new_err(message),
        Failure::Network(_) => Class::Network.error(py, message, "network/stream", None),
        Failure::Local(_) => PyOSError::new_err(message),
        Failure::Interrupted | Failure::OutputClosed => PyRuntimeError::new_err(message),
    }
}

/// The messages of all runs of the process.
fn messages() -> MutexGuard<'static, LogLines> {
    static MESSAGES: Mutex<LogLines> = Mutex::new(LogLines::new());
    lock(&MESSAGES)
}

fn number_of(level: Level) -> u8 {
    match level {
        Level::Error => ERROR,
        Level::Warning => WARNING,
        Level::Info => INFO,
        Level::Debug => DEBUG,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time between two checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);
