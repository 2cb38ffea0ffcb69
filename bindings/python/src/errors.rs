//! The exceptions of the package, which are classes of `wireproof.errors`.

use codec::cbor::DecodeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use verify::repository::{RepositoryFault, RepositoryRejection};

/// A class of `wireproof.errors`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Decode,
    Car,
    Rejection,
    Archive,
    Identity,
    Network,
}

impl Class {
    /// An exception with a message, the code of the broken rule, and the offset of its place in bytes.
    pub(crate) fn error(
        self,
        py: Python<'_>,
        message: String,
        code: &str,
        offset: Option<u64>,
    ) -> PyErr {
        let create = || self.class(py)?.call1((message, code, offset));
        match create() {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    }

    fn class<'py>(self, py: Python<'py>) -> PyResult<&'py Bound<'py, PyType>> {
        static CLASSES: [PyOnceLock<Py<PyType>>; 6] = [const { PyOnceLock::new() }; 6];
        let name = match self {
            Self::Decode => "DecodeError",
            Self::Car => "CarError",
            Self::Rejection => "Rejection",
            Self::Archive => "ArchiveError",
            Self::Identity => "IdentityError",
            Self::Network => "NetworkError",
        };
        CLASSES[self as usize].import(py, "wireproof.errors", name)
    }
}

/// The exception for bytes that are not canonical DAG-CBOR.
pub(crate) fn of_cbor(py: Python<'_>, error: DecodeError) -> PyErr {
    Class::Decode.error(py, error.to_string(), "dag-cbor", Some(error.offset as u64))
}

/// The exception for a repository, or the slice of one.
pub(crate) fn of_repository(py: Python<'_>, why: &RepositoryRejection) -> PyErr {
    let class =
        if matches!(why.fault, RepositoryFault::Car(_)) { Class::Car } else { Class::Rejection };
    class.error(py, why.to_string(), why.code(), why.offset)
}
