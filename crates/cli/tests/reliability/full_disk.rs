//! A full disk ends the run with exit code 4: a cursor that cannot be stored stays as it was, the next run continues
//! without loss an output file that ends within a line, and delivers the events that destinations lack.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec, WriteRate};
use tempfile::TempDir;

use crate::consumed::Consumed;
use crate::event_log::EventLog;
use crate::follow::{self, Ended, Follow, PrintedLine};
use crate::report;

const RELAY: Server = Server::Relay(0);

#[test]
fn a_cursor_that_cannot_be_stored_ends_the_run_with_exit_code_4_and_is_unchanged() {
    let spec = Spec { accounts: 300, records: 3, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    sim.set_write_rate(WriteRate::MatchReaders);
    let mut follow = Follow::spawn(limited(&sim, folder.path(), 64), 0);
    follow.wait_for(1);
    let ended = follow.wait();
    sim.set_write_rate(WriteRate::Off);
    assert_eq!(ended.status.code(), Some(4), "{}", ended.errors);
    let cursor = follow::stored_cursor(folder.path(), &sim, RELAY);
    EventLog::of(&sim).check_cursor(sim.port(RELAY), cursor, &ended.printed);

    // With enough space the next run resumes there.
    let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &[]), 1);
    let last = sim.last_seq(RELAY);
    follow.wait_until("the last event", |follow| {
        follow.lines_from(0).iter().any(|printed| printed.seq == Some(last))
    });
    let printed = [ended.printed, follow.interrupt().printed].concat();
    EventLog::of(&sim).check(&printed);
}

#[test]
fn the_line_that_a_full_disk_cut_off_is_printed_again_on_a_line_of_its_own() {
    let spec = Spec { accounts: 6, records: 3, jetstreams: 0, ..Spec::default() };
    let spec = Spec { initial_commits: 60, ..spec };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let (state, out) = (folder.path().join("state"), folder.path().join("out.jsonl"));
    // The state file stays below the limit, the output reaches it within some twenty lines.
    let before = "{}\n".repeat((OUTPUT_LIMIT_KIB << 10) / 3 - 5_000);
    fs::write(&out, &before).unwrap();
    let output = appending(limited(&sim, &state, OUTPUT_LIMIT_KIB), &out).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.contains("standard input or output: "), "{errors}");
    let cut_off = text_of(&out);
    assert!(cut_off.len() > before.len() && !cut_off.ends_with('\n'), "no line was cut off");

    let mut again = appending(follow::command(&sim, &state, &[]), &out).spawn().unwrap();
    // Workers print side by side, so the line of the last event may not be the last line.
    while event_count(&text_of(&out)[before.len()..]) < 60 {
        std::thread::sleep(Duration::from_millis(20));
    }
    again.kill().unwrap();
    again.wait().unwrap();
    let text = text_of(&out);
    let lines = text[before.len()..].lines();
    let (lines, cut_off): (Vec<_>, Vec<_>) = lines.partition(|line| line.ends_with('}'));
    assert_eq!(cut_off.len(), 1, "the line that was cut off");
    // The first run has printed as many lines as the limit allows.
    let printed: Vec<_> = lines.iter().map(|line| PrintedLine::parse(0, line)).collect();
    let is_first = |line: &PrintedLine| !line.repeated;
    assert!(printed.iter().any(is_first));
    assert_eq!(EventLog::of(&sim).check_delivered(&printed), 60);
}

#[test]
fn a_full_disk_under_an_outbox_ends_the_run_with_exit_code_4_and_the_next_one_delivers_everything()
{
    let full = FullDisk::new();
    let tables = full.folder.path().join("tables.db");
    // No server has this port, so events stay in the outbox.
    let webhook = "http://127.0.0.1:9/";
    let secret = full.folder.path().join("secret");
    fs::write(&secret, "a secret of at least 24 bytes").unwrap();
    let to = format!("sqlite://{}", tables.display());
    let away = ["--to", webhook, "--webhook-secret-file", secret.to_str().unwrap(), "--to", &to];
    let ended = full.run_limited(&away, |_| false);
    assert_eq!(ended.status.code(), Some(4), "{}", ended.errors);
    assert!(last_line(&ended.errors).contains("outbox.sqlite: "), "{}", ended.errors);
    // The webhook is given up. The tables get the missing rows.
    let webhook = ended.errors.split([' ', ':']).find(|word| word.starts_with("webhook-"));
    let mut next = full.follow(&["--forget", webhook.unwrap(), "--to", &to]);
    full.wait_for_tables(&mut next, &tables);
    let ended = next.interrupt();
    assert!(ended.is_orderly(), "{}", ended.errors);
}

#[test]
fn a_full_disk_under_tables_ends_the_run_or_lets_it_wait_and_no_record_is_missing_afterwards() {
    let full = FullDisk::new();
    let tables = full.folder.path().join("tables.db");
    let to = format!("sqlite://{}", tables.display());
    let ended = full.run_limited(&["--to", &to], is_retried);
    report(&format!("tables: {:?}: {}", ended.status.code(), last_line(&ended.errors)));
    let mut next = full.follow(&["--to", &to]);
    full.wait_for_tables(&mut next, &tables);
    let ended = next.interrupt();
    assert!(ended.is_orderly(), "{}", ended.errors);
    let file = Connection::open(&tables).unwrap();
    let number = |select: &str| -> i64 { file.query_row(select, [], |row| row.get(0)).unwrap() };
    let verified = "FROM event WHERE live AND verdict = 'verified'";
    let (rows, ids) = (
        number(&format!("SELECT count(*) {verified}")),
        number(&format!("SELECT count(DISTINCT id) {verified}")),
    );
    assert_eq!((rows, ids), (full.commits, full.commits), "every commit once");
}

#[test]
fn a_full_disk_under_files_ends_the_run_or_lets_it_wait_and_no_event_is_missing_afterwards() {
    let full = FullDisk::new();
    let files = full.folder.path().join("files");
    let to = format!("file://{}", files.display());
    let ended = full.run_limited(&["--to", &to], is_retried);
    report(&format!("files: {:?}: {}", ended.status.code(), last_line(&ended.errors)));
    let mut next = full.follow(&["--to", &to]);
    let lines = || -> Vec<Value> {
        let mut paths: Vec<_> =
            fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "ndjson" || end == "part"));
        let complete = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.rsplit_once('\n').map(|(lines, _)| lines.to_owned()).unwrap_or_default()
        };
        let text: Vec<String> = paths.iter().map(complete).collect();
        let lines = text.iter().flat_map(|text| text.lines());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let ids = |lines: &[Value]| -> BTreeSet<String> {
        let verified = lines.iter().filter(|line| line["verdict"] == "verified");
        verified.map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    };
    let count = usize::try_from(full.commits).unwrap();
    next.wait_until("every event", |_| ids(&lines()).len() == count);
    let ended = next.interrupt();
    assert!(ended.is_orderly(), "{}", ended.errors);
    let mut consumed = Consumed::default();
    // A line that comes again has the same content.
    lines().iter().for_each(|line| consumed.apply(line));
    assert_eq!(ids(&lines()).len(), count);
}

/// A network with more commits than files may hold.
struct FullDisk {
    sim: Simulation,
    folder: TempDir,
    commits: i64,
}

impl FullDisk {
    fn new() -> Self {
        let spec = Spec { accounts: 6, records: 3, jetstreams: 0, ..Spec::default() };
        let sim = Simulation::start(Spec { initial_commits: 1_500, ..spec }).unwrap();
        Self { sim, folder: tempfile::tempdir().unwrap(), commits: 1_500 }
    }

    fn follow(&self, more: &[&str]) -> Follow {
        Follow::spawn(follow::command(&self.sim, &self.folder.path().join("state"), more), 1)
    }

    /// A run until a file is full: it ends, or is interrupted where its messages say that it waits.
    fn run_limited(&self, more: &[&str], waits: fn(&str) -> bool) -> Ended {
        let mut command =
            limited(&self.sim, &self.folder.path().join("state"), DESTINATION_LIMIT_KIB);
        command.args(more);
        let run = Follow::spawn(command, 0);
        let ended = run.interrupt_when(|run| waits(&run.errors()));
        assert!(is_full(&ended.errors), "no file was full: {}", ended.errors);
        assert!([Some(4), Some(130)].contains(&ended.status.code()), "{}", ended.errors);
        ended
    }

    fn wait_for_tables(&self, run: &mut Follow, tables: &Path) {
        let select = "SELECT count(*) FROM event WHERE live AND verdict = 'verified'";
        let count = || -> rusqlite::Result<i64> {
            let file = Connection::open_with_flags(tables, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            file.busy_timeout(Duration::from_secs(5))?;
            file.query_row(select, [], |row| row.get(0))
        };
        run.wait_until("every commit", |_| count().is_ok_and(|count| count == self.commits));
    }
}

/// Whether messages say that a destination whose file cannot grow is tried again.
fn is_retried(errors: &str) -> bool {
    errors.contains("it is retried") && is_full(errors)
}

/// Whether a message says that a file cannot grow.
fn is_full(errors: &str) -> bool {
    ["full", "File too large", "disk I/O"].iter().any(|text| errors.contains(text))
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// The number of events in complete lines.
fn event_count(text: &str) -> usize {
    let (lines, _) = text.rsplit_once('\n').unwrap_or_default();
    let lines = lines.lines().filter(|line| line.ends_with('}'));
    lines.filter_map(|line| PrintedLine::parse(0, line).seq).collect::<BTreeSet<_>>().len()
}

/// The text of a file, which may end within a character.
fn text_of(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// The command with standard output appended to a file.
fn appending(mut command: Command, out: &Path) -> Command {
    let out = OpenOptions::new().append(true).open(out).unwrap();
    command.stdout(out).stderr(Stdio::piped());
    command
}

/// The command with files limited to this size, which fail like a full disk.
fn limited(sim: &Simulation, state: &Path, kib: usize) -> Command {
    let mut command = Command::new("sh");
    // SIGXFSZ would end the process before it can report the error.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2);
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_wireproof"), "follow"]);
    command.args(follow::follow_args(sim, state));
    command
}

/// Limit of files in KiB at which outboxes and destinations are full.
const DESTINATION_LIMIT_KIB: usize = 700;

/// Limit of files in KiB at which the output is full.
const OUTPUT_LIMIT_KIB: usize = 1024;
