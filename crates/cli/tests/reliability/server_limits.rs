//! Histories are fetched as fast as the limits of servers allow, and odd entries of their lists cost no account its history.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use simnet::servers::{Fault, FaultSchedule, RequestLimit, Server, Simulation, Spec};

use crate::follow::{self, Follow};
use crate::{report, scaled};

/// Number of accounts whose history is in the tables.
fn complete(tables: &Path) -> Option<usize> {
    let file = Connection::open_with_flags(tables, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let select = "SELECT count(*) FROM account WHERE complete";
    file.query_row(select, [], |row| row.get::<_, i64>(0)).ok()?.try_into().ok()
}

#[test]
fn all_accounts_of_servers_with_limits_get_their_history() {
    let (accounts, pds) = (scaled(80, 20_000), scaled(4, 20));
    let limit = RequestLimit {
        requests: scaled(10, 300) as u32,
        window: Duration::from_secs(scaled(1, 30) as u64),
    };
    let spec = Spec {
        accounts,
        pds,
        records: 10,
        jetstreams: 0,
        request_limit: Some(limit),
        ..Spec::default()
    };
    let sim = Simulation::start(spec).unwrap();
    let seconds = histories_within(&sim).as_secs_f64();

    // A list and the repositories of one server; nothing needs to wait after the last window.
    let windows = accounts.div_ceil(pds) / limit.requests as usize;
    let least = windows as f64 * limit.window.as_secs_f64();
    let percent = 100.0 * least / seconds;
    report(&format!(
        "{accounts} histories of {pds} servers in {seconds:.1} s, of which their limits ask for {least} s: {percent:.1} %"
    ));
}

#[test]
fn all_accounts_of_servers_whose_lists_have_odd_entries_get_their_history() {
    let (accounts, pds) = (scaled(80, 20_000), scaled(4, 20));
    let spec = Spec { accounts, pds, records: 10, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    let servers = (0..pds).map(Server::Pds);
    servers.for_each(|pds| sim.faults().enable(pds, Fault::OddEntries, FaultSchedule::ALWAYS));
    let elapsed = histories_within(&sim);
    assert!(sim.faults().unfired().is_empty());
    report(&format!("{accounts} histories of {pds} servers with odd entries in {elapsed:.1?}"));
}

/// The time until all accounts of the servers have their history.
fn histories_within(sim: &Simulation) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables.db");
    let accounts = sim.account_count();
    let servers: Vec<String> =
        (0..sim.spec().pds).map(|number| sim.url(Server::Pds(number))).collect();
    let (servers, to) = (servers.join(","), format!("sqlite://{}", tables.display()));
    let args = ["--to", &to, "--all-from", &servers];
    let started = Instant::now();
    let command = follow::command(sim, &folder.path().join("state"), &args);
    let running = Follow::spawn(command, 0);
    let (mut last, mut since) = (None, Instant::now());
    while last != Some(accounts) {
        std::thread::sleep(Duration::from_millis(50));
        let found = complete(&tables);
        if found > last {
            (last, since) = (found, Instant::now());
        }
        assert!(since.elapsed() < MAX_PAUSE, "{last:?} histories\n{}", running.errors());
    }
    let elapsed = started.elapsed();
    assert!(running.interrupt().is_orderly());
    elapsed
}

/// Longest time without a history: a window and a minute.
const MAX_PAUSE: Duration = Duration::from_secs(90);
