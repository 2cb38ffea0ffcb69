//! Memory-mapped files as byte slices, and with the feature `lmdb` the environments of LMDB.
//!
//! A crate of its own, because mapping needs `unsafe` and the crates that use it forbid that.
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

mod cut;
mod limits;
#[cfg(feature = "lmdb")]
pub mod lmdb;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Deref;
use std::path::Path;

use cut::Listed;
use memmap2::Mmap;

pub use cut::exit_on_cut_files;
pub use limits::limit_process;

/// The bytes of a file, mapped into memory if possible.
///
/// The system reads pages on first access and may evict them again. If another process truncates the file
/// meanwhile, an access beyond its new end terminates the process, with a signal unless [`exit_on_cut_files`] was called: map only
/// files that are complete.
#[derive(Debug)]
pub struct MappedFile(Bytes);

#[derive(Debug)]
enum Bytes {
    Mapped {
        mapped: Mmap,
        _listed: Listed,
    },
    /// The content of a file that cannot be mapped: a pipe, an empty file.
    Read(Vec<u8>),
}

impl MappedFile {
    /// Maps the file at `path`, or reads it if it cannot be mapped.
    ///
    /// # Errors
    /// If the file cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::named(&File::open(path)?, Some(path))
    }

    /// Maps an open file, or reads it from its beginning, a pipe from where it is, if it cannot be mapped.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: &File) -> io::Result<Self> {
        Self::named(file, None)
    }

    fn named(mut file: &File, path: Option<&Path>) -> io::Result<Self> {
        match map(file) {
            Some(mapped) => {
                let _listed = Listed::new(&mapped, path);
                Ok(Self(Bytes::Mapped { mapped, _listed }))
            }
            None => {
                rewind(file)?;
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Ok(Self(Bytes::Read(bytes)))
            }
        }
    }
}

impl From<Vec<u8>> for MappedFile {
    /// Bytes that were read from something other than a file, such as standard input.
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::Read(bytes))
    }
}

/// Goes back to the beginning of a file that has one; a pipe has none.
fn rewind(mut file: &File) -> io::Result<()> {
    match file.rewind() {
        Err(error) if error.kind() == io::ErrorKind::NotSeekable => Ok(()),
        rewound => rewound,
    }
}

/// Maps a regular file that is not empty.
#[expect(unsafe_code, reason = "mapping a file is unsafe, and this is the only call")]
fn map(file: &File) -> Option<Mmap> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return None;
    }
    // SAFETY: the mapping is private and read-only. That no process changes the file meanwhile cannot be
    // proved here; the type's documentation requires it of the caller.
    unsafe { Mmap::map(file) }.ok()
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped { mapped, .. } => mapped,
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
        std::fs::write(&path, b"content").unwrap();
        let file = MappedFile::open(&path).unwrap();
        assert!(matches!(file.0, Bytes::Mapped { .. }));
        assert_eq!(&*file, b"content");
    }

    #[test]
    fn an_empty_file_is_an_empty_slice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(&*MappedFile::open(&path).unwrap(), b"");
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = MappedFile::open(&folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
