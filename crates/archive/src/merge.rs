//! Merges files of a table: rows in the table's order go into as few files as their size asks for.

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use jiff::civil::Date;

use crate::archive::Archive;
use crate::delta::Add;
use crate::error::ArchiveError;
use crate::table_file::TableFile;
use crate::table_rows::{Columns, Row};

/// Rows of files, and rows that were built in their place, in the order in which they were added.
pub(crate) struct RowMerger<C> {
    /// Rows of which some are taken; the first row of a source stands for all rows read with it.
    sources: Vec<Row<C>>,
    /// The source and the row in it; the last source is the built rows.
    picks: Vec<(Option<usize>, usize)>,
    built: usize,
    bytes: usize,
}

impl<C: Columns> RowMerger<C> {
    pub(crate) fn new() -> Self {
        Self { sources: Vec::new(), picks: Vec::new(), built: 0, bytes: 0 }
    }

    /// Adds a row as it is.
    pub(crate) fn keep(&mut self, row: &Row<C>) {
        let known = self.sources.iter().rposition(|source| source.is_beside(row));
        let source = known.unwrap_or_else(|| {
            self.sources.push(row.clone());
            // The whole batch is held until the rows are written.
            self.bytes += row.batch().get_array_memory_size();
            self.sources.len() - 1
        });
        self.picks.push((Some(source), row.index()));
    }

    /// Adds the next rows of a builder.
    pub(crate) fn build(&mut self, count: usize, bytes: usize) {
        self.picks.extend((self.built..self.built + count).map(|row| (None, row)));
        self.built += count;
        self.bytes += bytes;
    }

    /// Whether the rows are to be written.
    pub(crate) fn is_full(&self) -> bool {
        self.picks.len() >= GROUP_ROWS || self.bytes >= GROUP_BYTES
    }

    /// Writes the rows, with the rows that the builder has built since the last time.
    pub(crate) fn write(
        &mut self,
        built: RecordBatch,
        file: &mut TableFile,
    ) -> Result<(), ArchiveError> {
        let sources: Vec<Row<C>> = self.sources.drain(..).collect();
        let mut batches: Vec<&RecordBatch> = sources.iter().map(Row::batch).collect();
        batches.push(&built);
        let last = batches.len() - 1;
        let picks: Vec<(usize, usize)> =
            self.picks.drain(..).map(|(source, row)| (source.unwrap_or(last), row)).collect();
        self.built = 0;
        self.bytes = 0;
        let rows = interleave_record_batch(&batches, &picks);
        file.write(&rows.map_err(ArchiveError::at(C::TABLE.name()))?)
    }
}

/// The files into which rows are merged.
pub(crate) struct MergedFiles<'a, C> {
    archive: &'a Archive,
    day: Date,
    merger: RowMerger<C>,
    file: TableFile,
    pub(crate) added: Vec<Add>,
}

impl<'a, C: Columns> MergedFiles<'a, C> {
    pub(crate) fn create(archive: &'a Archive, day: Date) -> Result<Self, ArchiveError> {
        let file = TableFile::create(archive.storage(), C::TABLE, day)?;
        Ok(Self { archive, day, merger: RowMerger::new(), file, added: Vec::new() })
    }

    pub(crate) fn rows(&mut self) -> &mut RowMerger<C> {
        &mut self.merger
    }

    /// Writes the rows so far.
    pub(crate) fn write(&mut self, built: RecordBatch) -> Result<(), ArchiveError> {
        self.merger.write(built, &mut self.file)
    }

    /// Whether the file is large enough.
    pub(crate) fn is_full(&self) -> bool {
        self.file.len() >= MAX_FILE_BYTES
    }

    /// Stores the file, and begins the next one. All rows must be written.
    pub(crate) async fn next_file(&mut self) -> Result<(), ArchiveError> {
        let next = TableFile::create(self.archive.storage(), C::TABLE, self.day)?;
        let file = std::mem::replace(&mut self.file, next);
        self.added.extend(file.finish(self.archive.storage()).await?);
        Ok(())
    }
}

/// Size of a file at which the next one begins, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 256 << 20;

/// Rows that are written at once.
const GROUP_ROWS: usize = 256;

/// Bytes of rows that are written at once, with the rows that were read with them.
const GROUP_BYTES: usize = 32 << 20;
