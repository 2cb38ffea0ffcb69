//! The tables of a delivery to SQLite are the records of the network, whenever the process ends.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use simnet::servers::{Simulation, Spec};

use crate::follow::{self, Follow};
use crate::resync_records::{Records, expected};
use crate::{report, scaled};

/// Points at which the process ends itself, with the passage; others are in the tests of the outbox.
#[cfg(debug_assertions)]
const POINTS: [&str; 8] = [
    "outbox/committed@1",
    "outbox/stored@2",
    "sqlite/written@1",
    "sqlite/committed@2",
    "delivery/sent@1",
    "checkpoint/written@1",
    "checkpoint/committed@2",
    "outbox/closing@1",
];
#[cfg(not(debug_assertions))]
const POINTS: [&str; 0] = [];

/// The content of the tables.
pub(crate) struct Tables {
    pub(crate) records: Records,
    pub(crate) incomplete: i64,
    /// Number of rows of verified events of the stream, and of their ids. Others are judged again after an end.
    live: i64,
    live_ids: i64,
    /// Number of rows of repositories.
    history: usize,
}

impl Tables {
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        file.busy_timeout(Duration::from_secs(5)).ok()?;
        let reading = file.unchecked_transaction().ok()?;
        let number = |select: &str| reading.query_row(select, [], |row| row.get(0)).ok();
        let mut records: Records = reading
            .prepare("SELECT did FROM account")
            .ok()?
            .query_map([], |row| row.get(0))
            .ok()?
            .map(|did| (did.unwrap(), BTreeMap::new()))
            .collect();
        let mut select = reading.prepare("SELECT did, collection, rkey, cid FROM record").ok()?;
        let mut rows = select.query([]).ok()?;
        while let Some(row) = rows.next().ok()? {
            let text = |at| row.get::<_, String>(at).unwrap();
            let path = format!("{}/{}", text(1), text(2));
            records.entry(text(0)).or_default().insert(path, text(3));
        }
        Some(Self {
            records,
            incomplete: number("SELECT count(*) FROM account WHERE NOT complete")?,
            live: number("SELECT count(*) FROM event WHERE live AND verdict = 'verified'")?,
            live_ids: number(
                "SELECT count(DISTINCT id) FROM event WHERE live AND verdict = 'verified'",
            )?,
            history: number("SELECT count(*) FROM event WHERE kind = 'resync'")? as usize,
        })
    }
}

/// Writes commits of all accounts, and leaves a gap in one.
fn write(sim: &Simulation, round: usize) {
    sim.write_commits(12);
    let account = round % sim.account_count();
    sim.write_unannounced(account);
    sim.write_commit_as(account);
}

#[test]
fn after_kills_at_any_moment_the_tables_have_every_record_and_each_commit_once() {
    let spec =
        Spec { accounts: 5, records: 230, jetstreams: 0, initial_commits: 30, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let tables = folder.path().join("tables.db");
    let dids: Vec<String> =
        (0..sim.account_count()).map(|number| sim.account(number).did).collect();
    let (dids, to) = (dids.join(","), format!("sqlite://{}", tables.display()));
    let args = ["--to", &to, "--backfill", "--dids", &dids];
    let command = || follow::command(&sim, &folder.path().join("state"), &args);

    let (mut ends, mut source_kills) = (0, 0);
    for (round, point) in POINTS.iter().enumerate() {
        let mut command = command();
        command.env("WIREPROOF_CRASH_POINT", point);
        command.env("WIREPROOF_CRASH_MARKER", folder.path().join("marker"));
        let crashed = Follow::spawn(command, round);
        write(&sim, round);
        // The points of an orderly end are reached after an interruption.
        let expected = expected(&sim);
        let ended = crashed.interrupt_when(|_| {
            Tables::read(&tables).is_some_and(|tables| tables.records == expected)
        });
        assert_eq!(ended.status.code(), None, "{point} was not reached\n{}", ended.errors);
        ends += 1;
    }
    for round in 0..scaled(4, 200) {
        let running = Follow::spawn(command(), round);
        write(&sim, round);
        std::thread::sleep(Duration::from_millis(40 + 97 * (round as u64 % 7)));
        if round % 2 == 1 {
            source_kills += usize::from(follow::restart_source(&sim));
        }
        running.kill();
        ends += 1;
    }
    let mut last = Follow::spawn(command(), ends);
    write(&sim, ends);
    last.wait_for_connection(&sim);
    source_kills += usize::from(follow::restart_source(&sim));
    assert!(source_kills > 0, "the source ends while it is read");
    let expected = expected(&sim);
    // An interrupted history can be repeated while every record is there.
    last.wait_until("every record and history", |_| {
        Tables::read(&tables)
            .is_some_and(|tables| tables.records == expected && tables.incomplete == 0)
    });
    let ended = last.interrupt();
    assert!(ended.is_orderly(), "{}", ended.errors);
    let found = Tables::read(&tables).expect("tables that can be read");
    assert!(found.records == expected, "the records after the end");
    assert_eq!(found.incomplete, 0, "every account has its history");
    assert_eq!(found.live, found.live_ids, "no verified event is in the tables twice");
    assert!(found.history >= sim.account_count(), "a repository of each account");
    report(&format!(
        "{ends} ends, {source_kills} of the source while it was read; {} events and {} lines of repositories",
        found.live, found.history
    ));
}
