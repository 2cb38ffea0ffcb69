//! Files that another program wrote, as the `OPTIMIZE` of a Delta engine does, and files whose content contradicts their names:
//! their rows are proved by their content, the writer is named, and all other files are proved.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use wireproof_archive::{Archive, Finding, VerifyOptions, VerifyReport};

use crate::common::writers::{Writers, after, received};
use crate::common::{archive, files};
use crate::labels::store_of_accounts;

const DAY: &str = "day=2026-07-01";

/// How another program orders the rows of the files that it joins.
type Order = fn(usize) -> Vec<u32>;

/// One file after the other.
const JOINED: Order = |rows| (0..rows as u32).collect();

/// The last row first.
const REVERSED: Order = |rows| (0..rows as u32).rev().collect();

/// Joins the files of a day of a table, as another program does: one file, with a name, an order and an entry of its own. Returns the file.
fn optimize(archive: &Path, table: &str, order: Order) -> Option<PathBuf> {
    let day = archive.join(table).join(DAY);
    let old = if day.exists() { files(&day) } else { return None };
    let mut batches: Vec<RecordBatch> = Vec::new();
    for path in &old {
        let file = fs::File::open(path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        batches.extend(reader.build().unwrap().map(Result::unwrap));
    }
    let joined = concat_batches(&batches[0].schema(), &batches).unwrap();
    let order = arrow_array::UInt32Array::from(order(joined.num_rows()));
    let rows = take_record_batch(&joined, &order).unwrap();
    let name = format!("{DAY}/part-00000-5d081876-ac98-404f-9be6-584c44ff3ca7-c000.parquet");
    let path = archive.join(table).join(&name);
    write(&path, &rows);
    let remove = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        json!({"remove": {"path": format!("{DAY}/{name}"), "dataChange": false, "deletionTimestamp": 7,
            "extendedFileMetadata": true, "partitionValues": {"day": "2026-07-01"}, "size": 7}})
    };
    let info = json!({"commitInfo": {"timestamp": 7, "operation": "OPTIMIZE",
        "operationParameters": {"targetSize": "7"}, "engineInfo": "another-engine:1.2"}});
    let stats = json!({"numRecords": rows.num_rows()}).to_string();
    let add = json!({"add": {"path": name, "partitionValues": {"day": "2026-07-01"},
        "size": fs::metadata(&path).unwrap().len(), "modificationTime": 7, "dataChange": false,
        "stats": stats, "tags": null, "baseRowId": null}});
    let lines: Vec<Value> = [info].into_iter().chain(old.iter().map(remove)).chain([add]).collect();
    commit(archive, table, &lines);
    for path in old {
        fs::remove_file(path).unwrap();
    }
    Some(path)
}

/// Writes a file as another program does.
fn write(path: &Path, rows: &RecordBatch) {
    let properties = WriterProperties::builder().set_created_by("another-writer 1.2".to_owned());
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties.build())).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// Adds an entry to the log of a table.
fn commit(archive: &Path, table: &str, lines: &[Value]) {
    let log = archive.join(table).join("_delta_log");
    let version = files(&log).iter().filter(|path| path.extension().unwrap() == "json").count();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(log.join(format!("{version:020}.json")), text).unwrap();
}

async fn verify(archive: &Archive) -> (VerifyReport, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut on_finding = |finding| findings.push(finding);
    let report = archive.verify(&VerifyOptions::default(), &mut on_finding).await.unwrap();
    (report, findings)
}

/// An archive with full and compact commits and repositories of one day, in several files per table.
async fn made() -> (tempfile::TempDir, Archive, Writers) {
    let (mut writers, (folder, archive)) = (Writers::new(5, 11), archive());
    (0..5).for_each(|account| drop(writers.commit(account)));
    for account in &mut writers.accounts {
        account.snapshot(&archive, 0).await;
    }
    for name in ["one", "two"] {
        let frames = writers.commits(40);
        writers.import(&archive, &frames, name, 0).await;
    }
    archive.thin(after(0)).await.unwrap();
    for name in ["three", "four"] {
        let frames = writers.commits(40);
        writers.import(&archive, &frames, name, 0).await;
    }
    for account in &mut writers.accounts {
        account.snapshot(&archive, 0).await;
    }
    (folder, archive, writers)
}

const TABLES: [&str; 4] = ["events", "ops", "snapshots", "records"];

#[tokio::test]
async fn rows_that_another_program_moved_are_proved_by_their_content_and_it_is_named() {
    for order in [JOINED, REVERSED] {
        let (folder, archive, writers) = made().await;
        let (before, _) = verify(&archive).await;
        assert!(before.compact > 0 && before.proved > before.compact, "{before:?}");
        for table in TABLES {
            optimize(folder.path(), table, order).unwrap();
        }
        let (found, findings) = verify(&archive).await;
        assert_eq!(findings, []);
        let proved = |report: &VerifyReport| {
            let VerifyReport { events, proved, compact, snapshots, proved_snapshots, .. } = report;
            [events, proved, compact, snapshots, proved_snapshots].map(|count| *count)
        };
        assert_eq!(proved(&found), proved(&before));
        let named = BTreeMap::from([("another-engine:1.2, by OPTIMIZE".to_owned(), 4)]);
        assert_eq!(found.rewritten, named);
        // Our own files again.
        archive.thin(after(0)).await.unwrap();
        assert_eq!(verify(&archive).await.1, [], "after thin");
        archive.compact(after(0)).await.unwrap();
        assert_eq!(verify(&archive).await.1, [], "after compact");
        let did = writers.accounts[2].did();
        let erased = archive.erase(did, "deleted", received(1)).await.unwrap();
        assert!(erased.rows > 0 && erased.uncommitted_files == 0, "{erased:?}");
        let (after_it, findings) = verify(&archive).await;
        assert_eq!(findings, []);
        assert!(after_it.compact > before.compact, "{after_it:?}");
    }
}

#[tokio::test]
async fn a_row_of_another_program_that_is_there_twice_or_was_changed_is_refused() {
    const TWICE: Order = |rows| (0..rows as u32).chain([3]).collect();
    let (folder, archive, _) = made().await;
    optimize(folder.path(), "events", TWICE).unwrap();
    let (found, _) = verify(&archive).await;
    assert_eq!(found.refused.get("archive/repeated"), Some(&1), "{found:?}");

    let (folder, archive, _) = made().await;
    let path = optimize(folder.path(), "events", JOINED).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&path).unwrap()).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    let rows = concat_batches(&batches[0].schema(), &batches).unwrap();
    let (mut columns, frame) = (rows.columns().to_vec(), rows.schema().index_of("frame").unwrap());
    columns[frame] = crate::common::changed_file::flip(columns[frame].clone());
    write(&path, &RecordBatch::try_new(rows.schema(), columns).unwrap());
    let (found, findings) = verify(&archive).await;
    assert_eq!(found.refused.values().sum::<u64>(), 1, "{findings:?}");
    // A row less than the log says.
    write(&path, &rows.slice(1, rows.num_rows() - 1));
    let (found, findings) = verify(&archive).await;
    assert_eq!(found.refused.get("archive/file"), Some(&1), "{findings:?}");
    assert!(findings[0].message.contains("another-engine:1.2"), "{findings:?}");
}

#[tokio::test]
async fn a_file_that_is_gone_or_cannot_be_read_ends_the_proof_of_no_other() {
    let (folder, archive, _) = made().await;
    let (before, _) = verify(&archive).await;
    let paths = files(&folder.path().join("events").join(DAY));
    for damage in ["gone", "no Parquet", "other rows"] {
        let path = &paths[paths.len() - 1];
        let bytes = fs::read(path).unwrap();
        match damage {
            "gone" => fs::remove_file(path).unwrap(),
            "no Parquet" => fs::write(path, "no Parquet file").unwrap(),
            _ => {
                let reader =
                    ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap());
                let batches: Vec<_> =
                    reader.unwrap().build().unwrap().map(Result::unwrap).collect();
                write(path, &concat_batches(&batches[0].schema(), &batches).unwrap());
            }
        }
        let (found, findings) = verify(&archive).await;
        assert_eq!(found.refused, BTreeMap::from([("archive/file".to_owned(), 1)]), "{damage}");
        assert!(path.ends_with(&findings[0].file), "{findings:?}");
        match damage {
            "other rows" => {
                assert_eq!((found.events, found.proved), (before.events, before.proved));
                assert!(
                    findings[0].message.contains("another-writer 1.2 wrote it"),
                    "{findings:?}"
                );
            }
            _ => assert!(found.proved > 0 && found.proved < before.proved, "{damage}: {found:?}"),
        }
        assert_eq!(found.proved_snapshots, before.proved_snapshots, "{damage}");
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(verify(&archive).await.1, []);
}

#[tokio::test]
async fn what_is_damaged_gets_no_new_name_from_compact() {
    let (folder, archive, _) = made().await;
    let path = &files(&folder.path().join("ops").join(DAY))[0];
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
    let before = files(folder.path());
    for result in
        [archive.compact(after(0)).await.map(drop), archive.thin(after(0)).await.map(drop)]
    {
        let error = result.unwrap_err();
        assert!(
            error.fault.code() == Some("archive/file") || error.file.starts_with("ops"),
            "{error}"
        );
    }
    assert_eq!(files(folder.path()), before);
}

#[tokio::test]
async fn labels_that_another_program_joined_are_sorted_and_proved() {
    for order in [JOINED, REVERSED] {
        let (folder, archive) = archive();
        store_of_accounts(&archive).await;
        optimize(folder.path(), "labels", order).unwrap();
        let report = archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
        assert!(!report.is_refused(), "{report:?}");
        assert_eq!((report.labels, report.proved_labels), (7, 6));
        assert_eq!(report.rewritten.values().sum::<u64>(), 1);
        let mut labels = archive.labels().await.unwrap();
        let mut origins = Vec::new();
        while let Some(label) = labels.next().await.unwrap() {
            origins.push(label.origin().2);
        }
        // Without an account first, and of an account in the order of the messages.
        assert_eq!(origins, [5, 7, 1, 2, 6, 3, 4]);
    }
}
