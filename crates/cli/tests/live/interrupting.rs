//! What does a `verify` leave behind that somebody interrupts?

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::yield_now;

use simnet::servers::{Fault, FaultSchedule, Server, Simulation};

use crate::running::quiet;

/// A `verify` of an account whose server sends some bytes of its repository, and then no more.
fn stalled(sim: &Simulation, folder: &Path) -> Child {
    sim.faults().enable(Server::Pds(0), Fault::StalledRepo, FaultSchedule::ALWAYS);
    let mut verify = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    verify.args(["verify", &sim.account(0).did, "--plc", &sim.url(Server::Plc)]);
    verify.args(["--development", "--save"]).arg(folder.join("saved.car"));
    verify.env("XDG_CONFIG_HOME", "/nonexistent").env("TMPDIR", folder);
    verify.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_interrupted_verify_leaves_no_file_and_ends_with_130() {
    for signal in ["INT", "TERM"] {
        let (sim, folder) = (quiet(), tempfile::tempdir().unwrap());
        let mut child = stalled(&sim, folder.path());
        while !sim.faults().unfired().is_empty() || names(folder.path()).is_empty() {
            assert_eq!(child.try_wait().unwrap(), None, "it goes on");
            yield_now();
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), names(folder.path())), (Some(130), vec![]), "{signal}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_file_that_was_there_stays_as_it_was() {
    let (sim, folder) = (quiet(), tempfile::tempdir().unwrap());
    let saved = folder.path().join("saved.car");
    fs::write(&saved, "of an earlier day").unwrap();
    let mut child = stalled(&sim, folder.path());
    while !sim.faults().unfired().is_empty() || names(folder.path()).len() < 2 {
        assert_eq!(child.try_wait().unwrap(), None, "it goes on");
        yield_now();
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(folder.path()), ["saved.car"]);
    assert_eq!(fs::read(saved).unwrap(), b"of an earlier day");
}
