//! A cursor store in a JSON file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{CursorError, CursorFault, CursorStore};

/// Cursors in a JSON file: an object from stream names to numbers.
///
/// A new version is written to a temporary file, synced, and renamed. After any failure, including a power
/// loss, the file is the old or the new version. It must be used by one process at a time.
#[derive(Debug)]
pub struct FileCursors {
    path: PathBuf,
    kept: Mutex<BTreeMap<String, u64>>,
}

impl FileCursors {
    /// Opens the cursors at `path`; none if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read or has another content: starting without its cursors would lose events.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, CursorError> {
        let path = path.into();
        let kept = read(&path).map_err(|fault| CursorError::new(&path, fault))?;
        Ok(Self { path, kept: Mutex::new(kept) })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl CursorStore for FileCursors {
    fn load(&self, stream: &str) -> Result<Option<u64>, CursorError> {
        Ok(self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(stream).copied())
    }

    fn store(&self, cursors: &[(&str, u64)]) -> Result<(), CursorError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = kept.clone();
        next.extend(cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor)));
        if next != *kept {
            replace(&self.path, &next).map_err(|error| CursorError::new(&self.path, error))?;
            *kept = next;
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
    let beside = beside(path);
    let written = write_durably(&beside, cursors).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The next attempt starts over.
        let _ = fs::remove_file(&beside);
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
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Every write to this device finds no space left.
        std::os::unix::fs::symlink("/dev/full", beside(&path)).unwrap();
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
    fn a_file_with_other_content_is_rejected_and_unchanged() {
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
