//! The output of other projects' consumers of the simulator's stream, compared with the sent events.

use std::collections::BTreeMap;

use codec::Cid;
use serde_json::Value;
use simnet::servers::{AccountStatus, EventKind, SentEvent, Server, Simulation, Spec};
use wireproof_interop::kit;
use wireproof_interop::reader::Reader;

const RELAY: Server = Server::Relay(0);

#[test]
fn atproto_sync_yields_the_sent_events() {
    let kit = kit!(Readers);
    yields_the_sent_events(|sim| {
        Reader::atproto_sync(&kit, &stream(sim), &sim.url(Server::Plc), 0)
    });
}

#[test]
fn atcute_firehose_yields_the_sent_events() {
    let kit = kit!(Readers);
    yields_the_sent_events(|sim| Reader::atcute_firehose(&kit, &stream(sim), 0));
}

fn start_sim() -> Simulation {
    let spec = Spec { accounts: 6, records: 20, ..Spec::default() };
    Simulation::start(spec).expect("ports for a small network")
}

fn stream(sim: &Simulation) -> String {
    format!("ws://localhost:{}", sim.port(RELAY))
}

/// Changes accounts in every way while a reader reads, and compares its output.
fn yields_the_sent_events(start: impl FnOnce(&Simulation) -> Reader) {
    let sim = start_sim();
    let mut records = Records::of(&sim);
    sim.write_commits(200);
    let reader = start(&sim);
    // The old events first: some would be invalid after key changes.
    read_all(&sim, &reader, 0, &mut records);
    let old = sim.sent_events(RELAY).len();
    sim.rotate_key(0);
    sim.write_commit_as(0);
    sim.change_handle(1, "renamed.test");
    sim.set_account_status(2, AccountStatus::Deactivated);
    sim.set_account_status(2, AccountStatus::Active);
    sim.send_sync(3);
    sim.migrate_account(4, 1);
    sim.write_commits(200);
    sim.set_account_status(5, AccountStatus::TakenDown);
    read_all(&sim, &reader, old, &mut records);
    assert_eq!(reader.rest(), [Value::Null; 0]);
    assert_eq!(records, Records::of(&sim));
}

/// Reads all events from `start` on and compares them with the sent ones.
fn read_all(sim: &Simulation, reader: &Reader, start: usize, records: &mut Records) {
    for sent in &sim.sent_events(RELAY)[start..] {
        for _ in 0..yields(sent) {
            let event = reader.next();
            assert_eq!(event["kind"], kind(sent), "{event}");
            assert_eq!((&event["seq"], &event["did"]), (&sent.seq.into(), &did(sent)), "{event}");
            if sent.subject.kind == EventKind::Commit {
                assert_eq!(event["rev"], sent.subject.rev.as_str(), "{event}");
                records.apply(&event);
            }
        }
    }
}

/// The number of events that a reader yields for a sent event.
fn yields(sent: &SentEvent) -> u32 {
    match sent.subject.kind {
        EventKind::Commit => sent.subject.jetstream_events,
        _ => 1,
    }
}

fn kind(sent: &SentEvent) -> &'static str {
    match sent.subject.kind {
        EventKind::Commit => "commit",
        EventKind::Sync => "sync",
        EventKind::Identity => "identity",
        EventKind::Account => "account",
        EventKind::Hostile => "hostile",
    }
}

fn did(sent: &SentEvent) -> Value {
    sent.subject.did.as_str().into()
}

/// The records of all accounts after every operation.
#[derive(Debug, PartialEq)]
struct Records(BTreeMap<String, BTreeMap<String, String>>);

impl Records {
    fn of(sim: &Simulation) -> Self {
        let texts = |records: BTreeMap<String, Cid>| {
            records.into_iter().map(|(path, cid)| (path, cid.to_string())).collect()
        };
        let expected = sim.expected_accounts().into_iter();
        Self(expected.map(|of| (of.account.did, texts(of.records))).collect())
    }

    fn apply(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        let records = self.0.get_mut(&text("did").unwrap()).expect("an account of the network");
        let path = text("path").unwrap();
        match text("cid") {
            Some(cid) => records.insert(path, cid),
            None => records.remove(&path),
        };
    }
}
