//! How does a file become a slice without being read into memory first?
//!
//! The one place where files are mapped, apart from everything else because it cannot do without
//! `unsafe`.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("repository.car");
//! # std::fs::write(&path, b"an archive")?;
//! use wireproof_mapping::MappedFile;
//!
//! let archive = MappedFile::open(&path)?;
//! assert_eq!(&archive[..], b"an archive");
//! # Ok(())
//! # }
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// The bytes of a file.
///
/// The system reads pages when they are looked at and may forget them again. Whoever shortens the
/// file meanwhile takes pages away that are still to be read, which ends the process with a signal:
/// give it files that are whole.
#[derive(Debug)]
pub struct MappedFile(Bytes);

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    /// What cannot be mapped: a pipe, an empty file.
    Read(Vec<u8>),
}

impl MappedFile {
    /// The file at `path`, mapped if it can be, else read.
    ///
    /// # Errors
    /// If the file cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        match map(&file) {
            Some(mapped) => Ok(Self(Bytes::Mapped(mapped))),
            None => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Ok(Self(Bytes::Read(bytes)))
            }
        }
    }
}

/// The file in memory, unless it is none that has a length.
#[expect(unsafe_code, reason = "a mapping is unsafe by nature, and this is the only one")]
fn map(file: &File) -> Option<Mmap> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return None;
    }
    // SAFETY: the mapping is private and read-only. That nobody changes the file meanwhile cannot be
    // proved from here; the type's documentation demands it of the caller's files.
    unsafe { Mmap::map(file) }.ok()
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(mapped) => mapped,
            Bytes::Read(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_mapped_and_reads_as_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"as it stands").unwrap();
        let file = MappedFile::open(&path).unwrap();
        assert!(matches!(file.0, Bytes::Mapped(_)));
        assert_eq!(&*file, b"as it stands");
    }

    #[test]
    fn an_empty_file_is_an_empty_slice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(&*MappedFile::open(&path).unwrap(), b"");
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = MappedFile::open(&folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
