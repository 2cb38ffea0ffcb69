//! Bytes that a caller gives: an object in memory, or a file that is mapped.

use std::ops::Deref;
use std::path::PathBuf;

use mapping::MappedFile;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// Bytes that stay as they are while this is held.
pub(crate) enum Source {
    Bytes(PyBackedBytes),
    File(MappedFile),
}

impl Source {
    /// The content of `bytes`, or of the file at an `os.PathLike`.
    pub(crate) fn of(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<Self> {
        if let Ok(bytes) = value.extract::<PyBackedBytes>() {
            return Ok(Self::Bytes(bytes));
        }
        if value.hasattr("__fspath__")? {
            let path: PathBuf = value.extract()?;
            return Ok(Self::File(MappedFile::open(&path)?));
        }
        let kind = value.get_type().name()?.to_string();
        let message = format!("argument '{argument}': bytes or a path are expected, not '{kind}'");
        Err(PyTypeError::new_err(message))
    }
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
