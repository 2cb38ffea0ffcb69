//! Which files of an archive a statement opens.

use std::fs;
use std::path::PathBuf;

use archive::{Archive, ArchivedEvent, JUDGE, WorkId, kind};
use simnet::unsigned_commits::{Spec, UnsignedCommit};
use wireproof_query::{Options, QueryError, Session};

/// Archives every commit in its own files. Returns the folder, and the accounts.
async fn archive_of(accounts: u32) -> (tempfile::TempDir, Archive, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let spec = Spec { seed: 7, accounts, commits: 1, operations: 50 };
    let commits: Vec<UnsignedCommit> = spec.generate().collect();
    for (number, commit) in (0..).zip(&commits) {
        let event = ArchivedEvent {
            did: Some(&commit.did),
            arrival: commit.micros as i64,
            host: "relay.test",
            seq: Some(number),
            kind: kind(&commit.frame),
            received: commit.micros as i64,
            verdict: "verified",
            key: None,
            judge: JUDGE,
            frame: &commit.frame,
        };
        let work = WorkId { writer: "test".to_owned(), number };
        archive.seal(vec![event], &work).await.unwrap();
    }
    (folder, archive, commits.into_iter().map(|commit| commit.did).collect())
}

async fn count(archive: &Archive, sql: &str) -> Result<u64, QueryError> {
    let session = Session::open(archive, &Options::default()).await?;
    let (mut answer, mut rows) = (session.sql(sql).await?, 0);
    while let Some(batch) = answer.next().await? {
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

/// The Parquet files of a table.
fn files(folder: &tempfile::TempDir, table: &str) -> Vec<PathBuf> {
    let days = fs::read_dir(folder.path().join(table)).unwrap().map(|entry| entry.unwrap().path());
    let days = days.filter(|path| !path.ends_with("_delta_log"));
    days.flat_map(|day| fs::read_dir(day).unwrap().map(|entry| entry.unwrap().path())).collect()
}

#[tokio::test]
async fn a_statement_about_an_account_opens_no_file_without_it() {
    let (folder, archive, dids) = archive_of(6).await;
    let of = |did: &str| format!("SELECT rkey FROM ops WHERE did = '{did}'");
    for did in &dids {
        assert_eq!(count(&archive, &of(did)).await.unwrap(), 50);
    }
    // One file per table is left, with one account.
    let kept = &dids[2];
    let mut left = 0;
    for table in ["ops", "events"] {
        for file in files(&folder, table) {
            let bytes = fs::read(&file).unwrap();
            if bytes.windows(kept.len()).any(|window| window == kept.as_bytes()) {
                left += 1
            } else {
                fs::write(&file, b"no Parquet").unwrap()
            }
        }
    }
    assert_eq!(left, 2);
    assert_eq!(count(&archive, &of(kept)).await.unwrap(), 50);
    let records = format!(
        "SELECT json(record) FROM ops WHERE did = '{kept}' AND collection = 'app.bsky.feed.post'"
    );
    assert!(count(&archive, &records).await.unwrap() > 0);
    assert!(count(&archive, &of(&dids[3])).await.is_err());
    assert!(count(&archive, "SELECT rkey FROM ops").await.is_err());
}
