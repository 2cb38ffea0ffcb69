//! Both versions of Jetstream: dictionaries, options, cursors, hosts.

use std::time::Duration;

use atproto::syntax::DidBuf;
use net::egress::EgressPolicy;
use net::hosts::{HostId, Jitter};
use net::http::Limits;
use net::jetstream::{
    Client, Compression, Event, EventBody, EventKind, Filter, FilterError, JetstreamError,
    JetstreamItem, MIN_TIME_CURSOR, Notice, Options, StartFrom, Unrecognized, Upstream, Version,
};
use net::websocket::SocketError;
use simnet::servers::{
    AccountStatus, EventKind as SentKind, Fault, FaultSchedule, Server, Simulation, Spec,
    V1_DICTIONARY_ID, V2_DICTIONARY_ID,
};

use crate::setup::{self, BACKOFF, dialer, url};

const JETSTREAM: Server = Server::Jetstream(0);
const OTHER: Server = Server::Jetstream(1);
const BOTH: [Version; 2] = [Version::V1, Version::V2];

fn sim(change: impl FnOnce(&mut Spec)) -> Simulation {
    setup::sim(change)
}

fn options(version: Version) -> Options {
    let mut options = Options::default();
    options.version = version;
    options.start = StartFrom::Oldest;
    options.backoff = BACKOFF;
    options.socket = setup::options().socket;
    options
}

fn compressed(version: Version, compression: Compression) -> Options {
    let mut options = options(version);
    options.compression = compression;
    options
}

fn try_client(
    sim: &Simulation,
    servers: &[(Server, Option<u64>)],
    wanted: Filter,
    options: Options,
) -> Result<Client, FilterError> {
    let origin = |(server, cursor): &(Server, Option<u64>)| Upstream {
        url: url(sim, *server, ""),
        cursor: *cursor,
    };
    let origins: Vec<Upstream> = servers.iter().map(origin).collect();
    Client::new(dialer(EgressPolicy::Loopback), &origins, wanted, options, Jitter::seeded(7))
}

fn client(sim: &Simulation, options: Options) -> Client {
    try_client(sim, &[(JETSTREAM, None)], Filter::default(), options).expect("nothing wrong")
}

/// Everything that a client received.
#[derive(Debug, Default)]
struct Received {
    events: Vec<Event>,
    strange: Vec<Unrecognized>,
    notices: Vec<Notice>,
    failure: Option<JetstreamError>,
}

impl Received {
    async fn until(&mut self, client: &mut Client, mut is_enough: impl FnMut(&Self) -> bool) {
        while !is_enough(self) {
            let next = tokio::time::timeout(PATIENCE, client.next()).await;
            match next.unwrap_or_else(|_| panic!("nothing more came: {self:?}")) {
                Ok(JetstreamItem::Event(event)) => self.events.push(event),
                Ok(JetstreamItem::Unrecognized(strange)) => self.strange.push(strange),
                Ok(JetstreamItem::Notice(notice)) => self.notices.push(notice),
                Err(failure) => {
                    self.failure = Some(failure);
                    return;
                }
            }
        }
    }

    async fn events(&mut self, client: &mut Client, count: usize) {
        self.until(client, |received| received.events.len() >= count).await;
    }

    fn count(&self, is_such: impl Fn(&Notice) -> bool) -> usize {
        self.notices.iter().filter(|notice| is_such(notice)).count()
    }

    fn cursors(&self) -> Vec<Option<u64>> {
        let cursor = |notice: &Notice| match notice {
            Notice::Connected { cursor, .. } => Some(*cursor),
            _ => None,
        };
        self.notices.iter().filter_map(cursor).collect()
    }
}

/// The identity of an event: the account, the kind and the revision.
type Mark = (String, EventKind, String);

fn mark(event: &Event) -> Mark {
    let rev = match &event.body {
        EventBody::Commit(commit) => commit.rev.to_string(),
        EventBody::Sync(sync) => sync.rev.to_string(),
        _ => String::new(),
    };
    (event.did.as_str().to_owned(), event.kind(), rev)
}

fn marks(received: &Received) -> Vec<Mark> {
    received.events.iter().map(mark).collect()
}

/// The events that a reader without filters must receive.
fn sent(sim: &Simulation, version: Version) -> Vec<Mark> {
    let mut marks = Vec::new();
    for line in sim.sent_events(JETSTREAM) {
        let subject = line.subject;
        let kind = match subject.kind {
            SentKind::Commit => EventKind::Commit,
            SentKind::Identity => EventKind::Identity,
            SentKind::Account => EventKind::Account,
            SentKind::Sync if version == Version::V2 => EventKind::Sync,
            _ => continue,
        };
        let mark = (subject.did, kind, subject.rev);
        marks.extend(std::iter::repeat_n(mark, subject.jetstream_events as usize));
    }
    marks
}

async fn follow_to_the_end(sim: &Simulation, options: Options) -> Received {
    let (mut received, mut client) = (Received::default(), client(sim, options.clone()));
    received.events(&mut client, sent(sim, options.version).len()).await;
    received
}

fn assert_complete(sim: &Simulation, version: Version, received: &Received) {
    assert_eq!(marks(received), sent(sim, version));
    assert_eq!(sim.faults().unfired(), []);
}

/// A network in which events of every kind have happened.
fn colourful() -> Simulation {
    let sim = sim(|_| ());
    sim.set_account_status(0, AccountStatus::TakenDown);
    sim.set_account_status(0, AccountStatus::Active);
    sim.send_sync(1);
    sim.write_commits(10);
    sim
}

#[tokio::test]
async fn every_event_is_delivered_once_with_its_record() {
    for version in BOTH {
        let sim = colourful();
        let received = follow_to_the_end(&sim, options(version)).await;
        assert_complete(&sim, version, &received);
        let cursors: Vec<u64> = received.events.iter().map(|event| event.cursor).collect();
        assert!(cursors.is_sorted_by(|a, b| a < b));
        for event in &received.events {
            let EventBody::Commit(commit) = &event.body else { continue };
            let record = commit.record.as_ref().map(|record| record.get());
            assert_eq!(record.is_some(), commit.cid.is_some());
            assert!(record.is_none_or(|record| record.contains(commit.collection.as_str())));
        }
        let syncs = received.events.iter().filter(|event| event.kind() == EventKind::Sync);
        assert_eq!(syncs.count() > 0, version == Version::V2);
    }
}

#[tokio::test]
async fn messages_come_compressed_with_the_dictionary_of_the_host() {
    for (version, id) in [
        (Version::V1, Some(V1_DICTIONARY_ID)),
        (Version::V2, None),
        (Version::V2, Some(V2_DICTIONARY_ID)),
    ] {
        let sim = colourful();
        let options = compressed(version, Compression::Served(id));
        assert_complete(&sim, version, &follow_to_the_end(&sim, options).await);
        let dictionary = "/xrpc/network.bsky.jetstream.getZstdDictionary";
        assert_eq!(sim.request_counts(JETSTREAM)[dictionary], 1);
    }
}

async fn dictionary(sim: &Simulation, id: u32) -> Compression {
    let path = format!("/xrpc/network.bsky.jetstream.getZstdDictionary?id={id}");
    let client = dialer(EgressPolicy::Loopback).client().clone();
    let answer = client.get(&url(sim, JETSTREAM, &path), &Limits::DOCUMENT).await.unwrap();
    Compression::Given(answer.body.to_vec().into())
}

#[tokio::test]
async fn messages_come_compressed_with_a_dictionary_that_is_given() {
    for (version, id) in [(Version::V1, V1_DICTIONARY_ID), (Version::V2, V2_DICTIONARY_ID)] {
        let sim = colourful();
        let compression = dictionary(&sim, id).await;
        let options = compressed(version, compression);
        assert_complete(&sim, version, &follow_to_the_end(&sim, options).await);
    }
}

#[tokio::test]
async fn the_wrong_dictionary_is_an_error_that_names_the_right_one() {
    let sim = colourful();
    let compression = dictionary(&sim, V2_DICTIONARY_ID).await;
    let options = compressed(Version::V1, compression);
    let (mut received, mut client) = (Received::default(), client(&sim, options));
    received.until(&mut client, |_| false).await;
    let failure =
        JetstreamError::Dictionary { host: "localhost".to_owned(), needed: V1_DICTIONARY_ID };
    assert_eq!(received.failure, Some(failure));
}

#[tokio::test]
async fn a_dictionary_that_the_host_does_not_know_is_refused_for_good() {
    let sim = colourful();
    for compression in
        [dictionary(&sim, V1_DICTIONARY_ID).await, Compression::Served(Some(V1_DICTIONARY_ID))]
    {
        let options = compressed(Version::V2, compression);
        let (mut received, mut client) = (Received::default(), client(&sim, options));
        received.until(&mut client, |_| false).await;
        let Some(JetstreamError::NoHostLeft(error)) = received.failure else {
            panic!("{received:?}")
        };
        assert_eq!(error.name(), Some("UnknownZstdDictionary"));
    }
    let compression = Compression::Given(Vec::from("no dictionary").into());
    let options = compressed(Version::V2, compression);
    let error = try_client(&sim, &[(JETSTREAM, None)], Filter::default(), options).unwrap_err();
    assert_eq!(error, FilterError::NotADictionary);
}

/// This many accounts that are not in the network.
fn strangers(count: usize) -> Vec<DidBuf> {
    let did = |at| format!("did:web:stranger-{at}.example.com").parse().expect("a DID");
    (0..count).map(did).collect()
}

#[tokio::test]
async fn any_number_of_accounts_can_be_wanted_up_to_the_limit_of_the_protocol() {
    for (version, count) in BOTH.into_iter().flat_map(|version| [(version, 3), (version, 9_999)]) {
        let sim = colourful();
        let mut dids = strangers(count);
        let did: DidBuf = sim.account(2).did.parse().unwrap();
        dids.push(did.clone());
        let wanted = Filter { dids, ..Filter::default() };
        let servers = [(JETSTREAM, None)];
        let mut client = try_client(&sim, &servers, wanted, options(version)).unwrap();
        let mut expected = sent(&sim, version);
        expected.retain(|(sent, ..)| sent == did.as_str());
        let mut received = Received::default();
        received.events(&mut client, expected.len()).await;
        assert_eq!(marks(&received), expected);
    }
    let sim = sim(|_| ());
    let wanted = Filter { dids: strangers(10_001), ..Filter::default() };
    let error = try_client(&sim, &[(JETSTREAM, None)], wanted, options(Version::V1)).unwrap_err();
    assert_eq!(error, FilterError::Dids(10_001));
}

#[tokio::test]
async fn kinds_and_collections_are_chosen() {
    for version in BOTH {
        let sim = colourful();
        let collections = vec!["app.bsky.feed.*".to_owned()];
        let wanted = Filter { collections, ..Filter::default() };
        let mut client = try_client(&sim, &[(JETSTREAM, None)], wanted, options(version)).unwrap();
        let mut received = Received::default();
        // Another choice from the first event of another kind on.
        received
            .until(&mut client, |received| {
                received.events.iter().any(|event| event.kind() == EventKind::Account)
            })
            .await;
        let is_feed = |event: &Event| match &event.body {
            EventBody::Commit(commit) => commit.collection.as_str().starts_with("app.bsky.feed."),
            _ => true,
        };
        assert!(received.events.len() > 3 && received.events.iter().all(is_feed));
        let of_accounts = Filter { kinds: vec![EventKind::Account], ..Filter::default() };
        let servers = [(JETSTREAM, None)];
        let mut client = try_client(&sim, &servers, of_accounts, options(version)).unwrap();
        let mut received = Received::default();
        received.events(&mut client, 2).await;
        assert!(received.events.iter().all(|event| event.kind() == EventKind::Account));
    }
}

#[tokio::test]
async fn wishes_can_change_while_events_come() {
    for version in BOTH {
        let sim = sim(|_| ());
        let nobody = Filter { dids: strangers(1), ..Filter::default() };
        let mut live = options(version);
        live.start = StartFrom::Live;
        let mut client = try_client(&sim, &[(JETSTREAM, None)], nobody, live).unwrap();
        let mut received = Received::default();
        received.until(&mut client, |received| received.cursors().len() == 1).await;
        client.set_filter(Filter::default()).unwrap();
        if version == Version::V2 {
            received.until(&mut client, |received| received.cursors().len() == 2).await;
        }
        // Version 1 does not acknowledge changed options.
        let mut written = 0;
        while received.events.is_empty() {
            sim.write_commits(1);
            written += 1;
            let moment = Duration::from_millis(50);
            let _ = tokio::time::timeout(moment, received.events(&mut client, 1)).await;
            assert!(written < 100);
        }
        assert!(
            client.set_filter(Filter { dids: strangers(10_001), ..Filter::default() }).is_err()
        );
    }
}

#[tokio::test]
async fn a_stream_that_ends_or_is_refused_goes_on_where_it_was() {
    let faults = [
        (Fault::Cut, FaultSchedule::times(5).with_amount(3_000)),
        (Fault::Stall, FaultSchedule::ONCE.after(9)),
        (Fault::Close, FaultSchedule::times(3).after(9).every(10)),
        (Fault::ErrorFrame, FaultSchedule::ONCE.after(9)),
        (Fault::UpgradeTooMany, FaultSchedule::times(4)),
        (Fault::UpgradeUnavailable, FaultSchedule::times(4)),
        (Fault::UpgradeForbidden, FaultSchedule::times(4)),
        (Fault::Drop, FaultSchedule::times(4)),
    ];
    for version in BOTH {
        for (fault, schedule) in faults {
            let sim = colourful();
            sim.faults().enable(JETSTREAM, fault, schedule);
            let received = follow_to_the_end(&sim, options(version)).await;
            assert_complete(&sim, version, &received);
            let fired = sim.faults().fired(JETSTREAM, fault) as usize;
            let is_told = |notice: &Notice| {
                matches!(notice, Notice::Disconnected { .. } | Notice::ConnectFailed { .. })
            };
            assert_eq!(received.count(is_told), fired, "{} {version:?}", fault.name());
            let slow = received.count(|notice| matches!(notice, Notice::ConsumerTooSlow { .. }));
            assert_eq!(slow, usize::from(fault == Fault::ErrorFrame));
        }
    }
}

#[tokio::test]
async fn what_is_no_event_is_handed_over_and_costs_none() {
    let faults = [
        Fault::GarbageFrame,
        Fault::UnknownKind,
        Fault::UnknownOperation,
        Fault::WrongMessage,
        Fault::OversizedFrame,
    ];
    for (version, is_packed) in
        BOTH.into_iter().flat_map(|version| [(version, false), (version, true)])
    {
        for fault in faults {
            let sim = colourful();
            sim.faults().enable(JETSTREAM, fault, FaultSchedule::ONCE.after(5));
            let id = if version == Version::V1 { V1_DICTIONARY_ID } else { V2_DICTIONARY_ID };
            let served = Compression::Served(Some(id));
            let compression = if is_packed { served } else { Compression::None };
            let (mut received, mut client) =
                (Received::default(), client(&sim, compressed(version, compression)));
            let mut expected = sent(&sim, version);
            let is_over =
                |received: &Received| received.events.last().map(mark) == expected.last().cloned();
            received.until(&mut client, is_over).await;
            assert!(!received.strange.is_empty(), "{} {version:?}", fault.name());
            assert!(received.strange.iter().all(|strange| !strange.reason.is_empty()));
            if fault == Fault::WrongMessage {
                let lost = expected.len() - received.events.len();
                assert_eq!(lost, received.strange.len());
                expected.drain(5..5 + lost);
            } else {
                assert_eq!(received.strange.len(), 1);
            }
            assert_eq!(marks(&received), expected, "{} {version:?}", fault.name());
            assert_eq!(received.cursors().len(), 1);
            assert_eq!(sim.faults().unfired(), []);
        }
    }
}

#[tokio::test]
async fn an_oversized_message_ends_the_connection_and_loses_no_event() {
    for version in BOTH {
        let sim = colourful();
        sim.faults().enable(
            JETSTREAM,
            Fault::OversizedFrame,
            FaultSchedule::ONCE.after(5).with_amount(200_001),
        );
        let mut options = options(version);
        options.socket.max_message_bytes = 200_000;
        let received = follow_to_the_end(&sim, options).await;
        assert_complete(&sim, version, &received);
        let reason = SocketError::TooLarge(200_000);
        let ended = Notice::Disconnected { host: HostId(0), reason };
        assert_eq!(received.count(|notice| *notice == ended), 1);
    }
}

#[tokio::test]
async fn repetitions_are_reported_and_regressions_delivered() {
    for version in BOTH {
        let sim = colourful();
        sim.faults().enable(JETSTREAM, Fault::RepeatedSeq, FaultSchedule::ALWAYS.every(7));
        let received = follow_to_the_end(&sim, options(version)).await;
        assert_complete(&sim, version, &received);
        assert!(received.count(|notice| matches!(notice, Notice::Repeated { .. })) > 4);
        let sim = colourful();
        sim.faults().enable(JETSTREAM, Fault::ReversedSeq, FaultSchedule::ONCE.after(5));
        let received = follow_to_the_end(&sim, options(version)).await;
        assert_eq!(received.count(|notice| matches!(notice, Notice::Regressed { .. })), 1);
        let (mut received, mut expected) = (marks(&received), sent(&sim, version));
        received.sort();
        expected.sort();
        assert_eq!(received, expected);
        assert_eq!(sim.faults().unfired(), []);
    }
}

#[tokio::test]
async fn a_run_goes_on_from_the_cursor_of_the_one_before() {
    for version in BOTH {
        let sim = colourful();
        let all = follow_to_the_end(&sim, options(version)).await;
        let cursor = Some(all.events[9].cursor);
        let servers = [(JETSTREAM, cursor)];
        let mut client = try_client(&sim, &servers, Filter::default(), options(version)).unwrap();
        let mut received = Received::default();
        let last = all.events.last().map(|event| event.cursor);
        let is_last =
            |received: &Received| received.events.last().map(|event| event.cursor) == last;
        received.until(&mut client, is_last).await;
        // Jetstreams begin with the event of the cursor itself; version 1 is asked from a microsecond before.
        let is_asked = |event: &&Event| Some(event.cursor) >= received.cursors()[0];
        let expected: Vec<Mark> = all.events.iter().filter(is_asked).map(mark).collect();
        assert!(expected.ends_with(&marks(&all)[9..]));
        assert_eq!(marks(&received), expected);
        let asked = match version {
            Version::V1 => cursor.map(|cursor| cursor - 1),
            Version::V2 => cursor,
        };
        assert_eq!(received.cursors(), [asked]);
    }
}

/// A network whose Jetstreams keep no more than 30 events, and have sent more.
fn forgetful() -> Simulation {
    let sim = sim(|spec| (spec.retained_events, spec.initial_commits) = (30, 0));
    sim.write_commits(60);
    sim
}

#[tokio::test]
async fn an_outdated_cursor_is_reported_and_the_stream_starts_at_the_oldest_event() {
    let sim = forgetful();
    let count: usize = {
        let lines = sim.sent_events(JETSTREAM);
        lines[lines.len() - 30..].iter().map(|line| line.subject.jetstream_events as usize).sum()
    };
    // The host rejects a cursor that is a number, and reports one that is a time.
    for (cursor, is_refused) in [(1, true), (MIN_TIME_CURSOR, false)] {
        let servers = [(JETSTREAM, Some(cursor))];
        let wanted = Filter::default();
        let mut client = try_client(&sim, &servers, wanted, options(Version::V2)).unwrap();
        let mut received = Received::default();
        received.events(&mut client, count).await;
        let expected = sent(&sim, Version::V2);
        assert_eq!(marks(&received), expected[expected.len() - count..]);
        let is_outdated = |notice: &Notice| matches!(notice, Notice::OutdatedCursor { cursor: Some(given), .. } if *given == cursor);
        assert_eq!(received.count(is_outdated), 1);
        let refused = received.count(|notice| matches!(notice, Notice::ConnectFailed { .. }));
        assert_eq!(refused, usize::from(is_refused));
    }
}

#[tokio::test]
async fn a_cursor_ahead_of_the_stream_is_void_and_the_oldest_event_comes_next() {
    let sim = colourful();
    let ahead = sim.last_seq(JETSTREAM) as u64 + 1_000_000;
    let servers = [(JETSTREAM, Some(ahead))];
    let wanted = Filter::default();
    let mut client = try_client(&sim, &servers, wanted, options(Version::V2)).unwrap();
    let mut received = Received::default();
    received.until(&mut client, |received| received.cursors().len() == 2).await;
    assert_eq!(received.cursors(), [Some(ahead), Some(MIN_TIME_CURSOR)]);
    assert_eq!(received.count(|notice| matches!(notice, Notice::FutureCursor { .. })), 1);
    let expected = sent(&sim, Version::V2);
    received.events(&mut client, expected.len()).await;
    assert_eq!(marks(&received), expected);
}

#[tokio::test]
async fn a_cursor_ahead_of_a_stream_that_does_not_say_so_is_void_with_its_next_event() {
    let sim = colourful();
    // Ten years ahead.
    let ahead = MIN_TIME_CURSOR + 1_000_000_000_000_000;
    let servers = [(JETSTREAM, Some(ahead))];
    let options = options(Version::V1);
    let mut client = try_client(&sim, &servers, Filter::default(), options).unwrap();
    let mut received = Received::default();
    received.until(&mut client, |received| received.cursors().len() == 1).await;
    sim.write_commits(1);
    let expected = sent(&sim, Version::V1);
    received.events(&mut client, expected.len()).await;
    assert_eq!(marks(&received), expected);
    assert_eq!(received.cursors(), [Some(ahead - 1), Some(MIN_TIME_CURSOR)]);
    assert_eq!(received.count(|notice| matches!(notice, Notice::SequenceReset { .. })), 1);
}

fn is_lost(notice: &Notice) -> bool {
    matches!(notice, Notice::Disconnected { .. })
}

#[tokio::test]
async fn another_host_is_begun_with_a_little_earlier_and_nothing_comes_twice() {
    for version in BOTH {
        let sim = sim(|spec| spec.jetstreams = 2);
        let servers = [(JETSTREAM, None), (OTHER, None)];
        let options = options(version);
        let rewind = options.rewind.as_micros() as u64;
        let mut client = try_client(&sim, &servers, Filter::default(), options).unwrap();
        let mut received = Received::default();
        let mut expected = Vec::new();
        for (round, (closed, open)) in
            [(OTHER, JETSTREAM), (JETSTREAM, OTHER), (OTHER, JETSTREAM)].into_iter().enumerate()
        {
            sim.start_server(open).unwrap();
            sim.stop_server(closed);
            if round > 0 {
                received.until(&mut client, |received| received.count(is_lost) == round).await;
            }
            sim.write_commits(10);
            expected = sent(&sim, version);
            received.events(&mut client, expected.len()).await;
        }
        assert_eq!(marks(&received), expected);
        let cursors = received.cursors();
        assert_eq!(cursors.len(), 3);
        let times: Vec<u64> = received.events.iter().map(|event| event.micros).collect();
        // The other host gets a time as the cursor: half a minute before the last received event.
        let asked = cursors[1].unwrap();
        assert!(times.iter().any(|time| asked == time - rewind), "{asked}");
        // The first host gets its own last cursor, which is not older than that.
        let first = received.events.iter().filter(|event| event.host == HostId(0));
        let first: Vec<u64> = first.map(|event| event.cursor).collect();
        let again = cursors[2].unwrap() + u64::from(version == Version::V1);
        assert!(first.contains(&again));
        assert!(received.count(|notice| matches!(notice, Notice::Repeated { .. })) > 0);
    }
}

#[tokio::test]
async fn a_switch_rewinds_no_further_than_configured() {
    for version in BOTH {
        let sim = sim(|spec| (spec.jetstreams, spec.initial_commits) = (2, 0));
        let servers = [(JETSTREAM, Some(MIN_TIME_CURSOR)), (OTHER, Some(MIN_TIME_CURSOR))];
        let mut options = options(version);
        options.rewind = Duration::ZERO;
        let mut client = try_client(&sim, &servers, Filter::default(), options).unwrap();
        let mut received = Received::default();
        sim.write_commits(10);
        received.events(&mut client, sent(&sim, version).len()).await;
        let last = received.events.last().unwrap().micros;
        sim.stop_server(JETSTREAM);
        received.until(&mut client, |received| received.cursors().len() == 2).await;
        assert_eq!(received.cursors(), [Some(MIN_TIME_CURSOR), Some(last)]);
        assert_eq!(received.count(|notice| matches!(notice, Notice::ConnectFailed { .. })), 3);
    }
}

/// The timeout for expected events.
const PATIENCE: Duration = Duration::from_secs(30);
