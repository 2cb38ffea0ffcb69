//! A full disk ends the run with exit code 4: a cursor that cannot be stored stays as it was, and an output file that
//! ends within a line is continued by the next run without a loss.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use simnet::servers::{Server, Simulation, Spec, WriteRate};

use crate::event_log::EventLog;
use crate::follow::{self, Follow, PrintedLine};

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

/// Limit of files in KiB at which the output is full.
const OUTPUT_LIMIT_KIB: usize = 1024;
