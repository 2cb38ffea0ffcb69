//! The lines of events of every kind and verdict, and the selection of events.

use std::process::Command;

use codec::printable::is_invisible;
use serde_json::Value;
use simnet::hostile;
use simnet::servers::{AccountStatus, Attack, Fault, FaultSchedule, Server, Simulation, Spec};

use crate::schemas::{faults, read};
use crate::{Running, file_lines, follow, lines, quiet, stderr, wireproof, with_commits};

#[test]
fn a_commit_has_account_operations_and_verdict() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let printed = lines(follow(&sim, dir.path(), &["--events", "40"]));
    assert!(printed.len() >= 40);
    for line in &printed {
        assert_eq!(line["host"], sim.url(Server::Relay(0)));
        assert_eq!(
            (&line["kind"], &line["verdict"]),
            (&"commit".into(), &"verified".into()),
            "{line}"
        );
        let fields = ["did", "time", "rev", "commit", "code"];
        assert!(fields.iter().all(|field| line[*field].is_string()), "{line}");
        for op in line["ops"].as_array().unwrap() {
            let fields = ["action", "collection", "rkey"];
            assert!(fields.iter().all(|field| op[*field].is_string()), "{op}");
            let is_there = op["action"] != "delete";
            assert_eq!(
                (op["cid"].is_string(), op["record"].is_object()),
                (is_there, is_there),
                "{op}"
            );
        }
    }
    let has_type = |op: &Value| op["record"]["$type"] == op["collection"];
    assert!(printed.iter().any(|line| has_type(&line["ops"][0])));
}

#[test]
fn a_commit_signed_by_another_key_is_refused_without_its_records() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    sim.write_commits(5);
    let printed = lines(follow(&sim, dir.path(), &["--events", "5"]));
    for line in &printed {
        assert_eq!(
            (&line["verdict"], &line["code"]),
            (&"refused".into(), &"signature/wrong".into())
        );
        assert!(line["message"].is_string() && line.get("ops").is_none(), "{line}");
    }
    assert_eq!(sim.faults().unfired(), []);
}

#[test]
fn of_accounts_that_the_directory_does_not_have_the_verdict_is_an_unknown_key_with_the_cause() {
    let (sim, dir) = (with_commits(3), tempfile::tempdir().unwrap());
    (0..sim.account_count()).for_each(|account| sim.delete_account(account));
    let printed = lines(follow(&sim, dir.path(), &["--events", "3"]));
    for line in &printed {
        assert_eq!(line["verdict"], "unknown-key", "{line}");
        assert!(line["message"].is_string() && line.get("ops").is_none(), "{line}");
    }
}

#[test]
fn without_verification_no_key_is_looked_up() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let printed = lines(follow(&sim, dir.path(), &["--events", "10", "--no-verify"]));
    assert!(printed.iter().all(|line| line["verdict"] == "not-asked" && line["ops"].is_array()));
    assert!(sim.request_counts(Server::Plc).is_empty());
}

#[test]
fn events_of_every_kind_have_a_line() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.write_commit_as(0);
    sim.change_handle(0, "renamed.test");
    sim.send_sync(1);
    sim.set_account_status(2, AccountStatus::Deactivated);
    sim.write_commits(1);
    let count = sim.sent_count(Server::Relay(0)).to_string();
    let printed = lines(follow(&sim, dir.path(), &["--events", &count]));
    let of = |kind: &str| printed.iter().find(|line| line["kind"] == kind).unwrap().clone();
    assert_eq!(of("identity")["handle"], "renamed.test");
    assert_eq!(
        (&of("account")["active"], &of("account")["status"]),
        (&false.into(), &"deactivated".into())
    );
    assert_eq!(
        (&of("sync")["verdict"], &of("identity")["verdict"]),
        (&"verified".into(), &"unchecked".into())
    );
    assert!(of("commit")["rev"].is_string());
}

/// Lines of all kinds that need neither a cursor nor an outbox: `info`, `resync` and `status`.
fn lines_of_a_faulty_stream() -> Vec<Value> {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let relay = Server::Relay(0);
    for fault in [Fault::GarbageFrame, Fault::UnknownKind, Fault::ErrorFrame] {
        sim.faults().enable(relay, fault, FaultSchedule::ONCE);
    }
    sim.change_handle(0, "renamed.test");
    sim.send_sync(1);
    sim.set_account_status(2, AccountStatus::Deactivated);
    sim.write_commits(6);
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    let mut lines = Vec::new();
    let kinds = ["commit", "sync", "identity", "account", "error", "unknown", "undecodable"];
    while !kinds.iter().all(|kind| lines.iter().any(|line: &Value| line["kind"] == *kind)) {
        lines.extend(running.take(1));
    }
    lines
}

/// A `resync` of the history of an account, and the `status` of one that its server does not serve.
fn lines_of_an_outbox() -> Vec<Value> {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    sim.set_account_status(1, AccountStatus::Deactivated);
    let did = sim.account(1).did;
    let folder = dir.path().join("events");
    let to = format!("file://{}", folder.display());
    let sent = sim.sent_events(Server::Relay(0));
    let count = sent.iter().filter(|event| *event.subject.did == *did).count().to_string();
    let select = ["--dids", &did, "--events", &count, "--to", &to];
    let output = follow(&sim, dir.path(), &select).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    file_lines(&folder)
}

/// The first line after a cursor whose events the host has not any more.
fn line_of_an_outdated_cursor() -> Value {
    let spec = Spec {
        accounts: 3,
        records: 5,
        pds: 1,
        jetstreams: 0,
        retained_events: 5,
        ..Spec::default()
    };
    let (sim, dir) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    sim.write_commits(20);
    let state = dir.path().to_str().unwrap();
    let follow = wireproof(&sim, "follow", &["--cursor", "1", "--state", state]);
    Running::start(follow).take(1).remove(0)
}

#[test]
fn a_message_of_the_host_has_a_line_with_its_name() {
    let info = line_of_an_outdated_cursor();
    assert_eq!((&info["kind"], &info["name"]), (&"info".into(), &"OutdatedCursor".into()));
    assert_eq!((&info["verdict"], &info["code"]), (&"unchecked".into(), &"unchecked".into()));
    assert!(info["message"].as_str().unwrap().contains("missing events"), "{info}");
    assert!(info.get("seq").is_none() && info.get("did").is_none(), "{info}");
}

#[test]
fn a_line_with_an_undocumented_key_or_without_a_required_one_breaks_its_schema() {
    let info = vec![line_of_an_outdated_cursor()];
    let lines = [lines_of_a_faulty_stream(), lines_of_an_outbox(), info].concat();
    let kinds = ["commit", "sync", "identity", "account", "error", "unknown", "undecodable"];
    for kind in kinds.iter().chain(&["status", "info"]) {
        let line = lines.iter().find(|line| line["kind"] == *kind);
        let line = line.unwrap_or_else(|| panic!("a line of kind {kind}"));
        assert_eq!((faults("follow", line), &line["v"]), (Vec::new(), &1.into()));
        let mut longer = line.clone();
        longer["undocumented"] = true.into();
        assert!(!faults("follow", &longer).is_empty(), "{longer}");
        let mut later = line.clone();
        later["v"] = 2.into();
        assert!(!faults("follow", &later).is_empty(), "{later}");
        for key in read(&format!("follow/{kind}.json"))["required"].as_array().unwrap() {
            let mut shorter = line.clone();
            shorter.as_object_mut().unwrap().remove(key.as_str().unwrap());
            assert!(!faults("follow", &shorter).is_empty(), "without {key}: {shorter}");
        }
    }
}

#[test]
fn only_selected_events_are_printed_and_all_events_are_acked() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let did = sim.account(3).did;
    let all = lines(follow(&sim, &dir.path().join("all"), &["--events", "60"]));
    let of_account = all.iter().filter(|line| line["did"] == *did).count();
    let count = of_account.to_string();
    let args = ["--events", &count, "--dids", &did];
    let some = lines(follow(&sim, dir.path(), &args));
    assert!(some.iter().all(|line| line["did"] == *did) && some.len() == of_account);

    let likes = ["--collections", "app.bsky.feed.like", "--state", "likes"];
    let mut command = follow(&sim, dir.path(), &[]);
    command.current_dir(dir.path()).args(&likes[..2]);
    let mut running = Running::start(command);
    // Events that are not selected are acked too, so that the stream advances.
    sim.write_commits(30);
    for line in running.take(5) {
        let ops = line["ops"].as_array().unwrap();
        assert!(!ops.is_empty() && ops.iter().all(|op| op["collection"] == "app.bsky.feed.like"));
    }
}

/// Serves a case of the hostile set.
pub(crate) fn serve(sim: &Simulation, name: &str) {
    let set = hostile::CaseSet::generate(&hostile::Spec::default());
    let case = set.cases().iter().find(|case| case.name == name).expect("a case of this name");
    sim.serve_case(case);
}

#[test]
fn a_commit_with_an_invalid_record_is_verified_and_the_record_printed_as_invalid() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    serve(&sim, "record/event-unsorted");
    let printed = lines(follow(&sim, &dir.path().join("lax"), &["--events", "2"]));
    let second = &printed[1];
    assert_eq!((&second["verdict"], &second["code"]), (&"verified".into(), &"verified".into()));
    let op = &second["ops"][0];
    assert_eq!((&op["action"], &op["invalid"]["code"]), (&"create".into(), &"record/cbor".into()));
    assert_eq!(op["invalid"]["bytes"]["$bytes"], "omFiAWFhAg");
    assert!(op["cid"].is_string() && op["invalid"]["offset"].is_u64(), "{op}");
    assert!(op.get("record").is_none(), "{op}");
    let strict = ["--events", "2", "--strict-records"];
    let printed = lines(follow(&sim, &dir.path().join("strict"), &strict));
    let verdict = (&printed[1]["verdict"], &printed[1]["code"]);
    assert_eq!(verdict, (&"refused".into(), &"record/cbor".into()));
}

#[test]
fn events_that_come_together_with_a_gap_wait_for_the_repository() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.write_commit_as(0);
    sim.write_unannounced(0);
    (0..10).for_each(|_| sim.write_commit_as(0));
    let args = ["--resync", "--workers", "1", "--gather-ms", "1000"];
    let printed = Running::start(follow(&sim, dir.path(), &args)).take(12);
    let codes: Vec<_> = printed.iter().map(|line| line["code"].as_str().unwrap()).collect();
    assert_eq!(codes[..3], ["verified", "verified/broken", "verified"]);
    assert_eq!(printed[2]["kind"], "resync");
    assert!(codes[3..].iter().all(|code| *code == "event/stale-rev"), "{codes:?}");
}

#[test]
fn an_account_with_an_invalid_record_is_resynced() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    // The account leaves out a commit; its repository is later than its events.
    serve(&sim, "event/an-event-left-out");
    serve(&sim, "record/unsorted-in-a-later-commit");
    let mut running = Running::start(follow(&sim, dir.path(), &["--resync"]));
    let printed = running.take(3);
    let (broken, resync) = (&printed[1], &printed[2]);
    assert_eq!(broken["code"], "verified/broken");
    assert_eq!((&resync["kind"], &resync["verdict"]), (&"resync".into(), &"verified".into()));
    assert_eq!((&resync["records"], &resync["invalid_records"]), (&1.into(), &1.into()));
    let op = &resync["ops"][0];
    assert_eq!(op["invalid"]["code"], "record/cbor", "{op}");
    assert_eq!(op["invalid"]["bytes"]["$bytes"], "omFiAWFhAg");
    assert!(op.get("record").is_none() && resync["last"] == true, "{resync}");
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn undecodable_frames_are_printed_with_their_bytes() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Relay(0), Fault::GarbageFrame, FaultSchedule::ONCE);
    sim.write_commits(4);
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    let printed = running.take(5);
    let garbage = printed.iter().find(|line| line["kind"] == "undecodable").unwrap();
    assert_eq!(garbage["verdict"], "refused");
    assert!(garbage["frame"]["$bytes"].is_string() && garbage["message"].is_string(), "{garbage}");
}

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

fn two_pds_network() -> Simulation {
    let pds = 2;
    let jetstreams = 0;
    let prepared = 40;
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

/// The codes of all events of a server.
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
fn with_pds_events_of_the_servers_own_accounts_are_verified() {
    let sim = two_pds_network();
    assert!(codes(&sim, PDS, &["--pds"]).iter().all(|code| code == "verified"));
}

#[test]
fn with_pds_events_of_accounts_on_other_servers_are_refused() {
    let sim = two_pds_network();
    // A relay is the server of no account, and without --pds need not be.
    assert!(codes(&sim, RELAY, &["--pds"]).iter().all(|code| code == "event/host"));
    assert!(codes(&sim, RELAY, &[]).iter().all(|code| code == "verified"));
}

#[test]
fn with_pds_an_account_that_has_migrated_here_is_resolved_again() {
    let sim = two_pds_network();
    sim.faults().enable(Server::Plc, Fault::PrivateHost, FaultSchedule::ONCE);
    assert!(codes(&sim, PDS, &["--pds"]).iter().all(|code| code == "verified"));
    assert_eq!(sim.faults().unfired(), []);
    sim.faults().enable(Server::Plc, Fault::PrivateHost, FaultSchedule::ALWAYS);
    assert!(codes(&sim, PDS, &["--pds"]).iter().all(|code| code == "event/host"));
}

#[test]
fn pds_requires_one_named_server() {
    let (sim, dir) = (two_pds_network(), tempfile::tempdir().unwrap());
    let second = sim.url(Server::Pds(1));
    for args in [&["--pds", "--host", &second][..], &["--pds", "--jetstream"]] {
        let output = follow(&sim, dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("--pds"), "{}", stderr(&output));
    }
    assert_eq!(sim.connection_count(), 0);
}

#[test]
fn invisible_characters_of_strangers_are_escaped_and_the_content_of_lines_stays() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.attack(Attack::InvisibleText, 3);
    let output = follow(&sim, dir.path(), &["--events", "3"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let escaped = r"\u001b[2J\u009b2J\u202etset.ada\u2066\u200b\ufeff\udb40\udc41";
    assert_eq!(text.matches(&format!("\"handle\":\"{escaped}\"")).count(), 3, "{text}");
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let handle = "\u{1b}[2J\u{9b}2J\u{202e}tset.ada\u{2066}\u{200b}\u{feff}\u{e0041}";
    assert_eq!((&line["handle"], &line["code"]), (&handle.into(), &"event/handle".into()));
    let is_visible = |letter: char| letter == '\n' || !is_invisible(letter);
    assert!(text.chars().all(is_visible));
}

#[test]
fn what_a_host_does_wrong_is_on_standard_error_once_for_each_kind_with_the_number_of_the_others() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let relay = Server::Relay(0);
    sim.faults().enable(relay, Fault::GarbageFrame, FaultSchedule::times(4));
    sim.faults().enable(relay, Fault::MissingSeq, FaultSchedule::times(3).after(10));
    sim.faults().enable(relay, Fault::RepeatedSeq, FaultSchedule::times(2).after(20));
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    let output = follow(&sim, dir.path(), &["--events", "38"]).output().unwrap();
    let errors = stderr(&output);
    for text in [
        "cannot be decoded and is printed as it is",
        "again with the same bytes",
        "an event is refused (signature/wrong)",
    ] {
        let lines: Vec<&str> = errors.lines().filter(|line| line.contains(text)).collect();
        // The first at once, the others when the run ends.
        assert_eq!(lines.len(), 2, "{text}: {errors}");
    }
    // Relays skip numbers: a count at the end, and no warning.
    assert!(errors.contains("sequence numbers skipped in this run: "), "{errors}");
    assert!(!errors.contains("sequence numbers skipped after"), "{errors}");
    let mut garbage = errors.lines().filter(|line| line.contains("cannot be decoded"));
    assert!(garbage.next_back().unwrap().ends_with("… and 2 more of this kind in the last minute"));
}
