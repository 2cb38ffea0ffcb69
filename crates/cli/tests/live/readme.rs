//! The tasks of the README, done as printed, with an account of a simulated network in place of a real one.

use std::fs;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use simnet::servers::{Server, Simulation};

use crate::{stderr, with_commits};

/// The commands in the tables of the README.
fn commands() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(path).unwrap();
    let rows = readme.lines().filter(|line| line.starts_with("| "));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    quoted.filter(|text| text.starts_with("wireproof ")).map(str::to_owned).collect()
}

/// Runs a command in `folder`, and returns its output.
fn run(sim: &Simulation, folder: &Path, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let mut program = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    program.current_dir(folder).args(&words);
    if words.contains(&"follow") || words.contains(&"serve") {
        program.args(["--events", "2"]);
        if !words.contains(&"--restart") {
            program.args(["--cursor", "oldest"]);
        }
    }
    let home = folder.join("home");
    program.env("XDG_CONFIG_HOME", &home).env("XDG_STATE_HOME", &home);
    program.env("WIREPROOF_PLC", sim.url(Server::Plc));
    program.env("WIREPROOF_HOST", sim.url(Server::Relay(0)));
    // The default port may be in use.
    program.env("WIREPROOF_LISTEN", "127.0.0.1:0");
    program.env("WIREPROOF_DEVELOPMENT_PORT", sim.port(Server::Pds(0)).to_string());
    let output = program.output().unwrap();
    assert!(output.status.success(), "{command}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_task_of_the_readme_is_done_by_its_command() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let (account, folder) = (sim.account(0), dir.path());
    run(&sim, folder, "wireproof corpus nostr --events 60 --out .");
    fs::rename(folder.join("nostr-events.jsonl"), folder.join("events.jsonl")).unwrap();
    let listed = run(&sim, folder, &format!("wireproof ls {}", account.handle));
    let (path, _) = listed.split_once('\t').unwrap();

    let commands = commands();
    assert!(commands.len() >= 8, "{commands:?}");
    for printed in commands {
        let command = printed.replace("app.bsky.actor.profile/self", path);
        let output = run(&sim, folder, &command.replace("atproto.com", &account.handle));
        assert!(!output.is_empty() || printed.contains(" --to "), "{printed}");
    }
    let database = Connection::open(folder.join("posts.db")).unwrap();
    let count = |table: &str| database.query_row(table, [], |row| row.get::<_, i64>(0)).unwrap();
    let did = account.did.to_string();
    assert!(count(&format!("SELECT count(*) FROM record WHERE did = '{did}'")) > 0);
    assert_eq!(count(&format!("SELECT count(*) FROM record WHERE did <> '{did}'")), 0);
    assert!(folder.join("archive").is_dir());
}
