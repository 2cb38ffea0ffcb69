//! Replays: one order of the events of several writers, the same while the files that hold them are replaced.

use std::time::Duration;

use wireproof_archive::{Archive, ArchivedEvent, JUDGE, Replay, Subject, WorkId};

use crate::common::archive;
use crate::common::writers::{Writers, after, received};

/// The part of an event that a replay shows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    number: i64,
    did: Option<String>,
    frame: Vec<u8>,
}

async fn next(replay: &mut Replay) -> Option<Shown> {
    let replayed = replay.next().await.unwrap()?;
    let event = replayed.event();
    let (did, frame) = (event.did.map(str::to_owned), event.frame.to_vec());
    Some(Shown { number: replayed.number(), did, frame })
}

async fn rest(mut replay: Replay) -> Vec<Shown> {
    let mut shown = Vec::new();
    while let Some(event) = next(&mut replay).await {
        shown.push(event);
    }
    shown
}

async fn replay(archive: &Archive) -> Replay {
    archive.replay_events(i64::MIN..=i64::MAX).await.unwrap()
}

/// An archive as another process opens it.
fn reopen(folder: &tempfile::TempDir) -> Archive {
    Archive::open(folder.path().to_str().unwrap())
        .unwrap()
        .with_erasure_key(Some(crate::common::erasure_key()))
}

/// Stores commits of three accounts by several writers, which seal at the same times: half of the events arrive with another
/// one. A writer has a file a day, and an account has one writer.
async fn seal_of_several_writers(archive: &Archive) -> usize {
    let mut writers = Writers::new(6, 11);
    for (work, day) in [0, 0, 1, 1].into_iter().enumerate() {
        let frames: Vec<(usize, Vec<u8>)> =
            (0..60).map(|number| (number % 6, writers.commit(number % 6))).collect();
        for writer in 0..3 {
            let events =
                frames.iter().enumerate().filter(|(_, (account, _))| account % 3 == writer);
            let events = events.map(|(number, (account, frame))| ArchivedEvent {
                did: Some(writers.accounts[*account].did()),
                arrival: received(day) + (work * 1_000 + number / 2) as i64,
                host: "relay.test",
                seq: Some(number as i64),
                kind: "#commit",
                received: received(day),
                verdict: "verified",
                key: None,
                judge: JUDGE,
                frame,
            });
            let id = WorkId { writer: format!("writer {writer}"), number: work as i64 };
            archive.seal(events.collect(), &id).await.unwrap();
        }
    }
    4 * 60
}

#[tokio::test]
async fn numbers_rise_and_an_event_has_the_same_one_wherever_a_replay_begins() {
    let (_folder, archive) = archive();
    let count = seal_of_several_writers(&archive).await;
    let all = rest(replay(&archive).await).await;
    assert_eq!(all.len(), count);
    assert!(all.is_sorted_by(|one, other| one.number < other.number), "{all:?}");
    for (at, event) in all.iter().enumerate() {
        let later = rest(replay(&archive).await.after_number(event.number)).await;
        assert!(later == all[at + 1..], "after event {at}");
    }
    // A number that no event has begins with the next one.
    let (before, between) = (all[0].number - 1, all[59].number + 1);
    assert_eq!(rest(replay(&archive).await.after_number(before)).await, all);
    assert_eq!(rest(replay(&archive).await.after_number(between)).await, all[60..]);
}

#[tokio::test]
async fn a_replay_goes_on_while_its_files_are_replaced_by_another_process() {
    for taken in [0, 1, 7, 59, 60, 61, 119, 120, 200, 239] {
        let (folder, archive) = archive();
        seal_of_several_writers(&archive).await;
        let all = rest(replay(&archive).await).await;
        let mut replay = replay(&reopen(&folder)).await;
        let mut shown = Vec::new();
        for _ in 0..taken {
            shown.push(next(&mut replay).await.unwrap());
        }
        let compacted = archive.compact(after(1)).await.unwrap();
        assert!(compacted.files_after < compacted.files, "{compacted:?}");
        // With and without a look at the archive before the next event.
        if taken % 2 == 0 {
            replay.refresh().await.unwrap();
        }
        shown.extend(rest(replay).await);
        assert!(shown == all, "after {taken} events");
    }
}

#[tokio::test]
async fn a_replay_goes_on_with_what_is_sealed_meanwhile() {
    let (mut writers, (folder, archive)) = (Writers::new(2, 3), archive());
    let (early, late) = (writers.commits(20), writers.commits(20));
    writers.import(&archive, &early, "early", 0).await;
    let mut replay = replay(&reopen(&folder)).await;
    for frame in &early {
        assert_eq!(&next(&mut replay).await.unwrap().frame, frame);
    }
    assert_eq!(next(&mut replay).await, None);
    writers.import(&archive, &late, "late", 0).await;
    replay.refresh().await.unwrap();
    let frames: Vec<_> = rest(replay).await.into_iter().map(|shown| shown.frame).collect();
    assert_eq!(frames, late);
}

#[tokio::test]
async fn commits_that_become_compact_during_a_replay_are_left_out_and_counted() {
    let (mut writers, (folder, archive)) = (Writers::new(3, 5), archive());
    let (old, new) = (writers.commits(50), writers.commits(10));
    writers.import(&archive, &old, "old", 0).await;
    writers.import(&archive, &new, "new", 1).await;
    let mut replay = replay(&reopen(&folder)).await;
    for frame in &old[..20] {
        assert_eq!(&next(&mut replay).await.unwrap().frame, frame);
    }
    assert_eq!(archive.thin(after(0)).await.unwrap().commits, 50);
    replay.refresh().await.unwrap();
    let mut frames = Vec::new();
    while let Some(shown) = next(&mut replay).await {
        frames.push(shown.frame);
    }
    assert_eq!(frames, new);
    assert_eq!(replay.left_out(), 30);
}

#[tokio::test]
async fn a_replay_shows_nothing_of_an_account_that_is_erased_or_hidden_meanwhile() {
    let (folder, archive) = archive();
    seal_of_several_writers(&archive).await;
    let all = rest(replay(&archive).await).await;
    let [first, second] = [0, 1].map(|number| all[number].did.clone().unwrap());
    assert_ne!(first, second);
    let others: Vec<&Shown> = all[30..]
        .iter()
        .filter(|shown| ![Some(&first), Some(&second)].contains(&shown.did.as_ref()))
        .collect();
    let mut replay = replay(&reopen(&folder)).await;
    for shown in &all[..30] {
        assert_eq!(next(&mut replay).await.as_ref(), Some(shown));
    }
    archive.hide(&Subject::Account(second), "a test", received(2)).await.unwrap();
    archive.erase(&first, "deleted", received(2)).await.unwrap();
    // A replay looks at the archive every second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let frames =
        |shown: Vec<&Shown>| shown.into_iter().map(|shown| shown.frame.clone()).collect::<Vec<_>>();
    let shown = rest(replay).await;
    assert_eq!(frames(shown.iter().collect()), frames(others));
}
