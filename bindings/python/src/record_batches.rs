//! Streams of Arrow record batches, from and to Python by the PyCapsule interface.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, Field, FieldRef, Schema, SchemaRef};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader};

/// Batches that are computed when they are asked for, without the interpreter's lock.
pub(crate) type Batches = Box<dyn Iterator<Item = PyResult<RecordBatch>> + Send>;

/// A stream of record batches, which are computed when they are read.
///
/// Every library of the Arrow PyCapsule interface reads it: `pyarrow.table(stream)`, `polars.DataFrame(stream)`,
/// `duckdb.sql("FROM stream")`. A loop over it gives `pyarrow.RecordBatch` objects, and raises exceptions as they are; other
/// libraries raise one of their own with the same message, and the attribute `error` keeps the original.
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct RecordBatchStream {
    schema: SchemaRef,
    source: Source,
    error: SharedError,
}

/// The exception that ended a stream in another library.
type SharedError = Arc<Mutex<Option<PyErr>>>;

enum Source {
    /// Batches that can be read once.
    Once(Mutex<Option<Batches>>),
    /// Batches that are read from the start every time.
    Repeatable(Box<dyn Fn() -> PyResult<Batches> + Send + Sync>),
}

impl RecordBatchStream {
    /// A stream that can be read once.
    pub(crate) fn once(schema: SchemaRef, batches: Batches) -> Self {
        Self::new(schema, Source::Once(Mutex::new(Some(batches))))
    }

    /// A stream that begins anew every time it is read.
    pub(crate) fn repeatable(
        schema: SchemaRef,
        open: impl Fn() -> PyResult<Batches> + Send + Sync + 'static,
    ) -> Self {
        Self::new(schema, Source::Repeatable(Box::new(open)))
    }

    /// A stream of batches that are there, which can be read any number of times.
    pub(crate) fn stored(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let batches = Arc::new(batches);
        Self::repeatable(schema, move || {
            let batches = batches.clone();
            Ok(Box::new((0..batches.len()).map(move |index| Ok(batches[index].clone()))))
        })
    }

    fn new(schema: SchemaRef, source: Source) -> Self {
        Self { schema, source, error: SharedError::default() }
    }

    fn open(&self, py: Python<'_>) -> PyResult<Batches> {
        py.detach(|| match &self.source {
            Source::Once(batches) => lock(batches).take().ok_or_else(|| {
                PyValueError::new_err("the stream has been read, and can be read only once")
            }),
            Source::Repeatable(open) => open(),
        })
    }
}

#[pymethods]
impl RecordBatchStream {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.open(py)?;
        let exported = ExportedBatches { batches: Some(batches), error: self.error.clone() };
        let field = Arc::new(Field::new_struct("", self.schema.fields().clone(), false));
        let arrays = Box::new(ArrayIterator::new(exported, field));
        Ok(to_stream_pycapsule(py, arrays, requested_schema)?)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordBatchIter> {
        let batches = Mutex::new(Some(self.open(py)?));
        Ok(RecordBatchIter { batches })
    }

    fn __repr__(&self) -> String {
        let column = |field: &FieldRef| format!("{}: {}", field.name(), field.data_type());
        let columns: Vec<String> = self.schema.fields().iter().map(column).collect();
        format!("<wireproof.RecordBatchStream {}>", columns.join(", "))
    }

    /// The exception that ended the stream while another library read it, or None.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        lock(&self.error).as_ref().map(|error| error.clone_ref(py))
    }
}

/// The batches of a stream as `pyarrow.RecordBatch` objects.
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct RecordBatchIter {
    /// None after the end, and after an error.
    batches: Mutex<Option<Batches>>,
}

#[pymethods]
impl RecordBatchIter {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Another thread can hold the batches and wait for the interpreter.
        let next = py.detach(|| next_or_end(&mut lock(&self.batches)));
        match next {
            Some(batch) => Ok(Some(PyRecordBatch::new(batch?).into_pyarrow(py)?)),
            None => Ok(None),
        }
    }
}

/// Batches as arrays of structs, for the C stream interface. A panic must not cross it, and errors are texts there.
struct ExportedBatches {
    batches: Option<Batches>,
    error: SharedError,
}

impl Iterator for ExportedBatches {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = &mut self.batches;
        let next = || catch_unwind(AssertUnwindSafe(|| next_or_end(batches)));
        // The caller may hold the interpreter's lock or not.
        let next = Python::try_attach(|py| py.detach(next));
        let failed = |message: &str| Some(Err(PyRuntimeError::new_err(message.to_owned())));
        let next = match next {
            Some(Ok(next)) => next,
            Some(Err(_)) => failed("the computation of a record batch panicked"),
            None => failed("the interpreter is shutting down"),
        };
        match next? {
            Ok(batch) => {
                let array: ArrayRef = Arc::new(StructArray::from(batch));
                Some(Ok(array))
            }
            Err(error) => {
                self.batches = None;
                let text = arrow_error(&error);
                *lock(&self.error) = Some(error);
                Some(Err(text))
            }
        }
    }
}

/// The next batch; after the end and after an error there is none.
fn next_or_end(batches: &mut Option<Batches>) -> Option<PyResult<RecordBatch>> {
    let next = batches.as_mut()?.next();
    if !matches!(next, Some(Ok(_))) {
        *batches = None;
    }
    next
}

/// The text of an exception; a text of the C interface cannot have a NUL.
fn arrow_error(error: &PyErr) -> ArrowError {
    let (text, is_os) =
        Python::attach(|py| (error.to_string(), error.is_instance_of::<PyOSError>(py)));
    let text = text.replace('\0', "\\0");
    if is_os {
        ArrowError::IoError(text.clone(), std::io::Error::other(text))
    } else {
        ArrowError::InvalidArgumentError(text)
    }
}

/// The record batches of an argument: an object with `__arrow_c_array__` or `__arrow_c_stream__`.
pub(crate) fn read_batches(
    argument: &str,
    object: &Bound<'_, PyAny>,
) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let failed = |what: &str| PyTypeError::new_err(format!("argument '{argument}': {what}"));
    if object.hasattr(C_ARRAY)? {
        let capsules = object.call_method0(C_ARRAY)?.cast_into::<PyTuple>()?;
        let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
        let batch = PyRecordBatch::from_arrow_pycapsule(schema.cast()?, array.cast()?);
        let batch = batch.map_err(|error| failed(&error.to_string()))?.into_inner();
        let schema = batch.schema();
        Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
    } else if object.hasattr(C_STREAM)? {
        let capsule = object.call_method0(C_STREAM)?.cast_into::<PyCapsule>()?;
        let reader = PyRecordBatchReader::from_arrow_pycapsule(&capsule);
        reader.map_err(|error| failed(&error.to_string()))?.into_reader()
    } else {
        let name = object.get_type().name()?;
        Err(failed(&format!("expected an object with {C_STREAM} or {C_ARRAY}, not {name}")))
    }
}

/// The index of a column of an argument.
pub(crate) fn column_index(argument: &str, schema: &Schema, name: &str) -> PyResult<usize> {
    schema.index_of(name).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|field| &**field.name()).collect();
        let names = if names.is_empty() { "no column".to_owned() } else { names.join(", ") };
        PyTypeError::new_err(format!(
            "argument '{argument}': column {name} is missing; there is {names}"
        ))
    })
}

/// The exception for a column of another type than `expected`.
pub(crate) fn column_type_error(argument: &str, field: &Field, expected: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "argument '{argument}': column {} has the type {} instead of {expected}",
        field.name(),
        field.data_type()
    ))
}

/// Locks; the value is as valid as before even if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The argument that has the batches.
pub(crate) const STREAM: &str = "stream";

const C_ARRAY: &str = "__arrow_c_array__";
const C_STREAM: &str = "__arrow_c_stream__";
