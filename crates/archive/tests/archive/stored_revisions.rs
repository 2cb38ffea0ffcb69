//! Repositories and parts that several writers fetch at a time are stored once.

use std::thread;

use atproto::syntax::Tid;
use crypto::PublicKey;
use verify::repository::{self, WholeRepository};
use verify::{Verified, collections, record};
use wireproof_archive::{
    Archive, ArchivedPart, ArchivedRepository, Collections, RowSelection, Sealed, StoredRevisions,
    Table, VerifyOptions, WorkId,
};

use crate::common::archive;
use crate::common::writers::{Writers, after, received};

/// The export of an account, and its key.
type Export = (Vec<u8>, PublicKey);

/// Accounts with a commit each, and their exports.
fn exports() -> Vec<Export> {
    let mut writers = Writers::new(ACCOUNTS, 40);
    (0..usize::from(ACCOUNTS)).for_each(|account| drop(writers.commit(account)));
    exports_of(&mut writers)
}

fn exports_of(writers: &mut Writers) -> Vec<Export> {
    let accounts = writers.accounts.iter_mut();
    accounts.map(|of| (of.repository.export(Vec::new()).unwrap(), of.key())).collect()
}

fn verified((car, key): &Export) -> Verified<WholeRepository<'_>> {
    repository::verify(car, None, key, &repository::Options::default()).unwrap()
}

fn work(name: impl Into<String>) -> WorkId {
    WorkId { writer: name.into(), number: 0 }
}

async fn seal<'e>(
    archive: &Archive,
    exports: impl IntoIterator<Item = &'e Export>,
    name: &str,
    stored: &StoredRevisions,
) -> Sealed {
    let proved: Vec<_> = exports.into_iter().map(|export| (verified(export), &export.1)).collect();
    let archived = proved.iter().map(|(repository, key)| ArchivedRepository {
        repository,
        key,
        host: "pds.test",
        fetched: received(0),
    });
    archive.seal_new_repositories(archived.collect(), &work(name), stored).await.unwrap()
}

async fn seal_parts<'e>(
    archive: &Archive,
    exports: impl IntoIterator<Item = &'e Export>,
    name: &str,
    stored: &StoredRevisions,
) -> Sealed {
    let wanted = parts();
    let mut proofs = Vec::new();
    for (car, key) in exports {
        let options = record::Options::default();
        let proof = collections::verify(car, wanted.patterns(), None, key, &options).unwrap();
        proofs.push((proof, key));
    }
    let archived = proofs.iter().map(|(proof, key)| ArchivedPart {
        proof,
        collections: &wanted,
        key,
        host: "pds.test",
        fetched: received(0),
    });
    archive.seal_new_parts(archived.collect(), &work(name), stored).await.unwrap()
}

fn parts() -> Collections {
    "app.test.c0,app.test.c1".parse().unwrap()
}

/// The stored revisions, in order.
async fn revisions(archive: &Archive) -> Vec<(String, String)> {
    let mut revisions = Vec::new();
    let mut visit = |did: &str, rev: &str| revisions.push((did.to_owned(), rev.to_owned()));
    archive.visit_revisions(&RowSelection::default(), &mut visit).await.unwrap();
    revisions.sort();
    revisions
}

async fn rows(archive: &Archive, table: Table) -> u64 {
    archive.table_stats(table).await.unwrap().rows
}

/// The accounts of a batch: batches of different writers share some of them.
fn batch(writer: usize, number: usize) -> impl Iterator<Item = usize> {
    let step = [1, 3, 5, 7][writer % 4];
    (0..10).map(move |at| (writer + number * 10 + at * step) % usize::from(ACCOUNTS))
}

/// Stores the batches of a writer.
#[tokio::main(flavor = "current_thread")]
async fn store_all(writer: usize, address: &str, exports: &[Export]) {
    let archive = Archive::open(address).unwrap();
    let (stored, of_parts) = (StoredRevisions::new(None), StoredRevisions::new(Some(parts())));
    for number in 0..6 {
        let accounts = || batch(writer, number).map(|account| &exports[account]);
        let name = format!("{writer} {number}");
        seal_parts(&archive, accounts(), &name, &of_parts).await;
        seal(&archive, accounts(), &name, &stored).await;
    }
}

#[tokio::test]
async fn eight_writers_with_other_batches_store_every_repository_and_every_part_once() {
    let (folder, archive) = archive();
    let (address, exports) = (folder.path().to_str().unwrap(), &exports());
    thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || store_all(writer, address, exports));
        }
    });
    let accounts = u64::from(ACCOUNTS);
    assert_eq!(rows(&archive, Table::Snapshots).await, accounts);
    // A whole repository, once stored, has the records of a part.
    let part_rows = rows(&archive, Table::Parts).await;
    assert!((1..=accounts).contains(&part_rows), "{part_rows}");
    let mut places = Vec::new();
    let mut visit = |did: &str, rev: &str, _: &str| places.push(format!("{did} {rev}"));
    archive.visit_parts(&RowSelection::default(), &mut visit).await.unwrap();
    places.sort();
    places.dedup();
    assert_eq!(places.len() as u64, part_rows);
    for is_compacted in [false, true] {
        if is_compacted {
            archive.compact(after(9)).await.unwrap();
        }
        let report = archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
        assert!(!report.is_refused(), "{report:?}");
        assert_eq!((report.proved_snapshots, report.proved_parts), (accounts, part_rows));
    }
}

#[tokio::test]
async fn of_an_account_what_is_stored_or_older_is_left_out_and_what_is_newer_is_stored() {
    let (mut writers, (_folder, archive)) = (Writers::new(ACCOUNTS, 41), archive());
    let mut histories = Vec::new();
    for _ in 0..3 {
        (0..usize::from(ACCOUNTS)).for_each(|account| drop(writers.commit(account)));
        histories.push(exports_of(&mut writers));
    }
    let [first, second, third] = histories.as_slice() else { panic!("three") };
    let (one, other) = (StoredRevisions::new(None), StoredRevisions::new(None));
    assert!(seal(&archive, &second[..2], "one", &one).await.files > 0);
    // The other writer has read nothing yet.
    assert_eq!(seal(&archive, &second[..2], "other", &other).await, Sealed::default());
    assert_eq!(seal(&archive, &first[..2], "earlier", &other).await, Sealed::default());
    assert!(seal(&archive, third[..1].iter().chain(&first[2..3]), "later", &other).await.files > 0);
    let expected = [&second[0], &third[0], &second[1], &first[2]].map(|export| {
        let repository = verified(export);
        (repository.commit().did.to_owned(), repository.commit().rev.to_owned())
    });
    assert_eq!(revisions(&archive).await, expected);
    let (did, rev) = &expected[1];
    one.update(&archive).await.unwrap();
    assert_eq!(one.get(did), Tid::parse(rev).ok());
    archive.compact(after(9)).await.unwrap();
    assert_eq!(seal(&archive, &third[..1], "last", &one).await, Sealed::default());
}

#[tokio::test]
async fn a_part_with_other_collections_than_the_wanted_ones_is_not_enough() {
    let (exports, (_folder, archive)) = (exports(), archive());
    let of_other = StoredRevisions::new(Some("app.test.c2".parse().unwrap()));
    assert!(seal_parts(&archive, &exports[..1], "one", &of_other).await.files > 0);
    of_other.update(&archive).await.unwrap();
    let repository = verified(&exports[0]);
    let did = repository.commit().did;
    assert!(of_other.has(did) && of_other.get(did).is_none());
    let of_all = StoredRevisions::new(Some(parts()));
    of_all.update(&archive).await.unwrap();
    assert!(of_all.get(did).is_some());
    assert_eq!(seal_parts(&archive, &exports[..1], "two", &of_all).await, Sealed::default());
}

const ACCOUNTS: u8 = 24;
