//! Every fault occurs and is counted.

use std::time::{Duration, Instant};

use atproto::did_document::{DidDocument, Options};
use atproto::event::{Decoder, Event, FrameFault, Options as FrameOptions};
use atproto::syntax::Tid;
use simnet::servers::{Fault, FaultSchedule, InjectionPoint, Server, Simulation};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::client::{Answer, Reader, get, sim, try_get, xrpc};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

/// A network with 40 events to replay and a fault.
fn sim_with(server: Server, fault: Fault, schedule: FaultSchedule) -> Simulation {
    let sim = sim(|spec| spec.initial_commits = 40);
    sim.faults().enable(server, fault, schedule);
    assert_eq!(sim.faults().unfired(), [(server, fault)]);
    sim
}

fn seq(message: &Message) -> Option<i64> {
    let Message::Binary(bytes) = message else { return None };
    Decoder::new(FrameOptions::default()).decode(bytes).ok()?.seq()
}

fn sent(sim: &Simulation) -> Vec<i64> {
    sim.sent_events(RELAY).iter().map(|line| line.seq).collect()
}

/// All messages for a reader without filters, until the end or a timeout.
async fn replay(sim: &Simulation) -> Vec<Message> {
    let mut reader = Reader::follow(sim, RELAY, Some(0)).await;
    let messages = reader.messages().await;
    messages.into_iter().filter(|message| !message.is_ping()).collect()
}

fn seqs(messages: &[Message]) -> Vec<Option<i64>> {
    messages.iter().map(seq).collect()
}

#[tokio::test]
async fn a_connection_is_dropped_and_the_next_one_serves() {
    let sim = sim_with(PDS, Fault::Drop, FaultSchedule::ONCE);
    let path = "/xrpc/_health";
    assert!(try_get(&sim, PDS, path, &[("connection", "close")]).await.is_err());
    assert_eq!(get(&sim, PDS, path).await.status, 200);
    assert_eq!(sim.faults().fired(PDS, Fault::Drop), 1);
}

#[tokio::test]
async fn an_upgrade_is_refused_with_the_status_of_the_fault() {
    let faults = [
        (Fault::UpgradeTooMany, 429),
        (Fault::UpgradeUnavailable, 503),
        (Fault::UpgradeForbidden, 403),
        (Fault::UpgradeNotFound, 404),
        (Fault::UpgradeNotImplemented, 501),
    ];
    for (fault, status) in faults {
        let sim = sim_with(RELAY, fault, FaultSchedule::times(2).with_amount(7));
        for _ in 0..2 {
            match Reader::try_follow(&sim, RELAY, None).await {
                Err(Error::Http(response)) => {
                    assert_eq!(response.status(), status);
                    let retry = response.headers().get("retry-after");
                    assert_eq!(retry.is_some_and(|after| after == "7"), status == 429);
                }
                other => panic!("{:?}", other.err()),
            }
        }
        assert!(Reader::try_follow(&sim, RELAY, None).await.is_ok());
        assert_eq!(sim.faults().fired(RELAY, fault), 2);
    }
}

#[tokio::test]
async fn a_stream_is_cut_at_the_very_byte() {
    // The first frame is sent after a head of four bytes.
    let whole = sim(|spec| spec.initial_commits = 40);
    let first = Reader::follow(&whole, RELAY, Some(0)).await.frames(1).await[0].len() as u64 + 4;
    assert!((130..65_000).contains(&first));
    for (bytes, frames) in [(1, 0), (first - 1, 0), (first, 1), (first + 1, 1)] {
        let sim = sim_with(RELAY, Fault::Cut, FaultSchedule::ONCE.with_amount(bytes));
        assert_eq!(replay(&sim).await.len(), frames, "{bytes}");
        assert_eq!(sim.faults().unfired(), [], "{bytes}");
        assert_eq!(replay(&sim).await.len(), 40);
    }
}

#[tokio::test]
async fn a_stall_is_silence_on_an_open_connection() {
    let sim = sim_with(RELAY, Fault::Stall, FaultSchedule::ONCE.after(9));
    let mut reader = Reader::follow(&sim, RELAY, Some(0)).await;
    reader.frames(10).await;
    assert!(reader.hears_nothing().await);
    assert_eq!(sim.faults().fired(RELAY, Fault::Stall), 1);
}

#[tokio::test]
async fn sequence_numbers_come_twice_not_at_all_and_in_reverse() {
    let expect = |sim: &Simulation| sent(sim).into_iter().map(Some).collect::<Vec<_>>();
    let sim = sim_with(RELAY, Fault::RepeatedSeq, FaultSchedule::ONCE.after(3));
    let mut repeated = expect(&sim);
    repeated.insert(3, repeated[3]);
    assert_eq!(seqs(&replay(&sim).await), repeated);
    let sim = sim_with(RELAY, Fault::MissingSeq, FaultSchedule::ONCE.after(3));
    let mut missing = expect(&sim);
    missing.remove(3);
    assert_eq!(seqs(&replay(&sim).await), missing);
    let sim = sim_with(RELAY, Fault::ReversedSeq, FaultSchedule::ONCE.after(3));
    let mut reversed = expect(&sim);
    reversed.swap(3, 4);
    assert_eq!(seqs(&replay(&sim).await), reversed);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn invalid_frames_are_sent_before_the_valid_ones() {
    let decode = |message: &Message| {
        let mut decoder = Decoder::new(FrameOptions::default());
        let frame = message.clone().into_data();
        decoder.decode(&frame).map(|event| matches!(event, Event::Unknown(_)))
    };
    for fault in [Fault::UnknownKind, Fault::UnknownOperation] {
        let sim = sim_with(RELAY, fault, FaultSchedule::ONCE.after(5));
        let messages = replay(&sim).await;
        assert_eq!((messages.len(), decode(&messages[5])), (41, Ok(true)));
    }
    let sim = sim_with(RELAY, Fault::GarbageFrame, FaultSchedule::ONCE.after(5).with_amount(100));
    let messages = replay(&sim).await;
    assert_eq!((messages.len(), messages[5].len()), (41, 100));
    assert!(decode(&messages[5]).is_err());
    let sim = sim_with(RELAY, Fault::OversizedFrame, FaultSchedule::ONCE);
    let messages = replay(&sim).await;
    assert_eq!(messages.len(), 41);
    assert!(
        matches!(decode(&messages[0]), Err(error) if matches!(error.fault, FrameFault::FrameLimit(_)))
    );
    let sim = sim_with(RELAY, Fault::WrongMessage, FaultSchedule::ONCE);
    let messages = replay(&sim).await;
    assert_eq!((messages.len(), messages[0].is_text()), (40, true));
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_stream_ends_with_an_error_or_with_a_close() {
    let sim = sim_with(RELAY, Fault::ErrorFrame, FaultSchedule::ONCE.after(9));
    let mut reader = Reader::follow(&sim, RELAY, Some(0)).await;
    let frames = reader.frames(11).await;
    let mut decoder = Decoder::new(FrameOptions::default());
    let last = decoder.decode(&frames[10]).unwrap();
    assert!(matches!(last, Event::Error(error) if error.error == "ConsumerTooSlow"));
    assert!(reader.next().await.is_none());
    let sim = sim_with(RELAY, Fault::Close, FaultSchedule::ONCE.after(9));
    let mut reader = Reader::follow(&sim, RELAY, Some(0)).await;
    reader.frames(10).await;
    assert!(reader.next().await.is_none());
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_dose_counts_frames_of_all_connections_or_of_each() {
    let sim = sim_with(RELAY, Fault::MissingSeq, FaultSchedule::ALWAYS.every(10).per_connection());
    for _ in 0..2 {
        assert_eq!(replay(&sim).await.len(), 36);
    }
    sim.faults().disable(RELAY, Fault::MissingSeq);
    assert_eq!(replay(&sim).await.len(), 40);
    sim.faults().enable(RELAY, Fault::MissingSeq, FaultSchedule::ALWAYS.after(40).every(10));
    assert_eq!(replay(&sim).await.len(), 40);
    assert_eq!(replay(&sim).await.len(), 36);
    assert_eq!(sim.faults().fired(RELAY, Fault::MissingSeq), 12);
}

#[tokio::test]
async fn requests_are_refused_with_what_servers_say_then() {
    let ask = |sim: Simulation| async move {
        let did = sim.account(0).did;
        let answer = xrpc(&sim, PDS, &format!("getRepo?did={did}")).await;
        assert_eq!(sim.faults().unfired(), []);
        assert_eq!(xrpc(&sim, PDS, &format!("getRepo?did={did}")).await.status, 200);
        answer
    };
    let answer =
        ask(sim_with(PDS, Fault::RequestTooMany, FaultSchedule::ONCE.with_amount(3))).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, "3"));
    assert_eq!(answer.header("ratelimit-remaining"), "0");
    assert_eq!(answer.json()["error"], "RateLimitExceeded");
    let answer = ask(sim_with(PDS, Fault::RequestUnavailable, FaultSchedule::ONCE)).await;
    assert_eq!((answer.status, answer.header("content-type")), (503, "text/html"));
    let answer = ask(sim_with(PDS, Fault::PrivateRedirect, FaultSchedule::ONCE)).await;
    assert_eq!((answer.status, answer.header("location")), (302, "https://10.0.0.1/"));
}

async fn repository(sim: &Simulation) -> reqwest::Result<Answer> {
    let path = format!("/xrpc/com.atproto.sync.getRepo?did={}", sim.account(0).did);
    try_get(sim, PDS, &path, &[]).await
}

#[tokio::test]
async fn a_repository_is_slow_or_cut() {
    let sim = sim_with(PDS, Fault::SlowRepo, FaultSchedule::ONCE.with_amount(20));
    let since = Instant::now();
    let slow = repository(&sim).await.unwrap();
    assert!(since.elapsed() >= Duration::from_millis(20 * (slow.bytes.len() as u64 / 256)));
    let usual = repository(&sim).await.unwrap();
    assert_eq!(slow.bytes, usual.bytes);
    for bytes in [1, 1000, u64::MAX] {
        sim.faults().enable(PDS, Fault::CutRepo, FaultSchedule::ONCE.with_amount(bytes));
        let error = repository(&sim).await.unwrap_err();
        assert!(error.is_body() || error.is_decode() || error.is_request(), "{error:?}");
    }
    assert_eq!(sim.faults().fired(PDS, Fault::CutRepo), 3);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_repository_stalls_or_has_no_end() {
    let sim = sim_with(PDS, Fault::StalledRepo, FaultSchedule::ONCE);
    let path = format!("/xrpc/com.atproto.sync.getRepo?did={}", sim.account(0).did);
    let url = format!("{}{path}", sim.url(PDS));
    let mut stalled = reqwest::get(&url).await.unwrap();
    let silence = Duration::from_millis(300);
    let rest = async { while let Ok(Some(_)) = stalled.chunk().await {} };
    assert!(tokio::time::timeout(silence, rest).await.is_err());
    sim.faults().enable(PDS, Fault::EndlessRepo, FaultSchedule::ONCE);
    let mut endless = reqwest::get(&url).await.unwrap();
    let mut bytes = 0;
    while bytes < 10_000_000 {
        bytes += endless.chunk().await.unwrap().expect("no end").len();
    }
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn documents_are_of_others_of_strange_keys_of_private_hosts_and_none() {
    let ask = |sim: Simulation| async move {
        let did = sim.account(0).did;
        let answer = get(&sim, Server::Plc, &format!("/{did}")).await;
        assert_eq!(sim.faults().unfired(), []);
        (sim.account(0), answer)
    };
    let read = |answer: &Answer| DidDocument::parse(&answer.bytes, &Options::default());
    let (account, answer) =
        ask(sim_with(Server::Plc, Fault::WrongDocument, FaultSchedule::ONCE)).await;
    assert_ne!(read(&answer).unwrap().did().as_str(), account.did);
    let (account, answer) = ask(sim_with(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE)).await;
    let document = read(&answer).unwrap();
    let key = format!("did:key:{}", document.signing_key().unwrap().multibase);
    assert_ne!(key, account.signing_key);
    let (_, answer) = ask(sim_with(Server::Plc, Fault::PrivateHost, FaultSchedule::ONCE)).await;
    assert_eq!(read(&answer).unwrap().host(), Some("https://10.0.0.1"));
    let (_, answer) =
        ask(sim_with(Server::Plc, Fault::MalformedDocument, FaultSchedule::ONCE)).await;
    assert!(read(&answer).is_err());
}

#[tokio::test]
async fn a_host_states_an_old_revision_of_an_account() {
    let sim = sim_with(RELAY, Fault::OldRev, FaultSchedule::times(2).with_amount(2));
    let account = &sim.expected_accounts()[0];
    for method in ["getRepoStatus", "getLatestCommit"] {
        let path = format!("/xrpc/com.atproto.sync.{method}?did={}", account.account.did);
        let rev = get(&sim, RELAY, &path).await.json()["rev"].as_str().unwrap().to_owned();
        let rev = Tid::parse(&rev).unwrap();
        assert_eq!(account.rev.micros() - rev.micros(), 2 * 24 * 3600 * 1_000_000);
        assert_eq!(get(&sim, PDS, &path).await.json()["rev"], account.rev.to_string());
    }
}

#[tokio::test]
async fn a_list_has_odd_entries_among_all_accounts() {
    let sim = sim_with(PDS, Fault::OddEntries, FaultSchedule::ONCE);
    let path = "/xrpc/com.atproto.sync.listRepos?limit=1000";
    let lists = [get(&sim, PDS, path).await.json(), get(&sim, PDS, path).await.json()];
    let [odd, plain] = lists.each_ref().map(|list| list["repos"].as_array().unwrap());
    assert!(odd.len() > plain.len() && odd.iter().any(serde_json::Value::is_null));
    let is_listed = |did: &serde_json::Value| odd.iter().any(|entry| entry["did"] == *did);
    assert!(plain.iter().all(|entry| is_listed(&entry["did"])));
}

#[tokio::test]
async fn a_handle_resolves_to_somebody_else() {
    let sim = sim_with(PDS, Fault::WrongHandle, FaultSchedule::times(2));
    let account = sim.account(0);
    let host = [("host", account.handle.as_str())];
    let wrong = try_get(&sim, PDS, "/.well-known/atproto-did", &host).await.unwrap();
    assert_ne!(wrong.text(), account.did);
    let path = format!("/xrpc/com.atproto.identity.resolveHandle?handle={}", account.handle);
    assert_ne!(get(&sim, PDS, &path).await.json()["did"], account.did);
    assert_eq!(get(&sim, PDS, &path).await.json()["did"], account.did);
}

#[test]
fn every_fault_has_a_name_of_its_own_and_a_server_that_has_it() {
    let sim = sim(|_| ());
    for fault in Fault::ALL {
        assert_eq!(Fault::from_name(fault.name()), Some(*fault));
        let servers = sim.spec().servers();
        assert!(
            servers.iter().any(|server| fault.injection_point().exists_on(*server)),
            "{}",
            fault.name()
        );
    }
    assert!(!InjectionPoint::Document.exists_on(RELAY));
}
