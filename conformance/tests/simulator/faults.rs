//! Every fault, and that it is counted.

use std::time::{Duration, Instant};

use simnet::servers::{Dose, Fault, Occasion, Server, World};
use tokio_tungstenite::tungstenite::{Error, Message};
use wireproof::atproto::did_document::{DidDocument, Options};
use wireproof::atproto::event::{Decoder, Event, FrameFault, Options as FrameOptions};

use crate::client::{Answer, Reader, get, try_get, world, xrpc};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

/// A network with 40 events to replay, in which this goes wrong.
fn world_with(server: Server, fault: Fault, dose: Dose) -> World {
    let world = world(|spec| spec.prepared = 40);
    world.faults().switch_on(server, fault, dose);
    assert_eq!(world.faults().unfired(), [(server, fault)]);
    world
}

fn seq(message: &Message) -> Option<i64> {
    let Message::Binary(bytes) = message else { return None };
    Decoder::new(FrameOptions::default()).decode(bytes).ok()?.seq()
}

fn told(world: &World) -> Vec<i64> {
    world.told(RELAY).iter().map(|line| line.seq).collect()
}

/// All that a reader of everything is told, until the end or until nothing comes.
async fn replay(world: &World) -> Vec<Message> {
    let mut reader = Reader::follow(world, RELAY, Some(0)).await;
    let messages = reader.messages().await;
    messages.into_iter().filter(|message| !message.is_ping()).collect()
}

fn seqs(messages: &[Message]) -> Vec<Option<i64>> {
    messages.iter().map(seq).collect()
}

#[tokio::test]
async fn a_connection_is_dropped_and_the_next_one_serves() {
    let world = world_with(PDS, Fault::Drop, Dose::ONCE);
    let path = "/xrpc/_health";
    assert!(try_get(&world, PDS, path, &[("connection", "close")]).await.is_err());
    assert_eq!(get(&world, PDS, path).await.status, 200);
    assert_eq!(world.faults().fired(PDS, Fault::Drop), 1);
}

#[tokio::test]
async fn an_upgrade_is_refused_with_the_status_of_the_fault() {
    let faults = [
        (Fault::UpgradeTooMany, 429),
        (Fault::UpgradeUnavailable, 503),
        (Fault::UpgradeForbidden, 403),
    ];
    for (fault, status) in faults {
        let world = world_with(RELAY, fault, Dose::times(2).of(7));
        for _ in 0..2 {
            match Reader::try_follow(&world, RELAY, None).await {
                Err(Error::Http(response)) => {
                    assert_eq!(response.status(), status);
                    let retry = response.headers().get("retry-after");
                    assert_eq!(retry.is_some_and(|after| after == "7"), status == 429);
                }
                other => panic!("{:?}", other.err()),
            }
        }
        assert!(Reader::try_follow(&world, RELAY, None).await.is_ok());
        assert_eq!(world.faults().fired(RELAY, fault), 2);
    }
}

#[tokio::test]
async fn a_stream_is_cut_at_the_very_byte() {
    // The first frame goes out behind a head of four bytes.
    let whole = world(|spec| spec.prepared = 40);
    let first = Reader::follow(&whole, RELAY, Some(0)).await.frames(1).await[0].len() as u64 + 4;
    assert!((130..65_000).contains(&first));
    for (bytes, frames) in [(1, 0), (first - 1, 0), (first, 1), (first + 1, 1)] {
        let world = world_with(RELAY, Fault::Cut, Dose::ONCE.of(bytes));
        assert_eq!(replay(&world).await.len(), frames, "{bytes}");
        assert_eq!(world.faults().unfired(), [], "{bytes}");
        assert_eq!(replay(&world).await.len(), 40);
    }
}

#[tokio::test]
async fn a_stall_is_silence_on_an_open_connection() {
    let world = world_with(RELAY, Fault::Stall, Dose::ONCE.after(9));
    let mut reader = Reader::follow(&world, RELAY, Some(0)).await;
    reader.frames(10).await;
    assert!(reader.hears_nothing().await);
    assert_eq!(world.faults().fired(RELAY, Fault::Stall), 1);
}

#[tokio::test]
async fn sequence_numbers_come_twice_not_at_all_and_in_reverse() {
    let expect = |world: &World| told(world).into_iter().map(Some).collect::<Vec<_>>();
    let world = world_with(RELAY, Fault::RepeatedSeq, Dose::ONCE.after(3));
    let mut repeated = expect(&world);
    repeated.insert(3, repeated[3]);
    assert_eq!(seqs(&replay(&world).await), repeated);
    let world = world_with(RELAY, Fault::MissingSeq, Dose::ONCE.after(3));
    let mut missing = expect(&world);
    missing.remove(3);
    assert_eq!(seqs(&replay(&world).await), missing);
    let world = world_with(RELAY, Fault::ReversedSeq, Dose::ONCE.after(3));
    let mut reversed = expect(&world);
    reversed.swap(3, 4);
    assert_eq!(seqs(&replay(&world).await), reversed);
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn frames_that_nobody_should_send_come_before_the_right_ones() {
    let decode = |message: &Message| {
        let mut decoder = Decoder::new(FrameOptions::default());
        let frame = message.clone().into_data();
        decoder.decode(&frame).map(|event| matches!(event, Event::Unknown(_)))
    };
    for fault in [Fault::UnknownKind, Fault::UnknownOperation] {
        let world = world_with(RELAY, fault, Dose::ONCE.after(5));
        let messages = replay(&world).await;
        assert_eq!((messages.len(), decode(&messages[5])), (41, Ok(true)));
    }
    let world = world_with(RELAY, Fault::GarbageFrame, Dose::ONCE.after(5).of(100));
    let messages = replay(&world).await;
    assert_eq!((messages.len(), messages[5].len()), (41, 100));
    assert!(decode(&messages[5]).is_err());
    let world = world_with(RELAY, Fault::OversizedFrame, Dose::ONCE);
    let messages = replay(&world).await;
    assert_eq!(messages.len(), 41);
    assert!(
        matches!(decode(&messages[0]), Err(error) if matches!(error.fault, FrameFault::FrameLimit(_)))
    );
    let world = world_with(RELAY, Fault::WrongMessage, Dose::ONCE);
    let messages = replay(&world).await;
    assert_eq!((messages.len(), messages[0].is_text()), (40, true));
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn a_stream_ends_with_an_error_or_with_a_close() {
    let world = world_with(RELAY, Fault::ErrorFrame, Dose::ONCE.after(9));
    let mut reader = Reader::follow(&world, RELAY, Some(0)).await;
    let frames = reader.frames(11).await;
    let mut decoder = Decoder::new(FrameOptions::default());
    let last = decoder.decode(&frames[10]).unwrap();
    assert!(matches!(last, Event::Error(error) if error.error == "ConsumerTooSlow"));
    assert!(reader.next().await.is_none());
    let world = world_with(RELAY, Fault::Close, Dose::ONCE.after(9));
    let mut reader = Reader::follow(&world, RELAY, Some(0)).await;
    reader.frames(10).await;
    assert!(reader.next().await.is_none());
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn a_dose_counts_frames_of_all_connections_or_of_each() {
    let world = world_with(RELAY, Fault::MissingSeq, Dose::ALWAYS.every(10).each_connection());
    for _ in 0..2 {
        assert_eq!(replay(&world).await.len(), 36);
    }
    world.faults().switch_off(RELAY, Fault::MissingSeq);
    assert_eq!(replay(&world).await.len(), 40);
    world.faults().switch_on(RELAY, Fault::MissingSeq, Dose::ALWAYS.after(40).every(10));
    assert_eq!(replay(&world).await.len(), 40);
    assert_eq!(replay(&world).await.len(), 36);
    assert_eq!(world.faults().fired(RELAY, Fault::MissingSeq), 12);
}

#[tokio::test]
async fn requests_are_refused_with_what_servers_say_then() {
    let ask = |world: World| async move {
        let did = world.account(0).did;
        let answer = xrpc(&world, PDS, &format!("getRepo?did={did}")).await;
        assert_eq!(world.faults().unfired(), []);
        assert_eq!(xrpc(&world, PDS, &format!("getRepo?did={did}")).await.status, 200);
        answer
    };
    let answer = ask(world_with(PDS, Fault::RequestTooMany, Dose::ONCE.of(3))).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, "3"));
    assert_eq!(answer.header("ratelimit-remaining"), "0");
    assert_eq!(answer.json()["error"], "RateLimitExceeded");
    let answer = ask(world_with(PDS, Fault::RequestUnavailable, Dose::ONCE)).await;
    assert_eq!((answer.status, answer.header("content-type")), (503, "text/html"));
    let answer = ask(world_with(PDS, Fault::PrivateRedirect, Dose::ONCE)).await;
    assert_eq!((answer.status, answer.header("location")), (302, "https://10.0.0.1/"));
}

async fn repository(world: &World) -> reqwest::Result<Answer> {
    let path = format!("/xrpc/com.atproto.sync.getRepo?did={}", world.account(0).did);
    try_get(world, PDS, &path, &[]).await
}

#[tokio::test]
async fn a_repository_is_slow_or_cut() {
    let world = world_with(PDS, Fault::SlowRepo, Dose::ONCE.of(20));
    let since = Instant::now();
    let slow = repository(&world).await.unwrap();
    assert!(since.elapsed() >= Duration::from_millis(20 * (slow.bytes.len() as u64 / 256)));
    let usual = repository(&world).await.unwrap();
    assert_eq!(slow.bytes, usual.bytes);
    for bytes in [1, 1000, u64::MAX] {
        world.faults().switch_on(PDS, Fault::CutRepo, Dose::ONCE.of(bytes));
        let error = repository(&world).await.unwrap_err();
        assert!(error.is_body() || error.is_decode() || error.is_request(), "{error:?}");
    }
    assert_eq!(world.faults().fired(PDS, Fault::CutRepo), 3);
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn a_repository_stalls_or_has_no_end() {
    let world = world_with(PDS, Fault::StalledRepo, Dose::ONCE);
    let path = format!("/xrpc/com.atproto.sync.getRepo?did={}", world.account(0).did);
    let url = format!("{}{path}", world.url(PDS));
    let mut stalled = reqwest::get(&url).await.unwrap();
    let silence = Duration::from_millis(300);
    let rest = async { while let Ok(Some(_)) = stalled.chunk().await {} };
    assert!(tokio::time::timeout(silence, rest).await.is_err());
    world.faults().switch_on(PDS, Fault::EndlessRepo, Dose::ONCE);
    let mut endless = reqwest::get(&url).await.unwrap();
    let mut bytes = 0;
    while bytes < 10_000_000 {
        bytes += endless.chunk().await.unwrap().expect("no end").len();
    }
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn documents_are_of_others_of_strange_keys_of_private_hosts_and_none() {
    let ask = |world: World| async move {
        let did = world.account(0).did;
        let answer = get(&world, Server::Plc, &format!("/{did}")).await;
        assert_eq!(world.faults().unfired(), []);
        (world.account(0), answer)
    };
    let read = |answer: &Answer| DidDocument::parse(&answer.bytes, &Options::default());
    let (account, answer) = ask(world_with(Server::Plc, Fault::WrongDocument, Dose::ONCE)).await;
    assert_ne!(read(&answer).unwrap().did().as_str(), account.did);
    let (account, answer) = ask(world_with(Server::Plc, Fault::StrangerKey, Dose::ONCE)).await;
    let document = read(&answer).unwrap();
    let key = format!("did:key:{}", document.signing_key().unwrap().multibase);
    assert_ne!(key, account.signing_key);
    let (_, answer) = ask(world_with(Server::Plc, Fault::PrivateHost, Dose::ONCE)).await;
    assert_eq!(read(&answer).unwrap().host(), Some("https://10.0.0.1"));
    let (_, answer) = ask(world_with(Server::Plc, Fault::MalformedDocument, Dose::ONCE)).await;
    assert!(read(&answer).is_err());
}

#[tokio::test]
async fn a_handle_resolves_to_somebody_else() {
    let world = world_with(PDS, Fault::WrongHandle, Dose::times(2));
    let account = world.account(0);
    let host = [("host", account.handle.as_str())];
    let wrong = try_get(&world, PDS, "/.well-known/atproto-did", &host).await.unwrap();
    assert_ne!(wrong.text(), account.did);
    let path = format!("/xrpc/com.atproto.identity.resolveHandle?handle={}", account.handle);
    assert_ne!(get(&world, PDS, &path).await.json()["did"], account.did);
    assert_eq!(get(&world, PDS, &path).await.json()["did"], account.did);
}

#[test]
fn every_fault_has_a_name_of_its_own_and_a_server_that_has_it() {
    let world = world(|_| ());
    for fault in Fault::ALL {
        assert_eq!(Fault::from_name(fault.name()), Some(*fault));
        let servers = world.spec().servers();
        assert!(servers.iter().any(|server| fault.occasion().is_of(*server)), "{}", fault.name());
    }
    assert!(!Occasion::Document.is_of(RELAY));
}
