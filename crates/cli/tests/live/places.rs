//! Where does a run go on, and how does it end?

use std::process::Stdio;

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::running::{Running, follow, lines, quiet, seqs, told, with_commits};

#[test]
fn a_run_goes_on_behind_the_last_line_of_the_one_before() {
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
    // It went on judging: nothing is out of step, and nothing is seen for the first time.
    assert!(before[30..].iter().all(|line| line["code"] == "verified"));
}

#[test]
fn so_many_lines_are_printed_and_not_one_more_and_none_is_printed_twice() {
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
fn of_what_was_selected_so_many_lines_are_printed_and_not_one_more() {
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

/// Workers overtake each other, but not for one account.
fn is_in_order_by_account(lines: &[serde_json::Value]) -> bool {
    let mut last = std::collections::HashMap::new();
    lines.iter().all(|line| {
        let seq = line["seq"].as_u64();
        last.insert(line["did"].to_string(), seq) < Some(seq)
    })
}

#[test]
fn after_a_kill_every_event_is_there_at_least_once_and_is_still_judged_right() {
    let (sim, dir) = (with_commits(200), tempfile::tempdir().unwrap());
    let mut seen = Vec::new();
    for round in 0..4 {
        let mut running = Running::start(follow(&sim, dir.path(), &["--workers", "2"]));
        seen.extend(running.take(20 + 10 * round));
        running.kill();
    }
    // What is missing comes now; what came twice is verified twice, for the state is not ahead.
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
fn keys_are_not_asked_for_again_in_the_next_run() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    lines(follow(&sim, dir.path(), &["--events", "40"]));
    let asked = sim.request_counts(Server::Plc);
    assert!(!asked.is_empty());
    sim.write_commits(20);
    let printed = lines(follow(&sim, dir.path(), &["--events", "20"]));
    assert!(printed.iter().all(|line| line["verdict"] == "verified"));
    assert_eq!(sim.request_counts(Server::Plc), asked);
}

#[test]
fn a_second_process_with_the_same_state_is_refused() {
    let (sim, dir) = (with_commits(5), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    running.take(1);
    let second = follow(&sim, dir.path(), &[]).output().unwrap();
    assert_eq!(second.status.code(), Some(4));
    assert!(told(&second).contains("another process uses this state file"), "{}", told(&second));
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn a_full_disk_under_the_lines_ends_it_and_the_cursor_is_as_it_was() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let mut command = follow(&sim, dir.path(), &[]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(Stdio::from(full)).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", told(&output));
    let printed = lines(follow(&sim, dir.path(), &["--events", "10"]));
    assert_eq!(printed.len(), 10, "nothing was acknowledged");
}

#[test]
fn a_full_disk_under_the_state_ends_it_and_the_cursor_is_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let spec = Spec { accounts: 60, records: 1, pds: 1, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    sim.write_commits(2);
    lines(follow(&sim, dir.path(), &["--events", "2"]));
    sim.write_commits(200);
    // Room for the tables, and not for the accounts that write now.
    let output = follow(&sim, dir.path(), &["--state-bytes", "24576"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", told(&output));
    assert!(told(&output).contains("state.sqlite: the disk is full"), "{}", told(&output));
    let printed = lines(follow(&sim, dir.path(), &["--events", "200"]));
    assert_eq!(printed.len(), 200, "none of these was stored as handled");
}

#[test]
fn who_reads_no_more_ends_it_in_peace() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let mut child = follow(&sim, dir.path(), &[]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_host_that_will_not_have_us_is_an_error_of_the_network() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Relay(0), Fault::UpgradeForbidden, FaultSchedule::ALWAYS);
    let output = follow(&sim, dir.path(), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("403"), "{}", told(&output));
}

#[test]
fn switches_can_be_in_the_environment_and_in_a_file() {
    let (sim, dir) = (with_commits(6), tempfile::tempdir().unwrap());
    let verdict = |run: &str, file: &str, variable: &str| {
        let folder = dir.path().join(run);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("wireproof.toml"), file).unwrap();
        let mut command = follow(&sim, &folder, &["--events", "6"]);
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
fn what_makes_no_sense_is_refused_before_anything_is_asked() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    for args in [&["--dids", "me"][..], &["--collections", "post"], &["--metrics", "192.0.2.1:0"]] {
        let output = follow(&sim, dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    assert_eq!(sim.connection_count(), 0);
}
