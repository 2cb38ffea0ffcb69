//! A receiver of webhooks that knows nothing but the library of Standard Webhooks.

use std::fs;
use std::process::Command;

use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec};
use wireproof_interop::kit;
use wireproof_interop::program::free_port;
use wireproof_interop::reader::Reader;

use crate::activity::wireproof;

#[test]
fn the_library_of_standard_webhooks_verifies_every_request_and_parses_its_events() {
    let kit = kit!(Readers);
    let spec =
        Spec { accounts: 3, records: 4, jetstreams: 0, initial_commits: 40, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let (secret, port) = (folder.path().join("secret"), free_port());
    fs::write(&secret, SECRET).unwrap();
    let receiver = Reader::webhook(&kit, port, SECRET);
    assert_eq!(receiver.next()["kind"], "listening");

    let mut command = Command::new(wireproof());
    command.args(["follow", "--cursor", "oldest", "--events", "40"]);
    command.args(["--host", &sim.url(Server::Relay(0)), "--plc", &sim.url(Server::Plc)]);
    command.args(["--development-port", &sim.port(Server::Pds(0)).to_string()]);
    command.arg("--state").arg(folder.path().join("state"));
    command.args(["--to", &format!("http://127.0.0.1:{port}/hook"), "--webhook-secret-file"]);
    command.arg(&secret).env("XDG_CONFIG_HOME", "/nonexistent");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut found: Vec<i64> = (0..40).map(|_| seq(&receiver.next())).collect();
    found.sort_unstable();
    let sent = sim.sent_events(Server::Relay(0));
    assert_eq!(found, sent.iter().map(|event| event.seq).collect::<Vec<_>>());
    assert_eq!(receiver.rest(), [Value::Null; 0]);
}

fn seq(event: &Value) -> i64 {
    event["seq"].as_i64().expect("an event of the stream")
}

/// 24 bytes in base64.
const SECRET: &str = "whsec_d2lyZXByb29mLXdlYmhvb2stdGVzdC1r";
