//! Where was each stream left?
//!
//! A cursor belongs to one host and one method: the sequence numbers of two hosts have nothing to do
//! with each other. [`stream_name`] is what both are called here.

mod file;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::http::Url;

pub use file::FileCursors;

/// Keeps one cursor for each stream.
pub trait CursorStore: Send + Sync {
    /// The cursor of a stream, if it has one.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&self, stream: &str) -> Result<Option<u64>, CursorError>;

    /// Keeps these cursors, all of them or none. When this returns, they survive a loss of power.
    ///
    /// # Errors
    /// If they cannot be kept; the ones before are as they were.
    fn store(&self, cursors: &[(&str, u64)]) -> Result<(), CursorError>;
}

/// A cursor that cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("cursors in {}: {fault}", path.display())]
pub struct CursorError {
    /// Where the cursors are.
    pub path: PathBuf,
    /// What went wrong.
    pub fault: CursorFault,
}

/// What can go wrong with cursors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CursorFault {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file holds something else.
    #[error("not a JSON object of numbers: {0}")]
    NotCursors(serde_json::Error),
    /// What keeps them is no file, and failed.
    #[error("{0}")]
    Other(String),
}

impl CursorError {
    fn new(path: &Path, fault: impl Into<CursorFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }
}

/// Cursors that last as long as the process.
#[derive(Debug, Default)]
pub struct MemoryCursors(Mutex<BTreeMap<String, u64>>);

impl CursorStore for MemoryCursors {
    fn load(&self, stream: &str) -> Result<Option<u64>, CursorError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(stream).copied())
    }

    fn store(&self, cursors: &[(&str, u64)]) -> Result<(), CursorError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor)));
        Ok(())
    }
}

/// What a stream is called: its URL without what may differ from one connection to the next.
///
/// ```
/// use wireproof::net::cursors::stream_name;
/// let url = "https://bsky.network/xrpc/com.atproto.sync.subscribeRepos?cursor=5".parse()?;
/// assert_eq!(stream_name(&url), "wss://bsky.network/xrpc/com.atproto.sync.subscribeRepos");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn stream_name(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let scheme = if matches!(url.scheme(), "https" | "wss") { "wss" } else { "ws" };
    // Only a scheme without hosts would refuse, and the name is then the URL as it stands.
    let _ = url.set_scheme(scheme);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_a_cursor_for_each_stream() {
        let cursors = MemoryCursors::default();
        cursors.store(&[("a", 1), ("b", 2)]).unwrap();
        cursors.store(&[("a", 3)]).unwrap();
        let load = |stream| cursors.load(stream).unwrap();
        assert_eq!([load("a"), load("b"), load("c")], [Some(3), Some(2), None]);
    }

    #[test]
    fn a_stream_has_one_name_however_it_is_asked_for() {
        let name = |url: &str| stream_name(&url.parse().unwrap());
        for same in ["https://h.test/x?cursor=1", "wss://H.test:443/x#a", "wss://h.test/x"] {
            assert_eq!(name(same), "wss://h.test/x");
        }
        assert_eq!(name("http://localhost:80/x"), "ws://localhost/x");
        assert_ne!(name("wss://h.test/x"), name("wss://h.test/y"));
    }
}
