//! Files in a folder or an object store, by the names that work gives them.

use archive::Storage;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::archive::RequestRuntime;

/// The files of an archive or of results.
#[pyclass(frozen)]
pub(crate) struct FileStore {
    storage: Storage,
    runtime: RequestRuntime,
}

#[pymethods]
impl FileStore {
    #[new]
    fn new(py: Python<'_>, uri: &str) -> PyResult<Self> {
        let runtime = RequestRuntime::new()?;
        let storage = py.detach(|| runtime.run(async { Storage::open(uri) }))?;
        Ok(Self { storage, runtime })
    }

    /// The content of a file of at most `max_bytes`; None if it does not exist.
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        max_bytes: u64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let content = py.detach(|| self.runtime.run(self.storage.fetch(path, max_bytes)))?;
        Ok(content.map(|content| PyBytes::new(py, &content)))
    }

    /// Stores a file under a name that must be free; False if it is not.
    fn put_new(&self, py: Python<'_>, path: &str, content: Vec<u8>) -> PyResult<bool> {
        py.detach(|| self.runtime.run(self.storage.put_new(path, content)))
    }
}
