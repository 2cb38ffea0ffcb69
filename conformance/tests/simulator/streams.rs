//! `subscribeRepos`: cursors, order, and events of every kind, all verified.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use atproto::event::{Decoder, Event, Options};
use crypto::{CompressedKey, KeyCache};
use simnet::hostile;
use simnet::servers::{AccountStatus, CursorPolicy, EventKind, Server, Simulation, WriteRate};
use verify::sync::{Chain, Judge, MemoryState, Outcome, Policy};

use crate::client::{Reader, sim};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

/// The sequence number, or the name of a message without one.
fn read(frame: &[u8]) -> Result<i64, String> {
    let mut decoder = Decoder::new(Options::default());
    match decoder.decode(frame).expect("a frame") {
        Event::Info(info) => Err(info.name.to_owned()),
        Event::Error(error) => Err(error.error.to_owned()),
        event => Ok(event.seq().expect("a place in the stream")),
    }
}

fn seqs(frames: &[Vec<u8>]) -> Vec<i64> {
    frames.iter().map(|frame| read(frame).expect("an event")).collect()
}

fn sent(sim: &Simulation, server: Server) -> Vec<i64> {
    sim.sent_events(server).iter().map(|line| line.seq).collect()
}

fn keys(sim: &Simulation) -> HashMap<String, CompressedKey> {
    let accounts = (0..sim.account_count()).map(|number| sim.account(number));
    accounts
        .map(|account| (account.did, CompressedKey::from_did_key(&account.signing_key).unwrap()))
        .collect()
}

#[tokio::test]
async fn every_commit_is_proved_and_continues_the_one_before() {
    let sim = sim(|spec| spec.initial_commits = 100);
    let mut reader = Reader::follow(&sim, RELAY, Some(0)).await;
    let mut frames = reader.frames(100).await;
    sim.write_commits(100);
    frames.extend(reader.frames(100).await);
    assert_eq!(seqs(&frames), sent(&sim, RELAY));
    let keys = keys(&sim);
    let mut judge = Judge::new(Policy::default(), KeyCache::new(1 << 20, [7; 16]));
    let mut state = MemoryState::new([8; 16]);
    let key_of = |did: &str| keys.get(did).copied();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let mut firsts = 0;
    for judged in judge.judge_batch(&frames, &key_of, &mut state, NOW_MICROS).unwrap() {
        match judged.outcome {
            Outcome::Commit(_, Chain::Intact) => {}
            Outcome::Commit(_, Chain::FirstSeen) => firsts += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(firsts, sim.account_count());
}

#[tokio::test]
async fn a_reader_who_applies_every_operation_has_what_is_expected() {
    let sim = sim(|_| ());
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    let start = sim.expected_accounts().into_iter();
    let mut records: BTreeMap<String, BTreeMap<String, String>> = start
        .map(|expected| {
            let texts = expected.records.iter().map(|(path, cid)| (path.clone(), cid.to_string()));
            (expected.account.did, texts.collect())
        })
        .collect();
    sim.write_commits(150);
    let mut decoder = Decoder::new(Options::default());
    for frame in reader.frames(150).await {
        let Ok(Event::Commit(commit)) = decoder.decode(&frame) else { panic!("a commit") };
        let records = records.get_mut(commit.repo).expect("an account of the network");
        for op in commit.ops {
            match op.cid {
                Some(cid) => records.insert(op.path.to_owned(), cid.to_string()),
                None => records.remove(op.path),
            };
        }
    }
    for expected in sim.expected_accounts() {
        let texts = expected.records.into_iter().map(|(path, cid)| (path, cid.to_string()));
        assert_eq!(records[&expected.account.did], texts.collect());
    }
}

#[tokio::test]
async fn a_pds_sends_events_of_its_own_accounts_with_consecutive_numbers() {
    let sim = sim(|spec| spec.initial_commits = 60);
    let counts = [0, 1].map(|host| sim.sent_events(Server::Pds(host)).len());
    assert_eq!(counts[0] + counts[1], 60);
    for (host, count) in counts.into_iter().enumerate() {
        let mut reader = Reader::follow(&sim, Server::Pds(host), Some(0)).await;
        let expected: Vec<i64> = (1..=count as i64).collect();
        assert_eq!(seqs(&reader.frames(count).await), expected);
        assert!(reader.hears_nothing().await);
    }
}

#[tokio::test]
async fn a_cursor_is_inclusive_or_exclusive_as_the_server_pleases() {
    let sim = sim(|spec| spec.initial_commits = 40);
    let of_relay = sent(&sim, RELAY);
    let mut reader = Reader::follow(&sim, RELAY, Some(of_relay[30])).await;
    assert_eq!(seqs(&reader.frames(10).await), of_relay[30..]);
    let of_pds = sent(&sim, PDS);
    let mut reader = Reader::follow(&sim, PDS, Some(of_pds[5])).await;
    let rest = of_pds.len() - 6;
    assert_eq!(seqs(&reader.frames(rest).await), of_pds[6..]);
}

#[tokio::test]
async fn a_cursor_within_a_gap_begins_behind_it() {
    let sim = sim(|spec| spec.initial_commits = 40);
    let sent = sent(&sim, RELAY);
    let gap = (1..40).find(|at| sent[*at] > sent[at - 1] + 1).expect("relays leave gaps");
    let mut reader = Reader::follow(&sim, RELAY, Some(sent[gap] - 1)).await;
    assert_eq!(seqs(&reader.frames(1).await), [sent[gap]]);
}

#[tokio::test]
async fn without_a_cursor_the_stream_begins_now() {
    let sim = sim(|spec| spec.initial_commits = 40);
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    assert!(reader.hears_nothing().await);
    sim.write_commits(3);
    assert_eq!(seqs(&reader.frames(3).await), sent(&sim, RELAY)[40..]);
}

#[tokio::test]
async fn a_cursor_ahead_of_the_stream_ends_it_or_not() {
    let sim = sim(|spec| {
        (spec.initial_commits, spec.relay_cursor_policy) = (10, CursorPolicy::DEPLOYED_RELAY);
    });
    let mut reader = Reader::follow(&sim, PDS, Some(1_000_000)).await;
    assert_eq!(read(&reader.frames(1).await[0]), Err("FutureCursor".to_owned()));
    assert!(reader.next().await.is_none());
    let mut reader = Reader::follow(&sim, RELAY, Some(1 << 50)).await;
    sim.write_commits(1);
    assert_eq!(seqs(&reader.frames(1).await), sent(&sim, RELAY)[10..]);
}

#[tokio::test]
async fn a_cursor_older_than_the_window_is_said_to_be_or_not() {
    let sim = sim(|spec| {
        (spec.retained_events, spec.pds, spec.relays) = (10, 1, 1);
        spec.relay_cursor_policy = CursorPolicy::DEPLOYED_RELAY;
    });
    sim.write_commits(50);
    let mut reader = Reader::follow(&sim, PDS, Some(3)).await;
    let frames = reader.frames(11).await;
    assert_eq!(read(&frames[0]), Err("OutdatedCursor".to_owned()));
    assert_eq!(seqs(&frames[1..]), sent(&sim, PDS)[40..]);
    let first = sent(&sim, RELAY)[0];
    let mut reader = Reader::follow(&sim, RELAY, Some(first)).await;
    assert_eq!(seqs(&reader.frames(10).await), sent(&sim, RELAY)[40..]);
    // Cursor 0 requests all stored events, so there is no error of an outdated cursor.
    let mut reader = Reader::follow(&sim, PDS, Some(0)).await;
    assert_eq!(seqs(&reader.frames(10).await), sent(&sim, PDS)[40..]);
}

#[tokio::test]
async fn two_relays_send_the_same_events_with_different_numbers() {
    let sim = sim(|spec| (spec.relays, spec.initial_commits) = (2, 30));
    let [one, two] = [0, 1].map(|number| sim.sent_events(Server::Relay(number)));
    let subjects = |lines: &[simnet::servers::SentEvent]| {
        lines.iter().map(|line| line.subject.clone()).collect::<Vec<_>>()
    };
    assert_eq!(subjects(&one), subjects(&two));
    assert!(one.iter().zip(&two).all(|(one, two)| one.seq < two.seq));
}

#[tokio::test]
async fn every_kind_of_event_is_sent() {
    let sim = sim(|_| ());
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    sim.rotate_key(0);
    sim.set_account_status(0, AccountStatus::TakenDown);
    sim.set_account_status(0, AccountStatus::Active);
    let joined = sim.add_account();
    sim.delete_account(1);
    let kinds: Vec<EventKind> =
        sim.sent_events(RELAY).iter().map(|line| line.subject.kind).collect();
    let joins = [EventKind::Identity, EventKind::Account, EventKind::Sync];
    let of_first = [EventKind::Identity, EventKind::Commit, EventKind::Account];
    let returns = [EventKind::Account, EventKind::Identity, EventKind::Sync];
    assert_eq!(kinds, [&of_first[..], &returns, &joins, &[EventKind::Account]].concat());
    let frames = reader.frames(kinds.len()).await;
    let mut decoder = Decoder::new(Options::default());
    let mut events = Vec::new();
    for frame in &frames {
        events.push(match decoder.decode(frame).expect("a frame") {
            Event::Account(account) => format!("{} {:?}", account.active, account.status),
            Event::Identity(identity) => format!("{:?}", identity.handle),
            event => event.kind().unwrap_or_default().to_owned(),
        });
    }
    assert_eq!(events[0], format!("{:?}", Some(sim.account(0).handle)));
    assert_eq!(events[2..4], ["false Some(\"takendown\")", "true None"]);
    assert_eq!(events[6], format!("{:?}", Some(sim.account(joined).handle)));
    assert_eq!(events[9], "false Some(\"deleted\")");
}

#[tokio::test]
async fn unannounced_commits_break_the_chain_and_a_sync_restarts_it() {
    let sim = sim(|spec| spec.accounts = 1);
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    sim.write_commit_as(0);
    sim.write_unannounced(0);
    sim.send_sync(0);
    sim.write_commit_as(0);
    let frames = reader.frames(3).await;
    let keys = keys(&sim);
    let mut judge = Judge::new(Policy::default(), KeyCache::new(1 << 20, [7; 16]));
    let mut state = MemoryState::new([8; 16]);
    let key_of = |did: &str| keys.get(did).copied();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let judged = judge.judge_batch(&frames, &key_of, &mut state, NOW_MICROS).unwrap();
    let outcomes: Vec<&Outcome<'_>> = judged.iter().map(|judged| &judged.outcome).collect();
    assert!(matches!(outcomes[0], Outcome::Commit(_, Chain::FirstSeen)), "{:?}", outcomes[0]);
    assert!(matches!(outcomes[1], Outcome::Sync(..)), "{:?}", outcomes[1]);
    assert!(matches!(outcomes[2], Outcome::Commit(..)), "{:?}", outcomes[2]);
}

#[tokio::test]
async fn hostile_cases_are_sent_with_sequence_numbers_of_the_stream() {
    let sim = sim(|_| ());
    let set = hostile::CaseSet::generate(&hostile::Spec::default());
    let of_kind = |kind| {
        let mut cases = set.cases().iter().filter(move |case| case.kind == kind);
        cases.find(|case| case.code == Some("signature/wrong")).expect("a forged signature")
    };
    let case = of_kind(hostile::InputKind::Frames);
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    let count = atproto::corpus::read(&case.bytes).unwrap().len();
    sim.serve_case(case);
    sim.write_commits(1);
    let frames = reader.frames(count + 1).await;
    assert_eq!(seqs(&frames), sent(&sim, RELAY));
    let did = &case.did;
    let document = crate::client::get(&sim, Server::Plc, &format!("/{did}")).await.json();
    let key = document["verificationMethod"][0]["publicKeyMultibase"].as_str().unwrap();
    assert_eq!(format!("did:key:{key}"), case.signing_key);
    let case = of_kind(hostile::InputKind::Repo);
    sim.serve_case(case);
    let sent = crate::client::xrpc(&sim, PDS, &format!("getRepo?did={}", case.did)).await;
    assert_eq!(sent.bytes, case.bytes);
    let sent = crate::client::xrpc(&sim, RELAY, &format!("getRepo?did={}", case.did)).await;
    assert_eq!(sent.status, 302);
}

#[tokio::test]
async fn readers_are_pinged() {
    let sim = sim(|spec| spec.ping_interval = Duration::from_millis(50));
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    for _ in 0..3 {
        assert!(reader.any().await.is_ping());
    }
}

#[tokio::test]
async fn accounts_write_at_the_rate_that_is_set_and_stop() {
    let sim = sim(|_| ());
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    sim.set_write_rate(WriteRate::PerSecond(200));
    reader.frames(50).await;
    sim.set_write_rate(WriteRate::MatchReaders);
    reader.frames(500).await;
    sim.set_write_rate(WriteRate::Off);
    let count = sim.sent_events(RELAY).len();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(sim.sent_events(RELAY).len(), count);
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_closed_as_too_slow() {
    let sim = sim(|spec| (spec.max_backlog, spec.records) = (2000, 5));
    let mut reader = Reader::follow(&sim, RELAY, None).await;
    sim.write_commits(1);
    reader.frames(1).await;
    // More than the buffers of both ends and the permitted lag of a reader.
    for _ in 0..100 {
        sim.write_commits(200);
        if sim.backlogs(RELAY)[0] > 2000 {
            break;
        }
    }
    assert!(sim.backlogs(RELAY)[0] > 2000);
    let mut last = Ok(0);
    while let Some(Ok(message)) = reader.next().await {
        last = read(&message.into_data());
    }
    assert_eq!(last, Err("ConsumerTooSlow".to_owned()));
}

#[tokio::test]
async fn a_reopened_server_has_all_events_it_sent_before() {
    let sim = sim(|spec| spec.initial_commits = 20);
    let mut reader = Reader::follow(&sim, RELAY, Some(0)).await;
    let first = reader.frames(20).await;
    sim.stop_server(RELAY);
    assert!(!matches!(reader.next().await, Some(Ok(_))));
    assert!(Reader::try_follow(&sim, RELAY, None).await.is_err());
    sim.write_commits(5);
    sim.start_server(RELAY).unwrap();
    let last = *seqs(&first).last().unwrap();
    let mut reader = Reader::follow(&sim, RELAY, Some(last)).await;
    assert_eq!(seqs(&reader.frames(6).await), sent(&sim, RELAY)[19..]);
}

/// The time of verification: long after the frames were made.
const NOW_MICROS: u64 = 1_900_000_000_000_000;
