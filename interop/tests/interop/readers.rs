//! What other people's consumers yield of our simulator's stream, held against its ledger.

use std::collections::BTreeMap;

use serde_json::Value;
use simnet::servers::{Kind, Line, Server, Spec, Status, World};
use wireproof::codec::Cid;
use wireproof_interop::kit;
use wireproof_interop::reader::Reader;

const RELAY: Server = Server::Relay(0);

#[test]
fn atproto_sync_yields_what_the_ledger_says() {
    let kit = kit!(Readers);
    yields_what_the_ledger_says(|world| {
        Reader::atproto_sync(&kit, &stream(world), &world.url(Server::Plc))
    });
}

#[test]
fn atcute_firehose_yields_what_the_ledger_says() {
    let kit = kit!(Readers);
    yields_what_the_ledger_says(|world| Reader::atcute_firehose(&kit, &stream(world)));
}

fn world() -> World {
    let spec = Spec { accounts: 6, records: 20, ..Spec::default() };
    World::start(spec).expect("ports for a small network")
}

fn stream(world: &World) -> String {
    format!("ws://localhost:{}", world.port(RELAY))
}

/// Lets all that can happen to an account happen while a reader reads.
fn yields_what_the_ledger_says(start: impl FnOnce(&World) -> Reader) {
    let world = world();
    let mut records = Records::of(&world);
    world.write(200);
    let reader = start(&world);
    // The old events first: some would no longer hold once keys have changed.
    read_all(&world, &reader, 0, &mut records);
    let old = world.told(RELAY).len();
    world.rotate_key(0);
    world.write_as(0);
    world.rename(1, "renamed.test");
    world.set_status(2, Status::Deactivated);
    world.set_status(2, Status::Active);
    world.sync(3);
    world.migrate(4, 1);
    world.write(200);
    world.set_status(5, Status::TakenDown);
    read_all(&world, &reader, old, &mut records);
    assert_eq!(reader.rest(), [Value::Null; 0]);
    assert_eq!(records, Records::of(&world));
}

/// Reads all that the ledger has from `start` on, and holds each event against it.
fn read_all(world: &World, reader: &Reader, start: usize, records: &mut Records) {
    for line in &world.told(RELAY)[start..] {
        for _ in 0..yields(line) {
            let event = reader.next();
            assert_eq!(event["kind"], kind(line), "{event}");
            assert_eq!((&event["seq"], &event["did"]), (&line.seq.into(), &did(line)), "{event}");
            if line.subject.kind == Kind::Commit {
                assert_eq!(event["rev"], line.subject.rev.as_str(), "{event}");
                records.apply(&event);
            }
        }
    }
}

/// How many events a reader makes of a line.
fn yields(line: &Line) -> u32 {
    match line.subject.kind {
        Kind::Commit => line.subject.postings,
        _ => 1,
    }
}

fn kind(line: &Line) -> &'static str {
    match line.subject.kind {
        Kind::Commit => "commit",
        Kind::Sync => "sync",
        Kind::Identity => "identity",
        Kind::Account => "account",
        Kind::Hostile => "hostile",
    }
}

fn did(line: &Line) -> Value {
    line.subject.did.as_str().into()
}

/// The records of all accounts, as somebody has them who applies every operation.
#[derive(Debug, PartialEq)]
struct Records(BTreeMap<String, BTreeMap<String, String>>);

impl Records {
    fn of(world: &World) -> Self {
        let texts = |records: BTreeMap<String, Cid>| {
            records.into_iter().map(|(path, cid)| (path, cid.to_string())).collect()
        };
        let expected = world.expected().into_iter();
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
