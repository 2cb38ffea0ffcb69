//! Bytes that a caller gives: an object in memory, or a file that is mapped.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use mapping::MappedFile;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyString;

/// Bytes that stay as they are while this is held.
pub(crate) enum Source {
    Bytes(PyBackedBytes),
    File(MappedFile),
}

impl Source {
    /// The content of `bytes`, or of the file at a path: text or an `os.PathLike`.
    pub(crate) fn of(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<Self> {
        if let Ok(bytes) = value.extract::<PyBackedBytes>() {
            return Ok(Self::Bytes(bytes));
        }
        if value.is_instance_of::<PyString>() || value.hasattr("__fspath__")? {
            let path: PathBuf = value.extract()?;
            return Ok(Self::File(open_file(&path)?));
        }
        let kind = value.get_type().name()?.to_string();
        let message = format!("argument '{argument}': bytes or a path are expected, not '{kind}'");
        Err(PyTypeError::new_err(message))
    }
}

/// Maps the file at a path. An error names the path.
pub(crate) fn open_file(path: &Path) -> io::Result<MappedFile> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    MappedFile::open(path).map_err(named)
}

impl Deref for Source {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::File(file) => file,
        }
    }
}
