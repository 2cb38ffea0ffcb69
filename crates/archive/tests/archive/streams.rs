//! Archives of simulated streams: sealed once, proved again, and refused where a byte was changed.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use atproto::event::{Decoder, Event};
use simnet::firehose::{Corpus, Spec};
use verify::identity::AccountKeys;
use verify::sync::Policy;
use wireproof_archive::{
    Archive, ArchiveFault, ArchivedEvent, ImportOptions, Imported, Subject, VerifyOptions,
    VerifyReport, Wal, WalOptions,
};

use crate::common::{archive, files, is_stored};

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
        self.import_as(archive, "stream", NOW).await
    }

    async fn import_as(&self, archive: &Archive, name: &str, now_micros: i64) -> Imported {
        let options = ImportOptions {
            host: "relay.test".to_owned(),
            name: name.to_owned(),
            now_micros,
            policy: Policy::default(),
        };
        let frames = self.frames.iter().map(Vec::as_slice);
        archive.import_frames(frames, &self.keys, &options).await.unwrap()
    }

    /// Appends all frames to a log, as events of one account.
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

/// The report of a verification, and the files that it names.
async fn verify(archive: &Archive) -> (VerifyReport, Vec<String>) {
    let mut files = Vec::new();
    let report = archive
        .verify(&VerifyOptions::default(), &mut |finding| files.push(finding.file))
        .await
        .unwrap();
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
async fn what_two_writers_have_stored_is_proved_twice() {
    let (stream, (_folder, archive)) = (Stream::new(), archive());
    let imported = stream.import(&archive).await;
    stream.import_as(&archive, "another", NOW + 1).await;
    let (report, _) = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!(
        (report.events, report.proved),
        (2 * stream.frames.len() as u64, 2 * imported.verified)
    );
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
async fn a_changed_byte_in_a_log_is_an_error_with_its_entry() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    stream.import(&archive).await;
    archive.hide(&Subject::Account("did:web:hidden.test".to_owned()), "test", NOW).await.unwrap();
    let logs = files(folder.path())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "json"));
    for path in logs {
        let bytes = fs::read(&path).unwrap();
        for offset in (0..bytes.len()).step_by(13) {
            let mut changed = bytes.clone();
            changed[offset] ^= 1;
            fs::write(&path, changed).unwrap();
            let reopened = Archive::open(folder.path().to_str().unwrap()).unwrap();
            let error = reopened.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap_err();
            let place = path.strip_prefix(folder.path()).unwrap().to_str().unwrap();
            assert!(error.to_string().starts_with(place), "byte {offset}: {error}");
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
    // After a crash, the source repeats events without a confirmation; after two in a row, it does so twice.
    for new_events in [10, 0] {
        let (wal, _) = Wal::open(&wal_folder, WalOptions::default()).unwrap();
        stream.append(&wal, frames_of);
        wal.close_segment().await;
        for segment in wal.closed_segments().unwrap() {
            assert_eq!(wal.seal(&segment, &archive).await.unwrap().events, new_events);
        }
        assert_eq!(wal.closed_segments().unwrap(), []);
    }
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
async fn a_damaged_group_at_the_end_of_a_closed_segment_is_an_error_and_the_segment_stays() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    let wal_folder = folder.path().join("wal");
    let (wal, _) = Wal::open(&wal_folder, WalOptions::default()).unwrap();
    stream.append(&wal, &stream.frames[..10]);
    wal.close_segment().await;
    let [segment] = &wal.closed_segments().unwrap()[..] else { panic!("one segment") };
    let path = wal_folder.join("00000000000000000000.wal");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let refused = wal.seal(segment, &archive).await.unwrap_err();
    assert!(matches!(refused.fault, ArchiveFault::DamagedLog { .. }), "{refused}");
    assert_eq!(wal.closed_segments().unwrap().len(), 1);
}

#[tokio::test]
async fn the_source_waits_while_too_much_is_not_sealed() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    let mut options = WalOptions::default();
    (options.max_segment_bytes, options.max_unsealed_bytes) = (1_000, 0);
    let (wal, _) = Wal::open(&folder.path().join("wal"), options).unwrap();
    // Four segments are less than an event.
    assert!(stream.frames[0].len() > 4_000);
    stream.append(&wal, &stream.frames[..1]);
    let (wal, frame) = (Arc::new(wal), stream.frames[1].clone());
    let (sender, stored) = mpsc::channel();
    let source = wal.clone();
    let waiting = std::thread::spawn(move || {
        source.append(&event(2, &frame), move |result| sender.send(result).unwrap());
    });
    assert!(stored.recv_timeout(Duration::from_millis(200)).is_err(), "the source waits");
    for segment in wal.closed_segments().unwrap() {
        wal.seal(&segment, &archive).await.unwrap();
    }
    assert!(stored.recv().unwrap().is_ok());
    waiting.join().unwrap();
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

/// The DIDs of the events that are shown, and their number.
async fn accounts(archive: &Archive) -> std::collections::BTreeMap<String, usize> {
    let mut accounts = std::collections::BTreeMap::new();
    let mut events = archive.events().await.unwrap();
    while let Some(row) = events.next().await.unwrap() {
        *accounts.entry(row.event().did.unwrap().to_owned()).or_default() += 1;
    }
    accounts
}

async fn replayed(archive: &Archive) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let each = |replayed: wireproof_archive::Replayed<'_>| {
        frames.push(replayed.frame.to_vec());
        Ok::<(), wireproof_archive::ArchiveError>(())
    };
    archive.replay(i64::MIN, each).await.unwrap();
    frames
}

#[tokio::test]
async fn a_hidden_account_is_left_out_by_readers_proved_by_verify_and_shown_again() {
    let (stream, (_folder, archive)) = (Stream::new(), archive());
    stream.import(&archive).await;
    let before = accounts(&archive).await;
    let (did, count) = before.iter().max_by_key(|(_, count)| **count).unwrap();
    let subject = Subject::Account(did.clone());
    archive.hide(&subject, "a test", NOW).await.unwrap();
    assert!(!accounts(&archive).await.contains_key(did));
    assert_eq!(replayed(&archive).await.len(), stream.frames.len() - count);
    assert_eq!(verify(&archive).await.0.events, stream.frames.len() as u64);
    // The clock has gone back: the later change counts all the same.
    archive.unhide(&subject, "a test", NOW - 1_000_000).await.unwrap();
    assert_eq!(accounts(&archive).await, before);
    assert_eq!(replayed(&archive).await, stream.frames);
}

#[tokio::test]
async fn a_hidden_record_hides_the_events_that_have_it_and_no_others() {
    let (stream, (_folder, archive)) = (Stream::new(), archive());
    stream.import(&archive).await;
    let mut decoder = Decoder::new(Default::default());
    let Event::Commit(commit) = decoder.decode(&stream.frames[7]).unwrap() else {
        panic!("a commit")
    };
    let (collection, rkey) = commit.ops[0].path.split_once('/').unwrap();
    let [did, collection, rkey] = [commit.repo, collection, rkey].map(str::to_owned);
    let path = format!("{collection}/{rkey}");
    let subject = Subject::Record { did: did.clone(), collection, rkey };
    archive.hide(&subject, "a test", NOW).await.unwrap();
    let mut has_record = |frame: &Vec<u8>| match decoder.decode(frame).unwrap() {
        Event::Commit(commit) => commit.repo == did && commit.ops.iter().any(|op| op.path == path),
        _ => false,
    };
    let expected: Vec<_> =
        stream.frames.iter().filter(|frame| !has_record(frame)).cloned().collect();
    assert!(expected.len() < stream.frames.len());
    assert_eq!(replayed(&archive).await, expected);
}

#[tokio::test]
async fn of_an_erased_account_no_record_is_in_any_file_and_the_others_are_still_proved() {
    let (stream, (folder, archive)) = (Stream::new(), archive());
    stream.import(&archive).await;
    let before = accounts(&archive).await;
    let (did, count) = before.iter().max_by_key(|(_, count)| **count).unwrap();
    let secrets = records_of(&stream.frames, did);
    assert!(
        secrets.iter().any(|secret| is_stored(folder.path(), secret)),
        "the search finds what is there"
    );
    let erased = archive.erase(did, "deleted", NOW).await.unwrap();
    assert!(erased.rows > *count as u64 && erased.files == 2, "{erased:?}");
    for secret in &secrets {
        assert!(!is_stored(folder.path(), secret));
    }
    let mut others = before.clone();
    others.remove(did);
    assert_eq!(accounts(&archive).await, others);
    let (report, _) = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!(report.proved, (stream.frames.len() - count) as u64);
    assert!(archive.hide_list().await.unwrap().is_erased(did));
}

/// The records that the commits of an account have, long enough to be found nowhere else.
fn records_of(frames: &[Vec<u8>], did: &str) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new(Default::default());
    let mut records = Vec::new();
    for frame in frames {
        let Ok(Event::Commit(commit)) = decoder.decode(frame) else { continue };
        if commit.repo == did {
            let blocks =
                commit.ops.iter().filter_map(|op| op.record).map(|block| block.data.to_vec());
            records.extend(blocks.filter(|data| data.len() > 40));
        }
    }
    records
}
