//! Keys that are unknown, stale or unavailable.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crypto::CompressedKey;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use verify::sync::{AccountKey, MemoryState};

use super::super::*;
use super::support::*;

/// A key directory whose lookups need a permit each.
struct Directory {
    cached: Mutex<HashMap<String, CompressedKey>>,
    current: Mutex<HashMap<String, CompressedKey>>,
    permits: Semaphore,
    /// The lookups: account, and whether to refresh.
    lookups: Mutex<Vec<(String, bool)>>,
    invalidated: Mutex<Vec<String>>,
}

impl Directory {
    fn new<'w>(writers: impl IntoIterator<Item = &'w Writer>, permits: usize) -> Arc<Self> {
        let current = writers.into_iter().map(|writer| (writer.did.clone(), writer.key()));
        let current = Mutex::new(current.collect());
        let (cached, lookups, invalidated) = Default::default();
        Arc::new(Self { cached, current, permits: Semaphore::new(permits), lookups, invalidated })
    }

    /// Caches all current keys.
    fn cache_all(&self) {
        self.cached.lock().unwrap().clone_from(&self.current.lock().unwrap());
    }

    fn lookups(&self) -> Vec<(String, bool)> {
        self.lookups.lock().unwrap().clone()
    }
}

impl KeyProvider for Arc<Directory> {
    fn cached(&self, did: &str) -> AccountKey {
        self.cached.lock().unwrap().get(did).copied().into()
    }

    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a> {
        self.lookups.lock().unwrap().push((did.to_owned(), refresh));
        Box::pin(async move {
            self.permits.acquire().await.unwrap().forget();
            let key = self.current.lock().unwrap().get(did).copied();
            let key = key.ok_or(KeyError::NoKey)?;
            self.cached.lock().unwrap().insert(did.to_owned(), key);
            Ok(AccountKey::Known(key))
        })
    }

    fn invalidate(&self, did: &str) {
        self.invalidated.lock().unwrap().push(did.to_owned());
    }
}

fn options_with(directory: &Arc<Directory>) -> Options {
    options(Arc::new(directory.clone()))
}

#[tokio::test]
async fn an_account_awaits_its_key_in_order_and_others_continue() {
    let (mut unknown, mut known) = (Writer::new(0), Writer::new(1));
    let directory = Directory::new([&unknown, &known], 0);
    directory.cache_all();
    directory.cached.lock().unwrap().remove(&unknown.did);
    let mut frames = Vec::new();
    for seq in 1..=50 {
        frames.push(unknown.commit(2 * seq - 1));
        frames.push(known.commit(2 * seq));
    }
    let (recorder, journal) =
        (Recorder::new(100, AckMode::Immediate), Arc::<TestJournal>::default());
    let script = Script::new(frames);
    let permits = async {
        recorded(&recorder, 50).await;
        assert_eq!(recorder.of(&unknown), []);
        assert_eq!(journal.cursor(STREAM).unwrap(), Some(0), "the first event is still in flight");
        directory.permits.add_permits(1);
    };
    let run = run(options_with(&directory), script, &recorder, &journal);
    tokio::join!(run, permits).0.unwrap();
    let of = |first: u64| (0..50).map(|at| (first + 2 * at, "verified")).collect::<Vec<_>>();
    assert_eq!((recorder.of(&unknown), recorder.of(&known)), (of(1), of(2)));
    assert_eq!(directory.lookups(), [(unknown.did.clone(), false)]);
    assert_eq!(journal.cursor(STREAM).unwrap(), Some(100));
}

#[tokio::test]
async fn events_without_a_key_are_delivered_with_the_reason() {
    let mut unknown = Writer::new(0);
    let directory = Directory::new([], 100);
    let frames: Vec<_> = (1..=3).map(|seq| unknown.commit(seq)).collect();
    let (recorder, journal) = (Recorder::new(3, AckMode::Immediate), Arc::<TestJournal>::default());
    run(options_with(&directory), Script::new(frames), &recorder, &journal).await.unwrap();
    assert_eq!(recorder.of(&unknown), [1, 2, 3].map(|seq| (seq, "signature/no-key")));
    assert!(journal.0.lock().unwrap().accounts.is_empty());
}

#[tokio::test]
async fn a_rotated_key_is_looked_up_once_and_no_event_is_rejected_for_it() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 100);
    directory.cache_all();
    let mut frames = vec![writer.commit(1), writer.commit(2)];
    writer.rotate();
    frames.extend([writer.commit(3), writer.commit(4), writer.commit(5)]);
    directory.current.lock().unwrap().insert(writer.did.clone(), writer.key());
    let (recorder, journal) = (Recorder::new(5, AckMode::Immediate), Arc::default());
    run(options_with(&directory), Script::new(frames), &recorder, &journal).await.unwrap();
    assert_eq!(recorder.of(&writer), [1, 2, 3, 4, 5].map(|seq| (seq, "verified")));
    assert_eq!(directory.lookups(), [(writer.did.clone(), true)]);
}

#[tokio::test]
async fn a_key_just_looked_up_is_refreshed_if_it_does_not_verify() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 1);
    writer.rotate();
    let (recorder, journal) = (Recorder::new(2, AckMode::Immediate), Arc::default());
    let script = Script::new([writer.commit(1), writer.commit(2)]);
    let rotation = async {
        while directory.lookups().len() < 2 {
            tokio::task::yield_now().await;
        }
        directory.current.lock().unwrap().insert(writer.did.clone(), writer.key());
        directory.permits.add_permits(1);
    };
    let run = run(options_with(&directory), script, &recorder, &journal);
    tokio::join!(run, rotation).0.unwrap();
    assert_eq!(recorder.of(&writer), [1, 2].map(|seq| (seq, "verified")));
    assert_eq!(directory.lookups(), [false, true].map(|refresh| (writer.did.clone(), refresh)));
}

#[tokio::test]
async fn a_wrong_signature_is_rejected_after_the_key_was_refreshed() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 100);
    directory.cache_all();
    writer.rotate();
    let frames = vec![writer.commit(1)];
    let (recorder, journal) = (Recorder::new(1, AckMode::Immediate), Arc::default());
    run(options_with(&directory), Script::new(frames), &recorder, &journal).await.unwrap();
    assert_eq!(recorder.of(&writer), [(1, "signature/wrong")]);
    assert_eq!(directory.lookups(), [(writer.did.clone(), true)]);
}

#[tokio::test]
async fn a_forged_event_between_valid_ones_causes_no_lookup() {
    let (mut writer, mut forger) = (Writer::new(0), Writer::new(0));
    let directory = Directory::new([&writer], 0);
    directory.cache_all();
    forger.rotate();
    let frames = vec![writer.commit(1), forger.skip().commit(2), writer.commit(3)];
    let (recorder, journal) = (Recorder::new(3, AckMode::Immediate), Arc::default());
    run(options_with(&directory), Script::new(frames), &recorder, &journal).await.unwrap();
    let expected = [(1, "verified"), (2, "signature/wrong"), (3, "verified")];
    assert_eq!((recorder.of(&writer), directory.lookups()), (expected.to_vec(), vec![]));
}

#[tokio::test]
async fn an_identity_event_invalidates_the_key_when_it_is_delivered() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 100);
    directory.cache_all();
    let frames = vec![writer.commit(1), writer.identity(2), writer.commit(3)];
    let (recorder, journal) = (Recorder::new(3, AckMode::Immediate), Arc::default());
    run(options_with(&directory), Script::new(frames), &recorder, &journal).await.unwrap();
    let expected = [(1, "verified"), (2, "unchecked"), (3, "verified")];
    assert_eq!(recorder.of(&writer), expected);
    assert_eq!(*directory.invalidated.lock().unwrap(), [writer.did.clone()]);
}

#[tokio::test]
async fn an_account_with_too_many_events_does_not_await_its_host_and_loses_none() {
    let mut unknown = Writer::at_host(0);
    let directory = Directory::new([&unknown], 0);
    let frames: Vec<_> = (1..=12).map(|seq| unknown.commit(seq)).collect();
    let limits = FlowLimits { max_account_events: 4, ..FlowLimits::default() };
    let options = Options { limits, ..options_with(&directory) };
    let (recorder, journal) = (Recorder::new(12, AckMode::Immediate), Arc::default());
    run(options, Script::new(frames), &recorder, &journal).await.unwrap();
    let expected: Vec<_> = (1..=12).map(|seq| (seq, "signature/no-key")).collect();
    assert_eq!(recorder.of(&unknown), expected);
}

#[tokio::test]
async fn events_await_the_directory_beyond_the_limits_of_hosts() {
    let (mut unknown, mut last) = (Writer::new(0), Writer::new(1));
    let directory = Directory::new([&unknown, &last], 0);
    directory.cached.lock().unwrap().insert(last.did.clone(), last.key());
    let frames: Vec<_> = (1..=12).map(|seq| unknown.commit(seq)).chain([last.commit(13)]).collect();
    let limits =
        FlowLimits { max_account_events: 4, max_host_key_events: 4, ..FlowLimits::default() };
    let options = Options { limits, workers: 1, ..options_with(&directory) };
    let (recorder, journal) = (Recorder::new(13, AckMode::Immediate), Arc::default());
    let permits = async {
        recorded(&recorder, 1).await;
        assert_eq!(recorder.of(&unknown), []);
        directory.permits.add_permits(1);
    };
    let run = run(options, Script::new(frames), &recorder, &journal);
    tokio::join!(run, permits).0.unwrap();
    let expected: Vec<_> = (1..=12).map(|seq| (seq, "verified")).collect();
    assert_eq!(recorder.of(&unknown), expected);
}

/// Answers lookups in order, with the keys as they were when they were asked for; `None` never.
struct Answers {
    keys: Mutex<VecDeque<Option<CompressedKey>>>,
    /// The account whose key is cached, and its key.
    cached: (String, CompressedKey),
    permits: Semaphore,
    /// For every lookup, whether it was a refresh.
    lookups: Mutex<Vec<bool>>,
}

impl Answers {
    fn new(
        keys: impl IntoIterator<Item = Option<CompressedKey>>,
        cached: &Writer,
        permits: usize,
    ) -> Arc<Self> {
        let (keys, permits) = (Mutex::new(keys.into_iter().collect()), Semaphore::new(permits));
        let cached = (cached.did.clone(), cached.key());
        Arc::new(Self { keys, cached, permits, lookups: Mutex::default() })
    }
}

impl KeyProvider for Arc<Answers> {
    fn cached(&self, did: &str) -> AccountKey {
        (did == self.cached.0).then_some(self.cached.1).into()
    }

    fn look_up<'a>(&'a self, _: &'a str, refresh: bool) -> KeyLookup<'a> {
        self.lookups.lock().unwrap().push(refresh);
        let key = self.keys.lock().unwrap().pop_front().expect("no further lookup");
        Box::pin(async move {
            self.permits.acquire().await.unwrap().forget();
            match key {
                Some(key) => Ok(AccountKey::Known(key)),
                None => std::future::pending().await,
            }
        })
    }

    fn invalidate(&self, _: &str) {}
}

/// The codes of an account's events and whether its lookups were refreshes, when the first answer arrives after
/// all of these events.
async fn codes_after_a_late_answer(
    writer: &Writer,
    frames: Vec<Vec<u8>>,
    answers: Vec<Option<CompressedKey>>,
) -> (Vec<&'static str>, Vec<bool>) {
    let mut last = Writer::new(9);
    let (count, keys) = (frames.len() + 1, Answers::new(answers, &last, 0));
    let frames = frames.into_iter().chain([last.commit(100)]);
    let options = Options { workers: 1, ..options(Arc::new(keys.clone())) };
    let (recorder, journal) = (Recorder::new(count, AckMode::Immediate), Arc::default());
    let run = run(options, Script::new(frames), &recorder, &journal);
    let answer = async {
        recorded(&recorder, 1).await;
        assert_eq!(recorder.of(&last), [(100, "verified")]);
        keys.permits.add_permits(10);
    };
    tokio::join!(run, answer).0.unwrap();
    let lookups = keys.lookups.lock().unwrap().clone();
    (recorder.of(writer).into_iter().map(|(_, code)| code).collect(), lookups)
}

#[tokio::test]
async fn a_key_asked_for_before_an_identity_event_does_not_verify_an_event_after_it() {
    let (mut writer, mut rotated) = (Writer::new(0), Writer::new(0));
    rotated.rotate();
    let frames = vec![writer.commit(1), writer.commit(2), writer.identity(3), writer.commit(4)];
    let answers = [&writer, &rotated, &rotated].map(|asked| Some(asked.key()));
    let (codes, lookups) = codes_after_a_late_answer(&writer, frames, answers.to_vec()).await;
    assert_eq!(codes, ["verified", "verified", "unchecked", "signature/wrong"]);
    assert_eq!(lookups, [false, false, true]);
}

#[tokio::test]
async fn a_key_that_is_valid_from_an_identity_event_on_is_asked_for_after_it() {
    let mut writer = Writer::new(0);
    let mut answers = vec![Some(writer.key())];
    let mut frames = vec![writer.commit(1), writer.identity(2)];
    writer.rotate();
    answers.push(Some(writer.key()));
    frames.extend([writer.commit(3), writer.commit(4)]);
    let (codes, lookups) = codes_after_a_late_answer(&writer, frames, answers).await;
    assert_eq!(codes, ["verified", "unchecked", "verified", "verified"]);
    assert_eq!(lookups, [false, false]);
}

#[tokio::test]
async fn an_account_that_missed_an_event_for_want_of_its_key_is_desynchronized() {
    let (mut writer, cached) = (Writer::at_host(0), Writer::new(1));
    let key = Some(writer.key());
    let passed = ["signature/no-key", "unchecked"];
    for (answers, expected) in [
        (vec![None, key], [&passed[..], &["verified/unmended"]].concat()),
        (
            vec![key, None, key],
            [&["verified", "unchecked"], &passed[..], &["verified/broken"]].concat(),
        ),
    ] {
        // An `#identity` between any two commits: every one needs a lookup.
        let frames = (1..=expected.len() as u64).map(|seq| match seq % 2 {
            1 => writer.commit(seq),
            _ => writer.identity(seq),
        });
        let script = Script::new(frames);
        let keys = Answers::new(answers, &cached, 10);
        let limits = FlowLimits { max_key_wait: TIME_LIMIT, ..FlowLimits::default() };
        let options = Options { limits, ..options(Arc::new(keys)) };
        let (recorder, journal) =
            (Recorder::new(expected.len(), AckMode::Immediate), Arc::default());
        run(options, script, &recorder, &journal).await.unwrap();
        let codes: Vec<_> = recorder.of(&writer).into_iter().map(|(_, code)| code).collect();
        assert_eq!(codes, expected);
    }
}

/// Longer than a lookup that is answered at once.
const TIME_LIMIT: std::time::Duration = std::time::Duration::from_millis(500);

#[tokio::test]
async fn events_that_await_a_key_after_a_stop_are_left_to_the_next_run() {
    let (mut unknown, mut known) = (Writer::new(0), Writer::new(1));
    let directory = Directory::new([&unknown, &known], 0);
    directory.cache_all();
    directory.cached.lock().unwrap().remove(&unknown.did);
    let frames = vec![known.commit(1), unknown.commit(2), known.commit(3)];
    let stop_timeout = std::time::Duration::from_millis(200);
    let options = Options { stop_timeout, ..options_with(&directory) };
    let (recorder, journal) = (Recorder::new(2, AckMode::Immediate), Arc::<TestJournal>::default());
    let summary = run(options, Script::new(frames), &recorder, &journal).await.unwrap();
    assert_eq!((summary.delivered, summary.unacknowledged), (2, 1));
    assert_eq!(journal.cursor(STREAM).unwrap(), Some(1));
}

/// Reports an account as hosted elsewhere this many times, then its key.
struct Moving {
    key: CompressedKey,
    elsewhere: usize,
    lookups: Mutex<Vec<bool>>,
}

impl KeyProvider for Arc<Moving> {
    fn cached(&self, _: &str) -> AccountKey {
        AccountKey::Unknown
    }

    fn look_up<'a>(&'a self, _: &'a str, refresh: bool) -> KeyLookup<'a> {
        let mut lookups = self.lookups.lock().unwrap();
        lookups.push(refresh);
        let is_elsewhere = lookups.len() <= self.elsewhere;
        let key = if is_elsewhere { AccountKey::OtherHost } else { AccountKey::Known(self.key) };
        Box::pin(async move { Ok(key) })
    }

    fn invalidate(&self, _: &str) {}
}

#[tokio::test]
async fn an_account_of_another_server_is_rejected_after_a_second_lookup() {
    for (elsewhere, code) in [(1, "verified"), (2, "event/host")] {
        let (mut writer, journal) = (Writer::new(0), Arc::default());
        let lookups = Mutex::default();
        let keys = Arc::new(Moving { key: writer.key(), elsewhere, lookups });
        let (recorder, script) =
            (Recorder::new(1, AckMode::Immediate), Script::new([writer.commit(1)]));
        run(options(Arc::new(keys.clone())), script, &recorder, &journal).await.unwrap();
        assert_eq!(recorder.of(&writer), [(1, code)]);
        assert_eq!(*keys.lookups.lock().unwrap(), [false, true]);
    }
}

#[tokio::test]
async fn a_stop_awaits_the_keys_of_events_in_flight() {
    let (mut unknown, mut known) = (Writer::new(0), Writer::new(1));
    let directory = Directory::new([&unknown, &known], 0);
    directory.cache_all();
    directory.cached.lock().unwrap().remove(&unknown.did);
    let options = Options { workers: 1, stop_timeout: Duration::MAX, ..options_with(&directory) };
    let (recorder, journal) = (Recorder::new(1, AckMode::Immediate), Arc::<TestJournal>::default());
    let script = Script::new([unknown.commit(1), known.commit(2)]);
    let (firehose, states) = (firehose(options), |_| MemoryState::new([7; 16]));
    let (metrics, streams) = (firehose.metrics(), vec![(STREAM.to_owned(), None)]);
    let permit = async {
        recorded(&recorder, 1).await;
        sleep(Duration::from_millis(100)).await;
        assert_eq!(metrics.snapshot().awaiting_key, 1);
        directory.permits.add_permits(1);
    };
    let stop = recorder.stop();
    let run = firehose.run_source(script, streams, recorder.clone(), journal, states, stop);
    let ended = tokio::join!(run, permit).0.unwrap();
    assert_eq!((ended.unacknowledged, recorder.of(&unknown)), (0, vec![(1, "verified")]));
}
