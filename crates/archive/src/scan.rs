//! Reads files of a table in its order: a merge of files that are sorted so.
//!
//! A file is opened when the merge gets to its first account, by the statistics in the log, and closed at its end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::sync::Arc;

use futures_util::TryStreamExt;

use crate::archive::Archive;
use crate::content_hash::content_hash;
use crate::error::ArchiveError;
use crate::file_batches::{self, BATCH_ROWS, Batches};
use crate::run_file::{self, Origin};
use crate::table_rows::{Columns, FileRows, Key, Row, RowRange};

/// The rows of a table in its order.
pub(crate) struct Scan<C> {
    archive: Archive,
    /// The account; rows of others can come too.
    did: Option<String>,
    /// The files that are yet to be opened; the next one is the last.
    pending: Vec<PendingFile>,
    /// The open files, by their number.
    files: HashMap<usize, ScannedFile<C>>,
    /// The files that have a row, by its place.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
}

/// A file that a scan is to read.
#[derive(Debug)]
pub(crate) struct PendingFile {
    /// Decides which of several rows of one place is first.
    pub(crate) number: usize,
    pub(crate) source: Source,
    /// Size in bytes; 0 of a temporary file, of which little is held at a time.
    pub(crate) bytes: u64,
    /// A place that is not after the first row.
    pub(crate) first: Key,
    /// The greatest account; `None` if it is not known.
    pub(crate) last: Option<Box<str>>,
}

/// Where the rows of a scanned file are.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file of the table, by its path in the table's folder.
    Stored(String),
    /// A temporary file of [`runs`](crate::runs).
    Run(File),
}

impl<C: Columns> Scan<C> {
    /// A scan of these files.
    pub(crate) fn new(archive: &Archive, mut pending: Vec<PendingFile>) -> Self {
        pending.sort_by(|a, b| (&b.first, b.number).cmp(&(&a.first, a.number)));
        Self {
            archive: archive.clone(),
            did: None,
            pending,
            files: HashMap::new(),
            heads: BinaryHeap::new(),
        }
    }

    /// The scan of an account, if there is one; rows of others can come too.
    pub(crate) fn of_account(self, did: Option<String>) -> Self {
        Self { did, ..self }
    }

    /// The next row; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Row<C>>, ArchiveError> {
        self.take(RowRange::next).await.map(Option::flatten)
    }

    /// The next rows, which have one place and were read together; `None` at the end.
    pub(crate) async fn next_of_place(&mut self) -> Result<Option<RowRange<C>>, ArchiveError> {
        self.take(RowRange::next_of_place).await
    }

    /// Takes rows of one place from the file that has the next one; `None` at the end.
    async fn take<T>(
        &mut self,
        take: impl FnOnce(&mut RowRange<C>) -> T,
    ) -> Result<Option<T>, ArchiveError> {
        self.open_due(None).await?;
        let Some(Reverse((_, file))) = self.heads.peek() else { return Ok(None) };
        let open = self.files.get_mut(file).expect("the heap has open files");
        let head = open.head.as_mut().expect("the heap has files with a row");
        let start = head.range().start;
        let taken = take(head);
        // With rows of the place left, the file still has the next one.
        if !head.is_at_place_of(start)
            && let Some(Reverse((_, file))) = self.heads.pop()
        {
            self.push_head(file).await?;
        }
        Ok(Some(taken))
    }

    /// Skips the rows before a place.
    pub(crate) async fn skip_to(&mut self, place: &Key) -> Result<(), ArchiveError> {
        loop {
            self.open_due(Some(place)).await?;
            match self.heads.peek() {
                Some(Reverse((key, _))) if key < place => {}
                _ => return Ok(()),
            }
            let Some(Reverse((_, file))) = self.heads.pop() else { return Ok(()) };
            let open = self.files.get_mut(&file).expect("the heap has open files");
            open.skip_to(place).await?;
            self.push_head(file).await?;
        }
    }

    /// The next row, if it is before a place; it stays the next one if it is not.
    pub(crate) async fn next_before(
        &mut self,
        place: &Key,
    ) -> Result<Option<Row<C>>, ArchiveError> {
        self.open_due(None).await?;
        match self.heads.peek() {
            Some(Reverse((key, _))) if key < place => self.next().await,
            _ => Ok(None),
        }
    }

    /// Opens the files that can have the next row. Files that end before the place to skip to are left out.
    async fn open_due(&mut self, skip_to: Option<&Key>) -> Result<(), ArchiveError> {
        let is_due = |pending: &PendingFile, heads: &BinaryHeap<Reverse<(Key, usize)>>| {
            heads.peek().is_none_or(|Reverse((key, _))| pending.first <= *key)
        };
        while self.pending.last().is_some_and(|pending| is_due(pending, &self.heads)) {
            let Some(pending) = self.pending.pop() else { break };
            let is_before = |place: &Key| pending.last.is_some() && pending.last < place.did;
            if !skip_to.is_some_and(is_before) {
                let file = ScannedFile::open(&self.archive, pending.source, self.did.as_deref());
                let file = file.await?;
                self.files.insert(pending.number, file);
                self.push_head(pending.number).await?;
            }
        }
        Ok(())
    }

    async fn push_head(&mut self, file: usize) -> Result<(), ArchiveError> {
        let Some(open) = self.files.get_mut(&file) else { return Ok(()) };
        match open.fill().await? {
            Some(key) => self.heads.push(Reverse((key, file))),
            None => drop(self.files.remove(&file)),
        }
        Ok(())
    }
}

/// A file that is being read.
struct ScannedFile<C> {
    path: Arc<str>,
    batches: Batches,
    /// Rows so far.
    rows: u64,
    /// The rows that were read and not yet taken.
    head: Option<RowRange<C>>,
}

impl<C: Columns> ScannedFile<C> {
    async fn open(
        archive: &Archive,
        source: Source,
        did: Option<&str>,
    ) -> Result<Self, ArchiveError> {
        let (path, rows, batches) = match source {
            Source::Stored(path) => {
                // Only the files of this program are sorted, and their names say so.
                let did = did.filter(|_| content_hash(&path).is_some());
                let path = format!("{}/{path}", C::TABLE.name());
                let (rows, batches) = file_batches::open(archive, C::TABLE, &path, did).await?;
                (path, rows, batches)
            }
            Source::Run(file) => (C::TABLE.name().to_owned(), 0, run_file::read(file, BATCH_ROWS)?),
        };
        Ok(Self { path: path.into(), batches, rows, head: None })
    }

    /// The place of the next row, which stays the next one.
    async fn fill(&mut self) -> Result<Option<Key>, ArchiveError> {
        loop {
            if let Some(key) = self.head.as_ref().and_then(RowRange::key) {
                return Ok(Some(key));
            }
            let batch = self.batches.try_next().await.map_err(ArchiveError::at(&self.path))?;
            let Some(batch) = batch else { return Ok(None) };
            let (batch, origin) = Origin::split(batch, &C::TABLE.schema());
            let file = self.path.clone();
            let columns = C::new(&batch);
            let first = self.rows;
            self.rows += batch.num_rows() as u64;
            self.head = Some(RowRange::all_of(FileRows { file, first, batch, columns, origin }));
        }
    }

    /// Drops the rows before a place.
    async fn skip_to(&mut self, place: &Key) -> Result<(), ArchiveError> {
        while self.fill().await?.is_some() {
            let Some(head) = &mut self.head else { break };
            head.skip_to(place);
            if !head.is_empty() {
                break;
            }
        }
        Ok(())
    }
}
