//! Logs of tables: read whole from checkpoints in every form, an error where anything of them is missing, and never written to
//! then; files that no log names stay.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use wireproof_archive::{
    Archive, ArchiveError, ArchivedEvent, RowSelection, Subject, Table, VerifyOptions, WorkId,
};

use crate::common::files;

/// 2026-07-01 in microseconds.
const NOW: i64 = 1_782_864_000_000_000;

/// Versions after which the log has a checkpoint.
const CHECKPOINT: u64 = 50;

/// An archive in a folder, whose table of events has one version per event.
struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    async fn with_events(count: i64) -> Self {
        let made = Self { folder: tempfile::tempdir().unwrap() };
        let archive = made.open();
        for number in 0..count {
            seal(&archive, number).await.unwrap();
        }
        made
    }

    fn address(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// As another process opens it.
    fn open(&self) -> Archive {
        let archive = Archive::open(self.address()).unwrap();
        archive.with_erasure_key(Some(crate::common::erasure_key()))
    }

    fn log(&self, table: Table) -> PathBuf {
        self.folder.path().join(table.name()).join("_delta_log")
    }

    fn entry(&self, table: Table, version: u64) -> PathBuf {
        self.log(table).join(format!("{version:020}.json"))
    }

    fn checkpoint(&self, table: Table) -> PathBuf {
        self.log(table).join(format!("{CHECKPOINT:020}.checkpoint.parquet"))
    }

    /// Deletes the entries up to the checkpoint, as the cleanup of another program does.
    fn expire(&self, table: Table) {
        for version in 0..=CHECKPOINT {
            fs::remove_file(self.entry(table, version)).unwrap();
        }
    }

    /// The actions of an entry.
    fn actions(&self, table: Table, version: u64) -> Vec<Value> {
        let text = fs::read_to_string(self.entry(table, version)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The files and their content, without the files in `_heads` that remember a version.
    fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = files(self.folder.path()).into_iter();
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

async fn seal(archive: &Archive, number: i64) -> Result<(), ArchiveError> {
    let did = format!("did:web:account{}.test", number % 5);
    let event = ArchivedEvent {
        did: Some(&did),
        arrival: NOW + number,
        host: "relay.test",
        seq: Some(number),
        kind: "",
        received: NOW + number,
        verdict: "frame/truncated",
        key: None,
        judge: "test",
        frame: b"a frame",
    };
    let work = WorkId { writer: "test".to_owned(), number };
    archive.seal(vec![event], &work).await.map(drop)
}

async fn events(archive: &Archive) -> Result<Vec<i64>, ArchiveError> {
    let (mut scan, mut arrivals) = (archive.events().await?, Vec::new());
    while let Some(row) = scan.next().await? {
        arrivals.push(row.event().arrival - NOW);
    }
    arrivals.sort_unstable();
    Ok(arrivals)
}

/// The forms of a checkpoint that programs write.
const FORMS: [&str; 4] = ["one file", "parts", "JSON with a sidecar", "JSON"];

/// Puts the checkpoint of a table into another form.
fn reform(made: &Made, table: Table, form: &str) {
    let (whole, log) = (made.checkpoint(table), made.log(table));
    let parquet = fs::read(&whole).unwrap();
    let uuid = "80a083e8-7026-4e79-81be-64bd76c43a11";
    let v2 = log.join(format!("{CHECKPOINT:020}.checkpoint.{uuid}.json"));
    let described = json!({"checkpointMetadata": {"version": CHECKPOINT}});
    let mut lines = vec![described];
    let first = made.actions(table, 0);
    lines.extend(
        first
            .into_iter()
            .filter(|action| action.get("protocol").is_some() || action.get("metaData").is_some()),
    );
    match form {
        "one file" => return,
        "parts" => {
            for part in 1..=2 {
                let name = format!("{CHECKPOINT:020}.checkpoint.{part:010}.0000000002.parquet");
                fs::write(log.join(name), &parquet).unwrap();
            }
        }
        "JSON with a sidecar" => {
            fs::create_dir(log.join("_sidecars")).unwrap();
            fs::write(log.join("_sidecars/a-sidecar.parquet"), &parquet).unwrap();
            let size = parquet.len();
            lines.push(json!({"sidecar":
                {"path": "a-sidecar.parquet", "sizeInBytes": size, "modificationTime": 7}}));
        }
        _ => {
            for version in 0..=CHECKPOINT {
                let actions = made.actions(table, version).into_iter();
                lines.extend(
                    actions.filter(|action| {
                        action.get("add").is_some() || action.get("txn").is_some()
                    }),
                );
            }
        }
    }
    if form != "parts" {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(v2, text).unwrap();
    }
    fs::remove_file(whole).unwrap();
}

#[tokio::test]
async fn a_log_whose_first_entries_expired_is_read_from_its_checkpoint_in_every_form() {
    let count = CHECKPOINT as i64 + 3;
    for form in FORMS {
        let made = Made::with_events(count).await;
        for table in [Table::Events, Table::Ops] {
            reform(&made, table, form);
            made.expire(table);
        }
        let archive = made.open();
        assert_eq!(events(&archive).await.unwrap(), (0..count).collect::<Vec<_>>(), "{form}");
        // Work that is in the checkpoint is not done again, and new work follows it.
        seal(&archive, 7).await.unwrap();
        seal(&archive, count).await.unwrap();
        assert!(!made.entry(Table::Events, 0).exists(), "{form}: no second version 0");
        assert!(made.entry(Table::Events, count as u64).exists(), "{form}");
        let reopened = Archive::open_existing(made.address()).await.unwrap();
        let stats = reopened.table_stats(Table::Events).await.unwrap();
        assert_eq!((stats.versions, stats.rows), (count as u64 + 1, count as u64 + 1), "{form}");
        reopened.compact(NOW + 48 * 3_600_000_000).await.unwrap();
        assert_eq!(events(&made.open()).await.unwrap(), (0..=count).collect::<Vec<_>>(), "{form}");
        let did = "did:web:account3.test";
        let erased = made.open().erase(did, "deleted", NOW).await.unwrap();
        assert_eq!(erased.rows, (0..=count).filter(|number| number % 5 == 3).count() as u64);
        let report = made.open().verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
        assert!(!report.is_refused(), "{form}: {report:?}");
    }
}

#[tokio::test]
async fn a_checkpoint_is_written_of_each_fiftieth_version_and_gives_what_the_entries_give() {
    let made = Made::with_events(CHECKPOINT as i64 + 2).await;
    made.open().compact(NOW + 48 * 3_600_000_000).await.unwrap();
    assert!(made.checkpoint(Table::Events).exists() && made.checkpoint(Table::Ops).exists());
    let whole = made.open().stored_files(Table::Events).await.unwrap();
    for version in 0..CHECKPOINT {
        fs::remove_file(made.entry(Table::Events, version)).unwrap();
    }
    assert_eq!(made.open().stored_files(Table::Events).await.unwrap(), whole);
}

#[tokio::test]
async fn a_checkpoint_that_says_other_than_the_entries_is_found() {
    let made = Made::with_events(CHECKPOINT as i64 + 1).await;
    reform(&made, Table::Events, "JSON");
    let path = files(&made.log(Table::Events))
        .into_iter()
        .find(|path| path.to_str().unwrap().contains(".checkpoint."))
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains("\"add\"")).collect();
    fs::write(&path, kept.join("\n")).unwrap();
    let mut findings = Vec::new();
    let archive = made.open();
    let mut on_finding = |found| findings.push(found);
    let report = archive.verify(&VerifyOptions::default(), &mut on_finding).await.unwrap();
    assert_eq!(report.refused.get("archive/checkpoint"), Some(&1), "{findings:?}");
}

/// Every operation of an archive by its name, and its result.
async fn run_all(archive: &Archive) -> Vec<(&'static str, Result<(), ArchiveError>)> {
    let subject = Subject::Account("did:web:account1.test".to_owned());
    vec![
        ("stats", archive.table_stats(Table::Events).await.map(drop)),
        ("verify", archive.verify(&VerifyOptions::default(), &mut |_| ()).await.map(drop)),
        ("events", events(archive).await.map(drop)),
        ("rows", archive.rows(Table::Events, &RowSelection::default()).await.map(drop)),
        ("files", archive.stored_files(Table::Events).await.map(drop)),
        ("replay", archive.replay_events(0..=i64::MAX).await.map(drop)),
        ("seal", seal(archive, 1_000).await),
        ("compact", archive.compact(NOW + 48 * 3_600_000_000).await.map(drop)),
        ("thin", archive.thin(i64::MAX).await.map(drop)),
        ("erase", archive.erase(subject.did(), "deleted", NOW).await.map(drop)),
        ("check", archive.check_logs().await.map(drop)),
    ]
}

/// A way in which a log loses something, the damage, and the code of the error.
type Damage = (&'static str, fn(&Made), &'static str);

const DAMAGES: [Damage; 15] = [
    ("the first entry is gone", |made| remove(&made.entry(Table::Events, 0)), "archive/log-gap"),
    ("an entry is gone", |made| remove(&made.entry(Table::Events, 2)), "archive/log-gap"),
    (
        "two entries are gone",
        |made| {
            remove(&made.entry(Table::Events, 2));
            remove(&made.entry(Table::Events, 3));
        },
        "archive/log-gap",
    ),
    ("the last entry is gone", |made| remove(&made.entry(Table::Events, 5)), "archive/log-shorter"),
    (
        "all entries are gone",
        |made| {
            (0..6).for_each(|version| remove(&made.entry(Table::Events, version)));
        },
        "archive/log-shorter",
    ),
    (
        "the log is gone",
        |made| fs::remove_dir_all(made.log(Table::Events)).unwrap(),
        "archive/log-shorter",
    ),
    (
        "the table is gone",
        |made| {
            fs::remove_dir_all(made.folder.path().join("events")).unwrap();
        },
        "archive/log-shorter",
    ),
    (
        "the log was recreated",
        |made| {
            (0..6).for_each(|version| remove(&made.entry(Table::Events, version)));
            for version in 0..7 {
                fs::copy(
                    made.entry(Table::Ops, version.min(5)),
                    made.entry(Table::Events, version),
                )
                .unwrap();
            }
        },
        "archive/log-shorter",
    ),
    (
        "an entry is empty",
        |made| fs::write(made.entry(Table::Events, 3), "").unwrap(),
        "archive/log",
    ),
    (
        "an entry is blank",
        |made| fs::write(made.entry(Table::Events, 3), "\n \n").unwrap(),
        "archive/log",
    ),
    (
        "an entry is no JSON",
        |made| fs::write(made.entry(Table::Events, 3), "add").unwrap(),
        "archive/log",
    ),
    (
        "no entry has metadata",
        |made| {
            let info = json!({"commitInfo": {"engineInfo": "another program"}});
            fs::write(made.entry(Table::Events, 0), info.to_string()).unwrap();
        },
        "archive/log",
    ),
    (
        "the checkpoint that is named is gone",
        |made| {
            let last = json!({"version": 4, "size": 7});
            fs::write(made.log(Table::Events).join("_last_checkpoint"), last.to_string()).unwrap();
        },
        "archive/log-gap",
    ),
    (
        "what names the checkpoint is damaged",
        |made| {
            fs::write(made.log(Table::Events).join("_last_checkpoint"), "{").unwrap();
        },
        "archive/log",
    ),
    (
        "a feature is demanded that is not known",
        |made| {
            let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}});
            fs::write(made.entry(Table::Events, 6), protocol.to_string()).unwrap();
        },
        "archive/protocol",
    ),
];

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_not_whole_is_an_error_of_every_operation_and_nothing_is_written() {
    for (name, damage, code) in DAMAGES {
        let made = Made::with_events(6).await;
        damage(&made);
        let before = made.content();
        let archive = made.open();
        let found = tokio::join!(run_all(&archive), Archive::open_existing(made.address()));
        let (mut results, opened) = found;
        results.push(("open", opened.map(drop)));
        for (operation, result) in results {
            let error = result.err().unwrap_or_else(|| panic!("{name}: {operation}"));
            assert_eq!(error.fault.code(), Some(code), "{name}, {operation}: {error}");
            assert!(error.file.starts_with("events"), "{name}, {operation}: {error}");
        }
        assert!(made.content() == before, "{name}: something was written or deleted");
    }
}

/// Whatever is gone of a log: a read is complete or an error, and later writes lose no row. At full length (`WIREPROOF_SOAK`), every
/// two files.
#[tokio::test(start_paused = true)]
async fn any_files_of_a_log_that_are_gone_are_an_error_or_make_no_difference() {
    let count = CHECKPOINT as i64 + 3;
    let made = Made::with_events(count).await;
    let all: Vec<i64> = (0..count).collect();
    let paths = files(&made.log(Table::Events));
    let is_soak = std::env::var_os("WIREPROOF_SOAK").is_some();
    let step = if is_soak { 1 } else { 9 };
    let (mut read, mut refused) = (0, 0);
    for (first, one) in paths.iter().enumerate() {
        for other in paths[first..].iter().step_by(step) {
            let mut kept: Vec<(&PathBuf, Vec<u8>)> = vec![(one, fs::read(one).unwrap())];
            if other != one {
                kept.push((other, fs::read(other).unwrap()));
            }
            kept.iter().for_each(|(path, _)| remove(path));
            let before = files(made.folder.path());
            let archive = made.open();
            match events(&archive).await {
                Ok(found) => {
                    assert_eq!(found, all, "without {one:?} and {other:?}");
                    read += 1;
                }
                Err(error) => {
                    let code = error.fault.code().unwrap_or_default();
                    assert!(code.starts_with("archive/log"), "{error}");
                    let swept = archive.compact(NOW + 48 * 3_600_000_000).await;
                    assert!(swept.is_err(), "without {one:?} and {other:?}");
                    assert_eq!(files(made.folder.path()), before);
                    refused += 1;
                }
            }
            for (path, bytes) in kept {
                fs::write(path, bytes).unwrap();
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    assert_eq!(events(&made.open()).await.unwrap(), all);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_another_program_took_out_of_the_archive_stops_the_others_too() {
    let made = Made::with_events(3).await;
    made.open().hide(&Subject::Account("did:web:a.test".to_owned()), "test", NOW).await.unwrap();
    fs::remove_dir_all(made.log(Table::Hidden)).unwrap();
    let error = Archive::open_existing(made.address()).await.map(drop).unwrap_err();
    assert_eq!(error.fault.code(), Some("archive/log-shorter"), "{error}");
}

#[tokio::test]
async fn files_that_no_log_names_stay_however_old_they_are_and_are_counted() {
    let made = Made::with_events(3).await;
    let day = made.folder.path().join("events/day=2026-07-01");
    let [one, ..] = &files(&day)[..] else { panic!("files of events") };
    // Files put back from a copy, and files that somebody else keeps there.
    let rows = fs::read(one).unwrap();
    let name = one.file_name().unwrap().to_str().unwrap();
    let others = [
        made.folder.path().join("events/day=2026-06-30").join(name),
        day.join("mine.parquet"),
        day.join("notes.txt"),
        made.folder.path().join("events/other/notes.txt"),
        made.folder.path().join("staging/notes.txt"),
    ];
    for path in &others {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &rows).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(90 * 24 * 3_600)).unwrap();
    }
    let archive = made.open();
    archive.compact(NOW + 48 * 3_600_000_000).await.unwrap();
    archive.thin(i64::MAX).await.unwrap();
    let erased = archive.erase("did:web:account1.test", "deleted", NOW).await.unwrap();
    assert_eq!(erased.uncommitted_files, 2);
    for path in &others {
        assert_eq!(fs::read(path).unwrap(), rows, "{}", path.display());
    }
    let report = archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
    assert_eq!((report.is_refused(), report.unnamed_files), (false, 2));
    assert_eq!(report.versions, 3 + 3 + 2 + 2, "{report:?}");
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of somebody else, holding files with an archive's names, and links to it.
    struct Linked {
        made: Made,
        private: tempfile::TempDir,
        before: BTreeMap<PathBuf, Vec<u8>>,
    }

    impl Linked {
        async fn new() -> Self {
            let made = Made::with_events(3).await;
            let private = tempfile::tempdir().unwrap();
            let hash = "0".repeat(64);
            let names = [
                format!("{hash}.parquet"),
                format!("day=2026-07-01/{hash}.parquet"),
                ".tmpAbCdEf".to_owned(),
                "00000000000000000000.wal".to_owned(),
                "00000000000000000000.json".to_owned(),
                "notes.txt".to_owned(),
            ];
            for name in names {
                let path = private.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, "private").unwrap();
                let file = fs::File::options().write(true).open(&path).unwrap();
                file.set_modified(SystemTime::now() - Duration::from_secs(90 * 24 * 3_600))
                    .unwrap();
            }
            let before = Self::content(private.path());
            Self { made, private, before }
        }

        fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
            files(folder).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
        }

        /// Puts a link into the archive.
        fn link(&self, to: &str, at: &str) {
            symlink(self.private.path().join(to), self.made.folder.path().join(at)).unwrap();
        }

        /// Runs everything, and checks that the targets of the links did not change.
        async fn run(&self, name: &str) -> Vec<(&'static str, Result<(), ArchiveError>)> {
            let results = run_all(&self.made.open()).await;
            assert!(Self::content(self.private.path()) == self.before, "{name}");
            results
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_behind_a_link_is_neither_listed_nor_deleted_and_verify_names_it() {
        for (to, at) in [
            ("", "events/day=2026-06-30"),
            ("day=2026-07-01", "records"),
            ("notes.txt", "notes"),
            ("", "events/day=2026-07-01/more"),
            ("notes.txt", "events/day=2026-07-01/notes.parquet"),
            ("missing", "ops/nowhere"),
        ] {
            let linked = Linked::new().await;
            // A table without a version is not looked into.
            linked.link(to, at);
            let mut found = Vec::new();
            let archive = linked.made.open();
            let mut on_finding = |finding| found.push(finding);
            let verified = archive.verify(&VerifyOptions::default(), &mut on_finding).await;
            if let Ok(report) = verified {
                assert_eq!(report.refused.get("archive/link"), Some(&1), "{at}: {found:?}");
                assert_eq!(found[0].file, at);
            }
            linked.run(at).await;
            assert!(linked.made.folder.path().join(at).is_symlink(), "{at}");
        }
    }

    #[tokio::test]
    async fn a_log_a_folder_or_a_file_of_a_table_that_is_a_link_stops_what_would_write_to_it() {
        type Replace = fn(&Linked);
        let cases: [(&str, Replace); 4] = [
            ("events", |linked| {
                fs::remove_dir_all(linked.made.folder.path().join("events")).unwrap();
                linked.link("", "events");
            }),
            ("events/_delta_log", |linked| {
                fs::remove_dir_all(linked.made.log(Table::Events)).unwrap();
                linked.link("", "events/_delta_log");
            }),
            ("events/_delta_log/00000000000000000000.json", |linked| {
                remove(&linked.made.entry(Table::Events, 0));
                linked.link(
                    "00000000000000000000.json",
                    "events/_delta_log/00000000000000000000.json",
                );
            }),
            ("_heads", |linked| {
                fs::remove_dir_all(linked.made.folder.path().join("_heads")).unwrap();
                linked.link("", "_heads");
            }),
        ];
        for (name, replace) in cases {
            let linked = Linked::new().await;
            replace(&linked);
            for (operation, result) in linked.run(name).await {
                let error = result.err().unwrap_or_else(|| panic!("{name}: {operation}"));
                assert_eq!(
                    error.fault.code(),
                    Some("archive/link"),
                    "{name}, {operation}: {error}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_moved_day_with_a_link_in_its_place_keeps_its_files() {
        let linked = Linked::new().await;
        let (day, moved) = ("events/day=2026-07-01", linked.private.path().join("moved"));
        fs::rename(linked.made.folder.path().join(day), &moved).unwrap();
        linked.link("moved", day);
        let before = Linked::content(&moved);
        let results = run_all(&linked.made.open()).await;
        assert!(Linked::content(&moved) == before);
        for (operation, result) in results {
            if ["seal", "compact", "erase"].contains(&operation) {
                let error = result.err().unwrap_or_else(|| panic!("{operation}"));
                assert_eq!(error.fault.code(), Some("archive/link"), "{operation}: {error}");
                assert_eq!(error.file, day);
            }
        }
    }

    #[tokio::test]
    async fn temporary_files_behind_a_link_are_not_deleted() {
        let linked = Linked::new().await;
        fs::remove_dir_all(linked.made.folder.path().join("staging")).unwrap();
        linked.link("", "staging");
        linked.run("staging").await;
        assert!(linked.made.folder.path().join("staging").is_symlink());
    }

    #[tokio::test]
    async fn the_archive_itself_may_be_a_link() {
        let made = Made::with_events(3).await;
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("archive");
        symlink(made.folder.path(), &link).unwrap();
        let archive = Archive::open_existing(link.to_str().unwrap()).await.unwrap();
        seal(&archive, 3).await.unwrap();
        archive.compact(NOW + 48 * 3_600_000_000).await.unwrap();
        assert_eq!(events(&made.open()).await.unwrap(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_segment_or_lock_of_the_log_that_is_a_link_is_refused() {
        for name in ["00000000000000000000.wal", "wal.lock"] {
            let (wal, private) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let target = private.path().join("notes.txt");
            fs::write(&target, "private").unwrap();
            symlink(&target, wal.path().join(name)).unwrap();
            let opened = wireproof_archive::Wal::open(wal.path(), Default::default());
            assert!(opened.is_err(), "{name}");
            assert_eq!(fs::read(&target).unwrap(), b"private", "{name}");
        }
    }
}
