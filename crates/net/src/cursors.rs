//! Cursor stores, in memory and in a JSON file: where a stream is resumed.
//!
//! A cursor belongs to one host and one method, as sequence numbers of two hosts are unrelated.
//! [`stream_name`] identifies both.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::http::Url;

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
    /// The reason.
    pub fault: CursorFault,
}

/// A fault of a cursor store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CursorFault {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has invalid content.
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
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stored.extend(cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor)));
        Ok(())
    }
}

/// Cursors in a JSON file: an object from stream names to numbers.
///
/// A new version is written to a temporary file, synced, and renamed. After any failure, including a power
/// loss, the file is the old or the new version. It must be used by one process at a time.
#[derive(Debug)]
pub struct FileCursors {
    path: PathBuf,
    cursors: Mutex<BTreeMap<String, u64>>,
}

impl FileCursors {
    /// Opens the cursors at `path`; none if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read or has invalid content: starting without its cursors would lose events.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, CursorError> {
        let path = path.into();
        let cursors = read(&path).map_err(|fault| CursorError::new(&path, fault))?;
        Ok(Self { path, cursors: Mutex::new(cursors) })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes the file, if it exists.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn remove(self) -> Result<(), CursorError> {
        let removed = match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_folder(&self.path),
        };
        removed.map_err(|error| CursorError::new(&self.path, error))
    }
}

impl CursorStore for FileCursors {
    fn load(&self, stream: &str) -> Result<Option<u64>, CursorError> {
        Ok(self.cursors.lock().unwrap_or_else(PoisonError::into_inner).get(stream).copied())
    }

    fn store(&self, cursors: &[(&str, u64)]) -> Result<(), CursorError> {
        let mut stored = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = stored.clone();
        next.extend(cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor)));
        if next != *stored {
            replace(&self.path, &next).map_err(|error| CursorError::new(&self.path, error))?;
            *stored = next;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, u64>, CursorFault> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(CursorFault::NotCursors),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error.into()),
    }
}

fn replace(path: &Path, cursors: &BTreeMap<String, u64>) -> io::Result<()> {
    let temporary = temporary_path(path);
    let written = write_durably(&temporary, cursors).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The next attempt starts over.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_folder(path))
}

fn write_durably(path: &Path, cursors: &BTreeMap<String, u64>) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(cursors)?;
    text.push('\n');
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Syncs the folder, which makes the rename durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The path of the temporary file.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
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
    // A URL without a host rejects the scheme, and keeps its own.
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

    #[test]
    fn stored_cursors_are_loaded_when_the_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cursors.json");
        let cursors = FileCursors::open(&path).unwrap();
        assert_eq!(cursors.load("wss://a.test/x").unwrap(), None);
        cursors.store(&[("wss://a.test/x", 7), ("wss://b.test/x", u64::MAX)]).unwrap();
        cursors.store(&[("wss://a.test/x", 8)]).unwrap();
        let again = FileCursors::open(&path).unwrap();
        assert_eq!(again.load("wss://a.test/x").unwrap(), Some(8));
        assert_eq!(again.load("wss://b.test/x").unwrap(), Some(u64::MAX));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_leaves_the_cursors_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cursors.json");
        let cursors = FileCursors::open(&path).unwrap();
        cursors.store(&[("a", 1)]).unwrap();
        let before = fs::read(&path).unwrap();
        // Every write to this device fails with `StorageFull`.
        std::os::unix::fs::symlink("/dev/full", temporary_path(&path)).unwrap();
        let error = cursors.store(&[("a", 2)]).unwrap_err();
        assert!(
            matches!(&error.fault, CursorFault::Io(error) if error.kind() == io::ErrorKind::StorageFull)
        );
        assert_eq!(error.path, path);
        assert_eq!(cursors.load("a").unwrap(), Some(1));
        assert_eq!(fs::read(&path).unwrap(), before);
        cursors.store(&[("a", 3)]).unwrap();
        assert_eq!(FileCursors::open(&path).unwrap().load("a").unwrap(), Some(3));
    }

    #[test]
    fn a_missing_folder_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("cursors.json");
        let error = FileCursors::open(&path).unwrap().store(&[("a", 1)]).unwrap_err();
        assert!(error.to_string().contains("none/cursors.json"), "{error}");
    }

    #[test]
    fn a_file_with_invalid_content_is_rejected_and_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cursors.json");
        for text in ["", "[]", "{\"a\":-1}", "{\"a\":1", "{\"a\":\"1\"}"] {
            fs::write(&path, text).unwrap();
            let error = FileCursors::open(&path).unwrap_err();
            assert!(matches!(error.fault, CursorFault::NotCursors(_)), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
