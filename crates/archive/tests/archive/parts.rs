//! Parts of repositories: some collections with the nodes that prove them complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use crypto::PublicKey;
use verify::collections;
use verify::record::Options;
use wireproof_archive::{
    Archive, ArchivedPart, Collections, RowSelection, Sealed, Table, VerifyOptions, VerifyReport,
    WorkId,
};

use crate::common::changed_file::{change_rows, flip};
use crate::common::writers::{Account, Writers, after, received};
use crate::common::{archive, is_stored};

/// The collections of the accounts are `app.test.c0`, `c1` and `c2`.
const COLLECTIONS: [&str; 4] =
    ["app.test.c0", "app.test.c1,app.test.c2", "app.test.*", "app.test.missing"];

/// Stores the parts of repositories that have these collections, as they are, in one file.
async fn store(
    archive: &Archive,
    accounts: &mut [Account],
    text: &str,
    work: Option<&str>,
) -> Sealed {
    let collections: Collections = text.parse().unwrap();
    let keys: Vec<PublicKey> = accounts.iter().map(Account::key).collect();
    let export = |account: &mut Account| account.repository.export(Vec::new()).unwrap();
    let cars: Vec<Vec<u8>> = accounts.iter_mut().map(export).collect();
    let options = Options::default();
    let mut proofs = Vec::new();
    for (car, key) in cars.iter().zip(&keys) {
        proofs.push(collections::verify(car, collections.patterns(), None, key, &options).unwrap());
    }
    let part = |(proof, key)| ArchivedPart {
        proof,
        collections: &collections,
        key,
        host: "pds.test",
        fetched: received(0),
    };
    let parts = proofs.iter().zip(&keys).map(part).collect();
    let work = work.map(|writer| WorkId { writer: writer.to_owned(), number: 0 });
    archive.seal_parts(parts, work.as_ref()).await.unwrap()
}

/// Accounts with some commits.
fn writers(accounts: u8, seed: u64) -> Writers {
    let mut writers = Writers::new(accounts, seed);
    (0..usize::from(accounts)).for_each(|account| drop(writers.commit(account)));
    writers.commits(60 * usize::from(accounts));
    writers
}

async fn prove(archive: &Archive) -> VerifyReport {
    archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap()
}

/// The paths of the stored records, by the collections of their part.
async fn stored_paths(archive: &Archive, did: &str) -> BTreeMap<String, Vec<String>> {
    let selection = RowSelection { did: Some(did.to_owned()), ..RowSelection::default() };
    let mut rows = archive.rows(Table::PartRecords, &selection).await.unwrap();
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(batch) = rows.next().await.unwrap() {
        let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
        let columns = ["collections", "collection", "rkey"].map(text);
        for row in 0..batch.num_rows() {
            let [collections, collection, rkey] = columns.each_ref().map(|of| of.value(row));
            paths.entry(collections.to_owned()).or_default().push(format!("{collection}/{rkey}"));
        }
    }
    paths
}

#[tokio::test]
async fn parts_have_all_records_of_their_collections_and_are_proved_again() {
    for seed in 1..6 {
        let (mut writers, (_folder, archive)) = (writers(3, seed), archive());
        for text in COLLECTIONS {
            store(&archive, &mut writers.accounts, text, None).await;
        }
        let report = prove(&archive).await;
        assert!(!report.is_refused(), "{report:?}");
        assert_eq!((report.parts, report.proved_parts, report.snapshots), (12, 12, 0));
        for account in &writers.accounts {
            let paths = stored_paths(&archive, account.did()).await;
            for text in COLLECTIONS {
                let collections: Collections = text.parse().unwrap();
                let has = |path: &&String| collections.has(path.split_once('/').unwrap().0);
                let mut expected: Vec<String> =
                    account.paths().iter().filter(has).cloned().collect();
                expected.sort();
                assert_eq!(paths.get(text).cloned().unwrap_or_default(), expected, "{text}");
            }
        }
        archive.compact(after(9)).await.unwrap();
        let report = prove(&archive).await;
        assert_eq!((report.proved_parts, report.is_refused()), (12, false), "{report:?}");
    }
}

#[tokio::test]
async fn a_part_in_two_files_and_its_whole_repository_are_proved_each() {
    let (mut writers, (_folder, archive)) = (writers(2, 3), archive());
    assert!(store(&archive, &mut writers.accounts, "app.test.c1", Some("one")).await.files > 0);
    let again = store(&archive, &mut writers.accounts, "app.test.c1", Some("one")).await;
    assert_eq!(again, Sealed::default(), "the same work adds nothing");
    store(&archive, &mut writers.accounts[..1], "app.test.c1", Some("two")).await;
    writers.accounts[0].snapshot(&archive, 0).await;
    let report = prove(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.parts, report.proved_parts), (3, 3));
    assert_eq!((report.snapshots, report.proved_snapshots), (1, 1));
    let mut places = Vec::new();
    let mut visit = |did: &str, _: &str, collections: &str| {
        places.push(format!("{did} {collections}"));
    };
    archive.visit_parts(&RowSelection::default(), &mut visit).await.unwrap();
    places.sort();
    let place = |account: usize| format!("{} app.test.c1", writers.accounts[account].did());
    assert_eq!(places, [place(0), place(0), place(1)]);
}

#[tokio::test]
async fn records_are_selected_by_the_time_of_their_part() {
    let (mut writers, (_folder, archive)) = (writers(1, 4), archive());
    store(&archive, &mut writers.accounts[..1], "app.test.*", None).await;
    let rows = async |since: i64| {
        let selection = RowSelection { since: Some(since), ..RowSelection::default() };
        let mut scan = archive.rows(Table::PartRecords, &selection).await.unwrap();
        let mut count = 0;
        while let Some(batch) = scan.next().await.unwrap() {
            count += batch.num_rows();
        }
        count
    };
    assert_eq!(rows(received(0)).await, writers.accounts[0].paths().len());
    assert_eq!(rows(received(1)).await, 0);
}

/// A record of an account.
async fn first_record(archive: &Archive, did: &str) -> Vec<u8> {
    let columns = Some(vec!["record".to_owned()]);
    let selection = RowSelection { did: Some(did.to_owned()), columns, ..RowSelection::default() };
    let mut rows = archive.rows(Table::PartRecords, &selection).await.unwrap();
    let batch = rows.next().await.unwrap().unwrap();
    batch.column(0).as_binary::<i64>().value(0).to_vec()
}

/// A change of the rows of a table.
type Edit = fn(RecordBatch) -> RecordBatch;

#[tokio::test]
async fn a_part_that_was_changed_is_refused_by_rule() {
    let changes: [(&str, Edit, &str); 8] = [
        // A record that is withheld from the proof, and one that is added.
        ("part_records", |rows| rows.slice(1, rows.num_rows() - 1), "record/missing"),
        (
            "part_records",
            |rows| with_text(&rows, "rkey", |last| format!("{last}x")),
            "archive/records",
        ),
        ("part_records", |rows| with_column(&rows, "record", flip), "record/missing"),
        // A claim of more than is proved.
        (
            "parts",
            |rows| with_text(&rows, "collections", |text| format!("app.test.c0,{text}")),
            "tree/missing-node",
        ),
        ("parts", |rows| with_text(&rows, "collections", |_| "all".to_owned()), "archive/value"),
        ("parts", |rows| with_text(&rows, "rev", |_| "3zzzzzzzzzz22".to_owned()), "record/missing"),
        (
            "parts",
            |rows| {
                with_column(&rows, "records", |column| {
                    let count = column.as_primitive::<Int64Type>().value(0);
                    Arc::new(Int64Array::from(vec![count + 1]))
                })
            },
            "archive/records",
        ),
        ("parts", |rows| with_column(&rows, "proof", flip), "car/hash"),
    ];
    for (table, edit, code) in changes {
        let (mut writers, (folder, archive)) = (writers(1, 9), archive());
        store(&archive, &mut writers.accounts[..1], "app.test.c1", None).await;
        change_rows(folder.path(), table, edit);
        let reopened = Archive::open(folder.path().to_str().unwrap()).unwrap();
        let report = prove(&reopened).await;
        let refused: Vec<_> = report.refused.into_iter().collect();
        assert_eq!(refused, [(code.to_owned(), 1)], "{table}");
        assert_eq!(report.proved_parts, 0);
    }
}

fn with_column(
    rows: &RecordBatch,
    name: &str,
    edit: impl FnOnce(ArrayRef) -> ArrayRef,
) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    let at = rows.schema().index_of(name).unwrap();
    columns[at] = edit(columns[at].clone());
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

/// The rows with a change of the last text of a column.
fn with_text(rows: &RecordBatch, name: &str, edit: impl Fn(&str) -> String) -> RecordBatch {
    with_column(rows, name, |column| {
        let texts = column.as_string::<i32>();
        let last = texts.len() - 1;
        let text = |row| if row == last { edit(texts.value(row)) } else { texts.value(row).into() };
        Arc::new(StringArray::from_iter_values((0..=last).map(text)))
    })
}

#[tokio::test]
async fn a_part_under_another_key_is_refused() {
    let (mut writers, (folder, archive)) = (writers(2, 5), archive());
    let other = writers.accounts[1].key().to_did_key();
    store(&archive, &mut writers.accounts[..1], "app.test.c1", None).await;
    change_rows(folder.path(), "parts", |rows| with_text(&rows, "key", |_| other.clone()));
    let reopened = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let report = prove(&reopened).await;
    assert_eq!(report.refused.into_iter().collect::<Vec<_>>(), [("signature/wrong".to_owned(), 1)]);
}

#[tokio::test]
async fn an_erased_account_has_no_part() {
    let (mut writers, (folder, archive)) = (writers(2, 6), archive());
    store(&archive, &mut writers.accounts, "app.test.*", None).await;
    let did = writers.accounts[0].did().to_owned();
    let secret = first_record(&archive, &did).await;
    assert!(is_stored(folder.path(), &secret));
    let erased = archive.erase(&did, "deleted", received(1)).await.unwrap();
    assert_eq!(erased.rows, 1 + writers.accounts[0].paths().len() as u64);
    assert!(!is_stored(folder.path(), &secret));
    let report = prove(&archive).await;
    assert_eq!((report.proved_parts, report.is_refused()), (1, false), "{report:?}");
    // It does not come again.
    store(&archive, &mut writers.accounts[..1], "app.test.*", None).await;
    assert_eq!(prove(&archive).await.parts, 1);
}

#[tokio::test]
async fn a_record_of_a_part_and_its_absence_are_proved() {
    let (mut writers, (_folder, archive)) = (writers(1, 8), archive());
    store(&archive, &mut writers.accounts[..1], "app.test.c1", None).await;
    let account = &writers.accounts[0];
    let (did, key) = (account.did(), account.key());
    let present = account.paths().iter().find(|path| path.starts_with("app.test.c1/")).unwrap();
    for (path, is_present) in [(present.as_str(), true), ("app.test.c1/absent", false)] {
        let (collection, rkey) = path.split_once('/').unwrap();
        let slice = archive.prove_record(did, collection, rkey).await.unwrap().unwrap();
        let proof =
            verify::record::verify(&slice, path, Some(did), &key, &Options::default()).unwrap();
        assert_eq!((proof.record().is_some(), proof.extra().blocks), (is_present, 0), "{path}");
    }
    assert_eq!(archive.prove_record(did, "app.test.c2", "a").await.unwrap(), None);
}
