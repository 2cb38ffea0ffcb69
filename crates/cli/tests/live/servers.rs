//! Whose accounts may a server tell of?

use std::process::Command;

use serde_json::Value;
use simnet::servers::{Dose, Fault, Server, Spec, World};

use crate::running::{follow, lines, told};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

fn network() -> World {
    let (pds, jetstreams, prepared) = (2, 0, 40);
    let spec = Spec { accounts: 6, records: 5, pds, jetstreams, prepared, ..Spec::default() };
    World::start(spec).unwrap()
}

/// The codes of all that this server has told.
fn codes(world: &World, server: Server, args: &[&str]) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let (count, port) = (world.told_count(server).to_string(), world.port(PDS).to_string());
    command.args(["follow", "--cursor", "oldest", "--events", &count]);
    command.args(["--host", &world.url(server), "--plc", &world.url(Server::Plc)]);
    command.args(["--development-port", &port, "--state"]).arg(dir.path()).args(args);
    let printed = lines(command);
    assert!(!printed.is_empty());
    printed.into_iter().map(|line| line["code"].clone()).collect()
}

#[test]
fn a_server_is_believed_of_its_own_accounts() {
    let world = network();
    assert!(codes(&world, PDS, &["--pds"]).iter().all(|code| code == "verified"));
}

#[test]
fn what_another_than_its_server_tells_of_an_account_is_refused_if_that_is_asked_for() {
    let world = network();
    // A relay is nobody's server, and need not be one.
    assert!(codes(&world, RELAY, &["--pds"]).iter().all(|code| code == "event/host"));
    assert!(codes(&world, RELAY, &[]).iter().all(|code| code == "verified"));
}

#[test]
fn an_account_that_came_here_meanwhile_is_asked_for_once_more() {
    let world = network();
    world.faults().switch_on(Server::Plc, Fault::PrivateHost, Dose::ONCE);
    assert!(codes(&world, PDS, &["--pds"]).iter().all(|code| code == "verified"));
    assert_eq!(world.faults().unfired(), []);
    world.faults().switch_on(Server::Plc, Fault::PrivateHost, Dose::ALWAYS);
    assert!(codes(&world, PDS, &["--pds"]).iter().all(|code| code == "event/host"));
}

#[test]
fn one_server_has_to_be_named() {
    let (world, dir) = (network(), tempfile::tempdir().unwrap());
    let second = world.url(Server::Pds(1));
    for args in [&["--pds", "--host", &second][..], &["--pds", "--jetstream"]] {
        let output = follow(&world, dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains("--pds"), "{}", told(&output));
    }
    assert_eq!(world.connections(), 0);
}
