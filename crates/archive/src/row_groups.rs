//! The row groups of a file that can have rows of an account.

use std::ops::Range;

use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use crate::table::Table;

/// The row groups between the first and the last one that can have rows of accounts from `first` to `last`. Files are sorted by
/// account, so these are about as many as their rows fill.
pub(crate) fn groups_of(
    metadata: &ParquetMetaData,
    table: Table,
    first: &str,
    last: &str,
) -> Range<usize> {
    let groups = metadata.row_groups();
    let can_have = |group: &RowGroupMetaData| {
        table.account_columns().iter().any(|column| {
            let Some((min, max)) = bounds(group, column) else { return true };
            min <= last.as_bytes() && first.as_bytes() <= max
        })
    };
    let start = groups.iter().position(can_have).unwrap_or(groups.len());
    let end = groups.iter().rposition(can_have).map_or(start, |last| last + 1);
    start..end
}

/// Number of rows before a row group.
pub(crate) fn rows_before(metadata: &ParquetMetaData, group: usize) -> u64 {
    let groups = &metadata.row_groups()[..group];
    groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).sum()
}

/// Bounds of the accounts in a column of a row group; `None` if they are not stated.
fn bounds<'g>(group: &'g RowGroupMetaData, name: &str) -> Option<(&'g [u8], &'g [u8])> {
    let column = group.columns().iter().find(|column| column.column_path().string() == name)?;
    match column.statistics()? {
        Statistics::ByteArray(bounds) => Some((bounds.min_opt()?.data(), bounds.max_opt()?.data())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    /// A file with these accounts, two rows in a row group.
    fn metadata(column: &str, dids: &[&str]) -> ParquetMetaData {
        let schema = Arc::new(Schema::new(vec![Field::new(column, DataType::Utf8, true)]));
        let rows = Arc::new(StringArray::from(dids.to_vec()));
        let rows = RecordBatch::try_new(schema.clone(), vec![rows]).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap());
        SerializedFileReader::new(file).unwrap().metadata().clone()
    }

    #[test]
    fn row_groups_without_an_account_are_skipped_and_their_rows_counted() {
        let metadata = metadata("did", &["a", "a", "b", "c", "c", "d"]);
        for (first, last, groups) in
            [("a", "a", 0..1), ("c", "c", 1..3), ("b", "z", 1..3), ("d", "d", 2..3)]
        {
            let found = groups_of(&metadata, Table::Events, first, last);
            assert_eq!(found, groups, "{first} to {last}");
            assert_eq!(rows_before(&metadata, groups.start), 2 * groups.start as u64);
        }
        assert!(groups_of(&metadata, Table::Events, "e", "e").is_empty());
    }

    #[test]
    fn without_bounds_every_row_group_is_read() {
        let metadata = metadata("other", &["a", "b", "c"]);
        assert_eq!(groups_of(&metadata, Table::Events, "z", "z"), 0..2);
    }
}
