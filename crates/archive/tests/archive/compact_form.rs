//! Commits in compact form: proved by their operations alone, and refused where anything of them was changed.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, StringArray};
use wireproof_archive::{Archive, Table, Thinned, VerifyOptions, VerifyReport};

use crate::common::changed_file::{change, flip};
use crate::common::writers::{Writers, after, received};
use crate::common::{archive, files, is_stored};

async fn verify(archive: &Archive) -> VerifyReport {
    archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap()
}

/// The codes of the refusals.
async fn codes(archive: &Archive) -> Vec<String> {
    verify(archive).await.refused.into_keys().collect()
}

async fn rows(archive: &Archive, table: Table) -> u64 {
    archive.table_stats(table).await.unwrap().rows
}

#[tokio::test]
async fn commits_from_the_first_one_on_are_made_compact_and_proved_by_their_operations() {
    let (mut writers, (folder, archive)) = (Writers::new(5, 1), archive());
    let (old, new) = (writers.commits(200), writers.commits(50));
    writers.import(&archive, &old, "old", 0).await;
    writers.import(&archive, &new, "new", 1).await;
    let ops = rows(&archive, Table::Ops).await;
    let thinned = archive.thin(after(0)).await.unwrap();
    assert_eq!((thinned.commits, thinned.kept), (200, 0), "{thinned:?}");
    assert!(thinned.bytes_after * 3 < thinned.bytes_before, "{thinned:?}");
    let report = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.events, report.proved, report.compact), (250, 250, 200));
    assert_eq!(rows(&archive, Table::Ops).await, ops);
    // Replaced files are gone.
    let tables =
        files(folder.path()).into_iter().filter(|path| path.extension().unwrap() != "json");
    assert_eq!(tables.count() as u64, report.files);

    // A later day continues the chains, and compact commits stay as they are.
    let again = archive.thin(after(0)).await.unwrap();
    assert_eq!(again, Thinned::default());
    let thinned = archive.thin(after(1)).await.unwrap();
    assert_eq!((thinned.commits, thinned.kept), (50, 0), "{thinned:?}");
    let report = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.proved, report.compact), (250, 250));
}

#[tokio::test]
async fn commits_after_a_repository_are_made_compact_and_without_it_stay_full() {
    let mut writers = Writers::new(2, 2);
    let before = writers.commits(40);
    let (with, without) = (archive(), archive());
    for account in &mut writers.accounts {
        account.snapshot(&with.1, 0).await;
    }
    let after_it = writers.commits(40);
    for archive in [&with.1, &without.1] {
        writers.import(archive, &after_it, "stream", 0).await;
    }
    let thinned = with.1.thin(after(0)).await.unwrap();
    assert_eq!((thinned.commits, thinned.kept), (40, 0), "{thinned:?}");
    assert!(!verify(&with.1).await.is_refused());
    let thinned = without.1.thin(after(0)).await.unwrap();
    assert_eq!((thinned.commits, thinned.kept), (0, 40), "{thinned:?}");

    // Without the repository nothing proves compact commits: the report names them.
    for table in ["snapshots", "records"] {
        fs::remove_dir_all(with.0.path().join(table)).unwrap();
        fs::remove_dir_all(with.0.path().join("_heads").join(table)).unwrap();
    }
    let reopened = Archive::open(with.0.path().to_str().unwrap()).unwrap();
    let report = verify(&reopened).await;
    assert_eq!(report.refused, BTreeMap::from([("archive/base".to_owned(), 40)]), "{report:?}");
    drop(before);
}

#[tokio::test]
async fn commits_after_a_missing_one_stay_full_until_a_repository() {
    let (mut writers, (_folder, archive)) = (Writers::new(1, 3), archive());
    let mut frames = writers.commits(30);
    frames.remove(10);
    writers.import(&archive, &frames, "stream", 0).await;
    writers.accounts[0].snapshot(&archive, 0).await;
    let later = writers.commits(10);
    writers.import(&archive, &later, "later", 0).await;
    let thinned = archive.thin(after(0)).await.unwrap();
    assert_eq!((thinned.commits, thinned.kept), (10 + 10, 19), "{thinned:?}");
    let report = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.proved, report.compact), (39, 20));
}

#[tokio::test]
async fn what_two_writers_have_stored_is_made_compact_twice() {
    let (mut writers, (_folder, archive)) = (Writers::new(3, 4), archive());
    let frames = writers.commits(60);
    writers.import(&archive, &frames, "one", 0).await;
    writers.import(&archive, &frames, "another", 1).await;
    archive.thin(after(1)).await.unwrap();
    let report = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!(report.proved, 120);
    assert!(report.compact >= 60, "{report:?}");
}

/// Histories with missing commits, repositories at any time, several writers and several thinnings are proved after every
/// step.
#[tokio::test]
async fn whatever_was_made_compact_is_proved() {
    for seed in 0..24 {
        let (mut writers, (_folder, archive)) = (Writers::new(4, 100 + seed), archive());
        let (mut events, mut compact) = (0, 0);
        for day in 0..6 {
            let mut frames = writers.commits(25);
            if writers.random(2) == 0 {
                frames.remove(writers.random(25) as usize);
            }
            if writers.random(3) == 0 {
                let account = writers.random(4) as usize;
                if writers.accounts[account].repository.head().is_some() {
                    writers.accounts[account].snapshot(&archive, day).await;
                }
            }
            writers.import(&archive, &frames, &format!("day {day}"), day).await;
            events += frames.len() as u64;
            if writers.random(4) == 0 {
                writers.import(&archive, &frames, &format!("again {day}"), day).await;
                events += frames.len() as u64;
            }
            match writers.random(3) {
                0 => drop(archive.thin(after(day - 1)).await.unwrap()),
                1 => drop(archive.compact(after(day)).await.unwrap()),
                _ => {}
            }
            let report = verify(&archive).await;
            assert!(!report.is_refused(), "seed {seed}, day {day}: {report:?}");
            assert_eq!((report.events, report.proved), (events, events), "seed {seed}");
            assert!(report.compact >= compact, "seed {seed}");
            compact = report.compact;
        }
    }
}

#[tokio::test]
async fn a_changed_value_of_a_compact_commit_is_refused() {
    type Edit = fn(ArrayRef) -> ArrayRef;
    let edits: [(&str, &str, &str, Edit); 8] = [
        ("ops", "record", "signature/wrong", |column| flip(column)),
        ("ops", "record", "archive/operations", |column| without_first(column)),
        ("ops", "action", "archive/operations", |column| first_text(column, "update")),
        ("ops", "action", "archive/operations", |column| first_text(column, "invent")),
        ("ops", "rkey", "signature/wrong", |column| first_text(column, "another")),
        ("events", "sig", "signature/wrong", |column| flip(column)),
        ("events", "rev", "signature/wrong", |column| first_text(column, "3laaaaaaaaa2a")),
        ("events", "form", "archive/form", |column| first_text(column, "invented")),
    ];
    for (table, column, code, edit) in edits {
        let (mut writers, (folder, archive)) = (Writers::new(1, 5), archive());
        // One commit, so that no later one is refused because of its predecessor.
        let frames = [writers.commit(0)];
        writers.import(&archive, &frames, "stream", 0).await;
        assert_eq!(archive.thin(after(0)).await.unwrap().commits, 1);
        assert!(codes(&archive).await.is_empty());
        change(folder.path(), table, column, edit);
        let changed = Archive::open(folder.path().to_str().unwrap()).unwrap();
        assert_eq!(codes(&changed).await, [code], "{table}.{column}");
    }
}

#[tokio::test]
async fn a_commit_that_is_gone_is_missed_by_the_one_after_it() {
    let (mut writers, (folder, archive)) = (Writers::new(1, 6), archive());
    let frames = writers.commits(3);
    writers.import(&archive, &frames, "stream", 0).await;
    archive.thin(after(0)).await.unwrap();
    // The second of three rows becomes one of no chain.
    change(folder.path(), "events", "verdict", |column| {
        let mut values: Vec<_> = column.as_string::<i32>().iter().flatten().collect();
        values[1] = "event/rev";
        Arc::new(StringArray::from(values))
    });
    let changed = Archive::open(folder.path().to_str().unwrap()).unwrap();
    assert_eq!(codes(&changed).await, ["archive/base"]);
}

#[tokio::test]
async fn files_of_past_days_are_merged_and_have_the_same_rows() {
    let (mut writers, (folder, archive)) = (Writers::new(4, 7), archive());
    for part in 0..6 {
        let frames = writers.commits(20);
        writers.import(&archive, &frames, &format!("part {part}"), part / 3).await;
        for account in &mut writers.accounts {
            if account.repository.head().is_some() {
                account.snapshot(&archive, part / 3).await;
                // The same revision once more.
                account.snapshot(&archive, part / 3 + 10).await;
            }
        }
    }
    let before = verify(&archive).await;
    let replayed = frames(&archive).await;
    let records = rows(&archive, Table::Records).await;
    let compacted = archive.compact(after(0)).await.unwrap();
    assert!(compacted.files_after < compacted.files, "{compacted:?}");
    let after_it = verify(&archive).await;
    assert!(!after_it.is_refused(), "{after_it:?}");
    assert_eq!(
        (after_it.events, after_it.proved, after_it.snapshots, after_it.proved_snapshots),
        (before.events, before.proved, before.snapshots, before.proved_snapshots)
    );
    assert_eq!(frames(&archive).await, replayed);
    assert!(rows(&archive, Table::Records).await <= records);
    assert!(after_it.files < before.files);
    let tables =
        files(folder.path()).into_iter().filter(|path| path.extension().unwrap() != "json");
    assert_eq!(tables.count() as u64, after_it.files);
    assert_eq!(archive.compact(after(0)).await.unwrap().files, 0);
}

#[tokio::test]
async fn of_an_erased_account_nothing_compact_is_in_any_file_and_the_others_are_still_proved() {
    let (mut writers, (folder, archive)) = (Writers::new(3, 8), archive());
    let frames = writers.commits(60);
    writers.import(&archive, &frames, "stream", 0).await;
    archive.thin(after(0)).await.unwrap();
    let did = writers.accounts[1].did().to_owned();
    let text = b"which no other record has".as_slice();
    assert!(is_stored(folder.path(), text));
    let erased = archive.erase(&did, "deleted", received(1)).await.unwrap();
    assert!(erased.rows > 0 && erased.uncommitted_files == 0, "{erased:?}");
    let report = verify(&archive).await;
    assert!(!report.is_refused() && report.compact > 0, "{report:?}");
    for account in [0, 2] {
        archive.erase(writers.accounts[account].did(), "deleted", received(1)).await.unwrap();
    }
    assert!(!is_stored(folder.path(), text));
}

#[tokio::test]
async fn files_that_no_log_names_are_counted_and_only_temporary_ones_are_deleted_after_a_day() {
    let (mut writers, (folder, archive)) = (Writers::new(1, 9), archive());
    let frames = writers.commits(3);
    writers.import(&archive, &frames, "stream", 0).await;
    let day = folder.path().join("events/day=2026-07-01");
    let (young, old) = (day.join("young.parquet"), day.join("old.parquet"));
    fs::write(&young, "of a writer at work").unwrap();
    let staged = folder.path().join("staging/.tmp");
    for path in [&old, &staged] {
        fs::write(path, "left behind").unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        let day = std::time::Duration::from_secs(25 * 3_600);
        file.set_modified(std::time::SystemTime::now() - day).unwrap();
    }
    let erased = archive.erase("did:web:nobody.test", "deleted", received(1)).await.unwrap();
    assert_eq!(erased.uncommitted_files, 2);
    assert!(young.exists() && old.exists() && !staged.exists());
    assert!(!verify(&archive).await.is_refused());
}

#[tokio::test]
async fn one_account_a_time_and_a_sample_are_verified_alone() {
    let (mut writers, (_folder, archive)) = (Writers::new(12, 10), archive());
    let (first, second) = (writers.commits(100), writers.commits(100));
    writers.import(&archive, &first, "first", 0).await;
    writers.import(&archive, &second, "second", 1).await;
    archive.thin(after(0)).await.unwrap();
    let with = async |set: &dyn Fn(&mut VerifyOptions)| {
        let mut options = VerifyOptions::default();
        set(&mut options);
        let report = archive.verify(&options, &mut |_| ()).await.unwrap();
        assert!(!report.is_refused(), "{options:?}: {report:?}");
        assert_eq!(report.events, report.proved);
        report
    };
    let of_one: Vec<u64> = {
        let mut counts = Vec::new();
        for account in &writers.accounts {
            let did = account.did().to_owned();
            let report = with(&|options| options.did = Some(did.clone())).await;
            counts.push(report.events);
        }
        counts
    };
    assert_eq!(of_one.iter().sum::<u64>(), 200);
    let since = with(&|options| options.since = Some(received(1))).await;
    assert_eq!((since.events, since.compact), (100, 0));
    let mut sampled = 0;
    for seed in 0..8 {
        let set = |options: &mut VerifyOptions| {
            (options.sample, options.seed) = (std::num::NonZeroU64::new(4), seed);
        };
        sampled += with(&set).await.events;
    }
    assert!((100..800).contains(&sampled), "{sampled} of 8 times 200, one in four");
}

async fn frames(archive: &Archive) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let each = |replayed: wireproof_archive::Replayed<'_>| {
        frames.push(replayed.frame.to_vec());
        Ok::<(), wireproof_archive::ArchiveError>(())
    };
    archive.replay(i64::MIN, each).await.unwrap();
    frames
}

/// A column of which the first value has another bit.
fn without_first(column: ArrayRef) -> ArrayRef {
    let mut values: Vec<Option<&[u8]>> = column.as_binary::<i32>().iter().collect();
    values[0] = None;
    Arc::new(BinaryArray::from_iter(values))
}

fn first_text(column: ArrayRef, text: &str) -> ArrayRef {
    let mut values: Vec<Option<&str>> = column.as_string::<i32>().iter().collect();
    values[0] = Some(text);
    Arc::new(StringArray::from(values))
}
