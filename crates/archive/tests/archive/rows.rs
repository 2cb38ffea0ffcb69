//! Rows of tables as record batches: columns, accounts, times, and nothing that is hidden.

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use simnet::firehose::{Corpus, Spec};
use verify::identity::AccountKeys;
use verify::sync::Policy;
use wireproof_archive::{
    Archive, ArchiveFault, ImportOptions, RowSelection, Subject, Table, VerifyOptions,
};

use crate::common::writers::{Writers, after};
use crate::common::{archive, files};

/// 2026-07-01 in microseconds.
const NOW: i64 = 1_782_864_000_000_000;

/// An archive of two imports of a simulated stream, a day apart.
async fn imported() -> (tempfile::TempDir, Archive) {
    let (folder, archive) = archive();
    let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
    let keys = serde_json::to_vec(&corpus.account_keys()).unwrap();
    let keys = AccountKeys::from_json(&keys).unwrap();
    let (first, second) = corpus.frames().split_at(corpus.frames().len() / 2);
    for (name, frames, now_micros) in [("first", first, NOW), ("second", second, NOW + DAY)] {
        let (host, policy) = ("relay.test".to_owned(), Policy::default());
        let options = ImportOptions { host, name: name.to_owned(), now_micros, policy };
        let frames = frames.iter().map(Vec::as_slice);
        archive.import_frames(frames, &keys, &options).await.unwrap();
    }
    (folder, archive)
}

async fn rows(archive: &Archive, table: Table, selection: &RowSelection) -> Vec<RecordBatch> {
    let mut scan = archive.rows(table, selection).await.unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = scan.next().await.unwrap() {
        assert_eq!(batch.schema(), scan.schema());
        batches.push(batch);
    }
    batches
}

fn columns(names: &[&str]) -> RowSelection {
    let columns = names.iter().map(|name| (*name).to_owned()).collect();
    RowSelection { columns: Some(columns), ..RowSelection::default() }
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The values of the first column.
fn texts(batches: &[RecordBatch]) -> Vec<&str> {
    batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten()).collect()
}

fn integers(batches: &[RecordBatch]) -> Vec<i64> {
    let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    batches.iter().flat_map(of).collect()
}

#[tokio::test]
async fn every_row_is_read_with_the_columns_of_the_table() {
    let (_folder, archive) = imported().await;
    for table in Table::ALL {
        let batches = rows(&archive, table, &RowSelection::default()).await;
        let stats = archive.table_stats(table).await.unwrap();
        assert_eq!(count(&batches) as u64, stats.rows, "{}", table.name());
    }
    let scan = archive.rows(Table::Events, &RowSelection::default()).await.unwrap();
    for (found, stated) in scan.schema().fields().iter().zip(Table::Events.schema().fields()) {
        assert_eq!(found.name(), stated.name());
        let is_binary = *stated.data_type() == DataType::Binary;
        let expected = if is_binary { &DataType::LargeBinary } else { stated.data_type() };
        assert_eq!(found.data_type(), expected);
    }
}

#[tokio::test]
async fn columns_are_returned_in_the_order_in_which_they_are_named() {
    let (_folder, archive) = imported().await;
    let whole = rows(&archive, Table::Events, &RowSelection::default()).await;
    let selected = rows(&archive, Table::Events, &columns(&["kind", "did"])).await;
    let expected: Vec<&str> = whole
        .iter()
        .flat_map(|batch| batch.column_by_name("kind").unwrap().as_string::<i32>().iter().flatten())
        .collect();
    assert_eq!(texts(&selected), expected);
    assert_eq!(selected[0].schema().field(1).name(), "did");
    assert_eq!(count(&rows(&archive, Table::Events, &columns(&[])).await), expected.len());
    let missing = archive.rows(Table::Ops, &columns(&["frame"])).await.map(drop).unwrap_err();
    assert!(matches!(missing.fault, ArchiveFault::Arrow(_)), "{missing}");
}

#[tokio::test]
async fn rows_of_an_account_are_all_its_rows() {
    let (_folder, archive) = imported().await;
    for table in [Table::Events, Table::Ops] {
        let dids = rows(&archive, table, &columns(&["did"])).await;
        let dids = texts(&dids);
        for did in [dids[0], dids[dids.len() / 2]] {
            let selection = RowSelection { did: Some(did.to_owned()), ..columns(&["did"]) };
            let found = rows(&archive, table, &selection).await;
            let expected: Vec<&str> = dids.iter().copied().filter(|other| *other == did).collect();
            assert_eq!(texts(&found), expected);
        }
    }
}

#[tokio::test]
async fn a_time_is_selected_from_its_first_microsecond_to_before_its_end() {
    let (_folder, archive) = imported().await;
    let arrivals = integers(&rows(&archive, Table::Ops, &columns(&["arrival"])).await);
    let limit = NOW + DAY;
    for (since, until) in
        [(None, Some(limit)), (Some(limit), None), (Some(limit + 3), Some(limit + 9))]
    {
        let selection = RowSelection { since, until, ..columns(&["arrival"]) };
        let found = integers(&rows(&archive, Table::Ops, &selection).await);
        let is_selected = |at: &i64| {
            since.is_none_or(|since| since <= *at) && until.is_none_or(|until| *at < until)
        };
        let expected: Vec<i64> = arrivals.iter().copied().filter(is_selected).collect();
        assert!(!expected.is_empty() && expected.len() < arrivals.len());
        assert_eq!(found, expected);
        let events = rows(&archive, Table::Events, &selection).await;
        let is_first = until == Some(limit);
        assert_eq!(count(&events) > 0, is_first || since == Some(limit), "all have one `received`");
    }
    let none = RowSelection { since: Some(i64::MAX), ..RowSelection::default() };
    assert_eq!(count(&rows(&archive, Table::Events, &none).await), 0);
    let all = RowSelection { until: Some(i64::MAX), ..columns(&["arrival"]) };
    assert_eq!(integers(&rows(&archive, Table::Ops, &all).await), arrivals);
}

#[tokio::test]
async fn a_file_of_another_day_is_not_opened() {
    let (folder, archive) = imported().await;
    for path in crate::common::files(&folder.path().join("events/day=2026-07-02")) {
        std::fs::remove_file(path).unwrap();
    }
    let first_day = RowSelection { until: Some(NOW + DAY), ..RowSelection::default() };
    assert!(count(&rows(&archive, Table::Events, &first_day).await) > 0);
    let mut whole = archive.rows(Table::Events, &RowSelection::default()).await.unwrap();
    while let Ok(batch) = whole.next().await {
        assert!(batch.is_some(), "the file of the second day is not there");
    }
}

#[tokio::test]
async fn files_that_are_named_are_read_and_no_others() {
    let (_folder, archive) = imported().await;
    let stored = archive.stored_files(Table::Events).await.unwrap();
    assert!(stored.len() > 1);
    let folder = archive.storage().object(Table::Events.name());
    let mut found = 0;
    for file in &stored {
        let parts = file.path.prefix_match(&folder).unwrap();
        let path = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
        let selection = RowSelection { files: Some(vec![path]), ..columns(&["did"]) };
        let count = count(&rows(&archive, Table::Events, &selection).await);
        assert_eq!(count as u64, file.rows);
        found += count;
    }
    assert_eq!(found, count(&rows(&archive, Table::Events, &columns(&["did"])).await));
    let files = Some(vec!["day=2026-07-01/none.parquet".to_owned()]);
    let missing = RowSelection { files, ..RowSelection::default() };
    let error = archive.rows(Table::Events, &missing).await.err().unwrap();
    assert_eq!(error.file, "events/day=2026-07-01/none.parquet");
    assert!(matches!(error.fault, ArchiveFault::File(_)), "{error}");
}

#[tokio::test]
async fn a_file_is_fetched_up_to_a_size_and_put_once() {
    let (_folder, archive) = archive();
    let storage = archive.storage();
    assert_eq!(storage.fetch("results/one", 3).await.unwrap(), None);
    assert!(storage.put_new("results/one", b"one".as_slice()).await.unwrap());
    assert!(!storage.put_new("results/one", b"two".as_slice()).await.unwrap());
    assert_eq!(storage.fetch("results/one", 3).await.unwrap().as_deref(), Some(&b"one"[..]));
    let error = storage.fetch("results/one", 2).await.unwrap_err();
    assert!(error.to_string().contains("3 bytes or more, and at most 2"), "{error}");
}

#[tokio::test]
async fn records_of_operations_are_those_of_their_frames() {
    let (_folder, archive) = imported().await;
    let batches = rows(&archive, Table::Ops, &columns(&["action", "record"])).await;
    for batch in &batches {
        let records = batch.column(1).as_binary::<i64>();
        for (row, action) in batch.column(0).as_string::<i32>().iter().enumerate() {
            assert_eq!(records.is_null(row), action == Some("delete"));
        }
    }
    assert!(texts(&batches).contains(&"create"));
}

#[tokio::test]
async fn what_is_hidden_is_left_out() {
    let (_folder, archive) = imported().await;
    let dids = rows(&archive, Table::Ops, &columns(&["did"])).await;
    let (account, author) = (texts(&dids)[0].to_owned(), texts(&dids).last().unwrap().to_string());
    let selection = RowSelection { did: Some(author.clone()), ..columns(&["collection", "rkey"]) };
    let paths = rows(&archive, Table::Ops, &selection).await;
    let path = |index: usize| paths[0].column(index).as_string::<i32>().value(0).to_owned();
    let record = Subject::Record { did: author.clone(), collection: path(0), rkey: path(1) };
    let before = count(&rows(&archive, Table::Events, &columns(&["did"])).await);
    archive.hide(&record, "test", NOW).await.unwrap();
    archive.hide(&Subject::Account(account.clone()), "test", NOW).await.unwrap();

    let events = rows(&archive, Table::Events, &columns(&["did", "frame"])).await;
    assert!(!texts(&events).contains(&&*account) && count(&events) < before);
    let hidden_frames: usize = events.iter().map(|batch| batch.column(1).null_count()).sum();
    assert!(hidden_frames > 0, "frames with the record");
    let ops = rows(&archive, Table::Ops, &columns(&["did"])).await;
    assert!(!texts(&ops).contains(&&*account));
    let left = rows(&archive, Table::Ops, &selection).await;
    assert!(count(&left) > 0 || count(&paths) == hidden_frames);
    for batch in &left {
        let path_of = |row| [0, 1].map(|index| batch.column(index).as_string::<i32>().value(row));
        assert!((0..batch.num_rows()).all(|row| path_of(row) != [&*path(0), &*path(1)]));
    }
    assert_eq!(count(&rows(&archive, Table::Hidden, &RowSelection::default()).await), 2);
}

/// A day in microseconds.
const DAY: i64 = 86_400_000_000;

#[tokio::test]
async fn rows_that_compress_well_are_in_row_groups_and_batches_of_bounded_size() {
    let (mut writers, (folder, archive)) = (Writers::new(1, 1), archive());
    let frames: Vec<Vec<u8>> = (0..300)
        .map(|number| {
            let path = format!("app.test.c0/{number:013}");
            writers.create(0, &path, &repetitive_record(200_000))
        })
        .collect();
    writers.import(&archive, &frames, "stream", 0).await;
    assert_is_bounded(folder.path(), &archive, Table::Events, 60_000_000).await;
    // Compact commits have their records among the operations.
    archive.thin(after(0)).await.unwrap();
    assert_is_bounded(folder.path(), &archive, Table::Ops, 60_000_000).await;
    let report = archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
    assert_eq!((report.proved, report.compact), (300, 300), "{report:?}");
}

/// A record with a text that repeats one letter.
fn repetitive_record(len: u32) -> Vec<u8> {
    let mut record = b"\xa2\x64text\x7a".to_vec();
    record.extend(len.to_be_bytes());
    record.resize(record.len() + len as usize, b'a');
    record.extend(b"\x65$type\x6bapp.test.c0");
    record
}

/// Checks that no row group of a table, and no batch that is read from it, decodes to more than 32 MB.
async fn assert_is_bounded(folder: &Path, archive: &Archive, table: Table, decoded: usize) {
    const MAX: usize = 32_000_000;
    let (mut groups, mut in_files, mut stored) = (0, 0, 0);
    let is_table =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
    for path in files(&folder.join(table.name())).into_iter().filter(is_table) {
        let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        for group in file.metadata().row_groups() {
            assert!(group.total_byte_size() <= MAX as i64, "{}", group.total_byte_size());
            in_files += group.total_byte_size() as usize;
            stored += group.compressed_size() as usize;
            groups += 1;
        }
    }
    assert!(in_files > decoded && stored < decoded / 20, "{in_files} bytes in {stored}");
    assert!(groups <= decoded / 20_000_000 + 1, "{groups} row groups");
    let batches = rows(archive, table, &RowSelection::default()).await;
    let sizes: Vec<usize> = batches.iter().map(RecordBatch::get_array_memory_size).collect();
    assert!(sizes.iter().all(|size| *size <= MAX), "{sizes:?}");
    assert!(sizes.iter().sum::<usize>() > decoded, "{sizes:?}");
}
