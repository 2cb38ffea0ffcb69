//! SIGINT and SIGTERM: waiting for them, and removing unfinished files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::INTERRUPTED;

/// SIGINT and SIGTERM. From the first value on they no longer end the process.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to listen; needs a Tokio runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { interrupt: signal(interrupt)?, terminate: signal(terminate)? })
    }

    /// Waits for the next signal of either kind.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A file that is not complete yet. While this value lives, SIGINT and SIGTERM remove the file and end
/// the process with exit code 130.
#[derive(Debug)]
pub(crate) struct UnfinishedFile(PathBuf);

impl UnfinishedFile {
    /// Registers the file at `path`.
    pub(crate) fn register(path: &Path) -> io::Result<Self> {
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
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _runtime = runtime.enter();
        Signals::listen()?
    };
    let clean = move || {
        runtime.block_on(signals.next());
        // The lock is held to the end: no file is finished or begun any more.
        let files = unfinished();
        for path in &*files {
            let _ = fs::remove_file(path);
        }
        std::process::exit(i32::from(INTERRUPTED));
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(clean).map(drop)
}
