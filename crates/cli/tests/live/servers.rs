//! Whose accounts may a server tell of?

use std::process::Command;

use serde_json::Value;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::running::{follow, lines, told};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

fn network() -> Simulation {
    let (pds, jetstreams, prepared) = (2, 0, 40);
    let spec = Spec {
        accounts: 6,
        records: 5,
        pds,
        jetstreams,
        initial_commits: prepared,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

/// The codes of all that this server has told.
fn codes(sim: &Simulation, server: Server, args: &[&str]) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let (count, port) = (sim.sent_count(server).to_string(), sim.port(PDS).to_string());
    command.args(["follow", "--cursor", "oldest", "--events", &count]);
    command.args(["--host", &sim.url(server), "--plc", &sim.url(Server::Plc)]);
    command.args(["--development-port", &port, "--state"]).arg(dir.path()).args(args);
    let printed = lines(command);
    assert!(!printed.is_empty());
    printed.into_iter().map(|line| line["code"].clone()).collect()
}

#[test]
fn a_server_is_believed_of_its_own_accounts() {
    let sim = network();
    assert!(codes(&sim, PDS, &["--pds"]).iter().all(|code| code == "verified"));
}

#[test]
fn what_another_than_its_server_tells_of_an_account_is_refused_if_that_is_asked_for() {
    let sim = network();
    // A relay is nobody's server, and need not be one.
    assert!(codes(&sim, RELAY, &["--pds"]).iter().all(|code| code == "event/host"));
    assert!(codes(&sim, RELAY, &[]).iter().all(|code| code == "verified"));
}

#[test]
fn an_account_that_came_here_meanwhile_is_asked_for_once_more() {
    let sim = network();
    sim.faults().enable(Server::Plc, Fault::PrivateHost, FaultSchedule::ONCE);
    assert!(codes(&sim, PDS, &["--pds"]).iter().all(|code| code == "verified"));
    assert_eq!(sim.faults().unfired(), []);
    sim.faults().enable(Server::Plc, Fault::PrivateHost, FaultSchedule::ALWAYS);
    assert!(codes(&sim, PDS, &["--pds"]).iter().all(|code| code == "event/host"));
}

#[test]
fn one_server_has_to_be_named() {
    let (sim, dir) = (network(), tempfile::tempdir().unwrap());
    let second = sim.url(Server::Pds(1));
    for args in [&["--pds", "--host", &second][..], &["--pds", "--jetstream"]] {
        let output = follow(&sim, dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains("--pds"), "{}", told(&output));
    }
    assert_eq!(sim.connection_count(), 0);
}
