//! Writes one Parquet file of a table: sorted rows in, an entry for the log out.
//!
//! The bytes depend on the rows alone, and the file is named by its SHA-256: a file that is written again after a crash is
//! the same file.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use jiff::civil::Date;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::delta::{Add, Stats, now_ms};
use crate::error::ArchiveError;
use crate::staged_file::StagedFile;
use crate::storage::Storage;
use crate::table::{DAY, Table};
use crate::uploads;

/// A file of a table that is being written.
pub(crate) struct TableFile {
    table: Table,
    day: Date,
    writer: ArrowWriter<HashedFile>,
    /// Bytes of the row group that is being written, as a reader decodes them.
    group_bytes: usize,
    stats: Stats,
}

impl TableFile {
    /// An empty file with the rows of this day.
    pub(crate) fn create(storage: &Storage, table: Table, day: Date) -> Result<Self, ArchiveError> {
        let file = HashedFile { file: storage.stage()?, hash: Sha256::new() };
        let writer = ArrowWriter::try_new(file, table.schema(), Some(properties(table)));
        let writer = writer.map_err(ArchiveError::at(table.name()))?;
        Ok(Self { table, day, writer, group_bytes: 0, stats: Stats::default() })
    }

    /// Adds rows that follow the last ones in the table's order.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), ArchiveError> {
        self.write_groups(rows).map_err(ArchiveError::at(self.table.name()))?;
        self.stats.num_records += rows.num_rows() as u64;
        if let Some(dids) = rows.column_by_name("did") {
            let nulls = self.stats.null_count.get("did").and_then(Value::as_u64).unwrap_or(0);
            let nulls = nulls + dids.null_count() as u64;
            self.stats.null_count.insert("did".to_owned(), nulls.into());
        }
        for name in self.table.bounded() {
            if let Some((min, max)) = rows.column_by_name(name).and_then(bounds) {
                widen(&mut self.stats.min_values, name, min, is_less);
                widen(&mut self.stats.max_values, name, max, |a, b| is_less(b, a));
            }
        }
        Ok(())
    }

    /// Adds rows to the row group, and ends it where they do not fit. A row that is larger than a row group has its own.
    fn write_groups(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        let mut start = 0;
        while start < rows.num_rows() {
            let rest = rows.slice(start, rows.num_rows() - start);
            let room = GROUP_DECODED_BYTES.saturating_sub(self.group_bytes);
            let count = match rows_within(&rest, room) {
                0 if self.group_bytes == 0 => 1,
                count => count,
            };
            if count > 0 {
                self.writer.write(&rest.slice(0, count))?;
                self.group_bytes += decoded_bytes(&rest, count);
                start += count;
            }
            if count == 0 || self.writer.in_progress_size() >= GROUP_FILE_BYTES {
                self.writer.flush()?;
                self.group_bytes = 0;
            }
        }
        Ok(())
    }

    /// Bytes so far, about.
    pub(crate) fn len(&self) -> usize {
        self.writer.bytes_written() + self.writer.in_progress_size()
    }

    /// Stores the file; `None` if it has no rows.
    pub(crate) async fn finish(self, storage: &Storage) -> Result<Option<Add>, ArchiveError> {
        if self.stats.num_records == 0 {
            return Ok(None);
        }
        let failed = ArchiveError::at::<ParquetError>(self.table.name());
        let HashedFile { file, hash } = self.writer.into_inner().map_err(failed)?;
        let hash = data_encoding::HEXLOWER.encode(&hash.finalize());
        let path = format!("{DAY}={}/{hash}.parquet", self.day);
        let size = file.size().map_err(ArchiveError::at::<io::Error>(&path))?;
        uploads::announce(storage, self.table, &path).await?;
        storage.upload(&format!("{}/{path}", self.table.name()), file).await?;
        Ok(Some(Add {
            path,
            partition_values: BTreeMap::from([(DAY.to_owned(), Some(self.day.to_string()))]),
            size,
            modification_time: now_ms(),
            data_change: true,
            stats: Some(serde_json::to_string(&self.stats).expect("stats have string keys")),
            tags: None,
            deletion_vector: None,
        }))
    }
}

/// A temporary file, and the hash of its content.
struct HashedFile {
    file: StagedFile,
    hash: Sha256,
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn properties(table: Table) -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("a level of zstd");
    let schema = table.schema();
    let index_of = |name: &str| schema.index_of(name).expect("a column of the table") as i32;
    let sorting = table.sorting().iter().map(|name| SortingColumn {
        column_idx: index_of(name),
        descending: false,
        nulls_first: true,
    });
    let mut properties = WriterProperties::builder()
        .set_created_by("wireproof".to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(level))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_write_batch_size(WRITE_BATCH_ROWS)
        .set_sorting_columns(Some(sorting.collect()));
    for field in schema.fields() {
        let column = ColumnPath::from(field.name().as_str());
        let encoding = match (field.data_type(), &**field.name()) {
            (
                _,
                "did" | "host" | "kind" | "verdict" | "key" | "judge" | "form" | "action"
                | "collection" | "src" | "service" | "val",
            ) => continue,
            (DataType::Int64 | DataType::Timestamp(..), _) => Encoding::DELTA_BINARY_PACKED,
            (DataType::Utf8, _) => Encoding::DELTA_BYTE_ARRAY,
            (DataType::Binary, _) => Encoding::DELTA_LENGTH_BYTE_ARRAY,
            _ => continue,
        };
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column.clone(), encoding);
        if *field.data_type() == DataType::Binary {
            properties = properties.set_column_statistics_enabled(column, EnabledStatistics::None);
        }
    }
    if schema.index_of("rkey").is_ok() {
        properties = properties.set_column_bloom_filter_enabled("rkey".into(), true);
    }
    properties.build()
}

/// The number of first rows that decode to at most this many bytes.
fn rows_within(rows: &RecordBatch, max: usize) -> usize {
    let (mut fits, mut end) = (0, rows.num_rows() + 1);
    while fits + 1 < end {
        let middle = fits.midpoint(end);
        if decoded_bytes(rows, middle) <= max {
            fits = middle;
        } else {
            end = middle;
        }
    }
    fits
}

/// Bytes of the first rows as Arrow arrays.
fn decoded_bytes(rows: &RecordBatch, count: usize) -> usize {
    rows.columns().iter().map(|column| column_bytes(column, count)).sum()
}

fn column_bytes(column: &ArrayRef, count: usize) -> usize {
    let values = |ends: &[i32]| (ends[count] - ends[0]) as usize + count * size_of::<i32>();
    match column.data_type() {
        DataType::Utf8 => values(column.as_string::<i32>().value_offsets()),
        DataType::Binary => values(column.as_binary::<i32>().value_offsets()),
        other => count * other.primitive_width().unwrap_or(1),
    }
}

/// The smallest and the largest value of a column.
fn bounds(column: &Arc<dyn Array>) -> Option<(Value, Value)> {
    match column.data_type() {
        DataType::Utf8 => {
            let column = column.as_string::<i32>();
            let bounds = (column.iter().flatten().min()?, column.iter().flatten().max()?);
            Some((bounds.0.into(), bounds.1.into()))
        }
        DataType::Int64 => {
            let values = column.as_primitive::<Int64Type>().values();
            Some(((*values.iter().min()?).into(), (*values.iter().max()?).into()))
        }
        DataType::Timestamp(..) => {
            let values = column.as_primitive::<TimestampMicrosecondType>().values();
            Some((timestamp(*values.iter().min()?), timestamp(*values.iter().max()?)))
        }
        _ => None,
    }
}

fn timestamp(micros: i64) -> Value {
    jiff::Timestamp::from_microsecond(micros).map_or(Value::Null, |time| time.to_string().into())
}

fn widen(
    bounds: &mut Map<String, Value>,
    name: &str,
    value: Value,
    is_wider: impl Fn(&Value, &Value) -> bool,
) {
    match bounds.get_mut(name) {
        Some(bound) if is_wider(&value, bound) => *bound = value,
        Some(_) => {}
        None => drop(bounds.insert(name.to_owned(), value)),
    }
}

fn is_less(a: &Value, b: &Value) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_str() < b.as_str(),
    }
}

/// Level 9 gains 3 % for three times the time.
const ZSTD_LEVEL: i32 = 3;

/// Size of a page before compression: a reader of one row decompresses one page.
const PAGE_BYTES: usize = 1 << 20;

/// Rows after which the size of a page is looked at. With more, a page of frames is as large as they are.
const WRITE_BATCH_ROWS: usize = 64;

/// Size of a row group in the file: a reader of many files holds one per file.
const GROUP_FILE_BYTES: usize = 16 << 20;

/// Size of a row group after decoding: many readers hold all of it, and repeated rows take little of the file.
const GROUP_DECODED_BYTES: usize = 28 << 20;
