//! A full disk or a folder without permission ends a command about an archive with exit code 4 and the file.
//! Acknowledged events are in the write-ahead log, and the next run stores them once.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec};

/// A network whose commits are about a mebibyte, and a folder.
fn network() -> (Simulation, tempfile::TempDir) {
    let spec = Spec { accounts: 6, records: 3, jetstreams: 0, ..Spec::default() };
    let spec = Spec { initial_commits: COMMITS, ..spec };
    (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap())
}

/// The arguments of `archive follow` of the network's relay.
fn follow_args(sim: &Simulation, archive: &Path) -> Vec<String> {
    let (relay, plc) = (sim.url(Server::Relay(0)), sim.url(Server::Plc));
    let (port, archive) = (sim.port(Server::Pds(0)).to_string(), archive.display().to_string());
    let args = ["archive", "follow", "--cursor", "oldest", "--host", &relay, "--plc", &plc];
    let more = ["--development-port", &port, "--to", &archive];
    args.iter().chain(&more).map(|arg| (*arg).to_owned()).collect()
}

/// The command with files limited to this size, which fail like a full disk.
fn limited(kib: usize, args: &[String]) -> Output {
    let mut command = Command::new("sh");
    // SIGXFSZ would end the process before it can report the error.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2);
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_wireproof")]).args(args);
    command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
}

fn command(args: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args).env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

fn args(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// The document of a command, with `--json`.
fn json(words: &[&str]) -> Value {
    let output = command(&args(words)).arg("--json").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", errors(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stop(mut child: Child, signal: &str) {
    Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    child.wait().unwrap();
}

/// The segments of the write-ahead log.
fn segments(archive: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(archive.join("wal")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "wal")).collect()
}

#[test]
fn a_full_disk_ends_the_run_and_the_next_one_stores_every_event_once() {
    let (sim, folder) = network();
    let archive = folder.path().join("archive");
    // It ends with the last event too, where nothing is limited.
    let all = args(&["--events", &COMMITS.to_string()]);
    let ended = limited(512, &[follow_args(&sim, &archive), all].concat());
    assert_eq!(ended.status.code(), Some(4), "{}", errors(&ended));
    assert!(errors(&ended).contains(".wal: "), "{}", errors(&ended));
    let address = archive.to_str().unwrap();
    for _ in 0..40 {
        let child = command(&follow_args(&sim, &archive)).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        stop(child, "INT");
        if json(&["archive", "verify", address])["event_count"].as_u64() >= Some(COMMITS as u64) {
            break;
        }
    }
    let report = json(&["archive", "verify", address]);
    assert_eq!(
        (&report["event_count"], &report["proved_count"]),
        (&COMMITS.into(), &COMMITS.into())
    );
}

#[test]
fn what_a_full_disk_does_not_let_be_sealed_stays_in_the_log_and_is_sealed_once() {
    let (sim, folder) = network();
    let archive = folder.path().join("archive");
    let child = command(&follow_args(&sim, &archive)).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let len = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    while segments(&archive).iter().map(len).sum::<u64>() < 500 << 10 {
        assert!(Instant::now() < deadline, "the log does not grow");
        std::thread::sleep(Duration::from_millis(20));
    }
    stop(child, "KILL");
    let address = archive.to_str().unwrap();
    let seal = ["archive", "seal", address];
    let refused = limited(64, &args(&seal));
    assert_eq!(refused.status.code(), Some(4), "{}", errors(&refused));
    assert!(!segments(&archive).is_empty());
    let staged = fs::read_dir(archive.join("staging")).unwrap().count();
    assert_eq!(staged, 0, "files that were not stored are deleted");
    let sealed = json(&seal)["event_count"].as_u64().unwrap();
    assert!(sealed > 50, "{sealed}");
    assert_eq!(json(&seal)["event_count"], 0);
    let report = json(&["archive", "verify", address]);
    assert_eq!((&report["event_count"], &report["proved_count"]), (&sealed.into(), &sealed.into()));
}

#[test]
fn an_archive_without_permission_to_write_is_read_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let archive = path("archive");
    let frames = path("firehose-frames.bin");
    let keys = path("accounts.json");
    let generate = ["corpus", "generate", "--frames", "40", "--out", &path("")];
    assert!(command(&args(&generate)).output().unwrap().status.success());
    fs::write(path("none.bin"), [0; 4]).unwrap();
    let import =
        |frames: &str| args(&["archive", "import", frames, "--keys", &keys, "--to", &archive]);
    assert!(command(&import(&path("none.bin"))).output().unwrap().status.success());
    set_modes(folder.path(), 0o555);
    let refused = unprivileged(&import(&frames));
    assert_eq!(refused.status.code(), Some(4), "{}", errors(&refused));
    assert!(errors(&refused).contains("Permission denied"), "{}", errors(&refused));
    set_modes(folder.path(), 0o755);
    assert!(command(&import(&frames)).output().unwrap().status.success());
    set_modes(folder.path(), 0o555);
    let report = unprivileged(&args(&["archive", "verify", &archive, "--json"]));
    assert!(report.status.success(), "{}", errors(&report));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["event_count"], 40);
    set_modes(folder.path(), 0o755);
}

/// Sets the modes of a folder and of the folders below it.
fn set_modes(folder: &Path, mode: u32) {
    fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_modes(&path, mode);
        }
    }
}

/// The command by a user to whom permissions apply. Root runs it as another one, who may not be able to reach the
/// program by its path.
fn unprivileged(args: &[String]) -> Output {
    let mut command = Command::new("sh");
    let program = File::open(env!("CARGO_BIN_EXE_wireproof")).unwrap();
    let is_root = program.metadata().unwrap().uid() == 0;
    command.args(["-c", "exec /proc/self/fd/0 \"$@\"", "sh"]).args(args).stdin(program);
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().unwrap()
}

const NOBODY: u32 = 65_534;

/// Commits of the network, of some 5 kB each.
const COMMITS: usize = 400;
