//! A local clock that is behind ends a run, and an account whose clock is ahead does not. A jump of the local clock is
//! one of all others in the other direction.

use std::collections::BTreeSet;
use std::time::Duration;

use simnet::hostile;
use simnet::servers::{Server, Simulation, Spec};

use crate::{Running, follow, lines, quiet, seqs, stderr};

#[test]
fn a_local_clock_that_is_behind_ends_the_run_and_no_event_is_passed_over() {
    let clock_skew = Some(Duration::from_secs(600));
    let spec =
        Spec { accounts: 6, records: 5, pds: 1, jetstreams: 0, clock_skew, ..Spec::default() };
    let sim = Simulation::start(Spec { initial_commits: 20, ..spec }).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = follow(&sim, dir.path(), &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("the local clock is about 10 minutes behind"),
            "{output:?}"
        );
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    // The cursor is before the events: without verification, they all come.
    let printed = lines(follow(&sim, dir.path(), &["--no-verify", "--events", "20"]));
    assert_eq!(seqs(&printed).len(), 20);
}

#[test]
fn an_account_whose_clock_is_ahead_is_refused_while_the_others_are_followed() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let set = hostile::CaseSet::generate(&hostile::Spec { seed: 7 });
    let is_future = |case: &&hostile::Case| case.name.contains("rev-in-the-next-century");
    let case = set.cases().iter().find(is_future).expect("a case from the future");
    sim.write_commits(5);
    sim.serve_case(case);
    sim.write_commits(5);
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    let printed = running.take(11);
    let of_code = |code: &str| printed.iter().filter(|line| line["code"] == code).count();
    assert_eq!((of_code("verified"), of_code("event/future-rev")), (10, 1), "{printed:?}");
    assert_eq!(running.interrupt().1, Some(130));
}

/// A network with the time of this machine.
fn in_time() -> Simulation {
    let clock_skew = Some(Duration::ZERO);
    let spec =
        Spec { accounts: 6, records: 5, pds: 1, jetstreams: 0, clock_skew, ..Spec::default() };
    Simulation::start(Spec { initial_commits: 20, ..spec }).unwrap()
}

#[test]
fn a_local_clock_that_jumps_back_in_mid_run_ends_it_and_no_event_is_passed_over() {
    let (sim, dir) = (in_time(), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    let before = running.take(20);
    assert!(before.iter().all(|line| line["code"] == "verified"), "{before:?}");
    sim.set_clock_skew(600);
    sim.write_commits(5);
    running.wait_for_stderr("the local clock is about 10 minutes behind");
    let (rest, code) = running.wait();
    assert_eq!((rest.len(), code), (0, Some(4)));
    // The cursor is before the events of the future: without verification, they all come.
    let (mut again, mut printed) =
        (Running::start(follow(&sim, dir.path(), &["--no-verify"])), before);
    // Lines of different accounts have no fixed order.
    while seqs(&printed).into_iter().collect::<BTreeSet<u64>>().len() < 25 {
        let line = again.take(1).remove(0);
        let is_known = seqs(&printed).contains(&line["seq"].as_u64().unwrap());
        assert_eq!(is_known, line["repeated"] == true, "{line}");
        printed.push(line);
    }
    let last = u64::try_from(sim.last_seq(Server::Relay(0))).unwrap();
    assert_eq!(seqs(&printed).into_iter().max(), Some(last));
}

#[test]
fn a_local_clock_that_jumps_ahead_in_mid_run_changes_nothing() {
    let (sim, dir) = (in_time(), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    let before = running.take(20);
    sim.set_clock_skew(-600);
    sim.write_commits(20);
    let after = running.take(20);
    let codes = before.iter().chain(&after).map(|line| line["code"].as_str().unwrap());
    assert!(codes.clone().all(|code| code == "verified"), "{:?}", codes.collect::<Vec<_>>());
    assert_eq!(running.interrupt().1, Some(130));
    let again = follow(&sim, dir.path(), &["--events", "1"]);
    let mut again = Running::start(again);
    sim.write_commits(1);
    assert!(seqs(&again.take(1))[0] > *seqs(&after).last().unwrap());
}
