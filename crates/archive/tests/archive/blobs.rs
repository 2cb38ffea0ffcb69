//! Blobs: stored under the hash of their bytes, once for all accounts, proved again, and erased with their last account.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use codec::Cid;
use codec::cid::Codec;
use wireproof_archive::{
    Archive, BlobFault, ErasureKey, Finding, RowSelection, StoredBlob, Table, VerifyOptions,
};

const ALICE: &str = "did:web:alice.test";
const BOB: &str = "did:web:bob.test";
const NOW: i64 = 1_782_864_000_000_000;

fn open(folder: &Path) -> Archive {
    Archive::open(folder.to_str().unwrap()).unwrap()
}

fn cid(content: &[u8]) -> Cid {
    Cid::of(Codec::Raw, content)
}

async fn put(archive: &Archive, cid: &Cid, content: &[u8]) -> bool {
    let mut file = archive.stage_blob().unwrap();
    for part in content.chunks(3) {
        file.write_all(part).unwrap();
    }
    assert_eq!(file.size(), content.len() as u64);
    archive.put_blob(cid, file).await.unwrap()
}

fn row(did: &str, content: &[u8]) -> StoredBlob {
    let (did, host, size) = (did.to_owned(), "https://pds.test".to_owned(), content.len() as u64);
    StoredBlob { did, cid: cid(content), size, host, fetched: NOW }
}

async fn store(archive: &Archive, did: &str, content: &[u8]) {
    assert!(put(archive, &cid(content), content).await);
    archive.seal_blobs(vec![row(did, content)]).await.unwrap();
}

async fn findings(archive: &Archive, options: &VerifyOptions) -> (u64, Vec<Finding>) {
    let mut findings = Vec::new();
    let report = archive.verify(options, &mut |finding| findings.push(finding)).await.unwrap();
    (report.proved_blobs, findings)
}

/// The file of a blob.
fn file(folder: &Path, cid: &Cid) -> PathBuf {
    folder.join("blob_files").join(format!("{:02x}", cid.digest()[0])).join(cid.to_string())
}

#[tokio::test]
async fn content_is_stored_only_under_the_hash_of_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let content = b"a picture";
    assert!(!put(&archive, &cid(b"another picture"), content).await);
    assert!(!put(&archive, &Cid::of(Codec::DagCbor, content), content).await);
    assert_eq!(archive.blob_size(&cid(b"another picture")).await.unwrap(), None);
    assert_eq!(archive.check_blob(&cid(content)).await.unwrap(), Err(BlobFault::Missing));
    store(&archive, ALICE, content).await;
    store(&archive, BOB, b"").await;
    assert_eq!(archive.blob_size(&cid(content)).await.unwrap(), Some(9));
    assert_eq!(archive.check_blob(&cid(content)).await.unwrap(), Ok(9));
    assert_eq!(archive.check_blob(&cid(b"")).await.unwrap(), Ok(0));
    let stored = archive.blobs_of(ALICE).await.unwrap();
    assert_eq!(stored.into_iter().collect::<Vec<_>>(), [(cid(content), 9)]);
    assert_eq!(findings(&archive, &VerifyOptions::default()).await, (2, vec![]));
    let selection = RowSelection { since: Some(NOW + 1), ..RowSelection::default() };
    let mut rows = archive.rows(Table::Blobs, &selection).await.unwrap();
    assert!(rows.next().await.unwrap().is_none_or(|rows| rows.num_rows() == 0));
}

#[tokio::test]
async fn a_blob_with_another_byte_or_size_or_without_its_file_is_refused_with_its_account() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let contents: [&[u8]; 4] = [b"altered", b"longer", b"gone", b"sound"];
    for content in contents {
        store(&archive, ALICE, content).await;
    }
    let file = |content: &[u8]| file(folder.path(), &cid(content));
    fs::write(file(b"altered"), b"alterer").unwrap();
    fs::write(file(b"longer"), b"longer!").unwrap();
    fs::remove_file(file(b"gone")).unwrap();
    archive.seal_blobs(vec![StoredBlob { size: 6, ..row(BOB, b"sound") }]).await.unwrap();
    let (proved, found) = findings(&archive, &VerifyOptions::default()).await;
    assert_eq!(proved, 1);
    assert!(found.iter().all(|finding| finding.code == "archive/blob"), "{found:?}");
    let of = |did: &str| found.iter().filter(|found| found.did.as_deref() == Some(did)).count();
    assert_eq!((of(ALICE), of(BOB)), (3, 1));
    let mut options = VerifyOptions::default();
    options.did = Some(BOB.to_owned());
    assert_eq!(findings(&archive, &options).await.1.len(), 1);
    let mut later = VerifyOptions::default();
    later.since = Some(NOW + 1);
    assert_eq!(findings(&archive, &later).await, (0, vec![]));
}

#[tokio::test]
async fn an_erasure_deletes_the_blobs_that_no_other_account_has() {
    let folder = tempfile::tempdir().unwrap();
    let key = ErasureKey::from_bytes([7; 32]);
    let archive = open(folder.path()).with_erasure_key(Some(key));
    for (did, content) in [(ALICE, "own"), (ALICE, "shared"), (BOB, "shared"), (BOB, "his own")] {
        store(&archive, did, content.as_bytes()).await;
    }
    let erased = archive.erase(ALICE, "deleted", NOW).await.unwrap();
    assert_eq!((erased.blobs, erased.rows), (1, 2));
    for (content, is_there) in [("own", false), ("shared", true), ("his own", true)] {
        let size = archive.blob_size(&cid(content.as_bytes())).await.unwrap();
        assert_eq!(size.is_some(), is_there, "{content}");
    }
    assert!(archive.blobs_of(ALICE).await.unwrap().is_empty());
    // What comes again of the account is not stored.
    archive.seal_blobs(vec![row(ALICE, b"shared")]).await.unwrap();
    assert!(archive.blobs_of(ALICE).await.unwrap().is_empty());
    assert_eq!(findings(&archive, &VerifyOptions::default()).await, (2, vec![]));
    archive.erase(BOB, "deleted", NOW).await.unwrap();
    assert_eq!(
        fs::read_dir(folder.path().join("blob_files")).unwrap().flatten().filter(has_file).count(),
        0
    );
}

fn has_file(folder: &fs::DirEntry) -> bool {
    fs::read_dir(folder.path()).unwrap().next().is_some()
}

#[tokio::test]
async fn content_that_no_row_names_is_deleted_a_day_later_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let key = ErasureKey::from_bytes([7; 32]);
    let archive = open(folder.path()).with_erasure_key(Some(key));
    store(&archive, BOB, b"named").await;
    // The process ends before its row is stored.
    assert!(put(&archive, &cid(b"unnamed"), b"unnamed").await);
    let erased = archive.erase(ALICE, "deleted", NOW).await.unwrap();
    assert_eq!(erased.uncommitted_files, 1);
    assert!(file(folder.path(), &cid(b"unnamed")).exists());
    let path = file(Path::new(""), &cid(b"unnamed")).display().to_string();
    let announced = folder.path().join("uploads/blobs").join(format!("{path}.upload"));
    let day_before = SystemTime::now() - Duration::from_secs(25 * 3_600);
    let announced = fs::File::options().write(true).open(announced).unwrap();
    announced.set_modified(day_before).unwrap();
    let erased = archive.erase(ALICE, "deleted", NOW).await.unwrap();
    assert_eq!(erased.uncommitted_files, 0);
    assert!(!file(folder.path(), &cid(b"unnamed")).exists());
    assert!(file(folder.path(), &cid(b"named")).exists());
}

#[tokio::test]
async fn rows_of_past_days_are_merged_and_accounts_are_listed_once() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    for content in ["a", "b", "c"] {
        store(&archive, ALICE, content.as_bytes()).await;
        store(&archive, BOB, content.as_bytes()).await;
    }
    assert_eq!(archive.table_stats(Table::Blobs).await.unwrap().files, 6);
    archive.compact(NOW + 2 * 86_400_000_000).await.unwrap();
    let stats = archive.table_stats(Table::Blobs).await.unwrap();
    assert_eq!((stats.files, stats.rows), (1, 6));
    assert_eq!(archive.blobs_of(BOB).await.unwrap().len(), 3);
    assert_eq!(findings(&archive, &VerifyOptions::default()).await, (6, vec![]));
}
