//! An end of the process between any two durable steps loses no event, and the next run repeats only
//! unacknowledged events.
//!
//! The command ends itself at a named point of its code: `base::crash_point`. The file that the process writes at
//! a point proves that it was reached. The table is proved to have all points of the sources.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use simnet::servers::{Server, Simulation, Spec, WriteRate};
use tempfile::TempDir;

use crate::event_log::EventLog;
use crate::follow::{self, Ended, Follow, PrintedLine};
use crate::{report, resync_records};

/// The work of the command when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// Follows a relay, without a state file before.
    Relay,
    /// Follows a relay with `--resync`, and every account has a gap.
    Resync,
    /// Follows a relay with the state file of an earlier version.
    Migration,
    /// Follows a Jetstream, without a state file before.
    Jetstream,
    /// Downloads a repository into a file.
    Save,
    /// Captures frames, keys and commits.
    Capture,
}

/// The points, with the passage at which the process ends.
const POINTS: &[(Scenario, &str, u64)] = &[
    (Scenario::Relay, "state/created", 1),
    (Scenario::Relay, "state/named", 1),
    (Scenario::Relay, "state/opened", 1),
    (Scenario::Migration, "state/migrating", 1),
    (Scenario::Migration, "state/migrated", 1),
    (Scenario::Relay, "printed/written", 1),
    (Scenario::Relay, "printed/committed", 1),
    (Scenario::Relay, "printed/written", 2),
    (Scenario::Relay, "printed/committed", 2),
    (Scenario::Relay, "keys/written", 1),
    (Scenario::Relay, "keys/committed", 1),
    (Scenario::Relay, "checkpoint/written", 1),
    (Scenario::Relay, "checkpoint/committed", 1),
    (Scenario::Relay, "checkpoint/written", 2),
    (Scenario::Relay, "checkpoint/committed", 2),
    (Scenario::Resync, "checkpoint/written", 2),
    (Scenario::Resync, "checkpoint/committed", 2),
    (Scenario::Jetstream, "checkpoint/written", 1),
    (Scenario::Jetstream, "checkpoint/committed", 2),
    (Scenario::Relay, "lines/taken", 1),
    (Scenario::Relay, "lines/taken", 2),
    (Scenario::Relay, "lines/written", 1),
    (Scenario::Relay, "lines/written", 2),
    (Scenario::Relay, "lines/acknowledged", 1),
    (Scenario::Resync, "lines/written", 2),
    (Scenario::Resync, "lines/acknowledged", 1),
    (Scenario::Jetstream, "lines/taken", 1),
    (Scenario::Jetstream, "lines/written", 1),
    (Scenario::Jetstream, "lines/acknowledged", 1),
    (Scenario::Resync, "resync/piece", 1),
    (Scenario::Resync, "resync/piece", 2),
    (Scenario::Resync, "resync/last-piece", 1),
    (Scenario::Relay, "run/finished", 1),
    (Scenario::Jetstream, "jetstream/finished", 1),
    (Scenario::Relay, "state/closing", 1),
    (Scenario::Jetstream, "state/closing", 1),
    (Scenario::Relay, "state/closed", 1),
    (Scenario::Save, "file/complete", 1),
    (Scenario::Save, "file/named", 1),
    (Scenario::Capture, "capture/frames", 1),
    (Scenario::Capture, "capture/accounts", 1),
];

#[test]
fn an_end_at_any_crash_point_loses_nothing_and_repeats_only_what_is_not_acknowledged() {
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = || POINTS.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(taken).map(repetitions_after).collect()
    };
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENT).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter().map(|worker| worker.join().expect("panics are caught"));
        results.flat_map(|results: Vec<_>| results).collect()
    });
    let failed: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(failed.is_empty(), "failed, as printed above: {failed:?}");
    let repeated: usize = results.iter().flatten().sum();
    report(&format!(
        "{} ends at crash points: none lost, {repeated} delivered again",
        POINTS.len()
    ));
}

/// The number of events that are repeated after an end at this point; its name if a check fails.
fn repetitions_after(
    (scenario, name, passage): &(Scenario, &'static str, u64),
) -> Result<usize, String> {
    let point = CrashPoint::new(name, *passage);
    let check = AssertUnwindSafe(|| scenario.check(&point));
    catch_unwind(check).map_err(|_| format!("{scenario:?}: {name}@{passage}"))
}

#[test]
fn the_table_has_every_crash_point_of_the_sources() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut named = BTreeSet::new();
    for member in ["cli", "follower", "program", "store"] {
        collect_names(&crates.join(member).join("src"), &mut named);
    }
    let table: BTreeSet<String> = POINTS.iter().map(|(_, name, _)| (*name).to_owned()).collect();
    assert_eq!(named, table);
}

/// Adds the names of the crash points in the sources.
fn collect_names(folder: &Path, named: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_names(&path, named);
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let calls = source.match_indices("crash_point(\"").map(|(at, call)| at + call.len());
        for at in calls {
            named.insert(source[at..].split('"').next().unwrap().to_owned());
        }
    }
}

/// A crash point, and the file that proves that it was reached.
struct CrashPoint {
    name: &'static str,
    passage: u64,
    folder: TempDir,
}

impl CrashPoint {
    fn new(name: &'static str, passage: u64) -> Self {
        Self { name, passage, folder: tempfile::tempdir().unwrap() }
    }

    /// Makes the command end at the point.
    fn arm(&self, mut command: Command) -> Command {
        command.env("WIREPROOF_CRASH_POINT", format!("{}@{}", self.name, self.passage));
        command.env("WIREPROOF_CRASH_MARKER", self.folder.path().join("marker"));
        command
    }

    /// Checks that the command ended there.
    fn check(&self, ended: &Ended) {
        let what = format!("{}@{}", self.name, self.passage);
        assert_eq!(ended.status.signal(), Some(SIGABRT), "{what}\n{}", ended.errors);
        let marker = fs::read_to_string(self.folder.path().join("marker")).expect("the marker");
        assert_eq!(marker, self.name);
    }

    fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }
}

impl Scenario {
    /// Ends the command at the point, runs it again, and checks the lines of both. The number of repeated events.
    fn check(self, point: &CrashPoint) -> usize {
        match self {
            Self::Relay => check_relay(point),
            Self::Resync => check_resync(point),
            Self::Migration => check_migration(point),
            Self::Jetstream => check_jetstream(point),
            Self::Save => check_save(point),
            Self::Capture => check_capture(point),
        }
    }
}

fn network(spec: Spec) -> Simulation {
    Simulation::start(Spec { accounts: 6, records: 5, jetstreams: 0, ..spec }).unwrap()
}

/// Whether the last event that the host has sent is printed.
fn has_last(follow: &Follow, sim: &Simulation, host: Server) -> bool {
    let last = sim.last_seq(host);
    follow.lines_from(0).iter().any(|line| line.seq == Some(last))
}

/// Whether the condition holds, and then again after one more commit: its line is written for itself.
fn twice(sim: &Simulation, condition: impl Fn(&Follow) -> bool) -> impl FnMut(&Follow) -> bool {
    let mut is_second = false;
    move |follow| {
        let holds = condition(follow);
        if holds && !is_second {
            is_second = true;
            sim.write_commits(1);
            return false;
        }
        holds
    }
}

/// The stored cursor after an end, read from a copy, as reading changes the files.
fn cursor_after_crash(point: &CrashPoint, sim: &Simulation, host: Server) -> Option<i64> {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(point.state()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let is_created = copy.path().join("state.sqlite").exists();
    if is_created { follow::stored_cursor(copy.path(), sim, host) } else { None }
}

/// Checks that the second run repeats no event up to the cursor, and only marked ones.
fn check_repetitions(before: &[PrintedLine], after: &[PrintedLine], cursor: Option<i64>) {
    let is_acknowledged = |line: &&PrintedLine| line.seq.is_some() && line.seq <= cursor;
    assert_eq!(after.iter().find(is_acknowledged), None, "acknowledged up to {cursor:?}");
    let is_known = |line: &&PrintedLine| before.iter().any(|known| known.seq == line.seq);
    let unmarked = after.iter().filter(is_known).find(|line| line.seq.is_some() && !line.repeated);
    assert_eq!(unmarked, None, "a repetition is not marked");
}

fn check_relay(point: &CrashPoint) -> usize {
    let sim = network(Spec { initial_commits: 40, ..Spec::default() });
    check_crash_and_restart(&sim, point)
}

/// Follows the relay until the crash, then again, and compares the lines with the events.
fn check_crash_and_restart(sim: &Simulation, point: &CrashPoint) -> usize {
    let command = || follow::command(sim, &point.state(), &[]);
    let crashed = Follow::spawn(point.arm(command()), 0);
    let crashed = crashed.interrupt_when(twice(sim, |follow| has_last(follow, sim, RELAY)));
    point.check(&crashed);
    let cursor = cursor_after_crash(point, sim, RELAY);
    EventLog::of(sim).check_cursor(sim.port(RELAY), cursor, &crashed.printed);

    sim.write_commits(5);
    let again = Follow::spawn(command(), 1).interrupt_when(|follow| has_last(follow, sim, RELAY));
    assert!(again.is_orderly(), "{}", again.errors);
    check_repetitions(&crashed.printed, &again.printed, cursor);
    EventLog::of(sim).check(&[crashed.printed, again.printed].concat()).repeated
}

fn check_migration(point: &CrashPoint) -> usize {
    let sim = network(Spec { initial_commits: 10, ..Spec::default() });
    let first = Follow::spawn(follow::command(&sim, &point.state(), &[]), 0);
    let first = first.interrupt_when(|follow| has_last(follow, &sim, RELAY));
    let cursor = follow::stored_cursor(&point.state(), &sim, RELAY);
    assert_eq!(cursor, Some(sim.last_seq(RELAY)));
    let file = rusqlite::Connection::open(point.state().join("state.sqlite")).unwrap();
    file.execute_batch(TO_VERSION_1).unwrap();
    drop(file);

    sim.write_commits(5);
    let command = || follow::command(&sim, &point.state(), &[]);
    let crashed = Follow::spawn(point.arm(command()), 1).interrupt_when(|_| false);
    point.check(&crashed);
    let again = Follow::spawn(command(), 2).interrupt_when(|follow| has_last(follow, &sim, RELAY));
    assert!(again.is_orderly(), "{}", again.errors);
    let printed = [first.printed, crashed.printed, again.printed].concat();
    let repeated = EventLog::of(&sim).check(&printed).repeated;
    assert_eq!(repeated, 0, "the migrated cursor is used");
    repeated
}

fn check_resync(point: &CrashPoint) -> usize {
    let spec = Spec { accounts: 3, records: 250, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    let command = || follow::command(&sim, &point.state(), &["--resync"]);
    // An orderly run before: heads that the gaps follow.
    (0..sim.account_count()).for_each(|account| sim.write_commit_as(account));
    let first = Follow::spawn(command(), 0).interrupt_when(|follow| has_last(follow, &sim, RELAY));
    assert!(first.is_orderly(), "{}", first.errors);
    for account in 0..sim.account_count() {
        sim.write_unannounced(account);
        sim.write_commit_as(account);
    }
    let is_complete = |before: &[PrintedLine], follow: &Follow| {
        let lines = [before, &follow.lines_from(0)].concat();
        has_last(follow, &sim, RELAY)
            && resync_records::apply(&lines) == resync_records::expected(&sim)
    };
    let crashed = Follow::spawn(point.arm(command()), 1);
    let crashed = crashed.interrupt_when(twice(&sim, |follow| is_complete(&first.printed, follow)));
    point.check(&crashed);
    let cursor = cursor_after_crash(point, &sim, RELAY);
    let before = [first.printed, crashed.printed].concat();
    EventLog::of(&sim).check_cursor(sim.port(RELAY), cursor, &before);
    sim.write_commits(5);
    let again = Follow::spawn(command(), 2).interrupt_when(|follow| is_complete(&before, follow));
    assert!(again.is_orderly(), "{}", again.errors);
    check_repetitions(&before, &again.printed, cursor);
    let all = [before, again.printed].concat();
    let with_number = all.iter().filter(|line| line.seq.is_some()).count();
    with_number - EventLog::of(&sim).check_delivered(&all)
}

fn check_jetstream(point: &CrashPoint) -> usize {
    let spec = Spec { accounts: 6, relays: 0, initial_commits: 40, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["follow", "--jetstream", "--development", "--cursor", "oldest"]);
        // On a busy disk the last cursor takes longer than usual.
        command.args(["--stop-seconds", "120"]);
        command.args(["--host", &sim.url(JETSTREAM), "--state"]).arg(point.state());
        command
    };
    let crashed = Follow::spawn(point.arm(command()), 0);
    let crashed = crashed.interrupt_when(|follow| has_last(follow, &sim, JETSTREAM));
    point.check(&crashed);
    let cursor = cursor_after_crash(point, &sim, JETSTREAM);
    sim.write_commits(5);
    let again = Follow::spawn(command(), 1);
    let again = again.interrupt_when(|follow| has_last(follow, &sim, JETSTREAM));
    assert!(again.is_orderly(), "{}", again.errors);

    let seqs = |lines: &[PrintedLine]| lines.iter().filter_map(|line| line.seq).collect::<Vec<_>>();
    let (before, after) = (seqs(&crashed.printed), seqs(&again.printed));
    assert!(before.is_sorted_by(|a, b| a < b) && after.is_sorted_by(|a, b| a < b));
    assert!(after.iter().all(|seq| Some(*seq) > cursor), "acknowledged up to {cursor:?}");
    let printed: BTreeSet<i64> = before.iter().chain(&after).copied().collect();
    let sent: BTreeSet<i64> = sim.sent_events(JETSTREAM).iter().map(|event| event.seq).collect();
    assert_eq!(printed, sent);
    before.len() + after.len() - sent.len()
}

/// A file is there whole or not at all, and the next run writes it.
fn check_save(point: &CrashPoint) -> usize {
    let sim = network(Spec::default());
    let saved = point.folder.path().join("saved.car");
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["verify", &sim.account(0).did, "--plc", &sim.url(Server::Plc)]);
        command.args(["--development", "--save"]).arg(&saved);
        command
    };
    let crashed = Follow::spawn(point.arm(without_output(command())), 0).wait();
    point.check(&crashed);
    assert_eq!(saved.exists(), point.name == "file/named");
    if saved.exists() {
        assert!(verify_file(&sim, &saved));
        fs::remove_file(&saved).unwrap();
    }
    assert!(command().output().unwrap().status.success());
    assert!(verify_file(&sim, &saved));
    0
}

fn verify_file(sim: &Simulation, path: &Path) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.arg("verify").arg(path).args(["--key", &sim.account(0).signing_key]);
    command.output().unwrap().status.success()
}

/// Every file is there whole or not at all, even where an older one is replaced.
fn check_capture(point: &CrashPoint) -> usize {
    let sim = network(Spec::default());
    sim.set_write_rate(WriteRate::PerSecond(40));
    let out = point.folder.path().join("corpus");
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["capture", "--sigs", "--seconds", "1"]);
        command.args(["--host", &sim.url(RELAY), "--plc", &sim.url(Server::Plc), "--development"]);
        command.arg("--out").arg(&out);
        command
    };
    let crashed = Follow::spawn(point.arm(without_output(command())), 0).wait();
    point.check(&crashed);
    let is_whole = |name: &str| {
        let json = fs::read(out.join(name).with_extension("json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&json).ok()
    };
    assert!(is_whole("firehose-frames.bin").is_some());
    assert_eq!(is_whole("accounts").is_some(), point.name == "capture/accounts");
    assert!(command().output().unwrap().status.success());
    assert!(is_whole("accounts").is_some() && is_whole("signed-commits.bin").is_some());
    0
}

/// The command without its report on standard output, which is not made of lines of `follow`.
fn without_output(command: Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" > /dev/null", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

const RELAY: Server = Server::Relay(0);
const JETSTREAM: Server = Server::Jetstream(0);

/// Signal of an `abort`.
const SIGABRT: i32 = 6;

/// Number of commands at a time.
const CONCURRENT: usize = 4;

/// Makes a file of version 1 of one of today's.
const TO_VERSION_1: &str = "
ALTER TABLE account DROP COLUMN checksum;
ALTER TABLE key DROP COLUMN checksum;
DROP TABLE stream_checksum;
DROP INDEX account_without_head;
ALTER TABLE key DROP COLUMN host;
DROP TABLE printed;
DROP TABLE recent;
PRAGMA user_version = 1;";
