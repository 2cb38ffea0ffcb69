//! Proves the checks that peers claim: a peer must reject every sample that breaks the rule of a check it claims.
//!
//! The samples go through the runner protocol, so that one set of them holds for every language and for our own rows. In
//! `decode` and `sigs` a check that is made must also be claimed, so that no peer looks less strict than it is.

mod commits;
mod items;
mod samples;

use std::fs;
use std::path::PathBuf;

use protocol::{Counts, Load, Proof, Request, checks};
use serde::de::IgnoredAny;

use crate::build::{Builder, PeerProcess};
use crate::connection::{Connection, ConnectionError};
use crate::peers::{self, Peer};
use crate::run;
use crate::{BenchError, Plan, Progress, Task, Unavailable};
use samples::{Sample, Samples};

/// The claims of some peers, after all samples.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Claims {
    /// The variants with claims and their faults.
    pub variants: Vec<VariantClaims>,
    /// Peers that could not be built or run.
    pub unavailable: Vec<Unavailable>,
}

/// The claims of a variant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VariantClaims {
    /// The peer.
    pub peer: String,
    /// The task.
    pub task: Task,
    /// The variant.
    pub variant: String,
    /// Number of claimed checks whose samples were all rejected.
    pub proved: usize,
    /// The faults: a check that is claimed and not made, one that is made and not claimed, or a valid input that is rejected.
    pub faults: Vec<String>,
}

impl Claims {
    /// Whether any claim is false.
    pub fn has_faults(&self) -> bool {
        self.variants.iter().any(|variant| !variant.faults.is_empty())
    }
}

/// Proves the claims of the peers of `plan`, for all tasks of the plan.
///
/// # Errors
/// If a peer is unknown, or a folder cannot be written.
pub fn prove_claims(
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Claims, BenchError> {
    let work_dir = std::path::absolute(&plan.work_dir).map_err(BenchError::io(&plan.work_dir))?;
    let dir = work_dir.join("claims");
    fs::create_dir_all(&dir).map_err(BenchError::io(&dir))?;
    let _lock = run::lock(&work_dir, progress)?;
    let samples = Samples::write(&dir)?;
    let builder = Builder::new(&work_dir, plan.build_limit);
    let chosen = peers::choose(plan, &JUDGED)?;
    let mut claims = Claims { variants: Vec::new(), unavailable: chosen.unavailable };
    for (done, (_, peer)) in chosen.peers.iter().enumerate() {
        let (done, total) = (done as u64, chosen.peers.len() as u64);
        progress(Progress::Building { peers: &[&peer.id], done, total });
        match described(plan, peer, &builder) {
            Ok(peer) => claims.variants.extend(of_peer(plan, &peer, &samples, &builder)?),
            Err(reason) => claims.unavailable.push(Unavailable { peer: peer.id.clone(), reason }),
        }
    }
    Ok(claims)
}

/// Builds a peer and lets it describe itself.
fn described(plan: &Plan, peer: &Peer, builder: &Builder) -> Result<PeerProcess, String> {
    let command = builder.prepare(peer)?;
    let log_fault = |error: std::io::Error| format!("its log: {error}");
    builder.clear_runner_log(&peer.id).map_err(log_fault)?;
    let log = builder.runner_log(&peer.id).map_err(log_fault)?;
    let connection = Connection::start(command.command(), None, log, plan.case_limit);
    let mut connection = connection.map_err(|error| error.to_string())?;
    let description = connection.request(&Request::Describe);
    let description = description.map_err(|error| format!("describe: {error}"))?;
    Ok(PeerProcess { peer: peer.id.clone(), command, description })
}

/// The claims of every variant of a peer, in the order of the tasks.
fn of_peer(
    plan: &Plan,
    peer: &PeerProcess,
    samples: &[Sample],
    builder: &Builder,
) -> Result<Vec<VariantClaims>, BenchError> {
    let mut variants = Vec::new();
    for task in plan.tasks.iter().filter(|task| JUDGED.contains(task)) {
        for (variant, claimed) in peer.description.tasks.get(task.name()).into_iter().flatten() {
            let samples = samples.iter().filter(|sample| sample.task == *task).collect();
            let log = builder.runner_log(&peer.peer).map_err(BenchError::io(&plan.work_dir))?;
            let mut runner = Runner { plan, peer, variant, log, connection: None };
            let claims = Judge { task: *task, variant, claimed, samples }.judge(&mut runner);
            variants.extend(claims.map(|(proved, faults)| VariantClaims {
                peer: peer.peer.clone(),
                task: *task,
                variant: variant.clone(),
                proved,
                faults,
            }));
        }
    }
    Ok(variants)
}

/// The judge of one variant.
struct Judge<'s> {
    task: Task,
    variant: &'s str,
    claimed: &'s [String],
    samples: Vec<&'s Sample>,
}

impl Judge<'_> {
    /// The number of claims that hold, and the faults; `None` if nothing can be judged through the protocol.
    fn judge(&self, runner: &mut Runner<'_>) -> Option<(usize, Vec<String>)> {
        let (mut proved, mut faults) = (0, self.rejected_valid_inputs(runner));
        for (_, check) in checks::of_task(self.task.name()) {
            let is_claimed = self.claimed.iter().any(|claim| claim == check);
            if is_claimed && self.is_impossible(check) {
                faults.push(format!("{check} is claimed and no commit is decoded"));
            }
            if !is_claimed && !self.is_exact(check) || !self.can_be_judged(check) {
                continue;
            }
            let samples: Vec<_> = self.of_check(check).collect();
            let missed: Vec<String> = samples.iter().filter_map(|one| runner.missed(one)).collect();
            match (is_claimed, missed.is_empty(), samples.is_empty()) {
                (true, _, true) if self.needs_samples() => {
                    faults.push(format!("{check} is claimed and has no sample"));
                }
                (true, _, true) => {}
                (true, true, false) => proved += 1,
                (true, false, _) => {
                    faults.push(format!("{check} is claimed: {}", missed.join(", ")));
                }
                (false, true, false) => faults.push(format!("{check} is made and not claimed")),
                (false, ..) => {}
            }
        }
        (proved > 0 || !faults.is_empty()).then_some((proved, faults))
    }

    fn of_check<'j>(&'j self, check: &'j str) -> impl Iterator<Item = &'j Sample> {
        self.samples.iter().copied().filter(move |sample| sample.check == Some(check))
    }

    fn rejected_valid_inputs(&self, runner: &mut Runner<'_>) -> Vec<String> {
        let valid = self.samples.iter().filter(|sample| sample.check.is_none());
        let rejected = valid.filter(|sample| runner.outcome(sample) != Outcome::Accepted);
        rejected.map(|sample| format!("{} is valid and rejected", sample.name)).collect()
    }

    /// Whether a check that is made must be claimed.
    fn is_exact(&self, check: &str) -> bool {
        self.task == Task::Decode || self.task == Task::Sigs && check != "raw-bytes"
    }

    /// Whether the measured path cannot make a check: signatures are decoded in `full` alone.
    fn is_impossible(&self, check: &str) -> bool {
        self.task == Task::Sigs && check != "low-s" && !self.variant.starts_with("full")
    }

    /// Whether every check has samples. Claims of Nostr formats are proved where the codec is, since a runner encodes the
    /// events itself.
    fn needs_samples(&self) -> bool {
        !Task::NOSTR.contains(&self.task)
    }

    /// Whether the samples of a check reach the measured path; a runner decodes lines of JSON only in the format
    /// `json`.
    fn can_be_judged(&self, check: &str) -> bool {
        match self.task {
            Task::Sigs => !self.is_impossible(check),
            Task::NostrDeserialize => self.variant == "json",
            Task::NostrValidated => ["id", "signature"].contains(&check),
            _ => true,
        }
    }
}

/// A peer that loads samples of one variant, started again when it ends.
struct Runner<'p> {
    plan: &'p Plan,
    peer: &'p PeerProcess,
    variant: &'p str,
    log: fs::File,
    connection: Option<Connection>,
}

/// A peer's answer to a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Rejected,
    /// It was refused while it was loaded, before the measured path.
    NotLoaded,
    /// The process ended or did not answer.
    Failed(String),
}

impl Runner<'_> {
    /// Why the peer does not make the check of `sample`; `None` if it does, or the sample does not reach the measured path.
    fn missed(&mut self, sample: &Sample) -> Option<String> {
        match (self.outcome(sample), sample.check) {
            // A peer that verifies the received bytes accepts an entry that it does not know.
            (Outcome::Accepted, Some("raw-bytes")) => None,
            (_, Some("raw-bytes")) => Some(format!("{} is rejected", sample.name)),
            (Outcome::Accepted, _) => Some(format!("{} is accepted", sample.name)),
            (Outcome::Failed(reason), _) => Some(format!("{}: {reason}", sample.name)),
            (Outcome::Rejected | Outcome::NotLoaded, _) => None,
        }
    }

    fn outcome(&mut self, sample: &Sample) -> Outcome {
        let outcome = match self.prove(sample) {
            Ok(proof) if is_rejected(sample, &proof.counts) => Outcome::Rejected,
            Ok(_) => Outcome::Accepted,
            Err((Stage::Load, ConnectionError::Failed(_))) => Outcome::NotLoaded,
            Err((Stage::Prove, ConnectionError::Failed(_))) => Outcome::Rejected,
            Err((_, error)) => Outcome::Failed(error.to_string()),
        };
        if matches!(outcome, Outcome::Failed(_)) {
            self.connection = None;
        }
        outcome
    }

    fn prove(&mut self, sample: &Sample) -> Result<Proof, (Stage, ConnectionError)> {
        let (task, variant, files) = self.load(sample);
        let load = Request::Load(Load {
            task: task.name().to_owned(),
            variant: variant.to_owned(),
            files: files.to_vec(),
        });
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.start().map_err(|error| (Stage::Load, error))?,
        };
        let connection = self.connection.insert(connection);
        connection.request::<IgnoredAny>(&load).map_err(|error| (Stage::Load, error))?;
        connection.request(&Request::Prove).map_err(|error| (Stage::Prove, error))
    }

    /// The task, the variant and the files of a sample. A commit after a gap may be accepted in `commit`, not in `hostile`.
    fn load<'s>(&'s self, sample: &'s Sample) -> (Task, &'s str, &'s [PathBuf]) {
        let hostile = self.peer.description.tasks.get(Task::Hostile.name());
        let has_frames = hostile.is_some_and(|variants| variants.contains_key("frames"));
        match &sample.hostile_files {
            Some(files) if has_frames => (Task::Hostile, "frames", files),
            _ => (sample.task, self.variant, &sample.files),
        }
    }

    fn start(&self) -> Result<Connection, ConnectionError> {
        let log = self.log.try_clone().map_err(ConnectionError::Start)?;
        Connection::start(self.peer.command.command(), None, log, self.plan.case_limit)
    }
}

/// The request that failed.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Load,
    Prove,
}

/// Whether the counts say that the one unit of a sample was rejected.
fn is_rejected(sample: &Sample, counts: &Counts) -> bool {
    let count = |name| counts.get(name).unwrap_or(0);
    match sample.task {
        Task::Decode | Task::NostrDeserialize => count("errors") > 0,
        Task::Sigs if sample.check == Some("strict-cbor") => count("errors") > 0,
        Task::Sigs => count("valid_k256") + count("valid_p256") == 0,
        // A peer that verifies no signature gives no count of valid ones, and answers a rejection with an error.
        Task::Repo => counts.get("valid") == Some(0) || count("invalid_records") > 0,
        Task::NostrValidated => count("valid") == 0,
        _ => count("refused") > 0,
    }
}

/// The tasks with samples.
const JUDGED: [Task; 6] = [
    Task::Decode,
    Task::Sigs,
    Task::Repo,
    Task::Commit,
    Task::NostrDeserialize,
    Task::NostrValidated,
];
