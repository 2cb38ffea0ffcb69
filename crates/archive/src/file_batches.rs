//! The rows of a file of a table, batch by batch, with the columns of the table in their order.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, Schema};
use futures_util::{Stream, StreamExt};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

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
    let builder = builder.map_err(ArchiveError::at(path))?;
    let rows = batch_rows(builder.metadata(), BATCH_ROWS);
    let mut builder = builder.with_batch_size(rows);
    check_columns(builder.schema(), &table.schema()).map_err(ArchiveError::at(path))?;
    let max = match has_dictionaries(builder.metadata()) {
        true => max_decoded(builder.metadata()),
        false => u64::MAX,
    };
    let mut rows = 0;
    if let Some(did) = did {
        let groups = groups_of(builder.metadata(), table, did, did);
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

/// The number of rows, at most `most`, that are decoded at once: some [`BATCH_BYTES`], if all rows of a row group have one size.
pub(crate) fn batch_rows(metadata: &ParquetMetaData, most: usize) -> usize {
    if has_dictionaries(metadata) {
        return DICTIONARY_ROWS.min(most);
    }
    let fits = metadata.row_groups().iter().map(|group| {
        let bytes = u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX);
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let row = bytes.checked_div(rows).unwrap_or(0).max(1);
        usize::try_from(BATCH_BYTES / row).unwrap_or(usize::MAX)
    });
    fits.min().unwrap_or(most).clamp(1, most)
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
const DICTIONARY_ROWS: usize = 16;

/// Rows that are decoded at once, at most: frames of some 5 kB.
pub(crate) const BATCH_ROWS: usize = 256;

/// Bytes that are decoded at once, in arrays that may have twice the room.
const BATCH_BYTES: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, BinaryArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    /// The end of a file with a row group for each of these sizes, in which ten values have the size.
    fn metadata(sizes: &[usize]) -> ParquetMetaData {
        let rows = |size: usize| {
            let value = vec![7; size];
            let column: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&value; 10]));
            RecordBatch::try_from_iter([("frame", column)]).unwrap()
        };
        let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
        let schema = rows(0).schema();
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).unwrap();
        for size in sizes {
            writer.write(&rows(*size)).unwrap();
            writer.flush().unwrap();
        }
        let file = bytes::Bytes::from(writer.into_inner().unwrap());
        SerializedFileReader::new(file).unwrap().metadata().clone()
    }

    #[test]
    fn large_rows_are_decoded_few_at_a_time_and_small_ones_up_to_the_limit() {
        assert_eq!(batch_rows(&metadata(&[5_000]), 256), 256);
        assert_eq!(batch_rows(&metadata(&[1 << 20]), 256), 7);
        assert_eq!(batch_rows(&metadata(&[5_000, 1 << 20, 5_000]), 256), 7);
        assert_eq!(batch_rows(&metadata(&[17 << 20]), 256), 1);
        assert_eq!(batch_rows(&metadata(&[]), 256), 256);
    }
}
