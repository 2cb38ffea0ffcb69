//! `doctor host URL`: verdict, exit code, JSON, text and page.

use serde_json::Value;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::{command, json, stderr, stdout};

const PDS: Server = Server::Pds(0);

fn start() -> Simulation {
    let spec = Spec { accounts: 4, records: 5, initial_commits: 20, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn doctor(sim: &Simulation, url: &str, args: &[&str]) -> assert_cmd::assert::Assert {
    let (plc, port) = (sim.url(Server::Plc), sim.port(PDS).to_string());
    let mut command = command(&["doctor", "host", url, "--plc", &plc]);
    command.args(["--development-port", &port, "--seconds", "1", "--requests", "500"]);
    command.env_remove("WIREPROOF_HOST");
    command.args(args).assert()
}

#[test]
fn a_host_without_a_fault_is_exit_code_0() {
    let sim = start();
    let ended = doctor(&sim, &sim.url(PDS), &["--json"]).code(0);
    let judgement = json(&ended);
    assert_eq!((&judgement["verdict"], &judgement["kind"]), (&"sound".into(), &"pds".into()));
    assert_eq!(judgement["repositories"], 2, "{judgement}");
    let line = stdout(&doctor(&sim, &sim.url(Server::Relay(0)), &["--line"]).code(0));
    assert!(line.contains(": no fault found (relay, ") && line.lines().count() == 1, "{line}");
}

#[test]
fn a_fault_is_exit_code_1_with_rule_account_and_a_command_that_shows_it() {
    let sim = start();
    sim.faults().enable(PDS, Fault::RefusesRepo, FaultSchedule::ALWAYS);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.html");
    let ended = doctor(&sim, &sim.url(PDS), &["--html", path.to_str().unwrap()]).code(1);
    let text = stdout(&ended);
    let did = sim.account(0).did;
    for part in ["wrong: repo/unserved: getRepo", &did, "  to do: ", "  see it: curl -sSi 'http://"]
    {
        assert!(text.contains(part), "{part} is in {text}");
    }
    assert!(stderr(&ended).contains("faulty: repo/unserved"), "{}", stderr(&ended));
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains(&did), "{page}");
    assert!(!page.contains("<script") && !page.contains("src="), "{page}");
    let judgement = json(&doctor(&sim, &sim.url(PDS), &["--json"]).code(1));
    let finding = &judgement["findings"][0];
    assert_eq!(finding["kind"], "violation");
    let is_text = |name: &&str| finding[*name].as_str().is_some_and(|text| !text.is_empty());
    let names = ["code", "method", "account", "message", "action", "command"];
    assert!(names.iter().all(is_text), "{finding}");
    assert_eq!(finding["seq"], Value::Null);
}

#[test]
fn a_host_that_is_away_is_exit_code_3_and_a_wrong_url_2() {
    let sim = start();
    sim.stop_server(PDS);
    let judgement = json(&doctor(&sim, &sim.url(PDS), &["--json"]).code(3));
    assert_eq!(judgement["verdict"], "unanswered", "{judgement}");
    doctor(&sim, "no url", &[]).code(2);
    doctor(&sim, &sim.url(PDS), &["--accounts", "0"]).code(2);
}

#[test]
fn an_address_that_the_egress_policy_denies_is_not_dialled() {
    let sim = start();
    let judgement = json(&doctor(&sim, "http://10.0.0.1", &["--json"]).code(3));
    let message = judgement["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("not allowed"), "{judgement}");
}
