//! Archives: their tables as streams of record batches.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use archive::{
    Archive, ArchiveError, ArchiveFault, ErasureKey, RowScan, RowSelection, StoredFile, Table,
    TableStats,
};
use arrow_array::RecordBatch;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tokio::runtime::{Builder, Runtime};

use crate::arguments::{check_columns, micros, wrong_value};
use crate::errors::Class;
use crate::record_batches::{Batches, RecordBatchStream};

/// An open archive.
#[pyclass(frozen)]
pub(crate) struct ArchiveReader {
    archive: Archive,
    runtime: Arc<RequestRuntime>,
}

/// Runs the requests of an archive, on the threads of the callers.
pub(crate) struct RequestRuntime {
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    /// The process that has its threads: a fork has none of them, and would wait for ever.
    process: u32,
}

impl RequestRuntime {
    pub(crate) fn new() -> PyResult<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Self { runtime: Some(runtime), process: std::process::id() })
    }

    pub(crate) fn run<T>(
        &self,
        future: impl Future<Output = Result<T, ArchiveError>>,
    ) -> PyResult<T> {
        match &self.runtime {
            Some(runtime) if self.process == std::process::id() => {
                runtime.block_on(future).map_err(archive_error)
            }
            _ => {
                let message = "the archive was opened before a fork: open it again in this process";
                Err(archive_exception(message.to_owned(), "archive/fork"))
            }
        }
    }
}

impl Drop for RequestRuntime {
    fn drop(&mut self) {
        match self.runtime.take() {
            Some(runtime) if self.process == std::process::id() => runtime.shutdown_background(),
            forked => std::mem::forget(forked),
        }
    }
}

/// A key, and hashes under it.
type ErasedHashes<'py> = (Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>);

/// The secret of erasures: in the file that `WIREPROOF_ERASURE_KEY` names, or where the command keeps it.
fn erasure_key() -> Result<Option<ErasureKey>, ArchiveError> {
    match std::env::var_os("WIREPROOF_ERASURE_KEY").map(PathBuf::from) {
        Some(path) => ErasureKey::read(&path),
        None => Ok(ErasureKey::read_default()),
    }
}

#[pymethods]
impl ArchiveReader {
    #[new]
    fn new(py: Python<'_>, uri: &str) -> PyResult<Self> {
        let runtime = Arc::new(RequestRuntime::new()?);
        let archive = py.detach(|| runtime.run(Archive::open_existing(uri)))?;
        let archive = archive.with_erasure_key(erasure_key().map_err(archive_error)?);
        Ok(Self { archive, runtime })
    }

    /// The names of the tables that have a row.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let stats = self.table_stats(py)?;
        Ok(stats.into_iter().filter(|(_, stats)| stats.rows > 0).map(|(name, _)| name).collect())
    }

    /// The sizes of the tables.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for (name, stats) in self.table_stats(py)? {
            let TableStats { versions, files, rows, bytes, first_day, last_day } = stats;
            let table = PyDict::new(py);
            table.set_item("rows", rows)?;
            table.set_item("files", files)?;
            table.set_item("bytes", bytes)?;
            table.set_item("versions", versions)?;
            table.set_item("first_day", first_day)?;
            table.set_item("last_day", last_day)?;
            tables.set_item(name, table)?;
        }
        Ok(tables)
    }

    /// The files of a table.
    fn files<'py>(&self, py: Python<'py>, table: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let table = table_of(table)?;
        let files = py.detach(|| self.runtime.run(self.archive.stored_files(table)))?;
        files.into_iter().map(|file| self.file(py, table, file)).collect()
    }

    /// The keys under which accounts were erased, each with the hashes of their DIDs.
    fn erased<'py>(&self, py: Python<'py>) -> PyResult<Vec<ErasedHashes<'py>>> {
        let list = py.detach(|| self.runtime.run(self.archive.hide_list()))?;
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        let of = |(key, hashes): (&[u8], Vec<&[u8; 32]>)| {
            (bytes(key), hashes.into_iter().map(|hash| bytes(hash)).collect())
        };
        Ok(list.erased_hashes().into_iter().map(of).collect())
    }

    /// The rows of a table, as of each time that they are read.
    #[expect(clippy::too_many_arguments, reason = "the arguments of the function of Python")]
    fn scan(
        &self,
        py: Python<'_>,
        table: &str,
        columns: Option<Vec<String>>,
        did: Option<String>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        files: Option<Vec<String>>,
    ) -> PyResult<RecordBatchStream> {
        let since = since.map(|time| micros("since", time)).transpose()?;
        let until = until.map(|time| micros("until", time)).transpose()?;
        let table = table_of(table)?;
        check_columns(table.name(), &table.schema(), columns.as_deref().unwrap_or_default())?;
        let files = files.map(|files| files_of(table, &files)).transpose()?;
        let selection = RowSelection { columns, did, since, until, files };
        let (archive, runtime) = (self.archive.clone(), self.runtime.clone());
        let open = move || runtime.run(archive.rows(table, &selection));
        let schema = py.detach(&open)?.schema();
        let runtime = self.runtime.clone();
        Ok(RecordBatchStream::repeatable(schema, move || {
            let batches = ScannedBatches { scan: open()?, runtime: runtime.clone() };
            Ok(Box::new(batches) as Batches)
        }))
    }
}

impl ArchiveReader {
    fn table_stats(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, TableStats)>> {
        let stats =
            |table: Table| Ok((table.name(), self.runtime.run(self.archive.table_stats(table))?));
        py.detach(|| Table::ALL.into_iter().map(stats).collect())
    }

    fn file<'py>(
        &self,
        py: Python<'py>,
        table: Table,
        file: StoredFile,
    ) -> PyResult<Bound<'py, PyDict>> {
        let StoredFile { path, bytes, rows, day, dids } = file;
        let folder = self.archive.storage().object(table.name());
        let parts = path.prefix_match(&folder).into_iter().flatten();
        let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
        let path = format!("{}/{}", table.name(), parts.join("/"));
        let described = PyDict::new(py);
        described.set_item("path", path)?;
        described.set_item("bytes", bytes)?;
        described.set_item("rows", rows)?;
        described.set_item("day", day)?;
        described.set_item("dids", dids.map(RangeInclusive::into_inner))?;
        Ok(described)
    }
}

/// The batches of a scan.
struct ScannedBatches {
    scan: RowScan,
    runtime: Arc<RequestRuntime>,
}

impl Iterator for ScannedBatches {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        self.runtime.run(self.scan.next()).transpose()
    }
}

fn table_of(name: &str) -> PyResult<Table> {
    Table::ALL.into_iter().find(|table| table.name() == name).ok_or_else(|| {
        let names = Table::ALL.map(Table::name).join(", ");
        wrong_value("table", format!("{name} is none of {names}"))
    })
}

/// Paths within the table's folder, of paths within the archive.
fn files_of(table: Table, files: &[String]) -> PyResult<Vec<String>> {
    let prefix = format!("{}/", table.name());
    let file = |file: &String| {
        let why = || format!("{file} is no file of {}", table.name());
        let path = file.strip_prefix(&prefix).map(str::to_owned);
        path.ok_or_else(|| wrong_value("files", why()))
    };
    files.iter().map(file).collect()
}

fn archive_error(error: ArchiveError) -> PyErr {
    archive_exception(error.to_string(), code_of(&error.fault))
}

fn archive_exception(message: String, code: &str) -> PyErr {
    Python::attach(|py| Class::Archive.error(py, message, code, None))
}

/// The stable name of a fault.
fn code_of(fault: &ArchiveFault) -> &'static str {
    match fault {
        ArchiveFault::Address | ArchiveFault::NoObjectStores => "archive/address",
        ArchiveFault::NoArchive => "archive/missing",
        ArchiveFault::Settings(_) => "archive/settings",
        ArchiveFault::Store(_) => "archive/store",
        ArchiveFault::File(_) | ArchiveFault::Object(_) => "archive/io",
        ArchiveFault::Parquet(_) | ArchiveFault::Arrow(_) => "archive/parquet",
        fault => fault.code().unwrap_or("archive/other"),
    }
}
