//! A local clock that is behind ends a run, and an account whose clock is ahead does not.

use std::time::Duration;

use simnet::hostile;
use simnet::servers::{Simulation, Spec};

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
