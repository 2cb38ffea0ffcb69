//! `wireproof follow --resync` as a process that is killed and restarted, and the records that its lines give.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::activity::wireproof;
use crate::client::Records;

/// A follower with one state folder over all of its runs, and a file of lines per run.
pub(crate) struct Follower {
    args: Vec<String>,
    folder: TempDir,
    runs: usize,
    child: Child,
}

impl Follower {
    /// Follows `host` from its oldest event, with the keys of the directory at `plc_url`.
    pub(crate) fn start(host: &str, plc_url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state").display().to_string();
        let fixed = ["follow", "--resync", "--development", "--cursor", "oldest"];
        let named = [("--host", host), ("--plc", plc_url), ("--state", &state)];
        let delays = [("--backoff-first-ms", "20"), ("--backoff-max-ms", "500")];
        let named = named.iter().chain(&delays).flat_map(|(name, value)| [*name, *value]);
        let args: Vec<String> = fixed.into_iter().chain(named).map(str::to_owned).collect();
        let child = spawn(&args, folder.path(), 0);
        Self { args, folder, runs: 1, child }
    }

    /// Kills the process without notice, and starts the next one.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.child = spawn(&self.args, self.folder.path(), self.runs);
        self.runs += 1;
    }

    /// The records of every account, from the lines of all runs.
    ///
    /// # Panics
    /// If the process has ended by itself.
    pub(crate) fn records(&mut self) -> BTreeMap<String, Records> {
        let ended = self.child.try_wait().expect("the state of a child");
        let errors = || fs::read_to_string(errors(self.folder.path())).unwrap_or_default();
        assert!(ended.is_none(), "the follower has ended: {ended:?}\n{}", errors());
        let mut state = PrintedState::default();
        for run in 0..self.runs {
            state.apply_run(&fs::read(lines(self.folder.path(), run)).expect("the lines of a run"));
        }
        state.into_records()
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(args: &[String], folder: &Path, run: usize) -> Child {
    let errors = File::options().create(true).append(true).open(errors(folder)).expect("a file");
    let mut command = Command::new(wireproof());
    command.args(args).env("XDG_CONFIG_HOME", "/nonexistent").current_dir(folder);
    command.stdout(File::create(lines(folder, run)).expect("a file")).stderr(errors);
    command.spawn().expect("the command starts")
}

fn lines(folder: &Path, run: usize) -> PathBuf {
    folder.join(format!("{run}.jsonl"))
}

fn errors(folder: &Path) -> PathBuf {
    folder.join("errors.log")
}

/// The state that follows from printed lines, as their documentation describes.
#[derive(Debug, Default)]
pub(crate) struct PrintedState {
    accounts: BTreeMap<String, PrintedAccount>,
}

#[derive(Debug, Default)]
struct PrintedAccount {
    /// The revision of the records. Revisions sort as texts.
    rev: String,
    records: Records,
    /// The records of a resync whose last line has not come.
    resynced: Records,
}

impl PrintedState {
    /// Applies the lines of a run, of which a kill may have cut the last one.
    fn apply_run(&mut self, lines: &[u8]) {
        self.accounts.values_mut().for_each(|account| account.resynced.clear());
        let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in lines[..end].split_inclusive(|byte| *byte == b'\n') {
            self.apply(&serde_json::from_slice(line).expect("a line of JSON"));
        }
    }

    /// The records of every account.
    pub(crate) fn into_records(self) -> BTreeMap<String, Records> {
        let accounts = self.accounts.into_iter();
        accounts.map(|(did, account)| (did, account.records)).collect()
    }

    pub(crate) fn apply(&mut self, line: &Value) {
        let Some(did) = line["did"].as_str() else { return };
        let account = self.accounts.entry(did.to_owned()).or_default();
        let rev = line["rev"].as_str().unwrap_or_default();
        match (line["kind"].as_str(), line["verdict"].as_str()) {
            (Some("account"), _) if line["status"] == "deleted" => account.records.clear(),
            // After a kill, the last lines are repeated.
            (Some("commit"), Some("verified")) if rev > &*account.rev => {
                apply_ops(&mut account.records, line);
                account.rev = rev.to_owned();
            }
            (Some("resync"), _) => account.apply_resync(rev, line),
            _ => {}
        }
    }
}

impl PrintedAccount {
    fn apply_resync(&mut self, rev: &str, line: &Value) {
        if line["piece"] == 0 {
            let is_whole = line["whole"] == true;
            self.resynced = if is_whole { Records::new() } else { self.records.clone() };
        }
        apply_ops(&mut self.resynced, line);
        if line["last"] == true {
            let records = std::mem::take(&mut self.resynced);
            if rev >= &*self.rev {
                (self.rev, self.records) = (rev.to_owned(), records);
            }
        }
    }
}

fn apply_ops(records: &mut Records, line: &Value) {
    for op in line["ops"].as_array().into_iter().flatten() {
        let text = |name: &str| op[name].as_str().expect("text of an operation");
        let path = format!("{}/{}", text("collection"), text("rkey"));
        match op["cid"].as_str() {
            Some(cid) => records.insert(path, cid.to_owned()),
            None => records.remove(&path),
        };
    }
}
