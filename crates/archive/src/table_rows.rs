//! The rows of a table in its order. `event_rows`, `op_rows` and so on have the tables' columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};

use crate::file_batches::column;
use crate::run_file::Origin;
use crate::table::Table;

/// The columns of a few rows of a table.
pub(crate) trait Columns: Sized + Send + Sync + 'static {
    const TABLE: Table;

    /// Whether all rows of a place are in one file, and rows of another file repeat them.
    const IS_ONE_RUN: bool = false;

    /// The columns of rows that have the table's schema.
    fn new(rows: &RecordBatch) -> Self;

    /// The place of a row in the table's order.
    fn key(&self, row: usize) -> Key;

    /// Whether two rows have one place.
    fn is_one_place(&self, a: usize, b: usize) -> bool {
        self.key(a) == self.key(b)
    }
}

/// The place of a row in the order of its table; rows of the same place stay in the order of their files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) did: Option<Box<str>>,
    pub(crate) number: i64,
    pub(crate) text: Option<Box<str>>,
}

/// A row. Clones share the bytes.
#[derive(Debug)]
pub(crate) struct Row<C> {
    rows: Arc<FileRows<C>>,
    index: usize,
}

impl<C> Clone for Row<C> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), index: self.index }
    }
}

impl<C> Row<C> {
    pub(crate) fn columns(&self) -> &C {
        &self.rows.columns
    }

    /// The index in the columns.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The rows that were read together with this one.
    pub(crate) fn batch(&self) -> &RecordBatch {
        &self.rows.batch
    }

    /// Whether both have one place in the table's order.
    pub(crate) fn is_at_place_of(&self, other: &Self) -> bool
    where
        C: Columns,
    {
        self.columns().key(self.index) == other.columns().key(other.index)
    }

    /// Whether both were read together.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows)
    }

    /// The path of the file within the archive, and the row in it from 0.
    pub(crate) fn place(&self) -> (&str, u64) {
        self.rows.place(self.index)
    }
}

/// Rows that follow each other, and were read together.
#[derive(Debug)]
pub(crate) struct RowRange<C> {
    rows: Arc<FileRows<C>>,
    range: Range<usize>,
}

impl<C> RowRange<C> {
    /// All rows of a batch.
    pub(crate) fn all_of(rows: FileRows<C>) -> Self {
        let range = 0..rows.batch.num_rows();
        Self { rows: Arc::new(rows), range }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    pub(crate) fn columns(&self) -> &C {
        &self.rows.columns
    }

    /// The indexes in the columns.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The path of the file of a row within the archive.
    pub(crate) fn file(&self, index: usize) -> &str {
        self.rows.place(index).0
    }

    /// Takes the first row.
    pub(crate) fn next(&mut self) -> Option<Row<C>> {
        let index = self.range.next()?;
        Some(Row { rows: self.rows.clone(), index })
    }
}

impl<C: Columns> RowRange<C> {
    /// The place of the first row; `None` if there is no row.
    pub(crate) fn key(&self) -> Option<Key> {
        (!self.is_empty()).then(|| self.columns().key(self.range.start))
    }

    /// Whether the first row has the place of a row that was taken.
    pub(crate) fn is_at_place_of(&self, taken: usize) -> bool {
        !self.is_empty() && self.columns().is_one_place(taken, self.range.start)
    }

    /// Takes the first rows, which have one place.
    pub(crate) fn next_of_place(&mut self) -> Self {
        let start = self.range.start;
        let is_other = |row: &usize| !self.rows.columns.is_one_place(start, *row);
        let end = self.range.clone().find(is_other).unwrap_or(self.range.end);
        self.range.start = end;
        Self { rows: self.rows.clone(), range: start..end }
    }

    /// Drops the rows before a place.
    pub(crate) fn skip_to(&mut self, place: &Key) {
        let mut end = self.range.end;
        while self.range.start < end {
            let middle = self.range.start.midpoint(end);
            if self.columns().key(middle) < *place {
                self.range.start = middle + 1;
            } else {
                end = middle;
            }
        }
    }
}

/// Rows that were read together.
#[derive(Debug)]
pub(crate) struct FileRows<C> {
    pub(crate) file: Arc<str>,
    /// The row of the file with which they begin.
    pub(crate) first: u64,
    pub(crate) batch: RecordBatch,
    pub(crate) columns: C,
    /// Where the rows are from, if rows of several files were merged before.
    pub(crate) origin: Option<Origin>,
}

impl<C> FileRows<C> {
    /// The path of the file of a row within the archive, and the row in it from 0.
    fn place(&self, index: usize) -> (&str, u64) {
        match &self.origin {
            Some(origin) => origin.place(index),
            None => (&self.file, self.first + index as u64),
        }
    }
}

/// The place of the rows of a revision of an account.
pub(crate) fn place(did: &str, rev: &str) -> Key {
    Key { did: Some(did.into()), number: 0, text: Some(rev.into()) }
}

pub(crate) fn optional(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

pub(crate) fn optional_bytes(column: &BinaryArray, row: usize) -> Option<&[u8]> {
    column.is_valid(row).then(|| column.value(row))
}

pub(crate) fn text(rows: &RecordBatch, name: &str) -> StringArray {
    column(rows, name).as_string::<i32>().clone()
}

pub(crate) fn integers(rows: &RecordBatch, name: &str) -> Int64Array {
    column(rows, name).as_primitive::<Int64Type>().clone()
}

pub(crate) fn times(rows: &RecordBatch, name: &str) -> TimestampMicrosecondArray {
    column(rows, name).as_primitive::<TimestampMicrosecondType>().clone()
}

pub(crate) fn bytes(rows: &RecordBatch, name: &str) -> BinaryArray {
    column(rows, name).as_binary::<i32>().clone()
}
