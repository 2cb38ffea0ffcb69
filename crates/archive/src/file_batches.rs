//! The rows of a file of a table, batch by batch, with the columns of the table in their order.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, Schema};
use futures_util::{Stream, StreamExt};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::errors::ParquetError;

use crate::archive::Archive;
use crate::decode_limits::{check_decoded, has_dictionaries, max_decoded};
use crate::error::{ArchiveError, ArchiveFault};
use crate::object_file::ObjectFile;
use crate::row_groups::{groups_of, rows_before};
use crate::table::Table;

/// The rows of a file.
pub(crate) type Batches = Pin<Box<dyn Stream<Item = Result<RecordBatch, ParquetError>> + Send>>;

impl Archive {
    /// The rows of a file of a table, by its path in the table's folder, with the columns of the table in their order.
    pub(crate) async fn batches(
        &self,
        table: Table,
        path: &str,
    ) -> Result<impl Stream<Item = Result<RecordBatch, ArchiveError>> + use<>, ArchiveError> {
        let path = format!("{}/{path}", table.name());
        let (_, batches) = open(self, table, &path, None).await?;
        Ok(batches.map(move |batch| batch.map_err(ArchiveError::at(&path))))
    }

    /// A file, by its path within the archive, for the Parquet reader.
    pub(crate) fn object_file(&self, path: &str) -> ObjectFile {
        let storage = self.storage();
        ObjectFile::new(storage.objects().clone(), storage.object(path))
    }
}

/// Opens a file of a table, by its path within the archive, at the first row group that can have rows of an account. Returns
/// the number of rows before it, and the rows with the columns of the table in their order.
pub(crate) async fn open(
    archive: &Archive,
    table: Table,
    path: &str,
    did: Option<&str>,
) -> Result<(u64, Batches), ArchiveError> {
    // The Arrow types that another program noted are meant for its own reader.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let file = archive.object_file(path);
    let builder = ParquetRecordBatchStreamBuilder::new_with_options(file, options).await;
    let mut builder = builder.map_err(ArchiveError::at(path))?.with_batch_size(BATCH_ROWS);
    check_columns(builder.schema(), &table.schema()).map_err(ArchiveError::at(path))?;
    let mut max = u64::MAX;
    if has_dictionaries(builder.metadata()) {
        builder = builder.with_batch_size(DICTIONARY_ROWS);
        max = max_decoded(builder.metadata());
    }
    let mut rows = 0;
    if let Some(did) = did {
        let groups = groups_of(builder.metadata(), did, did);
        rows = rows_before(builder.metadata(), groups.start);
        builder = builder.with_row_groups(groups.collect());
    }
    let stream = builder.build().map_err(ArchiveError::at(path))?;
    let schema = table.schema();
    let mut decoded = 0_u64;
    let batches = stream.map(move |batch| {
        let batch = batch?;
        decoded = decoded.saturating_add(batch.get_array_memory_size() as u64);
        check_decoded(decoded, max).map_err(|limit| ParquetError::External(Box::new(limit)))?;
        let fields = schema.fields().iter();
        let columns = fields.map(|field| column(&batch, field.name()).clone()).collect();
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    });
    Ok((rows, Box::pin(batches)))
}

/// A column of rows that have the table's schema.
pub(crate) fn column<'r>(rows: &'r RecordBatch, name: &str) -> &'r Arc<dyn Array> {
    rows.column_by_name(name).expect("the file has the columns of its table")
}

/// Checks that a file has the columns of its table with their types, even if another program wrote it.
pub(crate) fn check_columns(found: &Schema, table: &Schema) -> Result<(), ArchiveFault> {
    for column in table.fields() {
        let name = column.name();
        let other = found.field_with_name(column.name())?;
        if other.data_type() != column.data_type() {
            let (stored, stated) = (other.data_type(), column.data_type());
            let reason = format!("column {name} has the type {stored} instead of {stated}");
            return Err(ArrowError::SchemaError(reason).into());
        }
    }
    Ok(())
}

/// Rows that are decoded at once where every row can name one large value: 16 MiB at most.
pub(crate) const DICTIONARY_ROWS: usize = 16;

/// Rows that are decompressed at once: frames of some 5 kB.
pub(crate) const BATCH_ROWS: usize = 256;
