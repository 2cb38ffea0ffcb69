//! Cursor stores: where each stream is resumed.
//!
//! A cursor belongs to one host and one method, as sequence numbers of two hosts are unrelated.
//! [`stream_name`] identifies both.

mod file;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::http::Url;

pub use file::FileCursors;

/// Stores one cursor per stream.
pub trait CursorStore: Send + Sync {
    /// The cursor of a stream, if it has one.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&self, stream: &str) -> Result<Option<u64>, CursorError>;

    /// Stores cursors atomically. On return they survive a loss of power.
    ///
    /// # Errors
    /// If they cannot be stored; the previous ones are intact.
    fn store(&self, cursors: &[(&str, u64)]) -> Result<(), CursorError>;
}

/// Why cursors cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[error("cursors in {}: {fault}", path.display())]
pub struct CursorError {
    /// The path of the file.
    pub path: PathBuf,
    /// What went wrong.
    pub fault: CursorFault,
}

/// A fault of a cursor store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CursorFault {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has another content.
    #[error("not a JSON object of numbers: {0}")]
    NotCursors(serde_json::Error),
    /// A store other than a file failed.
    #[error("{0}")]
    Other(String),
}

impl CursorError {
    fn new(path: &Path, fault: impl Into<CursorFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }
}

/// A cursor store in memory.
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

/// The name of a stream: its URL without query and fragment, which differ between connections.
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
    fn memory_stores_a_cursor_per_stream() {
        let cursors = MemoryCursors::default();
        cursors.store(&[("a", 1), ("b", 2)]).unwrap();
        cursors.store(&[("a", 3)]).unwrap();
        let load = |stream| cursors.load(stream).unwrap();
        assert_eq!([load("a"), load("b"), load("c")], [Some(3), Some(2), None]);
    }

    #[test]
    fn a_stream_has_one_name_for_all_its_urls() {
        let name = |url: &str| stream_name(&url.parse().unwrap());
        for same in ["https://h.test/x?cursor=1", "wss://H.test:443/x#a", "wss://h.test/x"] {
            assert_eq!(name(same), "wss://h.test/x");
        }
        assert_eq!(name("http://localhost:80/x"), "ws://localhost/x");
        assert_ne!(name("wss://h.test/x"), name("wss://h.test/y"));
    }
}
