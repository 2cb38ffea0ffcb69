//! Values derived from frames are refused where they differ: rows of `ops`, and columns of `events`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type};
use arrow_array::{ArrayRef, BinaryArray, Int16Array, Int64Array, RecordBatch, StringArray};
use simnet::firehose::{Corpus, Spec};
use verify::identity::AccountKeys;
use verify::sync::Policy;
use wireproof_archive::{Archive, ImportOptions, VerifyOptions};

use crate::common::archive;
use crate::common::changed_file::{change, change_rows};

/// An archive of a stream, whose folder is left to the test.
async fn stored() -> (tempfile::TempDir, Archive) {
    let (folder, archive) = archive();
    let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
    let keys = serde_json::to_vec(&corpus.account_keys()).unwrap();
    let keys = AccountKeys::from_json(&keys).unwrap();
    let options = ImportOptions {
        host: "relay.test".to_owned(),
        name: "stream".to_owned(),
        now_micros: 1_782_864_000_000_000,
        policy: Policy::default(),
    };
    let frames = corpus.frames().iter().map(Vec::as_slice);
    archive.import_frames(frames, &keys, &options).await.unwrap();
    (folder, archive)
}

/// The codes of the refusals, and their number.
async fn refused(folder: &Path) -> Vec<(String, u64)> {
    let archive = Archive::open(folder.to_str().unwrap()).unwrap();
    let report = archive.verify(&VerifyOptions::default(), &mut |_| {}).await.unwrap();
    report.refused.into_iter().collect()
}

fn derived(count: u64) -> Vec<(String, u64)> {
    vec![("archive/derived".to_owned(), count)]
}

/// The first value of a column of text replaced.
fn other_text(column: ArrayRef) -> ArrayRef {
    let mut values: Vec<Option<String>> =
        column.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect();
    values[0] = Some("3jzfcijpj2z2a".to_owned());
    Arc::new(StringArray::from(values))
}

fn some_bytes(column: ArrayRef) -> ArrayRef {
    let mut values: Vec<Option<&[u8]>> = column.as_binary::<i32>().iter().collect();
    values[0] = Some(b"forged");
    Arc::new(BinaryArray::from(values))
}

fn other_number(column: ArrayRef) -> ArrayRef {
    let mut values: Vec<Option<i64>> = column.as_primitive::<Int64Type>().iter().collect();
    values[0] = Some(7);
    Arc::new(Int64Array::from(values))
}

fn other_index(column: ArrayRef) -> ArrayRef {
    let mut values: Vec<Option<i16>> = column.as_primitive::<Int16Type>().iter().collect();
    values[0] = Some(99);
    Arc::new(Int16Array::from(values))
}

/// A change of a column.
type Edit = fn(ArrayRef) -> ArrayRef;

#[tokio::test]
async fn operations_are_exactly_those_of_the_frames() {
    let (folder, _) = stored().await;
    assert_eq!(refused(folder.path()).await, []);
    // A changed row is missing from its commit, and belongs to none.
    let edits: [(&str, Edit); 7] = [
        ("action", other_text),
        ("collection", other_text),
        ("rkey", other_text),
        ("idx", other_index),
        ("prev", some_bytes),
        ("cid", some_bytes),
        ("record", some_bytes),
    ];
    for (column, edit) in edits {
        let (folder, _) = stored().await;
        change(folder.path(), "ops", column, edit);
        assert_eq!(refused(folder.path()).await, derived(2), "{column}");
    }
}

#[tokio::test]
async fn an_operation_that_is_left_out_or_added_is_refused() {
    let (folder, _) = stored().await;
    change_rows(folder.path(), "ops", |rows| rows.slice(1, rows.num_rows() - 1));
    assert_eq!(refused(folder.path()).await, derived(1));
    for arrival in ["same", "other"] {
        let (folder, _) = stored().await;
        change_rows(folder.path(), "ops", |rows| {
            let first = rows.slice(0, 1);
            let mut columns = first.columns().to_vec();
            if arrival == "other" {
                columns[1] = Arc::new(Int64Array::from(vec![7]));
            }
            let added = RecordBatch::try_new(rows.schema(), columns).unwrap();
            arrow_select::concat::concat_batches(&rows.schema(), [&added, &rows]).unwrap()
        });
        assert_eq!(refused(folder.path()).await, derived(1), "{arrival}");
    }
}

#[tokio::test]
async fn an_archive_without_its_operations_is_refused() {
    let (folder, archive) = stored().await;
    fs::remove_dir_all(folder.path().join("ops")).unwrap();
    drop(archive);
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let verified = archive.verify(&VerifyOptions::default(), &mut |_| {}).await;
    // A log that is gone may be an error of its own; never a proof.
    assert!(verified.is_err() || verified.is_ok_and(|report| report.is_refused()));
}

#[tokio::test]
async fn columns_beside_a_frame_are_what_it_says() {
    let edits: [(&str, Edit); 8] = [
        ("time", other_text),
        ("rev", other_text),
        ("since", other_text),
        ("kind", other_text),
        ("seq", other_number),
        ("commit", some_bytes),
        ("data", some_bytes),
        ("prev_data", some_bytes),
    ];
    for (column, edit) in edits {
        let (folder, _) = stored().await;
        change(folder.path(), "events", column, edit);
        let found = refused(folder.path()).await;
        assert!(found.contains(&derived(1)[0]), "{column}: {found:?}");
    }
}
