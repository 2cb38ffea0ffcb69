//! Changes of accounts, and the rows that a table then hides or deletes.

use simnet::servers::{AccountStatus, Server, Simulation};

use crate::histories::{Tables, network};
use crate::{Running, follow};

/// Tables with the histories of all accounts of a network, and the command that follows it.
fn start(sim: &Simulation, tables: &Tables, dir: &std::path::Path) -> Running {
    let dids: Vec<String> = (0..sim.account_count()).map(|at| sim.account(at).did).collect();
    let (dids, to) = (dids.join(","), tables.to());
    let args = ["--dids", &*dids, "--backfill", "--to", &*to];
    let running = Running::start(follow(sim, dir, &args));
    tables.wait_for_histories(sim.account_count());
    running
}

fn of(sim: &Simulation, account: usize, select: &str) -> String {
    format!("{select} did = '{}'", sim.account(account).did)
}

#[test]
fn a_migration_and_a_new_handle_change_no_record() {
    let (sim, dir) = (network(3), tempfile::tempdir().unwrap());
    let tables = Tables::new(dir.path());
    let running = start(&sim, &tables, dir.path());
    let records = tables.query("SELECT count(*) FROM record").unwrap();
    sim.migrate_account(0, 1);
    sim.change_handle(1, "new.test");
    let moved = of(&sim, 0, "SELECT count(*) FROM event WHERE kind = 'account' AND");
    tables.wait("the migration", &moved, 1);
    let renamed = of(&sim, 1, "SELECT claimed_handle = 'new.test' FROM account WHERE");
    tables.wait("the new handle", &renamed, 1);
    assert_eq!(tables.query("SELECT count(*) FROM active_record"), Some(records));
    sim.write_unannounced(0);
    sim.write_commit_as(0);
    let resynced = of(&sim, 0, "SELECT count(*) FROM event WHERE kind = 'resync' AND");
    tables.wait("the resync from the new server", &resynced, 2);
    let expected = &sim.expected_accounts()[0];
    let count = of(&sim, 0, "SELECT count(*) FROM active_record WHERE");
    tables.wait("the records of the new server", &count, expected.records.len());
    running.kill();
}

#[test]
fn records_of_an_inactive_account_are_hidden_until_it_is_back() {
    let (sim, dir) = (network(4), tempfile::tempdir().unwrap());
    let tables = Tables::new(dir.path());
    let running = start(&sim, &tables, dir.path());
    let statuses = [AccountStatus::Deactivated, AccountStatus::TakenDown, AccountStatus::Suspended];
    for (account, status) in statuses.into_iter().enumerate() {
        let all = tables.query(&of(&sim, account, "SELECT count(*) FROM record WHERE")).unwrap();
        let all = usize::try_from(all).unwrap();
        sim.set_account_status(account, status);
        let confirmed = "SELECT count(*) FROM event WHERE code = 'status/confirmed' AND";
        tables.wait("the status", &of(&sim, account, confirmed), 1);
        let shown = of(&sim, account, "SELECT count(*) FROM active_record WHERE");
        assert_eq!(tables.query(&shown), Some(0), "{status:?}");
        let kept = of(&sim, account, "SELECT count(*) FROM record WHERE");
        assert_eq!(tables.query(&kept), i64::try_from(all).ok(), "it can come back");
        sim.set_account_status(account, AccountStatus::Active);
        tables.wait("the account is back", &shown, all);
    }
    sim.delete_account(3);
    let kept = of(&sim, 3, "SELECT count(*) FROM record WHERE");
    tables.wait("the records of the deleted account are gone", &kept, 0);
    running.kill();
}

#[test]
fn a_deleted_account_that_comes_back_has_all_its_records_again_after_a_kill_too() {
    let (sim, dir) = (network(3), tempfile::tempdir().unwrap());
    let tables = Tables::new(dir.path());
    let mut running = start(&sim, &tables, dir.path());
    for is_killed in [false, true] {
        let all = sim.expected_accounts()[0].records.len();
        let kept = of(&sim, 0, "SELECT count(*) FROM record WHERE");
        sim.set_account_status(0, AccountStatus::Deleted);
        tables.wait("the records of the deleted account are gone", &kept, 0);
        let complete = of(&sim, 0, "SELECT complete FROM account WHERE");
        assert_eq!(tables.query(&complete), Some(0));
        if is_killed {
            running.kill();
            sim.set_account_status(0, AccountStatus::Active);
            let (dids, to) = (sim.account(0).did, tables.to());
            let args = ["--dids", &*dids, "--to", &*to];
            running = Running::start(follow(&sim, dir.path(), &args));
        } else {
            sim.set_account_status(0, AccountStatus::Active);
        }
        tables.wait("the whole repository", &complete, 1);
        assert_eq!(tables.query(&kept), i64::try_from(all).ok());
        sim.write_commit_as(0);
        // Records from the stream, or from a repository that was fetched after it.
        tables.wait_for_records(&sim);
        assert_eq!(tables.query(&complete), Some(1));
    }
    running.kill();
}

#[test]
fn a_status_that_the_server_does_not_confirm_is_asked_for_again() {
    let (sim, dir) = (network(2), tempfile::tempdir().unwrap());
    let tables = Tables::new(dir.path());
    let mut running = start(&sim, &tables, dir.path());
    sim.stop_server(Server::Pds(0));
    sim.set_account_status(0, AccountStatus::TakenDown);
    running.wait_for_stderr("but its server does not confirm it");
    let confirmed = "SELECT count(*) FROM event WHERE code = 'status/confirmed'";
    assert_eq!(tables.query(confirmed), Some(0));
    sim.start_server(Server::Pds(0)).unwrap();
    tables.wait("the second answer", confirmed, 1);
    running.kill();
}
