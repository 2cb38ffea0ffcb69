//! What other people's consumers yield of our simulator's stream, held against its ledger.

use std::collections::BTreeMap;

use serde_json::Value;
use simnet::servers::{AccountStatus, EventKind, SentEvent, Server, Simulation, Spec};
use wireproof::codec::Cid;
use wireproof_interop::kit;
use wireproof_interop::reader::Reader;

const RELAY: Server = Server::Relay(0);

#[test]
fn atproto_sync_yields_what_the_ledger_says() {
    let kit = kit!(Readers);
    yields_what_the_ledger_says(|sim| {
        Reader::atproto_sync(&kit, &stream(sim), &sim.url(Server::Plc))
    });
}

#[test]
fn atcute_firehose_yields_what_the_ledger_says() {
    let kit = kit!(Readers);
    yields_what_the_ledger_says(|sim| Reader::atcute_firehose(&kit, &stream(sim)));
}

fn sim() -> Simulation {
    let spec = Spec { accounts: 6, records: 20, ..Spec::default() };
    Simulation::start(spec).expect("ports for a small network")
}

fn stream(sim: &Simulation) -> String {
    format!("ws://localhost:{}", sim.port(RELAY))
}

/// Lets all that can happen to an account happen while a reader reads.
fn yields_what_the_ledger_says(start: impl FnOnce(&Simulation) -> Reader) {
    let sim = sim();
    let mut records = Records::of(&sim);
    sim.write_commits(200);
    let reader = start(&sim);
    // The old events first: some would no longer hold once keys have changed.
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

/// Reads all that the ledger has from `start` on, and holds each event against it.
fn read_all(sim: &Simulation, reader: &Reader, start: usize, records: &mut Records) {
    for line in &sim.sent_events(RELAY)[start..] {
        for _ in 0..yields(line) {
            let event = reader.next();
            assert_eq!(event["kind"], kind(line), "{event}");
            assert_eq!((&event["seq"], &event["did"]), (&line.seq.into(), &did(line)), "{event}");
            if line.subject.kind == EventKind::Commit {
                assert_eq!(event["rev"], line.subject.rev.as_str(), "{event}");
                records.apply(&event);
            }
        }
    }
}

/// How many events a reader makes of a line.
fn yields(line: &SentEvent) -> u32 {
    match line.subject.kind {
        EventKind::Commit => line.subject.jetstream_events,
        _ => 1,
    }
}

fn kind(line: &SentEvent) -> &'static str {
    match line.subject.kind {
        EventKind::Commit => "commit",
        EventKind::Sync => "sync",
        EventKind::Identity => "identity",
        EventKind::Account => "account",
        EventKind::Hostile => "hostile",
    }
}

fn did(line: &SentEvent) -> Value {
    line.subject.did.as_str().into()
}

/// The records of all accounts, as somebody has them who applies every operation.
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
