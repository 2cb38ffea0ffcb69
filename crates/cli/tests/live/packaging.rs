//! The systemd unit and the compose file: their own command lines are run against a simulated network, as a service manager
//! would run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use simnet::servers::{Server, Simulation};

use crate::metrics::{address, answers};
use crate::{Running, with_commits};

/// A file of `packaging/`.
fn packaged(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The values of a setting of the unit, in order.
fn settings<'u>(unit: &'u str, name: &'u str) -> impl Iterator<Item = &'u str> {
    unit.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('='))
}

/// The command with the addresses of a simulated network, as /etc/wireproof.env would set them.
fn on_network(mut command: Command, sim: &Simulation) -> Command {
    command.env("WIREPROOF_PLC", sim.url(Server::Plc));
    command.env("WIREPROOF_DEVELOPMENT_PORT", sim.port(Server::Pds(0)).to_string());
    command.env("WIREPROOF_HOST", sim.url(Server::Relay(0)));
    command.env("WIREPROOF_CURSOR", "oldest").env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

#[test]
fn the_unit_runs_delivers_reloads_and_ends_with_0() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let unit = packaged("wireproof.service");
    let of_unit = |name| settings(&unit, name).next().unwrap();
    let started = of_unit("ExecStart").strip_prefix("/usr/local/bin/wireproof ").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(started.split(' '));
    // systemd replaces %S by the folder of states.
    let states = dir.path().to_str().unwrap();
    for variable in settings(&unit, "Environment") {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, value.replace("%S", states));
    }
    let mut command = on_network(command, &sim);
    // /etc/wireproof.env is read after the variables of the unit. The port may be in use here.
    command.env("WIREPROOF_METRICS", "127.0.0.1:0").env("WIREPROOF_FILE_SECONDS", "1");
    let mut running = Running::start(command);
    answers(&address(&mut running), "/ready", "HTTP/1.1 200");
    assert_eq!(of_unit("ExecReload"), "/bin/kill -HUP $MAINPID");
    running.signal("HUP");
    running.wait_for_stderr("SIGHUP");
    // Its folder has every event when a file is complete.
    let events = dir.path().join("wireproof").join("events");
    let complete = || -> Vec<PathBuf> {
        let files = fs::read_dir(&events).into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|name| name == "ndjson")).collect()
    };
    let lines = |paths: Vec<PathBuf>| -> usize {
        paths.iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).sum()
    };
    while lines(complete()) < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // `systemctl stop`; `Restart=on-failure` restarts after any exit code but 0.
    running.signal("TERM");
    assert_eq!(running.wait(), (vec![], Some(0)));
    assert_eq!(of_unit("Restart"), "on-failure");
}

#[test]
fn the_unit_of_the_server_serves_at_its_address_and_ends_with_0() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let unit = packaged("wireproof-serve.service");
    let started = settings(&unit, "ExecStart").next().unwrap();
    assert_eq!(started, "/usr/local/bin/wireproof serve");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.arg("serve");
    let states = dir.path().to_str().unwrap();
    for variable in settings(&unit, "Environment") {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, value.replace("%S", states));
    }
    // The folder of states is made by systemd, and the ports may be in use here.
    fs::create_dir(dir.path().join("wireproof-serve")).unwrap();
    let mut command = on_network(command, &sim);
    command.env("WIREPROOF_METRICS", "127.0.0.1:0").env("WIREPROOF_LISTEN", "127.0.0.1:0");
    let mut running = Running::start(command);
    answers(&address(&mut running), "/ready", "HTTP/1.1 200");
    let line = running.wait_for_stderr("serving at ws://");
    let served = line.split("ws://").nth(1).unwrap().trim().to_owned();
    answers(&served, "/xrpc/com.atproto.sync.listRepos", "HTTP/1.1 200");
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
}

#[test]
fn the_units_are_valid_for_systemd() {
    conformance::program!("systemd-analyze");
    for name in ["wireproof.service", "wireproof-serve.service"] {
        let dir = tempfile::tempdir().unwrap();
        let unit = packaged(name);
        // The program is not installed here.
        let unit = unit.replace("/usr/local/bin/wireproof", env!("CARGO_BIN_EXE_wireproof"));
        let path = dir.path().join(name);
        fs::write(&path, unit).unwrap();
        let mut analyze = Command::new("systemd-analyze");
        let output = analyze.args(["verify", "--man=no"]).arg(&path).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{printed}");
        assert!(!printed.contains(name), "{printed}");
    }
}

#[test]
fn the_command_of_the_compose_file_runs_and_is_scraped_at_its_address() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let compose = packaged("compose.yaml");
    // The first service is ours. Its command is a list on one line, which is JSON too.
    let line = compose.lines().find_map(|line| line.trim().strip_prefix("command: ")).unwrap();
    let command_line: Vec<String> = serde_json::from_str(line).unwrap();
    assert!(command_line.contains(&"0.0.0.0:9464".to_owned()));
    assert!(packaged("prometheus.yml").contains("\"wireproof:9464\""));
    // Tests bind to this machine only, and the volume is a folder.
    let volume = format!("{}/", dir.path().display());
    let args = command_line
        .iter()
        .map(|arg| arg.replace("0.0.0.0:9464", "127.0.0.1:0").replace("/state/", &volume));
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args).env("WIREPROOF_STATE", dir.path());
    let mut running = Running::start(on_network(command, &sim));
    answers(&address(&mut running), "/ready", "HTTP/1.1 200");
    let read = |running: &Path| -> rusqlite::Result<i64> {
        let database = rusqlite::Connection::open(running)?;
        database.query_row("SELECT count(*) FROM event", [], |row| row.get(0))
    };
    // Until the tables are made, they cannot be read.
    while read(&dir.path().join("events.db")).unwrap_or(0) < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.signal("TERM");
    assert_eq!(running.wait(), (vec![], Some(0)));
}

#[test]
fn the_compose_files_are_valid_for_docker() {
    // Without the plugin, docker knows no such command.
    let mut compose = Command::new("docker");
    let found = compose.args(["compose", "version"]).output();
    let has_compose = found.is_ok_and(|output| output.status.success());
    conformance::record(conformance::test_name!(), "docker compose", has_compose);
    if !has_compose {
        return;
    }
    for file in ["compose.yaml", "compose-queue.yaml", "compose-serve.yaml"] {
        check_compose(file);
    }
}

fn check_compose(file: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let mut docker = Command::new("docker");
    docker.args(["compose", "--file", file, "config", "--quiet"]).current_dir(folder);
    let output = docker.output().unwrap();
    assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn repositories_in_use_are_on_the_state_volume_and_not_in_memory() {
    let unit = packaged("wireproof.service");
    let of_unit = |name: &str| {
        let mut variables = settings(&unit, "Environment").filter_map(|of| of.split_once('='));
        variables.find(|(of, _)| *of == name).map(|(_, value)| value.to_owned())
    };
    assert_eq!(of_unit("TMPDIR").unwrap(), of_unit("WIREPROOF_STATE").unwrap());
    let image = packaged("Containerfile");
    assert!(image.contains("ENV TMPDIR=/state\n") && image.contains("VOLUME /state\n"));
    for file in ["compose.yaml", "compose-queue.yaml", "compose-serve.yaml"] {
        let compose = packaged(file);
        assert!(compose.contains("TMPDIR: /state\n"), "{file}");
        assert!(compose.contains("- state:/state\n") && compose.contains("mem_limit"), "{file}");
        assert!(!compose.contains("tmpfs"), "{file}");
    }
}
