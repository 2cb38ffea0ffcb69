//! KeyProvider that are not known, no longer true, or not to be had.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crypto::CompressedKey;
use tokio::sync::Semaphore;
use verify::sync::AccountKey;

use super::super::*;
use super::scene::*;

/// KeyProvider that are found out one permit at a time.
struct Directory {
    known: Mutex<HashMap<String, CompressedKey>>,
    truth: Mutex<HashMap<String, CompressedKey>>,
    permits: Semaphore,
    /// Whose key was asked for, and whether it was doubted.
    asked: Mutex<Vec<(String, bool)>>,
    forgotten: Mutex<Vec<String>>,
}

impl Directory {
    fn new<'w>(writers: impl IntoIterator<Item = &'w Writer>, permits: usize) -> Arc<Self> {
        let truth = writers.into_iter().map(|writer| (writer.did.clone(), writer.key()));
        let truth = Mutex::new(truth.collect());
        let (known, asked, forgotten) = Default::default();
        Arc::new(Self { known, truth, permits: Semaphore::new(permits), asked, forgotten })
    }

    /// Knows everything that is true now.
    fn learn(&self) {
        self.known.lock().unwrap().clone_from(&self.truth.lock().unwrap());
    }

    fn asked(&self) -> Vec<(String, bool)> {
        self.asked.lock().unwrap().clone()
    }
}

impl KeyProvider for Arc<Directory> {
    fn cached(&self, did: &str) -> AccountKey {
        self.known.lock().unwrap().get(did).copied().into()
    }

    fn look_up<'a>(&'a self, did: &'a str, is_doubted: bool) -> KeyLookup<'a> {
        self.asked.lock().unwrap().push((did.to_owned(), is_doubted));
        Box::pin(async move {
            self.permits.acquire().await.unwrap().forget();
            let found = self.truth.lock().unwrap().get(did).copied();
            let found = found.ok_or(KeyError::NoneNamed)?;
            self.known.lock().unwrap().insert(did.to_owned(), found);
            Ok(AccountKey::Known(found))
        })
    }

    fn invalidate(&self, did: &str) {
        self.forgotten.lock().unwrap().push(did.to_owned());
    }
}

fn options_with(directory: &Arc<Directory>) -> Options {
    options(Arc::new(directory.clone()))
}

/// Waits until the recorder has seen so many.
async fn seen(recorder: &Recorder, count: usize) {
    while recorder.seen().len() < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_account_waits_for_its_key_in_order_and_others_do_not_wait_for_it() {
    let (mut strange, mut known) = (Writer::new(0), Writer::new(1));
    let directory = Directory::new([&strange, &known], 0);
    directory.learn();
    directory.known.lock().unwrap().remove(&strange.did);
    let mut frames = Vec::new();
    for seq in 1..=50 {
        frames.push(strange.commit(2 * seq - 1));
        frames.push(known.commit(2 * seq));
    }
    let (recorder, paper) = (Recorder::new(100, Manner::Prompt), Arc::<Paper>::default());
    let mut script = Script::new(frames);
    let permits = async {
        seen(&recorder, 50).await;
        assert_eq!(recorder.of(&strange), []);
        assert!(paper.cursor(STREAM).unwrap().is_none(), "the first event is still under way");
        directory.permits.add_permits(1);
    };
    let run = run(options_with(&directory), &mut script, &recorder, &paper);
    tokio::join!(run, permits).0.unwrap();
    let of = |first: u64| (0..50).map(|at| (first + 2 * at, "verified")).collect::<Vec<_>>();
    assert_eq!((recorder.of(&strange), recorder.of(&known)), (of(1), of(2)));
    assert_eq!(directory.asked(), [(strange.did.clone(), false)]);
    assert_eq!(paper.cursor(STREAM).unwrap(), Some(100));
}

#[tokio::test]
async fn events_whose_key_is_not_to_be_had_are_handed_over_with_the_reason() {
    let mut strange = Writer::new(0);
    let directory = Directory::new([], 100);
    let frames: Vec<_> = (1..=3).map(|seq| strange.commit(seq)).collect();
    let (recorder, paper) = (Recorder::new(3, Manner::Prompt), Arc::<Paper>::default());
    run(options_with(&directory), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    assert_eq!(recorder.of(&strange), [1, 2, 3].map(|seq| (seq, "signature/no-key")));
    assert!(paper.0.lock().unwrap().accounts.is_empty());
}

#[tokio::test]
async fn a_rotated_key_is_asked_for_once_and_no_event_is_refused_for_it() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 100);
    directory.learn();
    let mut frames = vec![writer.commit(1), writer.commit(2)];
    writer.rotate();
    frames.extend([writer.commit(3), writer.commit(4), writer.commit(5)]);
    directory.truth.lock().unwrap().insert(writer.did.clone(), writer.key());
    let (recorder, paper) = (Recorder::new(5, Manner::Prompt), Arc::default());
    run(options_with(&directory), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    assert_eq!(recorder.of(&writer), [1, 2, 3, 4, 5].map(|seq| (seq, "verified")));
    assert_eq!(directory.asked(), [(writer.did.clone(), true)]);
}

#[tokio::test]
async fn a_key_that_was_just_found_is_asked_for_again_if_it_did_not_sign() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 1);
    writer.rotate();
    let (recorder, paper) = (Recorder::new(2, Manner::Prompt), Arc::default());
    let mut script = Script::new([writer.commit(1), writer.commit(2)]);
    let learns = async {
        while directory.asked().len() < 2 {
            tokio::task::yield_now().await;
        }
        directory.truth.lock().unwrap().insert(writer.did.clone(), writer.key());
        directory.permits.add_permits(1);
    };
    let run = run(options_with(&directory), &mut script, &recorder, &paper);
    tokio::join!(run, learns).0.unwrap();
    assert_eq!(recorder.of(&writer), [1, 2].map(|seq| (seq, "verified")));
    assert_eq!(directory.asked(), [false, true].map(|is_doubted| (writer.did.clone(), is_doubted)));
}

#[tokio::test]
async fn an_event_that_nobody_signed_is_refused_when_the_key_was_asked_for_again() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 100);
    directory.learn();
    writer.rotate();
    let frames = vec![writer.commit(1)];
    let (recorder, paper) = (Recorder::new(1, Manner::Prompt), Arc::default());
    run(options_with(&directory), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    assert_eq!(recorder.of(&writer), [(1, "signature/wrong")]);
    assert_eq!(directory.asked(), [(writer.did.clone(), true)]);
}

#[tokio::test]
async fn a_forged_event_between_sound_ones_makes_nobody_ask() {
    let (mut writer, mut forger) = (Writer::new(0), Writer::new(0));
    let directory = Directory::new([&writer], 0);
    directory.learn();
    forger.rotate();
    let frames = vec![writer.commit(1), forger.skip().commit(2), writer.commit(3)];
    let (recorder, paper) = (Recorder::new(3, Manner::Prompt), Arc::default());
    run(options_with(&directory), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    let expected = [(1, "verified"), (2, "signature/wrong"), (3, "verified")];
    assert_eq!((recorder.of(&writer), directory.asked()), (expected.to_vec(), vec![]));
}

#[tokio::test]
async fn what_an_identity_event_says_is_forgotten_when_it_is_handed_over() {
    let mut writer = Writer::new(0);
    let directory = Directory::new([&writer], 100);
    directory.learn();
    let frames = vec![writer.commit(1), writer.identity(2), writer.commit(3)];
    let (recorder, paper) = (Recorder::new(3, Manner::Prompt), Arc::default());
    run(options_with(&directory), &mut Script::new(frames), &recorder, &paper).await.unwrap();
    let expected = [(1, "verified"), (2, "unchecked"), (3, "verified")];
    assert_eq!(recorder.of(&writer), expected);
    assert_eq!(*directory.forgotten.lock().unwrap(), [writer.did.clone()]);
}

#[tokio::test]
async fn an_account_with_too_many_events_does_not_wait_for_its_key() {
    let mut strange = Writer::new(0);
    let directory = Directory::new([&strange], 0);
    let frames: Vec<_> = (1..=5).map(|seq| strange.commit(seq)).collect();
    let limits = FlowLimits { max_account_events: 4, ..FlowLimits::default() };
    let options = Options { limits, ..options_with(&directory) };
    let (recorder, paper) = (Recorder::new(5, Manner::Prompt), Arc::default());
    run(options, &mut Script::new(frames), &recorder, &paper).await.unwrap();
    assert_eq!(recorder.of(&strange), [1, 2, 3, 4, 5].map(|seq| (seq, "signature/no-key")));
}

#[tokio::test]
async fn who_stops_leaves_what_waits_for_a_key_to_the_next_run() {
    let (mut strange, mut known) = (Writer::new(0), Writer::new(1));
    let directory = Directory::new([&strange, &known], 0);
    directory.learn();
    directory.known.lock().unwrap().remove(&strange.did);
    let frames = vec![known.commit(1), strange.commit(2), known.commit(3)];
    let drain_timeout = std::time::Duration::from_millis(20);
    let options = Options { drain_timeout, ..options_with(&directory) };
    let (recorder, paper) = (Recorder::new(2, Manner::Prompt), Arc::<Paper>::default());
    let summary = run(options, &mut Script::new(frames), &recorder, &paper).await.unwrap();
    assert_eq!((summary.delivered, summary.unacknowledged), (2, 1));
    assert_eq!(paper.cursor(STREAM).unwrap(), Some(1));
}

/// Finds that an account is hosted elsewhere so often, and then its key.
struct Moving {
    key: CompressedKey,
    elsewhere: usize,
    asked: Mutex<Vec<bool>>,
}

impl KeyProvider for Arc<Moving> {
    fn cached(&self, _: &str) -> AccountKey {
        AccountKey::Unknown
    }

    fn look_up<'a>(&'a self, _: &'a str, is_doubted: bool) -> KeyLookup<'a> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(is_doubted);
        let is_elsewhere = asked.len() <= self.elsewhere;
        let found = if is_elsewhere { AccountKey::OtherHost } else { AccountKey::Known(self.key) };
        Box::pin(async move { Ok(found) })
    }

    fn invalidate(&self, _: &str) {}
}

#[tokio::test]
async fn an_account_of_another_server_is_refused_when_it_was_asked_for_again() {
    for (elsewhere, code) in [(1, "verified"), (2, "event/host")] {
        let (mut writer, paper) = (Writer::new(0), Arc::default());
        let asked = Mutex::default();
        let keys = Arc::new(Moving { key: writer.key(), elsewhere, asked });
        let (recorder, mut script) =
            (Recorder::new(1, Manner::Prompt), Script::new([writer.commit(1)]));
        run(options(Arc::new(keys.clone())), &mut script, &recorder, &paper).await.unwrap();
        assert_eq!(recorder.of(&writer), [(1, code)]);
        assert_eq!(*keys.asked.lock().unwrap(), [false, true]);
    }
}
