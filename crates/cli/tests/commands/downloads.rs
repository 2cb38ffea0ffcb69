//! `verify` of accounts on hosts whose repositories have no end, or are compressed, or come slowly.

use assert_cmd::assert::Assert;
use simnet::servers::{Attack, Fault, FaultSchedule, Server, Simulation, Spec};

use crate::stderr;

const PDS: Server = Server::Pds(0);

fn sim() -> Simulation {
    let spec = Spec { accounts: 2, records: 20, jetstreams: 0, ..Spec::default() };
    Simulation::start(spec).expect("free ports")
}

/// Verifies an account with the default limits, and saves its repository.
fn verify(sim: &Simulation, did: &str) -> Assert {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.car");
    let (plc, port) = (sim.url(Server::Plc), sim.port(PDS).to_string());
    let options = ["--plc", &plc, "--development-port", &port, "--save"];
    let verified = crate::command(&["verify", did]).args(options).arg(&saved).assert();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "an incomplete file remains");
    verified
}

#[test]
fn a_repository_without_an_end_exceeds_the_default_size() {
    let sim = sim();
    sim.faults().enable(PDS, Fault::EndlessRepo, FaultSchedule::ALWAYS);
    let failed = verify(&sim, &sim.account(0).did).code(3);
    let limit = "more than 536870912 bytes (the limit of --max-bytes)";
    assert!(stderr(&failed).contains(limit), "{}", stderr(&failed));
    assert_eq!(sim.faults().unfired(), []);
}

#[test]
fn a_compressed_repository_is_refused_before_it_is_read() {
    let sim = sim();
    sim.faults().enable(PDS, Fault::BombRepo, FaultSchedule::ALWAYS);
    let failed = verify(&sim, &sim.account(0).did).code(3);
    assert!(stderr(&failed).contains("compressed with \"gzip\""), "{}", stderr(&failed));
    assert_eq!(sim.faults().unfired(), []);
}

#[test]
fn a_repository_that_comes_slowly_without_an_end_falls_below_the_minimum_rate() {
    let sim = sim();
    sim.attack(Attack::SlowHosts, 1);
    let did = sim.sent_events(Server::Relay(0)).pop().expect("its commit").subject.did;
    let failed = verify(&sim, &did).code(3);
    let limit = "bytes per second (the limit of --min-rate)";
    assert!(stderr(&failed).contains(limit), "{}", stderr(&failed));
}
