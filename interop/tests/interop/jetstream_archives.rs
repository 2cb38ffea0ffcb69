//! The hosted archive of the simulator, read by a Python client of such archives: the same events as our reader finds, and the
//! records of the network.

use std::collections::BTreeMap;
use std::process::Command;

use jetstream_archive::segment::{RowKind, Segment};
use serde_json::Value;
use simnet::jetstream_segment::SealedSegment;
use simnet::servers::{HostedArchive, Server, Simulation, Spec};
use wireproof_interop::kit;
use wireproof_interop::program::Kit;

const JETSTREAM: Server = Server::Jetstream(0);

/// The events that the Python client reads, and the end of the archive.
fn read_by_python(kit: &Kit, sim: &Simulation) -> (Vec<Value>, u64) {
    let (python, script) = kit.jetstream_reader();
    let read = Command::new(python).arg(script).arg(sim.url(JETSTREAM)).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let lines = str::from_utf8(&read.stdout).unwrap().lines();
    let mut lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let tip = lines.pop().unwrap()["tip"].as_u64().unwrap();
    (lines, tip)
}

fn text(event: &Value, field: &str) -> String {
    event[field].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_python_client_reads_the_segments_that_we_write() {
    let kit = kit!(Jetstream);
    let archive = HostedArchive { events_per_block: 32, ..HostedArchive::default() };
    let sim = Simulation::start(Spec { accounts: 10, archive, ..Spec::default() }).unwrap();
    let (events, tip) = read_by_python(&kit, &sim);
    assert_eq!(events.len() as u64, tip);
    assert!(events.iter().any(|event| event["is_resync"] == Value::Bool(true)));
    let mut records: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (event, seq) in events.iter().zip(1u64..) {
        assert_eq!(event["seq"], seq);
        let account = records.entry(text(event, "did")).or_default();
        let path = format!("{}/{}", text(event, "collection"), text(event, "rkey"));
        match (&*text(event, "kind"), &*text(event, "operation")) {
            ("commit", "delete") => drop(account.remove(&path)),
            ("commit", _) => drop(account.insert(path, text(event, "cid"))),
            ("sync", _) => account.clear(),
            _ => {}
        }
    }
    for expected in sim.expected_accounts() {
        let cids = expected.records.iter().map(|(path, cid)| (path.clone(), cid.to_string()));
        assert_eq!(records[&expected.account.did], cids.collect(), "{}", expected.account.did);
    }
}

#[test]
fn a_python_client_and_our_reader_find_the_same_columns() {
    let kit = kit!(Jetstream);
    let sim = Simulation::start(Spec { accounts: 4, ..Spec::default() }).unwrap();
    let (events, _) = read_by_python(&kit, &sim);
    let mut by_python = events.iter();
    for number in 0.. {
        let Some(bytes) = sim.archive_segment(JETSTREAM, number) else { break };
        let segment = Segment::read(&bytes).unwrap();
        for block in 0..segment.blocks().len() {
            let block = segment.block(block).unwrap();
            for row in block.rows() {
                let (row, event) = (row.unwrap(), by_python.next().unwrap());
                let found = (row.seq, row.did, row.collection, row.rkey, row.kind);
                let kind = match (&*text(event, "kind"), &*text(event, "operation")) {
                    ("identity", _) => RowKind::Identity,
                    ("account", _) => RowKind::Account,
                    ("sync", _) => RowKind::Sync,
                    (_, "update") => RowKind::Update,
                    (_, "delete") => RowKind::Delete,
                    _ if event["is_resync"] == Value::Bool(true) => RowKind::Resync,
                    _ => RowKind::Create,
                };
                let [did, collection, rkey] =
                    ["did", "collection", "rkey"].map(|field| text(event, field));
                let seq = event["seq"].as_u64().unwrap();
                assert_eq!(found, (seq, &*did, &*collection, &*rkey, kind));
            }
        }
    }
    assert!(by_python.next().is_none());
}

#[test]
fn a_python_client_refuses_what_our_reader_refuses() {
    let kit = kit!(Jetstream);
    let sim = Simulation::start(Spec { accounts: 2, ..Spec::default() }).unwrap();
    let bytes = sim.archive_segment(JETSTREAM, 0).unwrap();
    let mut damaged = SealedSegment { bytes, blocks: Vec::new() };
    damaged.bytes[26] ^= 1;
    assert_eq!(Segment::read(&damaged.bytes).unwrap_err().code(), "jss/checksum");
    sim.faults().enable(
        JETSTREAM,
        simnet::servers::Fault::WrongChecksum,
        simnet::servers::FaultSchedule::ALWAYS,
    );
    let (python, script) = kit.jetstream_reader();
    let read = Command::new(python).arg(script).arg(sim.url(JETSTREAM)).output().unwrap();
    assert!(!read.status.success(), "{}", String::from_utf8_lossy(&read.stdout));
}
