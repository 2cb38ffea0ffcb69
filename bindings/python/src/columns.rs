//! Columns of record batches from a caller, of any of the types of bytes, text and time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, RecordBatch,
    RecordBatchReader, StringArray, StringViewArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::arguments::wrong_value;
use crate::record_batches::{STREAM, column_index, column_type_error};

/// A column of bytes.
pub(crate) enum BytesColumn {
    Small(BinaryArray),
    Large(LargeBinaryArray),
    Views(BinaryViewArray),
}

impl BytesColumn {
    /// The index of the column of this name, which must have bytes.
    pub(crate) fn index(argument: &str, schema: &Schema, name: &str) -> PyResult<usize> {
        let index = column_index(argument, schema, name)?;
        match schema.field(index).data_type() {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(index),
            _ => Err(column_type_error(argument, schema.field(index), "binary")),
        }
    }

    pub(crate) fn new(column: &ArrayRef) -> Self {
        match column.data_type() {
            DataType::Binary => Self::Small(column.as_binary::<i32>().clone()),
            DataType::LargeBinary => Self::Large(column.as_binary::<i64>().clone()),
            _ => Self::Views(column.as_binary_view().clone()),
        }
    }

    /// The bytes of a row; none if it is null.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Small(column) => column.is_valid(row).then(|| column.value(row)),
            Self::Large(column) => column.is_valid(row).then(|| column.value(row)),
            Self::Views(column) => column.is_valid(row).then(|| column.value(row)),
        }
    }
}

/// A column of texts.
pub(crate) enum TextColumn {
    Small(StringArray),
    Large(LargeStringArray),
    Views(StringViewArray),
}

impl TextColumn {
    /// The index of the column of this name, if there is one; it must have text.
    pub(crate) fn index(argument: &str, schema: &Schema, name: &str) -> PyResult<Option<usize>> {
        let Ok(index) = schema.index_of(name) else { return Ok(None) };
        match schema.field(index).data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(Some(index)),
            _ => Err(column_type_error(argument, schema.field(index), "text")),
        }
    }

    pub(crate) fn new(column: &ArrayRef) -> Self {
        match column.data_type() {
            DataType::Utf8 => Self::Small(column.as_string::<i32>().clone()),
            DataType::LargeUtf8 => Self::Large(column.as_string::<i64>().clone()),
            _ => Self::Views(column.as_string_view().clone()),
        }
    }

    /// The text of a row; none if it is null.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Small(column) => column.is_valid(row).then(|| column.value(row)),
            Self::Large(column) => column.is_valid(row).then(|| column.value(row)),
            Self::Views(column) => column.is_valid(row).then(|| column.value(row)),
        }
    }
}

/// A column of times.
pub(crate) struct TimeColumn(ArrayRef);

impl TimeColumn {
    /// The index of the column of this name, if there is one; it must have timestamps, or microseconds as integers.
    pub(crate) fn index(argument: &str, schema: &Schema, name: &str) -> PyResult<Option<usize>> {
        let Ok(index) = schema.index_of(name) else { return Ok(None) };
        match schema.field(index).data_type() {
            DataType::Int64 | DataType::Timestamp(..) => Ok(Some(index)),
            _ => Err(column_type_error(argument, schema.field(index), "timestamp or int64")),
        }
    }

    pub(crate) fn new(column: &ArrayRef) -> Self {
        Self(Arc::clone(column))
    }

    /// The time of a row in microseconds since 1970; none if it is null, or before 1970.
    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        if self.0.is_null(row) {
            return None;
        }
        let micros = match self.0.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                self.0.as_primitive::<TimestampSecondType>().value(row).saturating_mul(1_000_000)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                self.0.as_primitive::<TimestampMillisecondType>().value(row).saturating_mul(1_000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.0.as_primitive::<TimestampMicrosecondType>().value(row)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                self.0.as_primitive::<TimestampNanosecondType>().value(row) / 1_000
            }
            _ => self.0.as_primitive::<Int64Type>().value(row),
        };
        u64::try_from(micros).ok()
    }
}

/// The batches of an argument in pieces that are small enough for columns with offsets of 32 bits, and to be held at once.
pub(crate) struct Pieces {
    argument: &'static str,
    reader: Box<dyn RecordBatchReader + Send>,
    measure: Measure,
    /// The rest of the last batch.
    rest: Option<RecordBatch>,
}

/// The sizes of the rows of a batch in bytes.
type Measure = Box<dyn Fn(&RecordBatch) -> RowSizes + Send>;

/// The size of a row in bytes, by its number.
pub(crate) type RowSizes = Box<dyn Fn(usize) -> usize>;

impl Pieces {
    /// Pieces measured by a column of bytes.
    pub(crate) fn new(
        argument: &'static str,
        reader: Box<dyn RecordBatchReader + Send>,
        bytes: usize,
    ) -> Self {
        Self::measured(argument, reader, move |batch| {
            let column = BytesColumn::new(batch.column(bytes));
            Box::new(move |row| column.get(row).map_or(0, <[u8]>::len))
        })
    }

    /// Pieces whose size is the sum of `measure` over their rows.
    pub(crate) fn measured(
        argument: &'static str,
        reader: Box<dyn RecordBatchReader + Send>,
        measure: impl Fn(&RecordBatch) -> RowSizes + Send + 'static,
    ) -> Self {
        Self { argument, reader, measure: Box::new(measure), rest: None }
    }
}

impl Iterator for Pieces {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.reader.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(read_error(self.argument, &error))),
            },
        };
        let rows = piece_rows(&(self.measure)(&batch), batch.num_rows());
        if rows == batch.num_rows() {
            return Some(Ok(batch));
        }
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        Some(Ok(batch.slice(0, rows)))
    }
}

/// Number of rows of the first piece.
fn piece_rows(sizes: &RowSizes, rows: usize) -> usize {
    let mut bytes = 0;
    for row in 0..rows.min(MAX_PIECE_ROWS) {
        bytes += sizes(row);
        if bytes > MAX_PIECE_BYTES && row > 0 {
            return row;
        }
    }
    rows.min(MAX_PIECE_ROWS)
}

/// The columns of the input that are in the output, too.
pub(crate) struct KeptColumns {
    columns: Vec<usize>,
    /// The columns of the output: the kept ones come first.
    pub(crate) schema: SchemaRef,
}

impl KeptColumns {
    pub(crate) fn new(input: &Schema, keep: &[String], results: Vec<Field>) -> PyResult<Self> {
        let mut columns = Vec::new();
        for name in keep {
            if results.iter().any(|field| field.name() == name) {
                return Err(wrong_value("keep", format!("{name} is a column of the result")));
            }
            columns.push(column_index(STREAM, input, name)?);
        }
        let kept = columns.iter().map(|index| input.field(*index).clone());
        let schema = Arc::new(Schema::new(kept.chain(results).collect::<Vec<_>>()));
        Ok(Self { columns, schema })
    }

    pub(crate) fn batch(
        &self,
        piece: &RecordBatch,
        results: Vec<ArrayRef>,
    ) -> PyResult<RecordBatch> {
        let kept = self.columns.iter().map(|index| piece.column(*index).clone());
        RecordBatch::try_new(self.schema.clone(), kept.chain(results).collect())
            .map_err(|error| wrong_value(STREAM, error))
    }
}

/// The exception for a stream of the caller that failed.
pub(crate) fn read_error(argument: &str, error: &ArrowError) -> PyErr {
    match error {
        ArrowError::IoError(..) => PyOSError::new_err(format!("argument '{argument}': {error}")),
        _ => wrong_value(argument, error),
    }
}

/// Maximum number of rows of a piece.
pub(crate) const MAX_PIECE_ROWS: usize = 1 << 16;

/// Maximum size of the payloads of a piece in bytes, unless a single one is larger.
pub(crate) const MAX_PIECE_BYTES: usize = 256 << 20;
