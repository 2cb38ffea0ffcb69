//! Rewrites a file of an archive with a changed column, as a person with write access could.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sha2::{Digest, Sha256};

use super::files;

/// Writes the only file of the first day of a table anew with a changed column, under its new name.
pub(crate) fn change(archive: &Path, table: &str, column: &str, edit: fn(ArrayRef) -> ArrayRef) {
    change_rows(archive, table, |rows| {
        let mut columns = rows.columns().to_vec();
        let index = rows.schema().index_of(column).unwrap();
        columns[index] = edit(columns[index].clone());
        RecordBatch::try_new(rows.schema(), columns).unwrap()
    });
}

/// Writes the only file of the first day of a table anew with other rows, under its new name.
pub(crate) fn change_rows(
    archive: &Path,
    table: &str,
    edit: impl FnOnce(RecordBatch) -> RecordBatch,
) {
    let day = archive.join(table).join("day=2026-07-01");
    let [path] = &files(&day)[..] else { panic!("one file of {table}") };
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    let batch = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
    let changed = edit(batch);
    let mut writer = ArrowWriter::try_new(Vec::new(), changed.schema(), None).unwrap();
    writer.write(&changed).unwrap();
    let bytes = writer.into_inner().unwrap();
    let name = format!("{}.parquet", data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes)));
    let old = path.file_name().unwrap().to_str().unwrap().to_owned();
    fs::remove_file(path).unwrap();
    fs::write(day.join(&name), bytes).unwrap();
    for entry in files(&archive.join(table).join("_delta_log")) {
        let text = fs::read_to_string(&entry).unwrap().replace(&old, &name);
        fs::write(entry, with_hash(text)).unwrap();
    }
    // Else the log is not the one that was committed.
    let heads = archive.join("_heads").join(table);
    if heads.exists() {
        fs::remove_dir_all(heads).unwrap();
    }
}

/// An entry of a log with the hash that it must state.
fn with_hash(mut entry: String) -> String {
    let field = "\"entrySha256\":\"";
    let start = entry.find(field).unwrap() + field.len();
    let place = start..start + 64;
    entry.replace_range(place.clone(), &"0".repeat(64));
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&entry));
    entry.replace_range(place, &hash);
    entry
}

/// Changes a bit of the first value.
pub(crate) fn flip(column: ArrayRef) -> ArrayRef {
    let mut values: Vec<Option<Vec<u8>>> =
        column.as_binary::<i32>().iter().map(|value| value.map(<[u8]>::to_vec)).collect();
    *values.iter_mut().flatten().next().unwrap().last_mut().unwrap() ^= 1;
    Arc::new(BinaryArray::from_iter(values))
}
