//! An archive over many runs whose logs expire, lose entries for a moment, and hear claims about an erased account.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec};

use crate::{report, scaled};

/// An archive that follows a network, and the secret of its erasures.
struct Scene {
    sim: Simulation,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let spec = Spec { accounts: 4, records: 8, pds: 1, jetstreams: 0, ..Spec::default() };
        let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
        Self { sim, folder }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// A command about the archive.
    fn run(&self, name: &str, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["archive", name]).arg(self.archive()).args(args);
        self.output(command)
    }

    fn output(&self, mut command: Command) -> Output {
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        command.env("XDG_STATE_HOME", self.folder.path().join("home")).output().unwrap()
    }

    /// Stores the relay's events since the last run.
    fn follow(&self, events: usize) {
        let port = self.sim.port(Server::Pds(0)).to_string();
        let (relay, plc) = (self.sim.url(Server::Relay(0)), self.sim.url(Server::Plc));
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["archive", "follow", "--cursor", "oldest", "--host", &relay, "--plc", &plc]);
        command.args(["--development-port", &port, "--events", &events.to_string(), "--to"]);
        command.arg(self.archive());
        let output = self.output(command);
        assert!(output.status.success(), "{}", errors(&output));
    }

    /// Number of stored events that readers see.
    fn events(&self) -> usize {
        let frames = self.folder.path().join("frames.bin");
        let output = self.run("replay", &["--json", "--to", frames.to_str().unwrap()]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["frame_count"].as_u64().unwrap().try_into().unwrap()
    }

    fn log(&self, table: &str) -> PathBuf {
        self.archive().join(table).join("_delta_log")
    }

    /// The versions with entries in the log of a table, and whether they have checkpoints.
    fn versions(&self, table: &str) -> BTreeMap<u64, bool> {
        let names = fs::read_dir(self.log(table)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.collect();
        let entries = names.iter().filter_map(|name| name.strip_suffix(".json")?.parse().ok());
        let has = |version: &u64| names.contains(&format!("{version:020}.checkpoint.parquet"));
        entries.map(|version| (version, has(&version))).collect()
    }

    fn entry(&self, table: &str, version: u64) -> PathBuf {
        self.log(table).join(format!("{version:020}.json"))
    }

    /// Has every command refused while the log of a table lacks an entry; the number of refusals.
    fn miss(&self, table: &str, version: u64, did: &str) -> usize {
        let (missing, aside) = (self.entry(table, version), self.folder.path().join("entry"));
        fs::rename(&missing, &aside).unwrap();
        let before = content(&self.archive());
        let commands: [(&str, &[&str]); 5] = [
            ("verify", &[]),
            ("stats", &[]),
            ("compact", &[]),
            ("thin", &[]),
            ("erase", &["--did", did]),
        ];
        for (name, args) in commands {
            let output = self.run(name, args);
            assert!(!output.status.success(), "{name} with a hole in the log of {table}");
            assert!(errors(&output).contains("archive/log"), "{name}: {}", errors(&output));
        }
        assert!(content(&self.archive()) == before, "no file was written or removed");
        fs::rename(&aside, &missing).unwrap();
        commands.len()
    }

    /// Removes the entries before the newest checkpoint of a table, as other engines do after 30 days; their number.
    fn expire(&self, table: &str) -> usize {
        let versions = self.versions(table);
        let newest = versions.iter().rfind(|(_, has_checkpoint)| **has_checkpoint);
        let Some((&newest, _)) = newest else { return 0 };
        let expired: Vec<u64> = versions.into_keys().filter(|version| *version < newest).collect();
        expired.iter().for_each(|version| fs::remove_file(self.entry(table, *version)).unwrap());
        expired.len()
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The files below a folder, with their bytes.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path))
        } else {
            drop(found.insert(path.clone(), fs::read(path).unwrap()))
        }
    }
    found
}

#[test]
fn an_archive_keeps_its_events_while_logs_expire_or_miss_entries_and_erased_accounts_are_claimed() {
    let scene = Scene::new();
    (0..4).for_each(|account| scene.sim.write_commit_as(account));
    scene.follow(scene.sim.sent_count(Server::Relay(0)) as usize);
    let did = scene.sim.account(0).did;
    let erased = scene.run("erase", &["--did", &did]);
    assert!(erased.status.success(), "{}", errors(&erased));
    let mut expected = scene.events();
    let mut expired = 0;
    let mut refusals = 0;

    // Its own server cannot be asked: the word of a relay brings nobody back.
    scene.sim.stop_server(Server::Pds(0));
    for round in 0..scaled(2, 120) {
        (0..4).for_each(|account| scene.sim.write_commit_as(account));
        scene.follow(4);
        expected += 3;
        assert_eq!(scene.events(), expected, "round {round}: those of the others, once");

        let table = ["events", "ops"][round % 2];
        let versions = scene.versions(table);
        let (&missing, &has_checkpoint) = versions.iter().rev().nth(1).expect("two versions");
        // A log is read from its newest checkpoint on, so that an entry up to it is not missed.
        if !has_checkpoint && versions.values().last() == Some(&false) {
            refusals += scene.miss(table, missing, &did);
        }
        expired += scene.expire("events") + scene.expire("ops");
        let verified = scene.run("verify", &[]);
        assert!(verified.status.success(), "round {round}: {}", errors(&verified));
    }
    assert!(expired >= scaled(0, 100) && refusals >= scaled(10, 400), "{expired} {refusals}");
    report(&format!("{expected} events; {expired} entries expired, {refusals} refusals"));
}
