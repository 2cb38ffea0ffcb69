//! `subscribeRepos`: cursors, order, and events of every kind, each judged.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use simnet::hostile;
use simnet::servers::{Kind, Manners, Rate, Server, Status, World};
use wireproof::atproto::event::{Decoder, Event, Options};
use wireproof::crypto::{CompressedKey, KeyCache};
use wireproof::verify::sync::{Chain, Judge, MemoryState, Outcome, Policy};

use crate::client::{Reader, world};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

/// The sequence number, or the name of what has none.
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

fn told(world: &World, server: Server) -> Vec<i64> {
    world.told(server).iter().map(|line| line.seq).collect()
}

fn keys(world: &World) -> HashMap<String, CompressedKey> {
    let accounts = (0..world.accounts()).map(|number| world.account(number));
    accounts
        .map(|account| (account.did, CompressedKey::from_did_key(&account.signing_key).unwrap()))
        .collect()
}

#[tokio::test]
async fn every_commit_is_proved_and_continues_the_one_before() {
    let world = world(|spec| spec.prepared = 100);
    let mut reader = Reader::follow(&world, RELAY, Some(0)).await;
    let mut frames = reader.frames(100).await;
    world.write(100);
    frames.extend(reader.frames(100).await);
    assert_eq!(seqs(&frames), told(&world, RELAY));
    let keys = keys(&world);
    let mut judge = Judge::new(Policy::default(), KeyCache::new(1 << 20, [7; 16]));
    let mut state = MemoryState::new([8; 16]);
    let key_of = |did: &str| keys.get(did).copied();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let mut firsts = 0;
    for judged in judge.judge_batch(&frames, &key_of, &mut state, NOW_MICROS).unwrap() {
        match judged.outcome {
            Outcome::Commit(_, Chain::Holds) => {}
            Outcome::Commit(_, Chain::FirstSighting) => firsts += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(firsts, world.accounts());
}

#[tokio::test]
async fn a_reader_who_applies_every_operation_has_what_is_expected() {
    let world = world(|_| ());
    let mut reader = Reader::follow(&world, RELAY, None).await;
    let start = world.expected().into_iter();
    let mut records: BTreeMap<String, BTreeMap<String, String>> = start
        .map(|expected| {
            let texts = expected.records.iter().map(|(path, cid)| (path.clone(), cid.to_string()));
            (expected.account.did, texts.collect())
        })
        .collect();
    world.write(150);
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
    for expected in world.expected() {
        let texts = expected.records.into_iter().map(|(path, cid)| (path, cid.to_string()));
        assert_eq!(records[&expected.account.did], texts.collect());
    }
}

#[tokio::test]
async fn a_pds_tells_of_its_own_accounts_and_counts_one_by_one() {
    let world = world(|spec| spec.prepared = 60);
    let counts = [0, 1].map(|host| world.told(Server::Pds(host)).len());
    assert_eq!(counts[0] + counts[1], 60);
    for (host, count) in counts.into_iter().enumerate() {
        let mut reader = Reader::follow(&world, Server::Pds(host), Some(0)).await;
        let expected: Vec<i64> = (1..=count as i64).collect();
        assert_eq!(seqs(&reader.frames(count).await), expected);
        assert!(reader.hears_nothing().await);
    }
}

#[tokio::test]
async fn a_cursor_is_inclusive_or_exclusive_as_the_server_pleases() {
    let world = world(|spec| spec.prepared = 40);
    let of_relay = told(&world, RELAY);
    let mut reader = Reader::follow(&world, RELAY, Some(of_relay[30])).await;
    assert_eq!(seqs(&reader.frames(10).await), of_relay[30..]);
    let of_pds = told(&world, PDS);
    let mut reader = Reader::follow(&world, PDS, Some(of_pds[5])).await;
    let rest = of_pds.len() - 6;
    assert_eq!(seqs(&reader.frames(rest).await), of_pds[6..]);
}

#[tokio::test]
async fn a_cursor_within_a_gap_begins_behind_it() {
    let world = world(|spec| spec.prepared = 40);
    let told = told(&world, RELAY);
    let gap = (1..40).find(|at| told[*at] > told[at - 1] + 1).expect("relays leave gaps");
    let mut reader = Reader::follow(&world, RELAY, Some(told[gap] - 1)).await;
    assert_eq!(seqs(&reader.frames(1).await), [told[gap]]);
}

#[tokio::test]
async fn without_a_cursor_the_stream_begins_now() {
    let world = world(|spec| spec.prepared = 40);
    let mut reader = Reader::follow(&world, RELAY, None).await;
    assert!(reader.hears_nothing().await);
    world.write(3);
    assert_eq!(seqs(&reader.frames(3).await), told(&world, RELAY)[40..]);
}

#[tokio::test]
async fn a_cursor_ahead_of_the_stream_ends_it_or_not() {
    let world = world(|spec| {
        (spec.prepared, spec.relay_manners) = (10, Manners::TACITURN);
    });
    let mut reader = Reader::follow(&world, PDS, Some(1_000_000)).await;
    assert_eq!(read(&reader.frames(1).await[0]), Err("FutureCursor".to_owned()));
    assert!(reader.next().await.is_none());
    let mut reader = Reader::follow(&world, RELAY, Some(1 << 50)).await;
    world.write(1);
    assert_eq!(seqs(&reader.frames(1).await), told(&world, RELAY)[10..]);
}

#[tokio::test]
async fn a_cursor_older_than_the_window_is_said_to_be_or_not() {
    let world = world(|spec| {
        (spec.window, spec.pds, spec.relays) = (10, 1, 1);
        spec.relay_manners = Manners::TACITURN;
    });
    world.write(50);
    let mut reader = Reader::follow(&world, PDS, Some(3)).await;
    let frames = reader.frames(11).await;
    assert_eq!(read(&frames[0]), Err("OutdatedCursor".to_owned()));
    assert_eq!(seqs(&frames[1..]), told(&world, PDS)[40..]);
    let first = told(&world, RELAY)[0];
    let mut reader = Reader::follow(&world, RELAY, Some(first)).await;
    assert_eq!(seqs(&reader.frames(10).await), told(&world, RELAY)[40..]);
    // Whoever asks for all there is has not missed anything that it asked for.
    let mut reader = Reader::follow(&world, PDS, Some(0)).await;
    assert_eq!(seqs(&reader.frames(10).await), told(&world, PDS)[40..]);
}

#[tokio::test]
async fn two_relays_tell_the_same_by_other_numbers() {
    let world = world(|spec| (spec.relays, spec.prepared) = (2, 30));
    let [one, two] = [0, 1].map(|number| world.told(Server::Relay(number)));
    let subjects = |lines: &[simnet::servers::Line]| {
        lines.iter().map(|line| line.subject.clone()).collect::<Vec<_>>()
    };
    assert_eq!(subjects(&one), subjects(&two));
    assert!(one.iter().zip(&two).all(|(one, two)| one.seq < two.seq));
}

#[tokio::test]
async fn every_kind_of_event_is_told() {
    let world = world(|_| ());
    let mut reader = Reader::follow(&world, RELAY, None).await;
    world.rotate_key(0);
    world.set_status(0, Status::TakenDown);
    world.set_status(0, Status::Active);
    let joined = world.join();
    world.delete(1);
    let kinds: Vec<Kind> = world.told(RELAY).iter().map(|line| line.subject.kind).collect();
    let joins = [Kind::Identity, Kind::Account, Kind::Sync];
    let of_first = [Kind::Identity, Kind::Commit, Kind::Account];
    let returns = [Kind::Account, Kind::Identity, Kind::Sync];
    assert_eq!(kinds, [&of_first[..], &returns, &joins, &[Kind::Account]].concat());
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
    assert_eq!(events[0], format!("{:?}", Some(world.account(0).handle)));
    assert_eq!(events[2..4], ["false Some(\"takendown\")", "true None"]);
    assert_eq!(events[6], format!("{:?}", Some(world.account(joined).handle)));
    assert_eq!(events[9], "false Some(\"deleted\")");
}

#[tokio::test]
async fn commits_of_which_nobody_is_told_break_the_chain_and_a_sync_says_where_it_goes_on() {
    let world = world(|spec| spec.accounts = 1);
    let mut reader = Reader::follow(&world, RELAY, None).await;
    world.write_as(0);
    world.write_unseen(0);
    world.sync(0);
    world.write_as(0);
    let frames = reader.frames(3).await;
    let keys = keys(&world);
    let mut judge = Judge::new(Policy::default(), KeyCache::new(1 << 20, [7; 16]));
    let mut state = MemoryState::new([8; 16]);
    let key_of = |did: &str| keys.get(did).copied();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let judged = judge.judge_batch(&frames, &key_of, &mut state, NOW_MICROS).unwrap();
    let outcomes: Vec<&Outcome<'_>> = judged.iter().map(|judged| &judged.outcome).collect();
    assert!(matches!(outcomes[0], Outcome::Commit(_, Chain::FirstSighting)), "{:?}", outcomes[0]);
    assert!(matches!(outcomes[1], Outcome::Sync(..)), "{:?}", outcomes[1]);
    assert!(matches!(outcomes[2], Outcome::Commit(..)), "{:?}", outcomes[2]);
}

#[tokio::test]
async fn hostile_cases_are_told_with_numbers_of_the_stream() {
    let world = world(|_| ());
    let set = hostile::Set::generate(&hostile::Spec::default());
    let of_kind = |kind| {
        let mut cases = set.cases().iter().filter(move |case| case.kind == kind);
        cases.find(|case| case.code == Some("signature/wrong")).expect("a forged signature")
    };
    let case = of_kind(hostile::Kind::Frames);
    let mut reader = Reader::follow(&world, RELAY, None).await;
    let count = wireproof::atproto::corpus::read(&case.bytes).unwrap().len();
    world.play(case);
    world.write(1);
    let frames = reader.frames(count + 1).await;
    assert_eq!(seqs(&frames), told(&world, RELAY));
    let did = &case.did;
    let document = crate::client::get(&world, Server::Plc, &format!("/{did}")).await.json();
    let key = document["verificationMethod"][0]["publicKeyMultibase"].as_str().unwrap();
    assert_eq!(format!("did:key:{key}"), case.signing_key);
    let case = of_kind(hostile::Kind::Repo);
    world.play(case);
    let sent = crate::client::xrpc(&world, PDS, &format!("getRepo?did={}", case.did)).await;
    assert_eq!(sent.bytes, case.bytes);
    let sent = crate::client::xrpc(&world, RELAY, &format!("getRepo?did={}", case.did)).await;
    assert_eq!(sent.status, 302);
}

#[tokio::test]
async fn readers_are_pinged() {
    let world = world(|spec| spec.ping_every = Duration::from_millis(50));
    let mut reader = Reader::follow(&world, RELAY, None).await;
    for _ in 0..3 {
        assert!(reader.any().await.is_ping());
    }
}

#[tokio::test]
async fn accounts_write_at_the_rate_that_is_set_and_stop() {
    let world = world(|_| ());
    let mut reader = Reader::follow(&world, RELAY, None).await;
    world.set_rate(Rate::PerSecond(200));
    reader.frames(50).await;
    world.set_rate(Rate::AsRead);
    reader.frames(500).await;
    world.set_rate(Rate::Silent);
    let count = world.told(RELAY).len();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.told(RELAY).len(), count);
}

#[tokio::test]
async fn whoever_was_level_and_falls_behind_is_too_slow() {
    let world = world(|spec| (spec.max_backlog, spec.records) = (2000, 5));
    let mut reader = Reader::follow(&world, RELAY, None).await;
    world.write(1);
    reader.frames(1).await;
    // More than the buffers of both ends hold, and then as much as a reader may be behind.
    for _ in 0..100 {
        world.write(200);
        if world.backlogs(RELAY)[0] > 2000 {
            break;
        }
    }
    assert!(world.backlogs(RELAY)[0] > 2000);
    let mut last = Ok(0);
    while let Some(Ok(message)) = reader.next().await {
        last = read(&message.into_data());
    }
    assert_eq!(last, Err("ConsumerTooSlow".to_owned()));
}

#[tokio::test]
async fn a_server_that_was_closed_opens_again_with_all_that_it_told() {
    let world = world(|spec| spec.prepared = 20);
    let mut reader = Reader::follow(&world, RELAY, Some(0)).await;
    let first = reader.frames(20).await;
    world.close(RELAY).unwrap();
    assert!(!matches!(reader.next().await, Some(Ok(_))));
    assert!(Reader::try_follow(&world, RELAY, None).await.is_err());
    world.write(5);
    world.open(RELAY).unwrap();
    let last = *seqs(&first).last().unwrap();
    let mut reader = Reader::follow(&world, RELAY, Some(last)).await;
    assert_eq!(seqs(&reader.frames(6).await), told(&world, RELAY)[19..]);
}

/// When frames are judged: long after they were made.
const NOW_MICROS: u64 = 1_900_000_000_000_000;
