//! An account with a stalled resync does not delay others.

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::follow::{self, Follow, PrintedLine};
use crate::{report, scaled};

#[test]
fn of_a_hundred_resyncs_one_that_stalls_delays_no_other_account() {
    let folder = tempfile::tempdir().unwrap();
    let sim = sim();
    let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &["--resync"]), 0);
    // Every account has been seen before.
    (0..sim.account_count()).for_each(|account| sim.write_commit_as(account));
    follow.wait_for(sim.sent_count(RELAY));

    // One account is on the PDS that stalls.
    sim.faults().enable(SILENT, Fault::StalledRepo, FaultSchedule::ALWAYS.with_amount(100));
    let stalled = (0..sim.account_count()).find(|at| sim.account(*at).host == 1).unwrap();
    let stalled_did = sim.account(stalled).did;
    let resyncing = (0..sim.account_count()).filter(|at| *at != stalled).take(99);
    let (resyncing, others): (Vec<usize>, Vec<usize>) =
        (resyncing.collect(), (0..sim.account_count()).skip(100).collect());
    for account in resyncing.iter().chain([&stalled]) {
        sim.write_unannounced(*account);
        sim.write_commit_as(*account);
    }
    let is_stalled = |_: &Follow| sim.faults().fired(SILENT, Fault::StalledRepo) > 0;
    follow.wait_until("the stalled repository", is_stalled);

    // The other accounts are printed, and accounts in resync once their repositories have arrived.
    let before = follow.count() as usize;
    for _ in 0..scaled(5, 100) {
        others.iter().chain(&resyncing).for_each(|account| sim.write_commit_as(*account));
        sim.write_commit_as(stalled);
    }
    let expected = Expected::of(&sim, &stalled_did);
    follow.wait_until("the others' events", |follow| expected.is_in(&follow.lines_from(0)));
    let printed = follow.lines_from(0);
    let of_stalled = |printed: &&PrintedLine| *printed.did == *stalled_did && printed.is_verified();
    assert_eq!(
        printed[before..].iter().filter(of_stalled).count(),
        0,
        "the account is still in resync"
    );
    let resynced = printed.iter().filter(|printed| &*printed.kind == "resync").count();
    assert!(resynced >= resyncing.len(), "{resynced} of {}", resyncing.len());
    assert_eq!(sim.faults().unfired(), []);
    report(&format!(
        "{resynced} repositories fetched anew while one did not come; {} events of others delivered",
        expected.count
    ));
}

/// The newest event of every account but one.
struct Expected {
    newest: Vec<(String, String)>,
    count: usize,
}

impl Expected {
    fn of(sim: &Simulation, stalled: &str) -> Self {
        let others = sim.expected_accounts().into_iter();
        let newest = others
            .map(|expected| (expected.account.did, expected.rev.to_string()))
            .filter(|(did, _)| did != stalled)
            .collect();
        let sent = sim.sent_events(RELAY);
        let count = sent.iter().filter(|line| line.subject.did != stalled).count();
        Self { newest, count }
    }

    fn is_in(&self, printed: &[PrintedLine]) -> bool {
        let is_printed = |(did, rev): &(String, String)| {
            printed.iter().any(|printed| *printed.did == **did && *printed.rev == **rev)
        };
        self.newest.iter().all(is_printed)
    }
}

/// Two PDSs; all accounts but one migrate to the first.
fn sim() -> Simulation {
    let spec = Spec { accounts: 200, records: 10, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    let on_second: Vec<usize> =
        (0..sim.account_count()).filter(|at| sim.account(*at).host == 1).collect();
    on_second[1..].iter().for_each(|account| sim.migrate_account(*account, 0));
    sim
}

const RELAY: Server = Server::Relay(0);
const SILENT: Server = Server::Pds(1);
