//! Archives of simulated streams: sealed once, proved again, and refused where a byte was changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use simnet::firehose::{Corpus, Spec};
use verify::identity::AccountKeys;
use verify::sync::Policy;
use wireproof_archive::{
    Archive, ArchiveFault, ArchivedEvent, ImportOptions, Imported, VerifyReport, Wal, WalOptions,
};

/// A stream, and the keys of its accounts.
struct Stream {
    frames: Vec<Vec<u8>>,
    keys: AccountKeys,
}

impl Stream {
    fn new() -> Self {
        let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
        let keys = serde_json::to_vec(&corpus.account_keys()).unwrap();
        Self { frames: corpus.frames().to_vec(), keys: AccountKeys::from_json(&keys).unwrap() }
    }

    async fn import(&self, archive: &Archive) -> Imported {
        let options = ImportOptions {
            host: "relay.test".to_owned(),
            name: "stream".to_owned(),
            now_micros: NOW,
            policy: Policy::default(),
        };
        let frames = self.frames.iter().map(Vec::as_slice);
        archive.import_frames(frames, &self.keys, &options).await.unwrap()
    }

    /// Appends all frames to a log, as those of one account.
    fn append(&self, wal: &Wal, frames: &[Vec<u8>]) {
        let (sender, stored) = mpsc::channel();
        for (index, frame) in frames.iter().enumerate() {
            let sender = sender.clone();
            wal.append(&event(index as i64 + 1, frame), move |result| sender.send(result).unwrap());
        }
        drop(sender);
        assert_eq!(stored.iter().filter(Result::is_ok).count(), frames.len());
    }
}

fn event(seq: i64, frame: &[u8]) -> ArchivedEvent<'_> {
    ArchivedEvent {
        did: Some("did:web:alice.test"),
        arrival: 0,
        host: "relay.test",
        seq: Some(seq),
        kind: "#commit",
        received: NOW,
        verdict: "event/rev",
        key: None,
        judge: "test",
        frame,
    }
}

/// 2026-07-01 in microseconds.
const NOW: i64 = 1_782_864_000_000_000;

fn archive() -> (tempfile::TempDir, Archive) {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    (folder, archive)
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// The report of a verification, and the files that it names.
async fn verify(archive: &Archive) -> (VerifyReport, Vec<String>) {
    let mut files = Vec::new();
    let report = archive.verify(&mut |finding| files.push(finding.file)).await.unwrap();
    (report, files)
}

async fn frames(archive: &Archive) -> Vec<Vec<u8>> {
    let mut scan = archive.events().await.unwrap();
    let mut rows = Vec::new();
    while let Some(row) = scan.next().await.unwrap() {
        rows.push((row.event().arrival, row.event().frame.to_vec()));
    }
    rows.sort();
    rows.into_iter().map(|(_, frame)| frame).collect()
}

#[tokio::test]
async fn every_imported_frame_is_in_the_archive_and_proved_again() {
    let (stream, (_folder, archive)) = (Stream::new(), archive());
    let imported = stream.import(&archive).await;
    assert!(imported.verified > 100, "{imported:?}");
    assert_eq!(frames(&archive).await, stream.frames);
    let (report, _) = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.events, report.proved), (stream.frames.len() as u64, imported.verified));
}

#[tokio::test]
async fn an_import_that_is_repeated_adds_nothing() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    stream.import(&archive).await;
    let before = files(folder.path());
    stream.import(&archive).await;
    assert_eq!(files(folder.path()), before);
    assert_eq!(frames(&archive).await, stream.frames);
}

#[tokio::test]
async fn a_changed_byte_in_any_file_of_the_tables_is_found() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    stream.import(&archive).await;
    let tables = files(folder.path())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"));
    let tables: Vec<PathBuf> = tables.collect();
    assert_eq!(tables.len(), 2);
    for path in tables {
        let bytes = fs::read(&path).unwrap();
        for offset in (0..bytes.len()).step_by(bytes.len() / 7) {
            let mut changed = bytes.clone();
            changed[offset] ^= 0x10;
            fs::write(&path, changed).unwrap();
            let (report, files) = verify(&archive).await;
            assert_eq!(
                report.refused.get("archive/file"),
                Some(&1),
                "{}: byte {offset}",
                path.display()
            );
            assert!(path.ends_with(&files[0]));
        }
        fs::write(&path, bytes).unwrap();
    }
    assert!(!verify(&archive).await.0.is_refused());
}

#[tokio::test]
async fn a_changed_byte_in_a_log_never_panics() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    stream.import(&archive).await;
    let logs = files(folder.path())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "json"));
    for path in logs {
        let bytes = fs::read(&path).unwrap();
        for offset in (0..bytes.len()).step_by(13) {
            let mut changed = bytes.clone();
            changed[offset] ^= 1;
            fs::write(&path, changed).unwrap();
            // Some bytes are of texts that nobody reads; what matters is that it ends.
            let _ = archive.verify(&mut |_| ()).await;
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[tokio::test]
async fn events_of_a_log_are_sealed_once_although_they_come_again() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    let wal_folder = folder.path().join("wal");
    let frames_of = &stream.frames[..40];
    let (wal, dropped) = Wal::open(&wal_folder, WalOptions::default()).unwrap();
    assert_eq!(dropped, 0);
    stream.append(&wal, &frames_of[..30]);
    wal.close_segment().await;
    for segment in wal.closed_segments().unwrap() {
        assert_eq!(wal.seal(&segment, &archive).await.unwrap().events, 30);
    }
    drop(wal);
    // After a crash, the source repeats what it was not told to be stored.
    let (wal, _) = Wal::open(&wal_folder, WalOptions::default()).unwrap();
    stream.append(&wal, frames_of);
    wal.close_segment().await;
    for segment in wal.closed_segments().unwrap() {
        assert_eq!(wal.seal(&segment, &archive).await.unwrap().events, 10);
    }
    assert_eq!(wal.closed_segments().unwrap(), []);
    assert_eq!(frames(&archive).await, frames_of);
}

#[tokio::test]
async fn an_incomplete_group_is_dropped_and_what_was_stored_before_is_kept() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    let wal_folder = folder.path().join("wal");
    let (wal, _) = Wal::open(&wal_folder, WalOptions::default()).unwrap();
    stream.append(&wal, &stream.frames[..10]);
    stream.append(&wal, &stream.frames[10..20]);
    drop(wal);
    let segment = files(&wal_folder)
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "wal"))
        .unwrap();
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() - 1]).unwrap();
    let (wal, dropped) = Wal::open(&wal_folder, WalOptions::default()).unwrap();
    assert!(dropped > 0);
    wal.close_segment().await;
    for segment in wal.closed_segments().unwrap() {
        assert_eq!(wal.seal(&segment, &archive).await.unwrap().events, 10);
    }
    assert_eq!(frames(&archive).await, stream.frames[..10]);
}

#[tokio::test]
async fn one_process_at_a_time_writes_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let first = Wal::open(folder.path(), WalOptions::default()).unwrap();
    let second = Wal::open(folder.path(), WalOptions::default()).map(drop).unwrap_err();
    assert!(matches!(second.fault, ArchiveFault::InUse), "{second}");
    drop(first);
    Wal::open(folder.path(), WalOptions::default()).unwrap();
}
