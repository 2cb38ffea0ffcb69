//! Accounts that the stream calls inactive, and the answers of their own servers.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use verify::sync::{AccountKey, SyncState};

use super::super::jobs::Job;
use super::super::queue::WorkerMessage;
use super::super::*;
use super::support::*;
use super::test_worker::TestWorker;

/// The servers of all accounts: they say whether an account is active, or do not answer.
#[derive(Debug)]
struct Servers {
    answer: Mutex<Option<bool>>,
    lookups: AtomicUsize,
}

impl Servers {
    fn new(answer: Option<bool>) -> Arc<Self> {
        Arc::new(Self { answer: Mutex::new(answer), lookups: AtomicUsize::new(0) })
    }

    fn lookups(&self) -> usize {
        self.lookups.load(Relaxed)
    }
}

impl StatusProvider for Arc<Servers> {
    fn look_up<'a>(&'a self, _: &'a str) -> StatusLookup<'a> {
        self.lookups.fetch_add(1, Relaxed);
        let answer = self.answer.lock().unwrap().ok_or(StatusError::NoHost);
        Box::pin(async move { answer })
    }
}

fn options_with(keys: Arc<dyn KeyProvider>, servers: &Arc<Servers>) -> Options {
    Options { statuses: Some(Arc::new(servers.clone())), ..options(keys) }
}

/// A commit, the claim that its account is inactive, and two commits.
fn claim(writer: &mut Writer) -> Script {
    let commits = [writer.commit(1), writer.account(2, false), writer.commit(3), writer.commit(4)];
    Script::new(commits)
}

#[test]
fn a_commit_right_after_a_deactivation_is_not_verified_with_it() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.account(2, false), writer.commit(3)]);
    let delivered = worker.recorder.of(&writer);
    assert_eq!(delivered, [(1, "verified"), (2, "unchecked")], "the third awaits the status");
}

#[tokio::test]
async fn a_claim_that_the_accounts_server_denies_mutes_nothing() {
    let (mut writer, servers) = (Writer::new(0), Servers::new(Some(true)));
    let options = options_with(keys([&writer]), &servers);
    let (recorder, journal) = (Recorder::new(4, AckMode::Immediate), Arc::<TestJournal>::default());
    run(options, claim(&mut writer), &recorder, &journal).await.unwrap();
    let expected = [(1, "verified"), (2, "unchecked"), (3, "verified"), (4, "verified")];
    assert_eq!((recorder.of(&writer), servers.lookups()), (expected.to_vec(), 1));
    assert!(journal.0.lock().unwrap().accounts[&*writer.did].is_active);
}

#[tokio::test]
async fn a_claim_that_no_server_confirms_mutes_nothing_and_is_reported() {
    let (writer, servers) = (Writer::new(0), Servers::new(None));
    let with_servers = options_with(keys([&writer]), &servers);
    for options in [with_servers, options(keys([&writer]))] {
        let (recorder, journal) = (Recorder::new(5, AckMode::Immediate), Arc::default());
        run(options, claim(&mut Writer::new(0)), &recorder, &journal).await.unwrap();
        let mut codes: Vec<_> = recorder.of(&writer).iter().map(|(_, code)| *code).collect();
        codes.sort_unstable();
        let expected = ["status-not-confirmed", "unchecked", "verified", "verified", "verified"];
        assert_eq!(codes, expected);
    }
    assert_eq!(servers.lookups(), 1);
}

#[tokio::test]
async fn an_inactive_account_is_ignored_from_its_event_on_until_it_is_active_again() {
    let (mut writer, servers) = (Writer::new(0), Servers::new(Some(false)));
    let options = options_with(keys([&writer]), &servers);
    let frames = vec![
        writer.commit(1),
        writer.account(2, false),
        writer.commit(3),
        writer.commit(4),
        writer.account(5, true),
        writer.commit(6),
        writer.commit(7),
    ];
    let (recorder, journal) = (Recorder::new(7, AckMode::Immediate), Arc::default());
    run(options, Script::new(frames), &recorder, &journal).await.unwrap();
    let expected = [
        (1, "verified"),
        (2, "unchecked"),
        (3, "event/inactive"),
        (4, "event/inactive"),
        (5, "unchecked"),
        (6, "verified/broken"),
        (7, "verified/unmended"),
    ];
    assert_eq!((recorder.of(&writer), servers.lookups()), (expected.to_vec(), 1));
}

#[tokio::test]
async fn an_inactive_account_is_journaled() {
    let mut writer = Writer::new(0);
    let keys = keys([&writer]);
    let frames = vec![writer.commit(1), writer.account(2, false)];
    let (recorder, journal) = (Recorder::new(2, AckMode::Immediate), Arc::<TestJournal>::default());
    run(options(keys), Script::new(frames), &recorder, &journal).await.unwrap();
    let account = journal.0.lock().unwrap().accounts[&*writer.did];
    assert!(!account.is_active && account.head.is_some());
}

#[tokio::test]
async fn nothing_is_journaled_about_accounts_without_a_commit() {
    let (writers, servers) = ((0..5).map(Writer::new), Servers::new(Some(false)));
    let frames = (1..).zip(writers).map(|(seq, writer)| writer.account(seq, false));
    let (recorder, journal) = (Recorder::new(5, AckMode::Immediate), Arc::<TestJournal>::default());
    run(options_with(keys([]), &servers), Script::new(frames), &recorder, &journal).await.unwrap();
    let content = journal.0.lock().unwrap();
    assert_eq!((content.cursors[STREAM], content.accounts.len()), (5, 0));
    assert_eq!(servers.lookups(), 0);
    assert!(recorder.events().iter().all(|event| event.code == "unchecked"), "nor refused");
}

/// Servers that accept a request and never answer.
#[derive(Debug)]
struct Silent;

impl StatusProvider for Silent {
    fn look_up<'a>(&'a self, _: &'a str) -> StatusLookup<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn commits_that_await_a_status_are_bounded_and_then_count_as_signed() {
    let by_number = FlowLimits { max_account_events: 1, ..FlowLimits::default() };
    let by_time = FlowLimits { max_hold: Duration::from_millis(300), ..FlowLimits::default() };
    for limits in [by_number, by_time] {
        let mut writer = Writer::new(0);
        let statuses: Option<Arc<dyn StatusProvider>> = Some(Arc::new(Silent));
        let options = Options { limits, statuses, ..options(keys([&writer])) };
        let (recorder, journal) = (Recorder::new(5, AckMode::Immediate), Arc::default());
        run(options, claim(&mut writer), &recorder, &journal).await.unwrap();
        let codes = recorder.of(&writer).into_iter().filter(|(_, code)| *code == "verified");
        assert_eq!(codes.map(|(seq, _)| seq).collect::<Vec<_>>(), [1, 3, 4]);
    }
}

#[tokio::test]
async fn a_stop_leaves_events_that_await_a_status_to_the_next_run() {
    let mut writer = Writer::new(0);
    let statuses: Option<Arc<dyn StatusProvider>> = Some(Arc::new(Silent));
    let stop_timeout = Duration::MAX;
    let options = Options { stop_timeout, statuses, ..options(keys([&writer])) };
    let (recorder, journal) = (Recorder::new(2, AckMode::Immediate), Arc::<TestJournal>::default());
    let ended = run(options, claim(&mut writer), &recorder, &journal).await.unwrap();
    assert_eq!((ended.unacknowledged, journal.cursor(STREAM).unwrap()), (2, Some(2)));
}

#[test]
fn an_account_that_its_server_calls_active_is_not_asked_for_again_at_once() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.partition.config.resyncs = false;
    worker.receive([writer.commit(1), writer.account(2, false), writer.commit(3)]);
    let Ok(Job::LookUpStatus { account, .. }) = worker.jobs.try_recv() else { panic!("no lookup") };
    worker.partition.handle(WorkerMessage::StatusLookedUp(account, Ok(true))).unwrap();
    worker.process();
    worker.receive([writer.account(4, false), writer.commit(5)]);
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(5, "verified")));
    assert!(worker.jobs.try_recv().is_err());
}

#[test]
fn the_repository_of_an_account_that_is_active_again_is_fetched_before_its_next_event() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.account(2, false)]);
    assert_eq!(worker.jobs(), []);
    worker.receive([writer.account(3, true), writer.commit(4)]);
    let rev = worker.jobs();
    assert_eq!(rev.len(), 1, "once");
    assert_eq!(worker.journaled(&writer), Some(SyncState::Desynchronized), "after a kill too");
    assert_eq!(worker.recorder.of(&writer).len(), 3);
    worker.resynced(&writer, Some(writer.head()));
    let expected = [(RESYNCED, "resynced"), (4, "event/stale-rev")];
    assert_eq!(worker.recorder.of(&writer)[3..], expected);
    assert_eq!(worker.journaled(&writer), Some(SyncState::Synchronized));
    worker.receive([writer.account(5, true), writer.commit(6)]);
    assert_eq!(worker.jobs(), [], "it was active");
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(6, "verified")));
}

#[test]
fn an_account_that_is_active_again_is_fetched_by_the_next_run_if_this_one_ends() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.account(2, false)]);
    worker.partition.start_draining();
    worker.receive([writer.account(3, true)]);
    assert_eq!(worker.jobs(), []);
    assert_eq!(worker.journaled(&writer), Some(SyncState::Desynchronized));
}

#[test]
fn an_account_whose_commit_shows_that_it_is_active_again_is_fetched() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.account(2, false), writer.commit(3)]);
    let Ok(Job::LookUpStatus { account, .. }) = worker.jobs.try_recv() else { panic!("no lookup") };
    worker.partition.handle(WorkerMessage::StatusLookedUp(account, Ok(true))).unwrap();
    worker.process();
    assert_eq!(worker.jobs().len(), 1);
    assert_eq!(worker.journaled(&writer), Some(SyncState::Desynchronized));
    assert_eq!(worker.recorder.of(&writer).len(), 2, "the commit awaits the repository");
    worker.resynced(&writer, Some(writer.head()));
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(3, "event/stale-rev")));
}

#[test]
fn an_account_that_was_limited_although_active_is_fetched_when_that_begins_and_ends() {
    for status in ["throttled", "desynchronized", "of tomorrow"] {
        let mut writer = Writer::new(0);
        let mut worker = TestWorker::new(&[&writer]);
        worker.receive([writer.commit(1), writer.limited(2, status)]);
        assert_eq!(worker.jobs().len(), 1, "{status}");
        worker.resynced(&writer, Some(writer.head()));
        worker.receive([writer.account(3, true)]);
        assert_eq!(worker.jobs().len(), 1, "{status} ends");
        worker.resynced(&writer, Some(writer.head()));
        worker.receive([writer.account(4, true)]);
        assert_eq!(worker.jobs(), []);
    }
}

#[test]
fn a_claim_that_an_unknown_account_is_active_fetches_nothing() {
    let writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.account(1, false), writer.account(2, true), writer.limited(3, "x")]);
    assert_eq!((worker.jobs(), worker.journaled(&writer)), (vec![], None));
}

#[test]
fn an_account_whose_resync_fails_stays_desynchronized_whatever_asked_for_it() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1)]);
    let (account, did) = (worker.hasher.hash(Some(&writer.did)), writer.did.clone().into());
    worker.partition.handle(WorkerMessage::Desynchronized(account, did)).unwrap();
    assert_eq!(worker.jobs().len(), 1);
    worker.resynced(&writer, None);
    assert_eq!(worker.journaled(&writer), Some(SyncState::Desynchronized));
    worker.receive([writer.commit(2)]);
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(2, "verified/unmended")));
    assert_eq!(worker.jobs().len(), 1, "its next event starts another");
}

/// Knows an account as one of another host, and another not at all.
struct OtherHosts {
    elsewhere: String,
    invalidated: Mutex<Vec<String>>,
}

impl KeyProvider for Arc<OtherHosts> {
    fn cached(&self, did: &str) -> AccountKey {
        if did == self.elsewhere { AccountKey::OtherHost } else { AccountKey::Unknown }
    }

    fn look_up<'a>(&'a self, did: &'a str, _: bool) -> KeyLookup<'a> {
        let key = self.cached(did);
        Box::pin(
            async move { if key == AccountKey::Unknown { Err(KeyError::NoKey) } else { Ok(key) } },
        )
    }

    fn invalidate(&self, did: &str) {
        self.invalidated.lock().unwrap().push(did.to_owned());
    }

    fn checks_host(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_server_cannot_speak_for_accounts_of_another() {
    let (elsewhere, unknown) = (Writer::new(0), Writer::new(1));
    let invalidated = Mutex::default();
    let keys = Arc::new(OtherHosts { elsewhere: elsewhere.did.clone(), invalidated });
    let frames = [elsewhere.account(1, false), elsewhere.identity(2), unknown.account(3, false)];
    let (recorder, journal) = (Recorder::new(3, AckMode::Immediate), Arc::<TestJournal>::default());
    run(options(Arc::new(keys.clone())), Script::new(frames), &recorder, &journal).await.unwrap();
    assert_eq!(recorder.of(&elsewhere), [(1, "event/host"), (2, "event/host")]);
    assert_eq!(recorder.of(&unknown), [(3, "signature/no-key")]);
    assert!(journal.0.lock().unwrap().accounts.is_empty());
    assert!(keys.invalidated.lock().unwrap().is_empty());
}
