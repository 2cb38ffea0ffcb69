//! Everything once, and in order for each account.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::scene::*;

/// Commits of all accounts in turn; numbers begin with 1.
fn rounds(writers: &mut [Writer], rounds: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for _ in 0..rounds {
        for writer in &mut *writers {
            let seq = frames.len() as u64 + 1;
            frames.push(writer.commit(seq));
        }
    }
    frames
}

fn writers(count: u8) -> Vec<Writer> {
    (0..count).map(Writer::new).collect()
}

#[tokio::test]
async fn every_event_is_verified_once_and_in_order_for_its_account() {
    let mut writers = writers(10);
    let keys = keys(&writers);
    let frames = rounds(&mut writers, 100);
    let (recorder, paper) = (Recorder::new(1_000, Manner::Prompt), Arc::default());
    let summary = run(options(keys), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    assert_eq!((summary.delivered, summary.unacknowledged), (1_000, 0));
    for (number, writer) in (1..).zip(&writers) {
        let expected: Vec<_> = (0..100).map(|round| (round * 10 + number, "verified")).collect();
        assert_eq!(recorder.of(writer), expected);
    }
    assert_eq!(paper.0.lock().unwrap().cursors[STREAM], 1_000);
    assert_eq!(paper.0.lock().unwrap().accounts.len(), 10);
}

#[tokio::test]
async fn unverified_events_come_in_order_too() {
    let mut writers = writers(3);
    let frames = rounds(&mut writers, 50);
    let options =
        Options { verify: Verification::Off { decoding: Default::default() }, ..options(keys([])) };
    let (recorder, paper) = (Recorder::new(150, Manner::Prompt), Arc::default());
    run(options, &mut Script::new(frames), &recorder, &paper).await.unwrap();
    for (number, writer) in (1..).zip(&writers) {
        let expected: Vec<_> = (0..50).map(|round| (round * 3 + number, "not-asked")).collect();
        assert_eq!(recorder.of(writer), expected);
    }
    assert!(paper.0.lock().unwrap().accounts.is_empty());
}

#[tokio::test]
async fn what_is_no_frame_is_handed_over_as_it_came() {
    let mut writer = Writer::new(0);
    let keys = keys([&writer]);
    let frames = vec![b"garbage".to_vec(), writer.commit(1), vec![]];
    let (recorder, paper) = (Recorder::new(3, Manner::Prompt), Arc::default());
    run(options(keys), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    let mut codes: Vec<_> = recorder.seen().iter().map(|seen| seen.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["frame/cbor", "frame/cbor", "verified"]);
}

#[tokio::test]
async fn an_account_at_rest_is_ignored_from_its_event_on_and_until_it_comes_back() {
    let mut writer = Writer::new(0);
    let keys = keys([&writer]);
    let frames = vec![
        writer.commit(1),
        writer.account(2, false),
        writer.commit(3),
        writer.commit(4),
        writer.account(5, true),
        writer.commit(6),
        writer.commit(7),
    ];
    let (recorder, paper) = (Recorder::new(7, Manner::Prompt), Arc::default());
    run(options(keys), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    let expected = [
        (1, "verified"),
        (2, "unchecked"),
        (3, "event/inactive"),
        (4, "event/inactive"),
        (5, "unchecked"),
        (6, "verified/broken"),
        (7, "verified/unmended"),
    ];
    assert_eq!(recorder.of(&writer), expected);
}

#[tokio::test]
async fn that_an_account_is_at_rest_is_journaled() {
    let mut writer = Writer::new(0);
    let keys = keys([&writer]);
    let frames = vec![writer.commit(1), writer.account(2, false)];
    let (recorder, paper) = (Recorder::new(2, Manner::Prompt), Arc::<Paper>::default());
    run(options(keys), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    let account = paper.0.lock().unwrap().accounts[&*writer.did];
    assert!(!account.is_active && account.head.is_some());
}

#[tokio::test]
async fn no_more_is_read_than_there_is_room_for_and_the_rest_comes_when_there_is() {
    let mut writers = writers(4);
    let keys = keys(&writers);
    let frames = rounds(&mut writers, 25);
    let limits = FlowLimits { max_events: 10, ..FlowLimits::default() };
    let options = Options { limits, ..options(keys) };
    let (recorder, paper) = (Recorder::new(100, Manner::Miserly), Arc::default());
    let mut script = Script::new(frames);
    let gives = async {
        let mut most = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            most = most.max(recorder.kept());
            recorder.give();
            if recorder.seen().len() == 100 && recorder.kept() == 0 {
                break most;
            }
        }
    };
    let (summary, most) = tokio::join!(run(options, &mut script, &recorder, &paper), gives);
    assert_eq!((summary.unwrap().delivered, recorder.seen().len()), (100, 100));
    assert!(most <= 10, "{most} at once");
}
