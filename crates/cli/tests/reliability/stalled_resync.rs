//! Does an account whose repository does not come hold up others?

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::child::{self, Follow};
use crate::heard::Heard;
use crate::{scaled, tell};

#[test]
fn of_a_hundred_accounts_in_resync_one_that_stalls_delays_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let sim = sim();
    let mut follow = Follow::spawn(child::command(&sim, folder.path(), &["--resync"]), 0);
    // Everybody is known before.
    (0..sim.account_count()).for_each(|account| sim.write_commit_as(account));
    follow.wait_for(sim.sent_count(RELAY));

    // One account alone is on the PDS from which no repository comes.
    sim.faults().enable(SILENT, Fault::StalledRepo, FaultSchedule::ALWAYS.with_amount(100));
    let stalled = (0..sim.account_count()).find(|at| sim.account(*at).host == 1).unwrap();
    let stalled_did = sim.account(stalled).did;
    let fellows = (0..sim.account_count()).filter(|at| *at != stalled).take(99);
    let (fellows, others): (Vec<usize>, Vec<usize>) =
        (fellows.collect(), (0..sim.account_count()).skip(100).collect());
    for account in fellows.iter().chain([&stalled]) {
        sim.write_unannounced(*account);
        sim.write_commit_as(*account);
    }
    let is_stalled = |_: &Follow| sim.faults().fired(SILENT, Fault::StalledRepo) > 0;
    follow.wait_until("the repository that does not come", is_stalled);

    // Whoever is not in it is heard, and so are its fellows when their repositories have come.
    let before = follow.count() as usize;
    for _ in 0..scaled(5, 100) {
        others.iter().chain(&fellows).for_each(|account| sim.write_commit_as(*account));
        sim.write_commit_as(stalled);
    }
    let wanted = Wanted::of(&sim, &stalled_did);
    follow.wait_until("the others' events", |follow| wanted.is_in(&follow.heard_from(0)));
    let heard = follow.heard_from(0);
    let of_stalled = |heard: &&Heard| *heard.did == *stalled_did && heard.is_verified();
    assert_eq!(heard[before..].iter().filter(of_stalled).count(), 0, "it is still in resync");
    let resynced = heard.iter().filter(|heard| &*heard.kind == "resync").count();
    assert!(resynced >= fellows.len(), "{resynced} of {}", fellows.len());
    assert_eq!(sim.faults().unfired(), []);
    tell(&format!(
        "{resynced} repositories fetched anew while one did not come; {} events of others delivered",
        wanted.count
    ));
}

/// The newest event of every account but one.
struct Wanted {
    newest: Vec<(String, String)>,
    count: usize,
}

impl Wanted {
    fn of(sim: &Simulation, stalled: &str) -> Self {
        let others = sim.expected_accounts().into_iter();
        let newest = others
            .map(|expected| (expected.account.did, expected.rev.to_string()))
            .filter(|(did, _)| did != stalled)
            .collect();
        let told = sim.sent_events(RELAY);
        let count = told.iter().filter(|line| line.subject.did != stalled).count();
        Self { newest, count }
    }

    fn is_in(&self, heard: &[Heard]) -> bool {
        let is_heard = |(did, rev): &(String, String)| {
            heard.iter().any(|heard| *heard.did == **did && *heard.rev == **rev)
        };
        self.newest.iter().all(is_heard)
    }
}

/// Two PDSs; all accounts but one move to the first.
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
