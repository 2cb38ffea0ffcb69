//! The row groups of a file that can have rows of an account.

use std::ops::Range;

use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

/// The row groups between the first and the last one that can have rows of accounts from `first` to `last`. Files are sorted by
/// account, so these are about as many as their rows fill.
pub(crate) fn groups_of(metadata: &ParquetMetaData, first: &str, last: &str) -> Range<usize> {
    let groups = metadata.row_groups();
    let can_have = |group: &RowGroupMetaData| {
        let Some((min, max)) = bounds(group) else { return true };
        min <= last.as_bytes() && first.as_bytes() <= max
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

/// Bounds of the accounts of a row group; `None` if they are not stated.
fn bounds(group: &RowGroupMetaData) -> Option<(&[u8], &[u8])> {
    let column = group.columns().iter().find(|column| column.column_path().string() == "did")?;
    match column.statistics()? {
        Statistics::ByteArray(bounds) => Some((bounds.min_opt()?.data(), bounds.max_opt()?.data())),
        _ => None,
    }
}
