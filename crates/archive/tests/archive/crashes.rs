//! An end of the process at any crash point of the write-ahead log, of sealing or of thinning loses no event and stores none
//! twice, and writers that race for a table lose no commit.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc;

use atproto::label::UnsignedLabel;
use atproto::repo::RepositoryWriter;
use atproto::syntax::{Did, Tid};
use codec::Cid;
use codec::cid::Codec;
use crypto::{Curve, SecretKey};
use wireproof_archive::{
    Archive, ArchivedEvent, ArchivedLabel, LabelRange, StoredBlob, Table, VerifyOptions, Wal,
    WalOptions, WorkId,
};

/// The points, with the passage at which the process ends.
const POINTS: [(&str, u64); 23] = [
    ("archive/blob-stored", 1),
    ("archive/blob-stored", 2),
    ("archive/blobs-sealed", 1),
    ("archive/labels-uploaded", 1),
    ("archive/labels-uploaded", 2),
    ("archive/labels-committed", 1),
    ("archive/labels-committed", 2),
    ("archive/wal-written", 1),
    ("archive/wal-written", 3),
    ("archive/wal-synced", 1),
    ("archive/wal-synced", 2),
    ("archive/synced", 1),
    ("archive/synced", 2),
    ("archive/renamed", 1),
    ("archive/uploaded", 1),
    ("archive/uploaded", 2),
    ("archive/committed", 1),
    ("archive/committed", 2),
    ("archive/listed", 1),
    ("archive/kept", 1),
    ("archive/deleted", 1),
    ("archive/replaced", 1),
    ("archive/replaced", 2),
];

#[tokio::test]
async fn an_end_at_any_crash_point_loses_nothing_and_stores_nothing_twice() {
    let undisturbed = tempfile::tempdir().unwrap();
    run(undisturbed.path()).await;
    let expected = digest(undisturbed.path()).await;
    assert_eq!(expected.len(), EVENTS as usize);
    for (name, passage) in POINTS {
        let dir = tempfile::tempdir().unwrap();
        let ended = child(dir.path(), Some((name, passage)));
        let text = String::from_utf8_lossy(&ended.stderr);
        let marker = fs::read_to_string(dir.path().join("marker"));
        assert!(!ended.status.success(), "{name}@{passage} was not reached\n{text}");
        assert_eq!(marker.ok().as_deref(), Some(name), "{name}@{passage}\n{text}");
        let ended = child(dir.path(), None);
        let text = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
        assert!(ended.status.success(), "after {name}@{passage}\n{text}");
        assert_eq!(digest(dir.path()).await, expected, "{name}@{passage}");
    }
}

#[test]
fn the_table_has_every_crash_point_of_the_sources() {
    let mut named = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(path).unwrap();
            let calls = source.match_indices("crash_point(\"").map(|(at, call)| at + call.len());
            named.extend(calls.map(|at| source[at..].split('"').next().unwrap().to_owned()));
        }
    }
    assert_eq!(named, POINTS.iter().map(|(name, _)| (*name).to_owned()).collect());
}

/// The part that the test runs in another process: without a crash point it stores and seals everything.
#[tokio::test]
async fn a_run_seals_every_event() {
    let given = std::env::var_os("WIREPROOF_CRASH_FOLDER");
    let dir = tempfile::tempdir().unwrap();
    let folder = given.as_ref().map_or(dir.path(), Path::new);
    run(folder).await;
    assert_eq!(digest(folder).await.len(), EVENTS as usize);
}

/// Runs the test above in a process of its own, which ends at the point.
fn child(folder: &Path, point: Option<(&str, u64)>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crashes::a_run_seals_every_event", "--nocapture"]);
    command.env("WIREPROOF_CRASH_FOLDER", folder);
    if let Some((point, passage)) = point {
        command.env("WIREPROOF_CRASH_POINT", format!("{point}@{passage}"));
        command.env("WIREPROOF_CRASH_MARKER", folder.join("marker"));
    }
    command.output().unwrap()
}

/// Appends all events from the source's own cursor on, in groups, seals half of them at a time, and stores all in compact form.
async fn run(folder: &Path) {
    let commits = commits();
    let archive = Archive::open(folder.join("archive").to_str().unwrap()).unwrap();
    let mut options = WalOptions::default();
    let point = std::env::var("WIREPROOF_CRASH_POINT");
    options.keeps_segments = point.is_ok_and(|point| point.starts_with("archive/kept"));
    let (wal, _) = Wal::open(&folder.join("wal"), options).unwrap();
    seal_closed(&wal, &archive).await;
    let mut cursor: i64 =
        fs::read_to_string(folder.join("cursor")).map_or(0, |text| text.parse().unwrap());
    while cursor < EVENTS {
        let (sender, stored) = mpsc::channel();
        let group = cursor + 1..=(cursor + EVENTS / 8).min(EVENTS);
        for seq in group.clone() {
            let (commit, sender) = (&commits[seq as usize - 1], sender.clone());
            wal.append(&commit.event(seq), move |result| sender.send(result).unwrap());
        }
        drop(sender);
        assert!(stored.iter().all(|result| result.is_ok()));
        cursor = *group.end();
        // The source learns of it later than the log: it sends unconfirmed events again.
        if cursor % (EVENTS / 4) == 0 {
            fs::write(folder.join("cursor"), cursor.to_string()).unwrap();
        }
        if cursor == EVENTS / 2 {
            wal.close_segment().await;
            seal_closed(&wal, &archive).await;
        }
    }
    wal.close_segment().await;
    seal_closed(&wal, &archive).await;
    store_blobs(&archive).await;
    store_labels(&archive).await;
    archive.thin(i64::MAX).await.unwrap();
}

/// Stores a blob of both accounts, and one of the first.
async fn store_blobs(archive: &Archive) {
    let mut rows = Vec::new();
    for (did, text) in [(ALICE, "shared"), (BOB, "shared"), (ALICE, "own")] {
        let cid = Cid::of(Codec::Raw, text.as_bytes());
        if archive.blob_size(&cid).await.unwrap().is_none() {
            let mut content = archive.stage_blob().unwrap();
            content.write_all(text.as_bytes()).unwrap();
            assert!(archive.put_blob(&cid, content).await.unwrap());
        }
        if !archive.blobs_of(did).await.unwrap().contains_key(&cid) {
            let (did, host, size) = (did.to_owned(), String::new(), text.len() as u64);
            rows.push(StoredBlob { did, cid, size, host, fetched: RECEIVED });
        }
    }
    archive.seal_blobs(rows).await.unwrap();
}

/// Stores the labels of a service in two parts, each with the cursor after it.
async fn store_labels(archive: &Archive) {
    let secret = SecretKey::from_bytes(Curve::K256, &[5; 32]).unwrap();
    let key = secret.public_key().to_did_key();
    let (service, host) = ("did:web:labels.test", "https://labels.test");
    while let after = archive.label_cursor(service, host).await.unwrap()
        && after.unwrap_or_default() < LABELS
    {
        let first = after.unwrap_or_default() + 1;
        let label = |seq: i64| {
            let uri = format!("did:web:a{seq}.test");
            let (val, cts) = ("spam", "2026-07-01T00:00:00Z");
            let label =
                UnsignedLabel { src: service, uri: &uri, val, cts, ..UnsignedLabel::default() };
            label.with_signature(&secret.sign(&label.to_bytes()))
        };
        let labels: Vec<(i64, Vec<u8>)> =
            (first..first + LABELS / 2).map(|seq| (seq, label(seq))).collect();
        let archived = labels.iter().map(|(seq, label)| ArchivedLabel {
            service,
            host,
            seq: *seq,
            idx: 0,
            received: RECEIVED,
            verdict: "verified",
            key: Some(&key),
            judge: "test",
            label,
        });
        let up_to = first + LABELS / 2 - 1;
        let (service, host) = (service.to_owned(), host.to_owned());
        let range = LabelRange { service, host, after, up_to };
        archive.seal_labels(archived.collect(), &[range]).await.unwrap();
    }
}

const LABELS: i64 = 40;

const ALICE: &str = "did:web:alice.test";
const BOB: &str = "did:web:bob.test";

/// A commit of one of two accounts.
struct Commit {
    did: String,
    key: String,
    frame: Vec<u8>,
}

impl Commit {
    fn event(&self, seq: i64) -> ArchivedEvent<'_> {
        ArchivedEvent {
            did: Some(&self.did),
            kind: "#commit",
            verdict: "verified",
            key: Some(&self.key),
            ..event(seq, &self.frame)
        }
    }
}

/// The commits of all events, the same in every process.
fn commits() -> Vec<Commit> {
    let mut accounts = ["did:web:alice.test", "did:web:bob.test"].map(|did| {
        let secret = SecretKey::from_bytes(Curve::K256, &[did.len() as u8; 32]).unwrap();
        (secret, RepositoryWriter::new(Did::parse(did).unwrap()))
    });
    let commit = |seq: i64| {
        let (secret, repository) = &mut accounts[seq as usize % 2];
        let path = format!("app.test.note/{seq:013}");
        repository.create(&path, b"\xa1\x65$type\x6dapp.test.note").unwrap();
        let rev = Tid::new(RECEIVED as u64 - 1_000_000 + seq as u64, 0);
        let commit = repository.commit(rev, |message| secret.sign(message)).unwrap();
        let frame = commit.to_frame(seq, "2026-07-01T00:00:00Z").unwrap();
        let did = repository.did().as_str().to_owned();
        Commit { did, key: secret.public_key().to_did_key(), frame }
    };
    (1..=EVENTS).map(commit).collect()
}

async fn seal_closed(wal: &Wal, archive: &Archive) {
    for segment in wal.closed_segments().unwrap() {
        wal.seal(&segment, archive).await.unwrap();
    }
}

fn event(seq: i64, frame: &[u8]) -> ArchivedEvent<'_> {
    ArchivedEvent {
        did: Some(["did:web:alice.test", "did:web:bob.test"][seq as usize % 2]),
        arrival: 0,
        host: "relay.test",
        seq: Some(seq),
        kind: "",
        received: RECEIVED,
        verdict: "frame/truncated",
        key: None,
        judge: "test",
        frame,
    }
}

/// The rows of the tables without the archive's own numbers: all of them proved, in compact form.
async fn digest(folder: &Path) -> Vec<(Option<String>, Option<i64>, Vec<u8>)> {
    let archive = Archive::open(folder.join("archive").to_str().unwrap()).unwrap();
    let mut rows = Vec::new();
    let mut events = archive.events().await.unwrap();
    while let Some(row) = events.next().await.unwrap() {
        let event = row.event();
        rows.push((event.did.map(str::to_owned), event.seq, event.frame.to_vec()));
    }
    assert!(rows.is_sorted(), "account by account, in order of arrival");
    let report = archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!(report.compact, EVENTS as u64);
    assert_eq!((report.blobs, report.proved_blobs), (3, 3));
    assert_eq!((report.labels, report.proved_labels), (LABELS as u64, LABELS as u64));
    assert_eq!(archive.table_stats(Table::Ops).await.unwrap().rows, EVENTS as u64);
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_writers_that_race_for_a_table_lose_no_commit() {
    let dir = tempfile::tempdir().unwrap();
    let address = dir.path().to_str().unwrap().to_owned();
    let writers = (0..WRITERS).map(|writer| {
        let address = address.clone();
        tokio::spawn(async move {
            let archive = Archive::open(&address).unwrap();
            for number in 0..ROUNDS {
                let frame = [writer.to_be_bytes(), number.to_be_bytes()].concat();
                let event = ArchivedEvent { arrival: number, ..event(writer + 1, &frame) };
                let work = WorkId { writer: format!("writer {writer}"), number };
                archive.seal(vec![event], &work).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let archive = Archive::open(&address).unwrap();
    let stats = archive.table_stats(Table::Events).await.unwrap();
    let commits = (WRITERS * ROUNDS) as u64;
    assert_eq!((stats.versions, stats.files, stats.rows), (commits, commits, commits));
}

const EVENTS: i64 = 80;

/// 2026-07-01 in microseconds.
const RECEIVED: i64 = 1_782_864_000_000_000;

const WRITERS: i64 = 8;
const ROUNDS: i64 = 12;
