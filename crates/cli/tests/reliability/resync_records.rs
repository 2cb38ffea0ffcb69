//! A consumer that applies the lines of commits and resyncs has every record of every account.

use std::collections::BTreeMap;

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::follow::{self, Follow, PrintedLine};
use crate::report;

/// The records by account: CIDs by path.
pub(crate) type Records = BTreeMap<String, BTreeMap<String, String>>;

/// The records that follow from lines: the first line of a whole repository voids earlier records of its account.
pub(crate) fn apply(lines: &[PrintedLine]) -> Records {
    let mut accounts = Records::new();
    for line in lines {
        let records = accounts.entry(line.did.to_string()).or_default();
        if line.is_whole && matches!(line.piece, Some((0, _))) {
            records.clear();
        }
        for (path, cid) in &line.ops {
            match cid {
                Some(cid) => drop(records.insert(path.clone(), cid.clone())),
                None => drop(records.remove(path)),
            }
        }
    }
    accounts
}

pub(crate) fn expected(sim: &Simulation) -> Records {
    let accounts = sim.expected_accounts().into_iter();
    let text = |(path, cid): (String, _)| (path, format!("{cid}"));
    accounts
        .map(|expected| {
            (
                expected.account.did,
                expected.records.into_iter().map(|(p, c)| text((p, c))).collect(),
            )
        })
        .collect()
}

/// Leaves a gap in every account, and writes more commits while repositories are fetched.
fn leave_gaps(sim: &Simulation) {
    for account in 0..sim.account_count() {
        sim.write_unannounced(account);
        sim.write_commit_as(account);
        sim.write_commits(10);
    }
}

#[test]
fn the_lines_of_commits_and_resyncs_have_every_record_also_after_a_kill() {
    let spec = Spec { accounts: 8, records: 250, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let spawn = |run| Follow::spawn(follow::command(&sim, folder.path(), &["--resync"]), run);
    let mut first = spawn(0);
    (0..sim.account_count()).for_each(|account| sim.write_commit_as(account));
    first.wait_for(sim.sent_count(Server::Relay(0)));
    // Read slowly, so that the process is killed between the lines of a repository.
    first.read_at(20);
    leave_gaps(&sim);
    let has_begun = |line: &PrintedLine| matches!(line.piece, Some((0, false)));
    first.wait_until("the beginning of a repository", |follow| {
        follow.lines_from(0).iter().any(has_begun)
    });
    let mut lines = first.kill();

    let hosts = [Server::Pds(0), Server::Pds(1)];
    for host in hosts {
        sim.faults().enable(host, Fault::SlowRepo, FaultSchedule::ALWAYS.with_amount(5));
    }
    let mut second = spawn(1);
    leave_gaps(&sim);
    // Some accounts wait for the fetches of others: their repositories cover commits that arrive now.
    second.wait_until("fetches", |_| {
        hosts.iter().all(|host| sim.faults().fired(*host, Fault::SlowRepo) > 0)
    });
    sim.write_commits(80);
    let (before, expected) = (lines.clone(), expected(&sim));
    second.wait_until("every record", |follow| {
        apply(&[&before[..], &follow.lines_from(0)].concat()) == expected
    });
    lines.extend(second.kill());
    let count = |is: fn(&&PrintedLine) -> bool| lines.iter().filter(is).count();
    let resyncs = count(|line| matches!(line.piece, Some((_, true))));
    let covered = count(|line| &*line.code == "event/stale-rev");
    assert!(covered > 0, "no commit was covered by a repository");
    report(&format!("{resyncs} repositories, which covered {covered} commits"));
}
