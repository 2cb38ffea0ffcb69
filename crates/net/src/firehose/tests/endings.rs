//! The end of a run, and its cursor.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::support::*;

fn frames(writer: &mut Writer, count: u64) -> Vec<Vec<u8>> {
    (1..=count).map(|seq| writer.commit(seq)).collect()
}

async fn run_with(
    ack_mode: AckMode,
    stop_after: usize,
    journal: &Arc<TestJournal>,
) -> (Result<RunSummary, RunError>, Arc<Recorder>) {
    let mut writer = Writer::new(0);
    let options = Options { drain_timeout: Duration::from_millis(50), ..options(keys([&writer])) };
    let script = Script::new(frames(&mut writer, 20));
    let recorder = Recorder::new(stop_after, ack_mode);
    (run(options, script, &recorder, journal).await, recorder)
}

fn cursor(journal: &TestJournal) -> Option<u64> {
    journal.cursor(STREAM).unwrap()
}

#[tokio::test]
async fn an_event_that_is_dropped_ends_the_run_and_the_cursor_is_before_it() {
    let journal = Arc::default();
    let (ended, _) = run_with(AckMode::DropAt(7), usize::MAX, &journal).await;
    let Err(RunError::Unacknowledged { stream, seq }) = ended else { panic!("{ended:?}") };
    assert_eq!((&*stream, seq), (STREAM, Some(7)));
    assert!(cursor(&journal).is_none_or(|cursor| cursor < 7));
}

#[tokio::test]
async fn a_full_journal_ends_the_run_and_the_cursor_is_as_it_was() {
    let journal = Arc::<TestJournal>::default();
    journal.0.lock().unwrap().cursors.insert(STREAM.to_owned(), 3);
    journal.0.lock().unwrap().is_full = true;
    let before = journal.0.lock().unwrap().clone();
    let (ended, _) = run_with(AckMode::Immediate, 20, &journal).await;
    assert!(matches!(ended, Err(RunError::Journal(_))), "{ended:?}");
    assert_eq!(*journal.0.lock().unwrap(), before);
}

#[tokio::test]
async fn a_panic_of_the_handler_ends_the_run() {
    let journal = Arc::default();
    let (ended, _) = run_with(AckMode::PanicAt(7), usize::MAX, &journal).await;
    assert!(
        matches!(ended, Err(RunError::Panicked | RunError::Unacknowledged { .. })),
        "{ended:?}"
    );
    assert!(cursor(&journal).is_none_or(|cursor| cursor < 7));
}

#[tokio::test]
async fn a_stopped_run_delivers_the_events_in_flight_and_no_more() {
    let journal = Arc::default();
    let (ended, recorder) = run_with(AckMode::Immediate, 5, &journal).await;
    let summary = ended.unwrap();
    let seen = recorder.events().len() as u64;
    assert_eq!((summary.delivered, summary.unacknowledged), (seen, 0));
    assert_eq!(cursor(&journal), Some(seen));
    assert_eq!(summary.cursors, [(STREAM.to_owned(), Some(seen))]);
}

#[tokio::test]
async fn events_not_acknowledged_in_time_are_counted_and_left_to_the_next_run() {
    let journal = Arc::default();
    let (ended, recorder) = run_with(AckMode::Deferred, 20, &journal).await;
    assert_eq!((ended.unwrap().unacknowledged, cursor(&journal)), (20, None));
    assert!(journal.0.lock().unwrap().accounts.is_empty());
    recorder.ack_deferred();
    assert_eq!(cursor(&journal), None, "a run that has ended writes no more");
}

#[tokio::test]
async fn the_next_run_resumes_at_the_cursor_of_the_last() {
    let journal = Arc::default();
    run_with(AckMode::Immediate, 20, &journal).await.0.unwrap();
    assert_eq!(cursor(&journal), Some(20));
    let mut writer = Writer::new(1);
    let script = Script::new([writer.commit(25)]);
    let recorder = Recorder::new(1, AckMode::Immediate);
    run(options(keys([&writer])), script, &recorder, &journal).await.unwrap();
    assert_eq!(cursor(&journal), Some(25));
}

#[tokio::test]
async fn a_run_with_a_budget_ends_after_exactly_that_many_counted_events() {
    let (mut writers, journal) = ([0, 1, 2].map(Writer::new), Arc::<TestJournal>::default());
    let frames: Vec<_> = (1..=100).map(|seq| writers[seq as usize % 3].commit(seq)).collect();
    let recorder = Recorder::new(usize::MAX, AckMode::SkipOdd);
    let drain_timeout = Duration::from_secs(1 << 20);
    let options = Options { max_events: Some(10), drain_timeout, ..options(keys(&writers)) };
    let summary = run(options, Script::new(frames), &recorder, &journal).await.unwrap();
    let even = recorder.events().iter().filter(|event| event.seq.is_multiple_of(2)).count();
    assert_eq!((even, recorder.events().len()), (10, 20), "odd sequence numbers do not count");
    assert_eq!((summary.unacknowledged, cursor(&journal)), (0, Some(20)));
}
