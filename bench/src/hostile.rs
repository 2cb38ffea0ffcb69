//! The task `hostile`: sends every case of a set to every peer, in a separate process that may crash, hang or exhaust
//! its memory limit without affecting other cases.
//!
//! Cases are not timed, so a few of them run at once.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use kernels::{hex, sha256};
use protocol::{Counts, Load, Proof, Request, one_line};
use serde::de::IgnoredAny;
use simnet::hostile::{CaseEntry, InputKind, Manifest};

use crate::build::{Builder, LaunchCommand, PeerProcess};
use crate::connection::{Connection, ConnectionError};
use crate::corpora;
use crate::{BenchError, CorpusInfo, Parity, Plan, Progress, Row, Task};
use results::{CaseOutcome, Expect, Outcome};

/// The cases that every peer is given.
#[derive(Clone, Debug)]
pub(crate) struct CaseSet {
    pub(crate) info: CorpusInfo,
    cases: Vec<Case>,
}

/// A repository or a stream, and the right outcome.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    kind: InputKind,
    expect: Expect,
    /// Length of the repository or stream in bytes.
    bytes: u64,
    /// The repository or stream, and its sidecar file.
    files: [PathBuf; 2],
}

impl CaseSet {
    /// The set of the plan.
    pub(crate) fn open(
        plan: &Plan,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, BenchError> {
        Self::read(&corpora::hostile_manifest(plan, progress)?, plan.quick)
    }

    fn read(manifest: &Path, quick: bool) -> Result<Self, BenchError> {
        let text = fs::read(manifest).map_err(BenchError::io(manifest))?;
        let Manifest { cases, .. } = serde_json::from_slice(&text)
            .map_err(|fault| BenchError::Sidecar { path: manifest.to_owned(), fault })?;
        // No peer has a path for parts.
        let whole = cases.into_iter().filter(|row| row.kind != InputKind::Part);
        let chosen = whole.filter(|row| !quick || is_quick(row));
        let cases: Vec<Case> = chosen.map(|row| Case::of(row, manifest)).collect();
        let info = CorpusInfo {
            name: Task::Hostile.name().to_owned(),
            sha256: hex::encode(&sha256::digest(&text)),
            bytes: cases.iter().map(|case| case.bytes).sum(),
            units: cases.len() as u64,
        };
        Ok(Self { info, cases })
    }

    /// The number of cases to run, over all peers and paths.
    pub(crate) fn runs(&self, peers: &[PeerProcess]) -> u64 {
        let paths = peers.iter().flat_map(|peer| KINDS.map(|kind| (peer, kind)));
        let present = paths.filter(|(peer, kind)| checks(peer, *kind).is_some());
        present.map(|(_, kind)| self.of_kind(kind).count() as u64).sum()
    }

    fn of_kind(&self, kind: InputKind) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.kind == kind)
    }

    /// Gives every peer the cases that it has a path for; returns a row per peer and path.
    pub(crate) fn run(
        &self,
        plan: &Plan,
        peers: &[PeerProcess],
        builder: &Builder,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<Row>, BenchError> {
        let mut rows = Vec::new();
        let mut before = 0;
        let total = self.runs(peers);
        for peer in peers {
            let log = builder.runner_log(&peer.peer).map_err(BenchError::io(&plan.work_dir))?;
            let runner = CaseRunner { command: &peer.command, log, limit: plan.case_limit };
            for kind in KINDS {
                let Some(checks) = checks(peer, kind) else { continue };
                let cases: Vec<&Case> = self.of_kind(kind).collect();
                let outcomes = runner.run_all(&cases, &mut |done, case| {
                    let peer = &peer.peer;
                    let case = &case.name;
                    let done = before + done;
                    progress(Progress::Case { peer, case, done, total });
                });
                before += cases.len() as u64;
                rows.push(row(peer, kind, checks, &cases, outcomes));
            }
        }
        Ok(rows)
    }
}

fn is_quick(row: &CaseEntry) -> bool {
    row.code.as_deref().is_none_or(|code| QUICK_CODES.contains(&code))
}

impl Case {
    fn of(row: CaseEntry, manifest: &Path) -> Self {
        let file = manifest.with_file_name(&row.file);
        let CaseEntry { name, kind, expect, file_bytes: bytes, .. } = row;
        Self { name, kind, expect, bytes, files: [file.clone(), file.with_extension("json")] }
    }
}

/// The variant for cases of a kind.
fn variant(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Repo => "repo",
        InputKind::Frames => "frames",
        InputKind::Part => "part",
    }
}

/// The peer's checks on its path for cases of this kind, if it has one.
fn checks(peer: &PeerProcess, kind: InputKind) -> Option<&Vec<String>> {
    peer.description.tasks.get(Task::Hostile.name())?.get(variant(kind))
}

/// Starts a peer once per case.
struct CaseRunner<'p> {
    command: &'p LaunchCommand,
    log: File,
    limit: Duration,
}

impl CaseRunner<'_> {
    /// The outcomes of the cases, in order. Calls `finished` with every case and the number of finished ones.
    fn run_all(&self, cases: &[&Case], finished: &mut dyn FnMut(u64, &Case)) -> Vec<CaseOutcome> {
        let next = Mutex::new(cases.iter().enumerate());
        let take = || next.lock().expect("no thread panics while it holds the lock").next();
        let mut outcomes = BTreeMap::new();
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..CONCURRENT_CASES {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some((at, case)) = take() {
                        let _ = sender.send((at, self.run(case)));
                    }
                });
            }
            drop(sender);
            for (at, outcome) in receiver {
                outcomes.insert(at, outcome);
                finished(outcomes.len() as u64, cases[at]);
            }
        });
        outcomes.into_values().collect()
    }

    fn run(&self, case: &Case) -> CaseOutcome {
        let (outcome, reason) = match self.prove(case) {
            Ok(proof) => outcome(proof),
            // The peer read the case and says that it is not one.
            Err(ConnectionError::Failed(reason)) => (Outcome::Refused, Some(reason)),
            Err(error @ ConnectionError::Timeout(_)) => (Outcome::Hung, Some(error.to_string())),
            Err(error) => (Outcome::Crashed, Some(error.to_string())),
        };
        CaseOutcome { name: case.name.clone(), expect: case.expect, outcome, reason }
    }

    fn prove(&self, case: &Case) -> Result<Proof, ConnectionError> {
        let log = self.log.try_clone().map_err(ConnectionError::Start)?;
        let command = self.command.command_with_limit(MEMORY_BYTES);
        let mut connection = Connection::start(command, None, log, self.limit)?;
        connection.request::<IgnoredAny>(&Request::Load(Load {
            task: Task::Hostile.name().to_owned(),
            variant: variant(case.kind).to_owned(),
            files: case.files.to_vec(),
        }))?;
        connection.request(&Request::Prove)
    }
}

fn outcome(Proof { counts, reason, .. }: Proof) -> (Outcome, Option<String>) {
    let reason = reason.map(|reason| one_line(&reason));
    match (counts.get("accepted"), counts.get("refused")) {
        (Some(1), Some(0)) => (Outcome::Accepted, reason),
        (Some(0), Some(1)) => (Outcome::Refused, reason),
        _ => (Outcome::Crashed, Some("neither accepted nor refused".to_owned())),
    }
}

fn row(
    peer: &PeerProcess,
    kind: InputKind,
    checks: &[String],
    cases: &[&Case],
    outcomes: Vec<CaseOutcome>,
) -> Row {
    let of_invalid = |outcome| {
        let is_one = |case: &&CaseOutcome| case.expect == Expect::Refuse && case.outcome == outcome;
        outcomes.iter().filter(is_one).count() as u64
    };
    let is_rejected = |case: &&CaseOutcome| case.expect != Expect::Refuse && !case.is_right();
    let is_right = outcomes.iter().all(CaseOutcome::is_right);
    Row {
        language: peer.description.language.clone(),
        version: peer.description.version.clone(),
        checks: checks.to_vec(),
        units: cases.len() as u64,
        bytes: cases.iter().map(|case| case.bytes).sum(),
        counts: Counts::from_iter([
            ("accepted", of_invalid(Outcome::Accepted)),
            ("refused", of_invalid(Outcome::Refused)),
            ("crashed", of_invalid(Outcome::Crashed)),
            ("hung", of_invalid(Outcome::Hung)),
        ]),
        valid_refused: Some(outcomes.iter().filter(is_rejected).count() as u64),
        parity: if is_right { Parity::Ok } else { Parity::Mismatch },
        cases: outcomes,
        ..Row::new(Task::Hostile, variant(kind), &peer.peer)
    }
}

const KINDS: [InputKind; 2] = [InputKind::Repo, InputKind::Frames];

/// Processes that run at once.
const CONCURRENT_CASES: usize = 2;

/// More than any peer needs for any case, and less than a machine can spare twice.
const MEMORY_BYTES: u64 = 4 << 30;

/// The rules whose cases a quick run includes in addition to all valid ones: some of every layer.
const QUICK_CODES: [&str; 8] = [
    "car/hash",
    "car/truncated",
    "signature/high-s",
    "signature/wrong",
    "tree/order",
    "tree/repeated-node",
    "event/inversion",
    "event/prev-data",
];
