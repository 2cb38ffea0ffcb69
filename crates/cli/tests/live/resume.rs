//! Where a run resumes, and how it ends.

use std::process::{Command, Stdio};

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::{Running, follow, lines, quiet, seqs, stderr, wireproof, with_commits};

#[test]
fn a_run_resumes_after_the_last_line_of_the_previous_one() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    let mut before = running.take(30);
    let (rest, code) = running.interrupt();
    assert_eq!((rest.len(), code), (0, Some(130)));
    sim.write_commits(20);
    let after = lines(follow(&sim, dir.path(), &["--events", "20"]));
    before.extend(after);
    let all = seqs(&before);
    assert!(all.is_sorted_by(|a, b| a < b) || is_in_order_by_account(&before), "{all:?}");
    assert_eq!(all.len(), 50);
    // The account states are resumed too: no chain is broken or seen for the first time.
    assert!(before[30..].iter().all(|line| line["code"] == "verified"));
}

#[test]
fn a_cursor_that_contradicts_the_state_is_refused_and_restart_begins_anew() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let first = lines(follow(&sim, dir.path(), &["--events", "20"]));
    let all = seqs(&first);
    let stored = all.iter().max().unwrap().to_string();

    let run = |args: &[&str]| {
        let mut command = wireproof(&sim, "follow", args);
        command.arg("--state").arg(dir.path().join("state"));
        command
    };
    let other = (all.iter().max().unwrap() - 5).to_string();
    let refused = run(&["--cursor", &other, "--events", "1"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    for part in [&*stored, "--restart"] {
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
    }
    let same = lines(run(&["--cursor", &stored, "--events", "1"]));
    assert!(seqs(&same)[0] > *all.iter().max().unwrap());

    let anew = lines(run(&["--restart", "oldest", "--events", "30"]));
    assert_eq!(seqs(&anew).iter().min(), all.iter().min());
    let after = lines(run(&["--restart", &other, "--events", "1"]));
    assert!(seqs(&after)[0] > other.parse().unwrap());
}

#[test]
fn the_first_contact_with_a_host_is_bounded_and_later_failures_are_not() {
    let (sim, dir) = (with_commits(5), tempfile::tempdir().unwrap());
    let limit = ["--first-contact-seconds", "1"];
    let mut nobody = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    nobody.args(["follow", "--development", "--host", "http://127.0.0.1:9", "--state"]);
    nobody.arg(dir.path().join("other")).args(limit).env("XDG_CONFIG_HOME", "/nonexistent");
    let ended = nobody.output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
    let text = "no event stream within 1 s: http://127.0.0.1:9";
    assert!(stderr(&ended).contains(text), "{}", stderr(&ended));

    assert_eq!(lines(follow(&sim, dir.path(), &["--events", "5"])).len(), 5);
    sim.stop_server(Server::Relay(0));
    let mut running = Running::start(follow(&sim, dir.path(), &limit));
    // Backoff lasts 100 ms at most: these are more than two seconds.
    for _ in 0..25 {
        running.wait_for_stderr("retrying in");
    }
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn exactly_n_lines_are_printed_and_none_twice() {
    let (sim, dir) = (with_commits(200), tempfile::tempdir().unwrap());
    let mut all = Vec::new();
    for (count, workers) in [(1, "4"), (7, "4"), (50, "2"), (142, "3")] {
        let count_text = count.to_string();
        let args = ["--events", &count_text, "--workers", workers];
        let printed = lines(follow(&sim, dir.path(), &args));
        assert_eq!(printed.len(), count, "--events {count}");
        assert!(printed.iter().all(|line| line["code"] == "verified"), "{printed:?}");
        all.extend(seqs(&printed));
    }
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b) && all.len() == 200, "{all:?}");
}

#[test]
fn exactly_n_lines_of_selected_events_are_printed() {
    let (sim, dir) = (with_commits(200), tempfile::tempdir().unwrap());
    let did = sim.account(2).did;
    let select = ["--dids", &*did, "--workers", "3"];
    let mut running = Running::start(follow(&sim, &dir.path().join("all"), &select));
    let ours =
        sim.sent_events(Server::Relay(0)).iter().filter(|line| *line.subject.did == *did).count();
    let expected = seqs(&running.take(ours));
    assert!(ours > 6);
    for (at, count) in [(0, 1), (1, 5)] {
        let count_text = count.to_string();
        let args = [&select[..], &["--events", &count_text]].concat();
        let printed = lines(follow(&sim, dir.path(), &args));
        assert_eq!(seqs(&printed), expected[at..at + count]);
    }
}

/// Workers can overtake each other, but not for one account.
fn is_in_order_by_account(lines: &[serde_json::Value]) -> bool {
    let mut last = std::collections::HashMap::new();
    lines.iter().all(|line| {
        let seq = line["seq"].as_u64();
        last.insert(line["did"].to_string(), seq) < Some(seq)
    })
}

#[test]
fn after_a_kill_every_event_is_printed_at_least_once_and_verified() {
    let (sim, dir) = (with_commits(200), tempfile::tempdir().unwrap());
    let mut seen = Vec::new();
    for round in 0..4 {
        let mut running = Running::start(follow(&sim, dir.path(), &["--workers", "2"]));
        seen.extend(running.take(20 + 10 * round));
        running.kill();
    }
    // Repeated events are verified again: the stored state is never ahead of the cursor.
    let mut running = Running::start(follow(&sim, dir.path(), &["--workers", "2"]));
    let wanted: std::collections::BTreeSet<u64> =
        sim.sent_events(Server::Relay(0)).iter().map(|line| line.seq as u64).collect();
    let is_missing = |seen: &[serde_json::Value]| {
        let seen: std::collections::BTreeSet<u64> = seqs(seen).into_iter().collect();
        wanted.difference(&seen).count() > 0
    };
    while is_missing(&seen) {
        seen.extend(running.take(1));
    }
    assert!(seen.iter().all(|line| line["verdict"] == "verified"), "{seen:?}");
}

#[test]
fn keys_are_not_looked_up_again_in_the_next_run() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    lines(follow(&sim, dir.path(), &["--events", "40"]));
    let lookups = sim.request_counts(Server::Plc);
    assert!(!lookups.is_empty());
    sim.write_commits(20);
    let printed = lines(follow(&sim, dir.path(), &["--events", "20"]));
    assert!(printed.iter().all(|line| line["verdict"] == "verified"));
    assert_eq!(sim.request_counts(Server::Plc), lookups);
}

#[test]
fn a_second_process_with_the_same_state_is_refused() {
    let (sim, dir) = (with_commits(5), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    running.take(1);
    let second = follow(&sim, dir.path(), &[]).output().unwrap();
    assert_eq!(second.status.code(), Some(4));
    assert!(
        stderr(&second).contains("another process uses this state file"),
        "{}",
        stderr(&second)
    );
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn a_full_disk_under_standard_output_ends_the_run_and_keeps_the_cursor() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let mut command = follow(&sim, dir.path(), &[]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(Stdio::from(full)).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let printed = lines(follow(&sim, dir.path(), &["--events", "10"]));
    assert_eq!(printed.len(), 10, "nothing was acked");
}

#[test]
fn a_full_disk_under_the_state_file_ends_the_run_and_keeps_the_cursor() {
    let dir = tempfile::tempdir().unwrap();
    let spec = Spec { accounts: 60, records: 1, pds: 1, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    sim.write_commits(2);
    lines(follow(&sim, dir.path(), &["--events", "2"]));
    sim.write_commits(200);
    // Enough for the tables, but not for the new accounts.
    let output = follow(&sim, dir.path(), &["--state-bytes", "24576"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("state.sqlite: the disk is full"), "{}", stderr(&output));
    let printed = lines(follow(&sim, dir.path(), &["--events", "200"]));
    assert_eq!(printed.len(), 200, "none of these was acked");
}

#[test]
fn a_closed_standard_output_ends_the_run_with_a_message_and_exit_code_4() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let mut command = follow(&sim, dir.path(), &[]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("the reader of standard output"), "{}", stderr(&output));
}

#[test]
fn a_host_that_refuses_for_a_while_is_followed_again() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Relay(0), Fault::UpgradeForbidden, FaultSchedule::times(4));
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    running.wait_for_stderr("rejected with status 403");
    running.wait_for_stderr("retrying in");
    assert_eq!(running.take(10).len(), 10);
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn a_host_without_the_stream_is_tried_again_and_told_from_another_kind_of_host() {
    for (fault, status) in [(Fault::UpgradeNotFound, 404), (Fault::UpgradeNotImplemented, 501)] {
        let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
        sim.faults().enable(Server::Relay(0), fault, FaultSchedule::times(4));
        let mut running = Running::start(follow(&sim, dir.path(), &[]));
        let line = running.wait_for_stderr(&format!("rejected with status {status}"));
        assert!(line.contains("no such event stream: check --host"), "{line}");
        assert_eq!(running.take(10).len(), 10);
        assert_eq!(running.interrupt().1, Some(130));
    }
}

#[test]
fn a_jetstream_that_is_followed_as_a_relay_is_named_and_the_next_host_is_followed() {
    let spec = Spec { accounts: 6, records: 5, initial_commits: 10, ..Spec::default() };
    let (sim, dir) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let (jetstream, relay) = (sim.url(Server::Jetstream(0)), sim.url(Server::Relay(0)));
    let state = dir.path().to_str().unwrap();
    let hosts = [&*jetstream, &relay].join(",");
    let args = ["--cursor", "oldest", "--state", state];
    let mut running = Running::start(follow_hosts(&sim, &hosts, &args));
    running.wait_for_stderr("the host is a Jetstream: use `follow --jetstream`");
    assert_eq!(running.take(10).len(), 10);
    assert_eq!(running.interrupt().1, Some(130));
    let mut running =
        Running::start(follow_hosts(&sim, &relay, &["--jetstream", "--state", state]));
    running.wait_for_stderr("the host is a relay or a PDS: leave out --jetstream");
    assert_eq!(running.interrupt().1, Some(130));
}

/// `follow` of these hosts alone.
fn follow_hosts(sim: &Simulation, hosts: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let (plc, port) = (sim.url(Server::Plc), sim.port(Server::Pds(0)).to_string());
    command.args(["follow", "--plc", &plc, "--development-port", &port, "--host", hosts]);
    command.args(["--backoff-first-ms", "10", "--backoff-max-ms", "100"]).args(args);
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

#[test]
fn a_run_that_is_killed_before_its_first_checkpoint_is_resumed_at_its_first_event() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let state = dir.path().join("state");
    let args = ["--cursor", "live", "--workers", "1", "--state", state.to_str().unwrap()];
    let mut running = Running::start(wireproof(&sim, "follow", &args));
    running.wait_for_stderr("connected, live");
    sim.write_commits(1);
    let first_line = running.take(1).remove(0);
    running.kill();
    sim.write_commits(20);
    let mut running = Running::start(wireproof(&sim, "follow", &args));
    running.wait_for_stderr("connected");
    sim.write_commits(40);
    // The order between accounts is not fixed.
    let mut lines = std::iter::repeat_with(|| running.take(1).remove(0));
    let next_line = lines.find(|line| line["did"] == first_line["did"]).unwrap();
    let (first, next) = (seqs(&[first_line])[0], seqs(&[next_line])[0]);
    assert!(next == first, "resumed at {next}, and {first} was the first event");
}

#[test]
fn options_can_be_set_in_the_environment_and_in_a_file() {
    let (sim, dir) = (with_commits(6), tempfile::tempdir().unwrap());
    let verdict = |run: &str, file: &str, variable: &str| {
        let folder = dir.path().join(run);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("wireproof.toml"), file).unwrap();
        let args = ["--events", "6", "--config", "wireproof.toml"];
        let mut command = follow(&sim, &folder, &args);
        command.current_dir(&folder).env("WIREPROOF_RESYNC", "1");
        if !variable.is_empty() {
            command.env("WIREPROOF_VERIFY", variable);
        }
        lines(command)[0]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("plain", "", ""), "verified");
    assert_eq!(verdict("file", "[follow]\nverify = false\nresync = true\n", ""), "not-asked");
    assert_eq!(verdict("both", "[follow]\nverify = false\n", "yes"), "verified");
    assert_eq!(verdict("variable", "", "0"), "not-asked");
}

#[test]
fn malformed_arguments_are_refused_before_any_connection() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    for args in [&["--dids", "me"][..], &["--collections", "post"], &["--metrics", "nowhere"]] {
        let output = follow(&sim, dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    assert_eq!(sim.connection_count(), 0);
}
