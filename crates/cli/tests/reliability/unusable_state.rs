//! A state that cannot be written or read: damaged, of a later version, without permission. The run ends with exit
//! code 4 before its first line, and the message names the fix; or it continues where the state was.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use simnet::servers::{Server, Simulation, Spec};
use tempfile::TempDir;

use crate::event_log::EventLog;
use crate::follow::{self, Ended, Follow};

const RELAY: Server = Server::Relay(0);

/// The state of a run that has ended in order.
struct UsedState {
    sim: Simulation,
    folder: TempDir,
    ended: Ended,
}

impl UsedState {
    fn new() -> Self {
        let spec = Spec { accounts: 20, records: 3, jetstreams: 0, ..Spec::default() };
        let sim = Simulation::start(Spec { initial_commits: 60, ..spec }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let ended = run_to_the_end(&sim, folder.path(), 0);
        assert!(ended.is_orderly(), "{}", ended.errors);
        Self { sim, folder, ended }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("state.sqlite")
    }

    /// Checks that the next run prints nothing, and ends with an error of the state file with this text.
    fn check_refused(&self, text: &str) {
        let refused = Follow::spawn(follow::command(&self.sim, self.folder.path(), &[]), 1).wait();
        assert_eq!(refused.status.code(), Some(4), "{text}: {}", refused.errors);
        assert!(refused.printed.is_empty(), "{text}: {:?}", refused.printed);
        assert!(refused.errors.contains("state.sqlite"), "{text}: {}", refused.errors);
        assert!(refused.errors.contains(text), "{text}: {}", refused.errors);
    }

    /// Checks that the next run prints every event that is new, and none again.
    fn check_continued(self) {
        self.sim.write_commits(5);
        let again = run_to_the_end(&self.sim, self.folder.path(), 1);
        assert!(again.is_orderly(), "{}", again.errors);
        let printed = [self.ended.printed, again.printed].concat();
        assert_eq!(EventLog::of(&self.sim).check(&printed).repeated, 0);
    }
}

fn run_to_the_end(sim: &Simulation, state: &Path, run: usize) -> Ended {
    let last = sim.last_seq(RELAY);
    Follow::spawn(follow::command(sim, state, &[]), run)
        .interrupt_when(|follow| follow.lines_from(0).iter().any(|line| line.seq == Some(last)))
}

#[test]
fn a_damaged_state_file_is_refused_with_the_cure_and_continued_once_it_is_restored() {
    let used = UsedState::new();
    let whole = fs::read(used.file()).unwrap();
    let middle = whole.len() / 4096 / 2 * 4096;
    let damages: [(&str, Vec<u8>, &str); 6] = [
        ("cut in a page", whole[..middle + 100].to_vec(), CURE),
        ("cut between pages", whole[..middle].to_vec(), CURE),
        ("its header overwritten", overwritten(&whole, 0..100), "not a state file of wireproof"),
        ("a page overwritten", overwritten(&whole, middle..middle + 4096), CURE),
        ("of 0 bytes", Vec::new(), "the file is damaged: it has 0 bytes; restore it"),
        ("a moved cursor", with_moved_cursor(&used, &whole), CURE),
    ];
    for (what, bytes, text) in damages {
        fs::write(used.file(), &bytes).unwrap();
        used.check_refused(text);
        assert_eq!(fs::read(used.file()).unwrap(), bytes, "{what}: the file is unchanged");
    }
    fs::write(used.file(), whole).unwrap();
    used.check_continued();
}

fn overwritten(whole: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let noise = |at: usize| (at as u8).wrapping_mul(151) ^ 0x5a;
    range.for_each(|at| bytes[at] = noise(at));
    bytes
}

/// The file with another cursor, as after a flipped bit: all pages and values are valid.
fn with_moved_cursor(used: &UsedState, whole: &[u8]) -> Vec<u8> {
    let copy = used.folder.path().join("copy");
    fs::write(&copy, whole).unwrap();
    let file = rusqlite::Connection::open(&copy).unwrap();
    assert_eq!(file.execute("UPDATE cursor SET seq = seq + 64", []).unwrap(), 1);
    file.close().unwrap();
    fs::read(&copy).unwrap()
}

#[test]
fn a_log_of_garbage_is_ignored_and_the_run_continues() {
    let used = UsedState::new();
    fs::write(used.file().with_extension("sqlite-wal"), [0xa5; 50_000]).unwrap();
    fs::write(used.file().with_extension("sqlite-shm"), [0xa5; 50_000]).unwrap();
    used.check_continued();
}

#[test]
fn a_state_file_of_a_later_version_is_refused() {
    let used = UsedState::new();
    let file = rusqlite::Connection::open(used.file()).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    file.close().unwrap();
    used.check_refused("state file of version 99; this program reads versions up to");
}

#[test]
fn a_log_that_cannot_be_created_is_an_error_and_the_run_continues_after_the_cure() {
    let used = UsedState::new();
    let log = used.file().with_extension("sqlite-wal");
    // Also root cannot write to a folder as to a file.
    fs::create_dir(&log).unwrap();
    used.check_refused("cannot be written: check the permissions");
    fs::remove_dir(&log).unwrap();
    used.check_continued();
}

#[test]
fn a_state_without_permission_to_write_is_an_error_and_the_run_continues_after_the_cure() {
    let used = UsedState::new();
    let folder = used.folder.path();
    let set_mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
    let files = || fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for (file_mode, folder_mode) in [(0o444, 0o755), (0o644, 0o555), (0o444, 0o555)] {
        files().for_each(|file| set_mode(&file, file_mode).unwrap());
        set_mode(folder, folder_mode).unwrap();
        let refused = Follow::spawn(unprivileged(&used), 1).wait();
        set_mode(folder, 0o755).unwrap();
        assert_eq!(refused.status.code(), Some(4), "{}", refused.errors);
        assert!(refused.printed.is_empty(), "{:?}", refused.printed);
        let text = "cannot be written: check the permissions";
        assert!(refused.errors.contains(text), "{file_mode:o} {folder_mode:o}: {}", refused.errors);
    }
    files().for_each(|file| set_mode(&file, 0o644).unwrap());
    used.check_continued();
}

/// The command by a user to whom permissions apply. Root runs it as another one, who may not be able to reach the
/// program by its path.
fn unprivileged(used: &UsedState) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "exec /proc/self/fd/0 \"$@\"", "sh", "follow"]);
    command.args(follow::follow_args(&used.sim, used.folder.path()));
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command.stdin(File::open(env!("CARGO_BIN_EXE_wireproof")).unwrap());
    if used.folder.path().metadata().unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

const NOBODY: u32 = 65_534;

/// The advice in messages about damage.
const CURE: &str = "restore it, or delete it and start at the last cursor that was reported";
