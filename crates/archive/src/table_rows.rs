//! The rows of a table in its order. `event_rows`, `op_rows` and so on have the tables' columns.

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
    /// The rows of a batch, in its order.
    pub(crate) fn all_of(rows: FileRows<C>) -> impl Iterator<Item = Self> {
        let count = rows.batch.num_rows();
        let rows = Arc::new(rows);
        (0..count).map(move |index| Self { rows: rows.clone(), index })
    }

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
        match &self.rows.origin {
            Some(origin) => origin.place(self.index),
            None => (&self.rows.file, self.rows.first + self.index as u64),
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
