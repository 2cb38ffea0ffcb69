//! The whole life of an archive in a bucket: repositories are imported, a stream is followed, days are merged, commits are made
//! compact and proved again, and an account is erased.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use archive::{Archive, VerifyOptions, VerifyReport};
use simnet::servers::{Server, Simulation, Spec};
use wireproof_interop::kit;
use wireproof_interop::s3::{S3, files};

use crate::stores::{ADDRESS, BUCKET, errors, file_counts, follow, json, open, seqs};

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_in_a_bucket_is_followed_merged_made_compact_proved_and_erased() {
    let kit = kit!(S3);
    let (s3, folder) = (S3::start(&kit, BUCKET).await, tempfile::tempdir().expect("a folder"));
    let environment = s3.variables();
    let run = |args: &[&str]| json(args, &environment);
    let spec = Spec { accounts: 6, records: 5, pds: 1, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).expect("a network");
    let imported = run(&import(&sim, folder.path()).await.each_ref().map(String::as_str));
    assert_eq!((&imported["repository_count"], &imported["record_count"]), (&6.into(), &30.into()));

    let (archive, wal) = (open(&environment), folder.path().join("wal"));
    for _ in 0..3 {
        sim.write_commits(20);
        let mut follow = follow(&sim, &wal, &environment);
        let output = follow.args(["--events", "20"]).output().expect("a process");
        assert!(output.status.success(), "{}", errors(&output));
    }
    let sent: Vec<i64> = sim.sent_events(Server::Relay(0)).iter().map(|event| event.seq).collect();
    assert_eq!(seqs(&archive).await, sent);
    let commits = sent.len() as u64;

    // The command merges and thins the events of earlier days.
    assert_eq!(run(&["compact", ADDRESS])["file_count"], 0);
    assert_eq!(run(&["thin", ADDRESS])["commit_count"], 0);
    let day_after = now_micros() + 2 * 24 * 3_600 * 1_000_000;
    let compacted = archive.compact(day_after).await.expect("merged files");
    // Three files of events and of operations, six of repositories and of records.
    assert!(compacted.files >= 6 && compacted.files_after <= 8, "{compacted:?}");
    let before = (fs::read(first_file(&s3, "events")).expect("a file"), first_file(&s3, "events"));
    let thinned = archive.thin(day_after).await.expect("compact commits");
    assert_eq!((thinned.commits, thinned.kept), (commits, 0), "{thinned:?}");
    assert!(thinned.bytes_after < thinned.bytes_before, "{thinned:?}");
    assert_eq!(archive.thin(day_after).await.expect("nothing").commits, 0);
    let report = proved(&archive).await;
    assert_eq!((report.proved, report.compact, report.proved_snapshots), (commits, commits, 6));
    assert_only_listed_files(&s3, &archive).await;

    // A process that ended before it deleted a file that it had replaced.
    assert!(!before.1.exists(), "a replaced file is deleted");
    fs::write(&before.1, &before.0).expect("a file");
    assert_eq!(run(&["compact", ADDRESS])["file_count"], 0);
    assert!(!before.1.exists(), "a file that was left behind is deleted");

    let did = sim.account(0).did;
    let erased = run(&["erase", ADDRESS, "--did", &did]);
    assert!(erased["row_count"].as_u64().is_some_and(|rows| rows > 10), "{erased}");
    assert_only_listed_files(&s3, &archive).await;
    let report = proved(&archive).await;
    assert_eq!(report.proved_snapshots, 5);
    assert!(report.proved > 0 && report.proved < commits, "{report:?}");
    let mut options = VerifyOptions::default();
    options.did = Some(did);
    let none = archive.verify(&options, &mut |finding| panic!("{finding:?}")).await;
    assert_eq!(none.expect("the tables").events, 0);
    // The objects are the files of a local archive.
    let local = s3.bucket(BUCKET).join("relays/one").display().to_string();
    let copy = proved(&Archive::open(&local).expect("a folder")).await;
    assert_eq!((copy.files, copy.proved), (report.files, report.proved));
}

/// The arguments that import the repositories of all accounts.
async fn import(sim: &Simulation, folder: &Path) -> [String; 6] {
    let (mut keys, repositories) = (BTreeMap::new(), folder.join("repositories"));
    fs::create_dir(&repositories).expect("a folder");
    for number in 0..sim.account_count() {
        let account = sim.account(number);
        let (pds, did) = (sim.url(Server::Pds(account.host)), &account.did);
        let url = format!("{pds}/xrpc/com.atproto.sync.getRepo?did={did}");
        let car = reqwest::get(url).await.expect("a response").bytes().await.expect("a body");
        fs::write(repositories.join(format!("{number}.car")), car).expect("a file");
        keys.insert(account.did, account.signing_key);
    }
    let file = folder.join("keys.json");
    fs::write(&file, serde_json::to_vec(&keys).expect("JSON")).expect("a file");
    let [repositories, file] = [repositories, file].map(|path| path.display().to_string());
    ["import", &repositories, "--keys", &file, "--to", ADDRESS].map(str::to_owned)
}

async fn proved(archive: &Archive) -> VerifyReport {
    let options = VerifyOptions::default();
    archive.verify(&options, &mut |finding| panic!("{finding:?}")).await.expect("the tables")
}

/// Replaced files are not in the bucket under another name.
async fn assert_only_listed_files(s3: &S3, archive: &Archive) {
    let (stored, listed) = file_counts(s3, archive).await;
    assert_eq!(stored as u64, listed);
}

/// The first Parquet file of a table.
fn first_file(s3: &S3, table: &str) -> std::path::PathBuf {
    let folder = s3.bucket(BUCKET).join("relays/one").join(table);
    let mut found = files(&folder).into_iter();
    found.find(|path| path.extension().is_some_and(|end| end == "parquet")).expect("a file")
}

fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_micros() as i64
}
