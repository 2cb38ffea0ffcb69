//! How a run ends, and where its cursor is then.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::scene::*;

fn frames(writer: &mut Writer, count: u64) -> Vec<Vec<u8>> {
    (1..=count).map(|seq| writer.commit(seq)).collect()
}

async fn run_with(
    manner: Manner,
    enough: usize,
    paper: &Arc<Paper>,
) -> (Result<RunSummary, RunError>, Arc<Recorder>) {
    let mut writer = Writer::new(0);
    let options = Options { drain_timeout: Duration::from_millis(50), ..options(keys([&writer])) };
    let mut script = Script::new(frames(&mut writer, 20));
    let recorder = Recorder::new(enough, manner);
    (run(options, &mut script, &recorder, paper).await, recorder)
}

fn cursor(paper: &Paper) -> Option<u64> {
    paper.cursor(STREAM).unwrap()
}

#[tokio::test]
async fn an_event_that_is_dropped_ends_the_run_and_the_cursor_is_before_it() {
    let paper = Arc::default();
    let (ended, _) = run_with(Manner::Careless(7), usize::MAX, &paper).await;
    let Err(RunError::Unacknowledged { stream, seq }) = ended else { panic!("{ended:?}") };
    assert_eq!((&*stream, seq), (STREAM, Some(7)));
    assert!(cursor(&paper).is_none_or(|cursor| cursor < 7));
}

#[tokio::test]
async fn a_full_journal_ends_the_run_and_the_cursor_is_as_it_was() {
    let paper = Arc::<Paper>::default();
    paper.0.lock().unwrap().cursors.insert(STREAM.to_owned(), 3);
    paper.0.lock().unwrap().is_full = true;
    let before = paper.0.lock().unwrap().clone();
    let (ended, _) = run_with(Manner::Prompt, 20, &paper).await;
    assert!(matches!(ended, Err(RunError::Journal(_))), "{ended:?}");
    assert_eq!(*paper.0.lock().unwrap(), before);
}

#[tokio::test]
async fn a_panic_of_the_handler_ends_the_run() {
    let paper = Arc::default();
    let (ended, _) = run_with(Manner::Nervous(7), usize::MAX, &paper).await;
    assert!(
        matches!(ended, Err(RunError::Panicked | RunError::Unacknowledged { .. })),
        "{ended:?}"
    );
    assert!(cursor(&paper).is_none_or(|cursor| cursor < 7));
}

#[tokio::test]
async fn who_stops_gets_what_is_under_way_and_no_more() {
    let paper = Arc::default();
    let (ended, recorder) = run_with(Manner::Prompt, 5, &paper).await;
    let summary = ended.unwrap();
    let seen = recorder.seen().len() as u64;
    assert_eq!((summary.delivered, summary.unacknowledged), (seen, 0));
    assert_eq!(cursor(&paper), Some(seen));
    assert_eq!(summary.cursors, [(STREAM.to_owned(), Some(seen))]);
}

#[tokio::test]
async fn what_is_not_acknowledged_in_time_is_told_and_comes_again() {
    let paper = Arc::default();
    let (ended, recorder) = run_with(Manner::Miserly, 20, &paper).await;
    assert_eq!((ended.unwrap().unacknowledged, cursor(&paper)), (20, None));
    assert!(paper.0.lock().unwrap().accounts.is_empty());
    recorder.give();
    assert_eq!(cursor(&paper), None, "a run that has ended writes no more");
}

#[tokio::test]
async fn the_next_run_goes_on_with_the_cursor_of_the_last() {
    let paper = Arc::default();
    run_with(Manner::Prompt, 20, &paper).await.0.unwrap();
    assert_eq!(cursor(&paper), Some(20));
    let mut writer = Writer::new(1);
    let mut script = Script::new([writer.commit(25)]);
    let recorder = Recorder::new(1, Manner::Prompt);
    run(options(keys([&writer])), &mut script, &recorder, &paper).await.unwrap();
    assert_eq!(cursor(&paper), Some(25));
}

#[tokio::test]
async fn who_keeps_the_places_of_what_counts_gets_so_much_and_not_one_event_more() {
    let (mut writers, paper) = ([0, 1, 2].map(Writer::new), Arc::<Paper>::default());
    let frames: Vec<_> = (1..=100).map(|seq| writers[seq as usize % 3].commit(seq)).collect();
    // Even numbers count, and the tenth of them is the last event that there is room for.
    let (recorder, usual) = (Recorder::new(20, Manner::Frugal), options(keys(&writers)));
    let limits = FlowLimits { max_events: 10, ..usual.limits };
    let drain_timeout = Duration::from_secs(1 << 20);
    let options = Options { limits, drain_timeout, ..usual };
    let summary = run(options, &mut Script::new(frames), &recorder, &paper).await.unwrap();
    let even = recorder.seen().iter().filter(|seen| seen.seq.is_multiple_of(2)).count();
    assert_eq!(even, 10);
    assert_eq!((summary.unacknowledged, cursor(&paper)), (0, Some(recorder.seen().len() as u64)));
}
