//! A run: a temporary file with rows of a table in its order, and where each row is from.

use std::fs::File;
use std::io::Seek;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::interleave::interleave_record_batch;
use futures_util::{TryStreamExt, stream};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::error::ArchiveError;
use crate::file_batches::{Batches, batch_rows};
use crate::table::Table;

/// Where the rows of a batch are from.
#[derive(Debug)]
pub(crate) struct Origin {
    files: StringArray,
    rows: Int64Array,
}

impl Origin {
    /// The columns of the table in a batch, and where its rows are from if it is one of a run.
    pub(crate) fn split(batch: RecordBatch, table: &SchemaRef) -> (RecordBatch, Option<Self>) {
        let columns = table.fields().len();
        let [files, rows] = &batch.columns()[columns..] else { return (batch, None) };
        let files = files.as_string::<i32>().clone();
        let rows = rows.as_primitive::<Int64Type>().clone();
        let of_table = RecordBatch::try_new(table.clone(), batch.columns()[..columns].to_vec());
        (of_table.expect("a run has the columns of the table first"), Some(Self { files, rows }))
    }

    /// The path of the file of a row within the archive, and the row in it from 0.
    pub(crate) fn place(&self, row: usize) -> (&str, u64) {
        (self.files.value(row), self.rows.value(row) as u64)
    }
}

/// Reads a run.
pub(crate) fn read(file: File, most_rows: usize) -> Result<Batches, ArchiveError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file);
    let reader = reader.and_then(|reader| {
        let rows = batch_rows(reader.metadata(), most_rows);
        reader.with_batch_size(rows).build()
    });
    let reader = reader.map_err(ArchiveError::at(RUN))?;
    Ok(Box::pin(stream::iter(reader).map_err(ParquetError::from)))
}

/// A run that is being written.
pub(crate) struct RunWriter {
    schema: SchemaRef,
    writer: ArrowWriter<File>,
}

impl RunWriter {
    pub(crate) fn create(table: Table) -> Result<Self, ArchiveError> {
        let fields = table.schema().fields().iter().map(|field| (**field).clone()).collect();
        let origin =
            [Field::new("file", DataType::Utf8, false), Field::new("row", DataType::Int64, false)];
        let fields: Vec<Field> = [fields, origin.to_vec()].concat();
        let schema = Arc::new(Schema::new(fields));
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
            .set_data_page_size_limit(PAGE_BYTES)
            .set_dictionary_page_size_limit(PAGE_BYTES)
            .set_write_batch_size(64);
        // With a dictionary, the size of a row group says nothing about its rows.
        for field in schema.fields().iter().filter(|field| *field.data_type() == DataType::Binary) {
            let column = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_dictionary_enabled(column, false);
        }
        let properties = properties.build();
        let file = tempfile::tempfile().map_err(ArchiveError::at(RUN))?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
        Ok(Self { schema, writer: writer.map_err(ArchiveError::at(RUN))? })
    }

    pub(crate) fn write<'a>(
        &mut self,
        batches: &[&RecordBatch],
        picks: &[(usize, usize)],
        origins: impl Iterator<Item = (&'a str, u64)>,
    ) -> Result<(), ArchiveError> {
        let mut files = StringBuilder::new();
        let mut rows = Int64Builder::new();
        for (file, row) in origins {
            files.append_value(file);
            rows.append_value(row as i64);
        }
        let picked = interleave_record_batch(batches, picks).map_err(ArchiveError::at(RUN))?;
        let mut columns = picked.columns().to_vec();
        columns.push(Arc::new(files.finish()));
        columns.push(Arc::new(rows.finish()));
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        let batch = batch.map_err(ArchiveError::at(RUN))?;
        self.writer.write(&batch).map_err(ArchiveError::at(RUN))
    }

    pub(crate) fn finish(self) -> Result<File, ArchiveError> {
        let mut file = self.writer.into_inner().map_err(ArchiveError::at(RUN))?;
        file.rewind().map_err(ArchiveError::at::<std::io::Error>(RUN))?;
        Ok(file)
    }
}

/// The name of a run in messages.
const RUN: &str = "a temporary file";

/// Size of a page of a run.
const PAGE_BYTES: usize = 64 << 10;

/// Size of a row group of a run before compression.
const ROW_GROUP_BYTES: usize = 4 << 20;
