//! Runs with other selections, after kills and after hosts that began another sequence: nothing that is selected stays missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use simnet::servers::{CursorPolicy, Simulation, Spec};
use store::{Options, Store};
use verify::sync::AccountState;

use crate::delivered_tables::Tables;
use crate::follow::{self, Follow};
use crate::resync_records::{Records, expected};
use crate::{report, scaled};

/// Writes commits of all accounts, and leaves a gap in one that no later event mends.
fn write(sim: &Simulation, round: usize) {
    sim.write_commits(12);
    sim.write_unannounced(round % sim.account_count());
}

/// Stores cursors that no host has reached, as of a sequence that was reset.
fn set_ahead(state: &Path, by: u64) {
    let path = state.join("state.sqlite");
    let store = Store::open(&path, Options::default()).unwrap();
    let ahead = |(stream, cursor): (String, u64)| (stream, cursor + by);
    let cursors: Vec<(String, u64)> = store.cursors().unwrap().into_iter().map(ahead).collect();
    store.checkpoint(&cursors, &[] as &[(&str, AccountState)]).unwrap();
}

/// Missing and excess records of the tables, by account.
fn difference(found: &Tables, expected: &Records) -> Vec<String> {
    let empty = BTreeMap::new();
    let of_account = |(did, expected): (&String, &BTreeMap<String, String>)| {
        let found = found.records.get(did).unwrap_or(&empty);
        let is_other = |path: &&String| found.get(*path) != expected.get(*path);
        let paths: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
        let other: Vec<&String> = paths.into_iter().filter(is_other).collect();
        (!other.is_empty()).then(|| format!("{did}: {other:?}"))
    };
    let mut differences: Vec<String> = expected.iter().filter_map(of_account).collect();
    if found.incomplete > 0 {
        differences.push(format!("{} accounts are incomplete", found.incomplete));
    }
    differences
}

#[test]
fn after_other_selections_resets_and_kills_the_tables_have_every_record() {
    for policy in [CursorPolicy::SPECIFIED, CursorPolicy::DEPLOYED_RELAY] {
        run_changed(policy, scaled(6, 120));
    }
}

/// A new destination gets the whole repository under the selection of its run. Destinations replace what they have by it, so that the
/// other records are delivered again when they are selected.
#[test]
fn after_a_destination_was_added_under_fewer_collections_more_bring_every_record_back() {
    let spec = Spec { accounts: 3, records: 150, pds: 1, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let state = folder.path().join("state");
    let files = ["first.db", "second.db"].map(|name| folder.path().join(name));
    let to = files.each_ref().map(|file| format!("sqlite://{}", file.display()));
    let dids: Vec<String> = (0..sim.account_count()).map(|at| sim.account(at).did).collect();
    let dids = dids.join(",");
    let runs: [(usize, &[&str]); 3] =
        [(1, &[]), (2, &["--collections", "app.bsky.feed.post"]), (2, &[])];
    for (number, (destinations, collections)) in runs.into_iter().enumerate() {
        let mut args = vec!["--backfill", "--dids", &*dids];
        args.extend(to[..destinations].iter().flat_map(|to| ["--to", to]));
        args.extend(collections);
        let mut follow = Follow::spawn(follow::command(&sim, &state, &args), number);
        follow.wait_for_connection(&sim);
        let mut wanted = expected(&sim);
        if !collections.is_empty() {
            let is_post = |path: &String, _: &mut String| path.starts_with("app.bsky.feed.post/");
            wanted.values_mut().for_each(|records| records.retain(is_post));
        }
        follow.wait_until("the history of every destination", |_| {
            let newest = Tables::read(&files[destinations - 1]);
            let is_there = newest.is_some_and(|found| difference(&found, &wanted).is_empty());
            let first = || Tables::read(&files[0]).map(|found| difference(&found, &wanted));
            is_there && (number == 1 || first().is_some_and(|missing| missing.is_empty()))
        });
        let ended = follow.interrupt();
        assert!(ended.is_orderly(), "{}", ended.errors);
    }
}

fn run_changed(policy: CursorPolicy, rounds: usize) {
    let spec = Spec { accounts: 5, records: 60, pds: 1, jetstreams: 0, ..Spec::default() };
    let spec = Spec { relay_cursor_policy: policy, initial_commits: 10, ..spec };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let (tables, state) = (folder.path().join("tables.db"), folder.path().join("state"));
    let to = format!("sqlite://{}", tables.display());
    let dids: Vec<String> = (0..sim.account_count()).map(|at| sim.account(at).did).collect();
    let (all, some) = (dids.join(","), dids[1..].join(","));
    let posts = ["--collections", "app.bsky.feed.post"];
    let selections: [(&str, &[&str]); 4] =
        [(&all, &[]), (&all, &posts), (&some, &[]), (&some, &posts)];
    let spawn = |run: usize, (dids, more): (&str, &[&str])| {
        let args = [&["--to", &*to, "--backfill", "--dids", dids], more].concat();
        Follow::spawn(follow::command(&sim, &state, &args), run)
    };

    let mut resets = 0;
    for round in 0..rounds {
        let mut running = spawn(round, selections[round * 7 % 4]);
        write(&sim, round);
        running.wait_for_connection(&sim);
        std::thread::sleep(Duration::from_millis(97 * (round as u64 % 7)));
        running.kill();
        if round % 3 == 1 && state.join("state.sqlite").exists() {
            set_ahead(&state, 1_000_000 * (round as u64 + 1));
            resets += 1;
        }
    }
    let mut last = spawn(rounds, selections[0]);
    last.wait_for_connection(&sim);
    // A relay that says nothing about a cursor ahead of it is noticed by its next event.
    (0..sim.account_count()).for_each(|account| sim.write_commit_as(account));
    let expected = expected(&sim);
    let mut missing = None;
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        last.wait_until("every record and history", |_| {
            missing = Tables::read(&tables).map(|found| difference(&found, &expected));
            missing.as_ref().is_some_and(Vec::is_empty)
        });
    }));
    assert!(found.is_ok(), "{missing:?}");
    let ended = last.interrupt();
    assert!(ended.is_orderly(), "{}", ended.errors);
    report(&format!("{policy:?}: {rounds} selections, {resets} resets"));
}
