//! SIGINT and SIGTERM, or Ctrl-C and Ctrl-Break on Windows: stopping within a time, and removing unfinished files; SIGHUP.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use base::StopSignal;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::failure::{Failure, INTERRUPTED};

/// The two signals. From the first value on they no longer end the process.
pub struct Signals {
    interrupt: system::Interrupt,
    terminate: system::Terminate,
}

impl Signals {
    /// Starts to listen; needs a Tokio runtime.
    ///
    /// # Errors
    /// If the system gives no signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: system::interrupt()?, terminate: system::terminate()? })
    }

    /// Waits for the next signal of either kind.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

/// A signal to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, from a person.
    Interrupt,
    /// SIGTERM, from a service manager.
    Terminate,
}

/// The signals to read files again; `None` where there are none.
pub fn hangups() -> Option<Hangups> {
    system::hangup().map(Hangups)
}

/// SIGHUP. From the first value on it no longer ends the process.
pub struct Hangups(system::Hangup);

impl Hangups {
    /// Waits for the next one.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[cfg(unix)]
mod system {
    use std::io;

    pub(super) use tokio::signal::unix::{
        Signal as Interrupt, Signal as Terminate, Signal as Hangup,
    };
    use tokio::signal::unix::{SignalKind, signal};

    pub(super) fn interrupt() -> io::Result<Interrupt> {
        signal(SignalKind::interrupt())
    }

    pub(super) fn terminate() -> io::Result<Terminate> {
        signal(SignalKind::terminate())
    }

    pub(super) fn hangup() -> Option<Hangup> {
        signal(SignalKind::hangup()).ok()
    }
}

#[cfg(windows)]
mod system {
    pub(super) use tokio::signal::windows::{
        CtrlBreak as Terminate, CtrlC as Interrupt, ctrl_break as terminate, ctrl_c as interrupt,
    };

    /// There is no such signal.
    pub(super) enum Hangup {}

    impl Hangup {
        pub(super) async fn recv(&mut self) {
            match *self {}
        }
    }

    pub(super) fn hangup() -> Option<Hangup> {
        None
    }
}

/// Stops a command at the first SIGINT or SIGTERM, and ends the process at the second, or when the stop
/// takes too long.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<OnceLock<Signal>>);

impl Shutdown {
    /// No signal stops the run: its caller does.
    pub fn by_caller() -> Self {
        Self(Arc::default())
    }

    /// Starts to listen, on a thread of its own: it ends the process within `limit` of the first signal
    /// even if all other threads are blocked. `announce` is called at the first signal.
    ///
    /// # Errors
    /// If the system gives no signals.
    pub fn listen(
        stop: StopSignal,
        limit: Duration,
        announce: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Failure> {
        let requested = Arc::new(OnceLock::new());
        let of_thread = requested.clone();
        let started = start_listener(move |runtime, mut signals| {
            // The first signal decides.
            let _ = of_thread.set(runtime.block_on(signals.next()));
            stop.request();
            // Standard error may be blocked.
            let _ = thread::Builder::new().spawn(announce);
            let _ = runtime.block_on(async { timeout(limit, signals.next()).await });
            std::process::exit(i32::from(INTERRUPTED));
        });
        started.map_err(|error| Failure::Local(format!("listening for signals: {error}")))?;
        Ok(Self(requested))
    }

    /// The result of a command that ended without another failure: SIGTERM is how a service is stopped, SIGINT
    /// interrupts a command.
    ///
    /// # Errors
    /// If the signal was SIGINT.
    pub fn result(&self) -> Result<(), Failure> {
        match self.0.get() {
            Some(Signal::Interrupt) => Err(Failure::Interrupted),
            Some(Signal::Terminate) | None => Ok(()),
        }
    }
}

/// A file that is not complete yet. While this value lives, SIGINT and SIGTERM remove the file and end
/// the process with exit code 130.
#[derive(Debug)]
pub struct UnfinishedFile(PathBuf);

impl UnfinishedFile {
    /// Registers the file at `path`.
    ///
    /// # Errors
    /// If the system gives no signals.
    pub fn register(path: &Path) -> io::Result<Self> {
        static CLEANER: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
        let started = CLEANER.get_or_init(|| start_cleaner().map_err(|error| error.kind()));
        started.map_err(io::Error::from)?;
        unfinished().push(path.to_owned());
        Ok(Self(path.to_owned()))
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread that waits for a signal, removes the unfinished files and ends the process.
fn start_cleaner() -> io::Result<()> {
    start_listener(|runtime, mut signals| {
        runtime.block_on(signals.next());
        // The lock is held to the end: no file is finished or begun any more.
        let files = unfinished();
        for path in &*files {
            let _ = fs::remove_file(path);
        }
        std::process::exit(i32::from(INTERRUPTED));
    })
}

/// Starts a thread with its own runtime that listens for signals.
fn start_listener(work: impl FnOnce(Runtime, Signals) + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _runtime = runtime.enter();
        Signals::listen()?
    };
    let work = move || work(runtime, signals);
    thread::Builder::new().name("signals".to_owned()).spawn(work).map(drop)
}
