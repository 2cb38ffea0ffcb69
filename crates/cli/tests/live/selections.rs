//! The selection of a run as a part of its state: additions, omissions and changes by a later run.

use std::path::Path;
use std::process::Command;

use simnet::servers::{Server, Simulation, Spec};

use crate::histories::Tables;
use crate::{Running, follow};

/// Accounts with records in several collections.
fn network() -> Simulation {
    let accounts = if std::env::var_os("WIREPROOF_SOAK").is_some() { 1_000 } else { 4 };
    let spec = Spec { accounts, records: 40, pds: 1, jetstreams: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

struct Scene {
    sim: Simulation,
    dir: tempfile::TempDir,
    tables: Tables,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tables = Tables::new(dir.path());
        Self { sim: network(), dir, tables }
    }

    fn command(&self, dids: &str, more: &[&str]) -> Command {
        let to = self.tables.to();
        let args = ["--dids", dids, "--backfill", "--to", &*to];
        follow(&self.sim, self.dir.path(), &[&args, more].concat())
    }

    fn run(&self, dids: &str, more: &[&str]) -> Running {
        Running::start(self.command(dids, more))
    }

    /// The DIDs of all accounts but the last.
    fn others(&self) -> String {
        let dids = (0..self.sim.account_count() - 1).map(|at| self.sim.account(at).did);
        dids.collect::<Vec<_>>().join(",")
    }

    fn all(&self) -> String {
        format!("{},{}", self.others(), self.sim.account(self.sim.account_count() - 1).did)
    }

    /// Number of records of the network in a collection; without a name, in all.
    fn expected(&self, collection: &str) -> usize {
        let accounts = self.sim.expected_accounts();
        let records = accounts.iter().flat_map(|account| &account.records);
        let is_in = |path: &str| path.split_once('/').is_some_and(|(name, _)| name == collection);
        records.filter(|(path, _)| collection.is_empty() || is_in(path)).count()
    }

    /// Waits until all accounts are complete, with all records of a collection.
    fn wait_for_all(&self, collection: &str) {
        self.tables.wait_for_histories(self.sim.account_count());
        let select =
            format!("SELECT count(*) FROM record WHERE '{collection}' IN ('', collection)");
        let expected = i64::try_from(self.expected(collection)).ok();
        assert_eq!(self.tables.query(&select), expected, "{collection}");
    }

    fn complete(&self) -> Option<i64> {
        self.tables.query("SELECT count(*) FROM account WHERE complete")
    }
}

/// The state that an ended run left: a reader cannot see complete accounts before the next run has compared them.
fn outdated(dir: &Path) -> i64 {
    let outbox = dir.join("state").join("outbox").join("outbox.sqlite");
    let outbox = rusqlite::Connection::open(outbox).unwrap();
    let select = "SELECT count(*) FROM account WHERE complete = 2";
    outbox.query_row(select, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_later_run_fetches_the_collections_that_it_adds_also_after_a_kill() {
    let scene = Scene::new();
    let post = "app.bsky.feed.post";
    let mut running = scene.run(&scene.all(), &["--collections", post]);
    scene.wait_for_all(post);
    assert!(scene.expected("") > scene.expected(post));
    running.kill();

    scene.sim.stop_server(Server::Pds(0));
    running = scene.run(&scene.all(), &[]);
    running.wait_for_stderr("more is selected than in the last run");
    scene.tables.wait("no account is complete", "SELECT count(*) FROM account WHERE complete", 0);
    running.kill();
    let all = i64::try_from(scene.sim.account_count()).unwrap();
    assert_eq!(outdated(scene.dir.path()), all, "before anything was fetched");

    scene.sim.start_server(Server::Pds(0)).unwrap();
    running = scene.run(&scene.all(), &[]);
    scene.wait_for_all("");
    running.kill();
    running = scene.run(&scene.all(), &["--collections", post]);
    running.wait_for_stderr("less is selected than in the last run");
    assert_eq!(scene.complete(), Some(all));
    running.kill();
}

#[test]
fn an_account_that_one_run_leaves_out_is_fetched_again_by_the_next_that_selects_it() {
    let scene = Scene::new();
    let mut running = scene.run(&scene.all(), &[]);
    scene.wait_for_all("");
    running.kill();
    let last = scene.sim.account_count() - 1;
    running = scene.run(&scene.others(), &[]);
    scene.tables.wait(
        "the account is not selected",
        "SELECT count(*) FROM account WHERE complete",
        last,
    );
    scene.sim.write_commit_as(last);
    scene.sim.write_commit_as(0);
    let written = "SELECT count(*) > 0 FROM event WHERE live AND kind = 'commit'";
    scene.tables.wait("the cursor passes its commit", written, 1);
    running.kill();
    running = scene.run(&scene.all(), &[]);
    scene.wait_for_all("");
    running.kill();
}

#[test]
#[cfg(feature = "where")]
fn another_condition_is_another_selection() {
    let scene = Scene::new();
    let mut running = scene.run(&scene.all(), &["--where", "collection == 'app.bsky.feed.post'"]);
    scene.wait_for_all("app.bsky.feed.post");
    running.kill();
    running = scene.run(&scene.all(), &["--where", "collection != 'app.bsky.feed.post'"]);
    running.wait_for_stderr("more is selected than in the last run");
    let posts = "SELECT count(*) FROM record WHERE collection = 'app.bsky.feed.post'";
    scene.tables.wait("records that do not match any more are gone", posts, 0);
    scene.tables.wait_for_histories(scene.sim.account_count());
    let rest = scene.expected("") - scene.expected("app.bsky.feed.post");
    assert_eq!(scene.tables.query("SELECT count(*) FROM record"), i64::try_from(rest).ok());
    running.kill();
}
