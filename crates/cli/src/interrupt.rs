//! What does Ctrl-C leave behind? No file that is not whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::INTERRUPTED;

/// A file that is not whole yet. While this lives, Ctrl-C and `kill` remove the file before they end the
/// process, with exit code 130.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// Minds the file at `path` from now on.
    pub(crate) fn mind(path: &Path) -> io::Result<Self> {
        static IS_WATCHED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
        let watched = IS_WATCHED.get_or_init(|| watch().map_err(|error| error.kind()));
        watched.map_err(io::Error::from)?;
        minded().push(path.to_owned());
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        minded().retain(|path| *path != self.0);
    }
}

/// The files that are not whole.
fn minded() -> MutexGuard<'static, Vec<PathBuf>> {
    static MINDED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    MINDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals on a thread of its own, whatever the others do.
fn watch() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let [mut interrupts, mut ends] = {
        let _runtime = runtime.enter();
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
    };
    let wait = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = ends.recv() => {}
            }
        });
        // Nobody makes a file whole any more, nor begins one.
        let minded = minded();
        for path in &*minded {
            // Who cannot remove it has nobody to tell.
            let _ = fs::remove_file(path);
        }
        std::process::exit(i32::from(INTERRUPTED));
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}
