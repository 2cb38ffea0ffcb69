//! Sorts files that another program wrote, and merges small ones, into runs.
//!
//! ```text
//! a file that another program wrote ── sorted in parts ──> runs
//! more files than should be open ── merged, some at a time ──> runs ── merged ──> one scan
//! ```

use std::fs::File;
use std::iter::Peekable;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type};
use futures_util::TryStreamExt;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::run_file::RunWriter;
use crate::scan::{PendingFile, Scan, Source};
use crate::table::Table;
use crate::table_rows::{Columns, Key, Row};

impl Archive {
    /// The rows of a file in runs; `None` if it is sorted already.
    pub(crate) async fn sorted_runs<C: Columns>(
        &self,
        path: &str,
    ) -> Result<Option<Vec<File>>, ArchiveError> {
        if self.is_sorted::<C>(path).await? {
            return Ok(None);
        }
        let mut runs = Vec::new();
        let mut part = SortBuffer::<C>::new(C::TABLE, path);
        let mut batches = self.batches(C::TABLE, path).await?;
        while let Some(batch) = batches.try_next().await? {
            part.add(batch);
            if part.bytes >= PART_BYTES {
                runs.push(part.sort()?);
            }
        }
        if !part.batches.is_empty() {
            runs.push(part.sort()?);
        }
        Ok(Some(runs))
    }

    async fn is_sorted<C: Columns>(&self, path: &str) -> Result<bool, ArchiveError> {
        let mut batches = self.batches(C::TABLE, path).await?;
        let mut last = None;
        while let Some(batch) = batches.try_next().await? {
            let columns = C::new(&batch);
            for row in 0..batch.num_rows() {
                let place = Some((columns.key(row), within(C::TABLE, &batch, row)));
                if place < last {
                    return Ok(false);
                }
                last = place;
            }
        }
        Ok(true)
    }

    /// Merges small files into runs, until no more of them are open at a time than a scan should have. Large files stay: there
    /// are fewer of them, and to merge them would be to write the table again.
    pub(crate) async fn with_few_open<C: Columns>(
        &self,
        mut files: Vec<PendingFile>,
    ) -> Result<Vec<PendingFile>, ArchiveError> {
        loop {
            let is_small = |file: &PendingFile| file.bytes <= SMALL_BYTES;
            let (small, mut all): (Vec<_>, Vec<_>) = files.into_iter().partition(is_small);
            let open = most_open(&small);
            if small.len() < 2 || (open.files <= MAX_OPEN && open.bytes <= MAX_OPEN_BYTES) {
                all.extend(small);
                return Ok(all);
            }
            let mut rest = small.into_iter().peekable();
            loop {
                let group = next_group(&mut rest);
                let Some(number) = group.first().map(|file| file.number) else { break };
                let first = group.iter().map(|file| file.first.clone()).min();
                let first = first.expect("a group has files");
                let is_known = group.iter().all(|file| file.last.is_some());
                let last = group.iter().filter_map(|file| file.last.clone()).max();
                let source = Source::Run(write_run(&mut Scan::<C>::new(self, group)).await?);
                let last = last.filter(|_| is_known);
                all.push(PendingFile { number, source, bytes: 0, first, last });
            }
            files = all;
        }
    }
}

/// The next files that are merged together: at least two, if there are two.
fn next_group(files: &mut Peekable<impl Iterator<Item = PendingFile>>) -> Vec<PendingFile> {
    let mut group = Vec::new();
    let mut bytes = 0;
    while let Some(file) =
        files.next_if(|file| group.len() < 2 || bytes + file.bytes <= MAX_OPEN_BYTES)
    {
        bytes += file.bytes;
        group.push(file);
        if group.len() == MAX_OPEN {
            break;
        }
    }
    group
}

/// The files that a merge has open at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Open {
    files: usize,
    bytes: u64,
}

/// How much of these files a merge has open at a time, at most.
fn most_open(files: &[PendingFile]) -> Open {
    let mut starts: Vec<(Option<&str>, u64)> =
        files.iter().map(|file| (file.first.did.as_deref(), file.bytes)).collect();
    let ends = files.iter().filter_map(|file| Some((file.last.as_deref()?, file.bytes)));
    let mut ends: Vec<(&str, u64)> = ends.collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut open = Open::default();
    let mut most = Open::default();
    for (start, bytes) in starts {
        let is_before = |end: &(&str, u64)| start.is_some_and(|start| end.0 < start);
        while let Some((_, ended)) = ends.next_if(is_before) {
            open.files -= 1;
            open.bytes -= ended;
        }
        open.files += 1;
        open.bytes += bytes;
        most = Open { files: most.files.max(open.files), bytes: most.bytes.max(open.bytes) };
    }
    most
}

/// Rows of a file that are sorted together.
struct SortBuffer<C> {
    table: Table,
    /// The path of the file within the archive.
    file: String,
    batches: Vec<RecordBatch>,
    rows: Vec<(Key, Vec<u8>, (usize, usize))>,
    /// Rows of the file before the part.
    before: u64,
    bytes: usize,
    columns: std::marker::PhantomData<C>,
}

impl<C: Columns> SortBuffer<C> {
    fn new(table: Table, path: &str) -> Self {
        let file = format!("{}/{path}", table.name());
        Self {
            table,
            file,
            batches: Vec::new(),
            rows: Vec::new(),
            before: 0,
            bytes: 0,
            columns: std::marker::PhantomData,
        }
    }

    fn add(&mut self, batch: RecordBatch) {
        let columns = C::new(&batch);
        let at = self.batches.len();
        let place = |row| (columns.key(row), within(self.table, &batch, row), (at, row));
        self.rows.extend((0..batch.num_rows()).map(place));
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
    }

    /// Writes the rows in order, and begins the next part.
    fn sort(&mut self) -> Result<File, ArchiveError> {
        let starts: Vec<u64> = self
            .batches
            .iter()
            .scan(self.before, |start, batch| {
                Some(std::mem::replace(start, *start + batch.num_rows() as u64))
            })
            .collect();
        // Equal rows stay in their order.
        self.rows.sort();
        let mut writer = RunWriter::create(self.table)?;
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        for rows in self.rows.chunks(GROUP_ROWS) {
            let picks: Vec<(usize, usize)> = rows.iter().map(|(_, _, pick)| *pick).collect();
            let origins =
                picks.iter().map(|(batch, row)| (&*self.file, starts[*batch] + *row as u64));
            writer.write(&batches, &picks, origins)?;
        }
        self.before += self.rows.len() as u64;
        self.batches.clear();
        self.rows.clear();
        self.bytes = 0;
        writer.finish()
    }
}

/// Writes the rows of a scan.
pub(crate) async fn write_run<C: Columns>(scan: &mut Scan<C>) -> Result<File, ArchiveError> {
    let mut writer = RunWriter::create(C::TABLE)?;
    let mut rows: Vec<Row<C>> = Vec::new();
    loop {
        let row = scan.next().await?;
        if row.is_none() || rows.len() == GROUP_ROWS {
            let mut sources: Vec<&Row<C>> = Vec::new();
            let mut picks = Vec::with_capacity(rows.len());
            for row in &rows {
                let known = sources.iter().rposition(|source| source.is_beside(row));
                let source = known.unwrap_or_else(|| {
                    sources.push(row);
                    sources.len() - 1
                });
                picks.push((source, row.index()));
            }
            let batches: Vec<&RecordBatch> = sources.iter().map(|row| row.batch()).collect();
            if !picks.is_empty() {
                writer.write(&batches, &picks, rows.iter().map(Row::place))?;
            }
            rows.clear();
        }
        match row {
            Some(row) => rows.push(row),
            None => return writer.finish(),
        }
    }
}

/// The place of a row among the rows of its key.
fn within(table: Table, batch: &RecordBatch, row: usize) -> Vec<u8> {
    let column = |name: &str| batch.column_by_name(name).expect("the columns of the table");
    let order = |number: i64| ((number as u64) ^ (1 << 63)).to_be_bytes().to_vec();
    match table {
        Table::Ops => order(column("idx").as_primitive::<Int16Type>().value(row).into()),
        Table::PlcOps => order(column("seq").as_primitive::<Int64Type>().value(row)),
        Table::Blobs => column("cid").as_binary::<i32>().value(row).to_vec(),
        Table::Records | Table::PartRecords => {
            let text = |name: &str| column(name).as_string::<i32>().value(row).as_bytes().to_vec();
            [text("collection"), b"/".to_vec(), text("rkey")].concat()
        }
        Table::Labels => {
            let idx = column("idx").as_primitive::<Int16Type>().value(row);
            [order(column("seq").as_primitive::<Int64Type>().value(row)), order(idx.into())]
                .concat()
        }
        Table::Events | Table::Snapshots | Table::Parts | Table::Hidden => Vec::new(),
    }
}

/// Small files that a scan has open at a time: one takes some 250 KiB and twice its size.
const MAX_OPEN: usize = 96;

/// Size of the small files that a scan has open at a time.
const MAX_OPEN_BYTES: u64 = 16 << 20;

/// Size up to which a file is a small one. A merge of all small files costs less than to read the large ones.
const SMALL_BYTES: u64 = 4 << 20;

/// Rows that are written at once.
pub(crate) const GROUP_ROWS: usize = 256;

/// Size of the rows in memory that are sorted together.
const PART_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(first: Option<&str>, last: Option<&str>) -> PendingFile {
        let first = Key { did: first.map(Box::from), number: 0, text: None };
        let source = Source::Stored(String::new());
        PendingFile { number: 0, source, bytes: 7, first, last: last.map(Box::from) }
    }

    #[test]
    fn files_are_open_from_their_first_account_to_their_last() {
        let most = |files: &[PendingFile]| most_open(files);
        let open = |files: usize| Open { files, bytes: 7 * files as u64 };
        let apart = ["a", "b", "c"].map(|did| file(Some(did), Some(did)));
        assert_eq!(most(&apart), open(1));
        let beside = [("a", "c"), ("b", "b"), ("c", "d")];
        assert_eq!(most(&beside.map(|(first, last)| file(Some(first), Some(last)))), open(2));
        let unknown = [file(None, None), file(Some("b"), None), file(Some("c"), Some("c"))];
        assert_eq!(most(&unknown), open(3));
        assert_eq!(most(&[]), open(0));
    }
}
