//! The corpora that all peers work on: simulated from a seed, or captured files, with their reference counts.

mod generate;
mod sidecar;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use atproto::corpus;
use bumpalo::Bump;
use codec::Cid;
use kernels::{hex, sha256};
use nostr_formats::Format;
use protocol::Counts;
use simnet::nostr_sampling::{Sampler, grouped_lines};
use simnet::tree_records;

use crate::error::CorpusFault;
use crate::nostr::Unheld;
use crate::own::{self, nostr};
use crate::{BenchError, CorpusInfo, Plan, Progress, Task};
use sidecar::{Description, Sidecar};

pub use generate::FRAMES_FILE;
pub use sidecar::ACCOUNTS_FILE;

/// A corpus on disk with its reference counts.
#[derive(Clone, Debug)]
pub(crate) struct Corpus {
    pub(crate) task: Task,
    /// The suffix of variants in rows on this corpus.
    pub(crate) suffix: &'static str,
    /// The files that a runner loads: the corpus and its sidecar.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) info: CorpusInfo,
    workloads: Workloads,
    variants: &'static [&'static str],
}

impl Corpus {
    /// Whether a variant is measured on this corpus.
    pub(crate) fn has_variant(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.contains(&variant)
    }

    /// The work of a variant.
    pub(crate) fn workload(&self, variant: &str) -> &Workload {
        self.workloads.by_variant.get(variant).unwrap_or(&self.workloads.default)
    }
}

/// The work of a variant.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// The name of a unit.
    pub(crate) unit: &'static str,
    pub(crate) units: u64,
    /// Bytes of the units alone.
    pub(crate) bytes: u64,
    /// The reference counts.
    pub(crate) counts: Counts,
    /// The events of the corpus that the variant's format cannot hold.
    pub(crate) unheld: Unheld,
}

/// The work of all variants of a task on one file.
#[derive(Clone, Debug)]
struct Workloads {
    default: Workload,
    /// The variants with other work than the default.
    by_variant: BTreeMap<String, Workload>,
}

/// A corpus that a task works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TaskCorpus {
    task: Task,
    suffix: &'static str,
    /// The names that its file may have; the first is the default corpus's.
    names: &'static [&'static str],
    /// Whether a corpus folder may lack it.
    is_optional: bool,
    /// The only variants that are measured on it; empty for all.
    variants: &'static [&'static str],
}

/// The corpora of one of the plan's tasks: the ones that the plan names, or the default ones; and for sizes the real
/// events of the plan's fixtures.
pub(crate) fn of_task(
    task: Task,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Corpus>, BenchError> {
    let mut corpora = named_or_default(task, plan, progress)?;
    if task == Task::NostrSize {
        corpora.extend(real_events(plan)?);
    }
    Ok(corpora)
}

/// The events of the fixtures; `None` without fixtures that have events.
fn real_events(plan: &Plan) -> Result<Option<Corpus>, BenchError> {
    let path = plan.fixtures.as_ref().map(|fixtures| fixtures.join(REAL_EVENTS_FILE));
    let Some(path) = path.filter(|path| path.is_file()) else { return Ok(None) };
    let corpus = TaskCorpus { suffix: results::REAL, ..corpus_of(Task::NostrSize, &[]) };
    let corpus = open(corpus, path, &plan.work_dir)?;
    let info = CorpusInfo { name: "nostr-events-real".to_owned(), ..corpus.info };
    Ok(Some(Corpus { info, ..corpus }))
}

fn named_or_default(
    task: Task,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Corpus>, BenchError> {
    let chosen = CORPORA.into_iter().filter(|corpus| corpus.task == task);
    let open = |corpus, path| open(corpus, path, &plan.work_dir);
    let Some(named) = &plan.corpus else {
        let chosen = chosen.filter(|corpus| plan.all_corpora || !corpus.is_optional);
        return chosen.map(|corpus| open(corpus, cached(corpus, plan, progress)?)).collect();
    };
    let path = std::path::absolute(named).map_err(BenchError::io(named))?;
    match (path.is_dir(), &plan.tasks[..]) {
        (true, _) => {
            let paths = chosen.filter_map(|it| Some((it, in_folder(it, &path).transpose()?)));
            paths.map(|(corpus, path)| open(corpus, path?)).collect()
        }
        // All tasks on Nostr events work on the same file.
        (false, tasks) if tasks.len() == 1 || tasks.iter().all(|it| Task::NOSTR.contains(it)) => {
            chosen.take(1).map(|corpus| open(corpus, path.clone())).collect()
        }
        (false, _) => Err(BenchError::OneFileForManyTasks(path)),
    }
}

/// The manifest of the hostile set that the plan names, or of the default set.
pub(crate) fn hostile_manifest(
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BenchError> {
    let hostile = corpus_of(Task::Hostile, &["hostile.json"]);
    let Some(named) = &plan.corpus else { return cached(hostile, plan, progress) };
    let path = std::path::absolute(named).map_err(BenchError::io(named))?;
    if path.is_dir() {
        Ok(in_folder(hostile, &path)?.expect("the set is not optional"))
    } else {
        Ok(path)
    }
}

fn cached(
    corpus: TaskCorpus,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BenchError> {
    generate::cached(corpus.task, corpus.names[0], corpus.suffix, plan, progress)
}

fn in_folder(corpus: TaskCorpus, dir: &Path) -> Result<Option<PathBuf>, BenchError> {
    let mut candidates = corpus.names.iter().map(|name| dir.join(name));
    match candidates.find(|file| file.is_file()) {
        Some(file) => Ok(Some(file)),
        None if corpus.is_optional => Ok(None),
        None => Err(BenchError::NoCorpus { dir: dir.to_owned(), names: corpus.names }),
    }
}

fn open(corpus: TaskCorpus, path: PathBuf, work_dir: &Path) -> Result<Corpus, BenchError> {
    let TaskCorpus { task, suffix, variants, .. } = corpus;
    let mut path = path;
    let mut file = fs::read(&path).map_err(BenchError::io(&path))?;
    let is_grouped = matches!(task, Task::NostrByKind | Task::NostrByCategory);
    if is_grouped && !file.starts_with(b"#") {
        let groups = sample_groups(task, &file);
        file = groups.map_err(|fault| BenchError::Corpus { path: path.clone(), fault })?;
        path = write_groups(task, &file, work_dir)?;
    }
    let sha256 = hex::encode(&sha256::digest(&file));
    let description = Description::of(&path, &sha256)?;
    let sidecar = Sidecar::read(&path, task, &description)?;
    let workloads = workloads(task, &file, &sidecar, description.into_counts(task));
    let workloads = workloads.map_err(|fault| BenchError::Corpus { path: path.clone(), fault })?;
    let info = CorpusInfo {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        sha256,
        bytes: file.len() as u64,
        units: workloads.default.units,
    };
    Ok(Corpus { task, suffix, files: sidecar.files(path, work_dir)?, info, workloads, variants })
}

/// Samples some events of every kind, or of every class of size and tags, from a file without groups.
fn sample_groups(task: Task, file: &[u8]) -> Result<Vec<u8>, CorpusFault> {
    let arena = Bump::new();
    let groups = nostr::groups(file).ok_or(CorpusFault::Lines)?;
    let events = nostr::events(&groups, &arena)?;
    let sampler = Sampler::default();
    let sampled = match task {
        Task::NostrByKind => sampler.by_kinds(&events, GROUP_EVENTS),
        _ => sampler.by_categories(&events, GROUP_EVENTS),
    };
    Ok(grouped_lines(&sampled).into_bytes())
}

/// Writes sampled groups to a file that runners can load.
fn write_groups(task: Task, groups: &[u8], work_dir: &Path) -> Result<PathBuf, BenchError> {
    let digest = hex::encode(&sha256::digest(groups));
    let path = work_dir.join(format!("corpora/sampled-{digest:.12}/{}.jsonl", task.name()));
    simnet::corpus::replace(&path, groups)?;
    Ok(path)
}

/// Splits a file into units. If no counts are stored, the counts of our own implementation are the reference.
fn workloads(
    task: Task,
    file: &[u8],
    sidecar: &Sidecar,
    stored: Option<Counts>,
) -> Result<Workloads, CorpusFault> {
    Ok(match task {
        Task::Decode => {
            let frames = corpus::read(file)?;
            let counts = stored.unwrap_or_else(|| own::decode::counts(&frames));
            Workloads::of(task, frames.iter().map(|frame| frame.len()), counts)
        }
        Task::Sigs => {
            let commits = own::sigs::read(file).ok_or(CorpusFault::Commits)?;
            let counts = stored.unwrap_or_else(|| own::sigs::counts(&commits));
            Workloads::of(task, commits.iter().map(|commit| commit.object.len()), counts)
        }
        Task::Schnorr => {
            let lines = own::schnorr::lines(file).ok_or(CorpusFault::Lines)?;
            let counts = stored.unwrap_or_else(|| own::schnorr::counts(&lines));
            Workloads::of(task, lines.iter().map(|line| line.len()), counts)
        }
        Task::Mst => {
            let records = tree_records::read(file).ok_or(CorpusFault::Records)?;
            let counts = stored.or_else(|| own::mst::counts(&records));
            Workloads::of_records(&records, &counts.ok_or(CorpusFault::Records)?)
        }
        Task::Repo => {
            let counts = match (stored, sidecar) {
                (None, Sidecar::Owner(owner)) => own::repo::counts(file, owner)?,
                (stored, _) => stored.unwrap_or_default(),
            };
            Workloads::of_repository(file.len(), counts)
        }
        Task::Commit => {
            let frames = corpus::read(file)?;
            let counts = match (stored, sidecar) {
                (None, Sidecar::Accounts(accounts)) => own::commit::counts(&frames, accounts),
                (stored, _) => stored.unwrap_or_default(),
            };
            Workloads::of(task, frames.iter().map(|frame| frame.len()), counts)
        }
        Task::Hostile => unreachable!("its cases are not a corpus"),
        _ => Workloads::of_events(task, file)?,
    })
}

impl Workloads {
    /// Units of these lengths, the same for every variant.
    fn of(task: Task, lens: impl ExactSizeIterator<Item = usize>, counts: Counts) -> Self {
        let (units, bytes) = (lens.len() as u64, lens.map(|len| len as u64).sum());
        let default =
            Workload { unit: task.unit(), units, bytes, counts, unheld: Unheld::default() };
        Self { default, by_variant: BTreeMap::new() }
    }

    /// Records to insert by default, lookups, and operations of all kinds.
    fn of_records(file: &tree_records::TreeRecords<'_>, counts: &Counts) -> Self {
        let lens: Vec<u64> =
            file.records.iter().map(|(key, _)| (key.len() + Cid::LEN) as u64).collect();
        let records = Workload {
            unit: Task::Mst.unit(),
            units: lens.len() as u64,
            bytes: lens.iter().sum(),
            counts: counts.only(&["records", "root"]),
            unheld: Unheld::default(),
        };
        let lookups = Workload {
            unit: "lookup",
            units: file.lookups.len() as u64,
            bytes: file.lookups.iter().map(|at| lens[*at as usize]).sum(),
            counts: counts.only(&["lookups", "found", "lookup_checksum"]),
            unheld: Unheld::default(),
        };
        let operations = Workload {
            unit: "operation",
            units: file.operations.len() as u64,
            bytes: file.operations.iter().map(|it| lens[it.key() as usize]).sum(),
            counts: counts.only(&[
                "operations",
                "last_root",
                "root_checksum",
                "hits",
                "hit_checksum",
            ]),
            unheld: Unheld::default(),
        };
        let lookup = |name: &str| (name.to_owned(), lookups.clone());
        let mut by_variant: BTreeMap<_, _> = own::mst::LOOKUP_VARIANTS.map(lookup).into();
        by_variant.insert(own::mst::MIXED_VARIANT.to_owned(), operations);
        Self { default: records, by_variant }
    }

    /// Events; a format has the ones that it can hold, and formats and fields may have separate counts.
    fn of_events(task: Task, file: &[u8]) -> Result<Self, CorpusFault> {
        let arena = Bump::new();
        let groups = nostr::groups(file).ok_or(CorpusFault::Lines)?;
        let events = nostr::events(&groups, &arena)?;
        let lens: Vec<usize> =
            groups.iter().flat_map(|group| &group.lines).map(|line| line.len()).collect();
        let default = Self::of(task, lens.iter().copied(), nostr::counts(task, &events)).default;
        let mut by_variant = BTreeMap::new();
        for format in Format::ALL {
            let held = nostr::held(*format, &events);
            let units = held.events.len() as u64;
            let lens = lens.iter().zip(&held.is_held).filter(|(_, is_held)| **is_held);
            let bytes = lens.map(|(len, _)| *len as u64).sum();
            let counts = if held.unheld.is_empty() {
                default.counts.clone()
            } else {
                nostr::counts(task, &held.events)
            };
            let workload =
                Workload { units, bytes, counts, unheld: held.unheld, ..default.clone() };
            let variants = nostr::counts_by_variant(task, *format, &held.events).into_iter();
            by_variant.extend(variants.map(|(name, counts)| {
                (
                    name,
                    Workload {
                        counts: counts.unwrap_or_else(|| workload.counts.clone()),
                        ..workload.clone()
                    },
                )
            }));
        }
        Ok(Self { default, by_variant })
    }

    /// One archive; a variant builds its tree again.
    fn of_repository(len: usize, counts: Counts) -> Self {
        let root = counts.text("root").unwrap_or_default().to_owned();
        let workload = |counts| Workload {
            unit: Task::Repo.unit(),
            units: 1,
            bytes: len as u64,
            counts,
            unheld: Unheld::default(),
        };
        let rebuilt = workload(counts.clone().with("rebuilt_root", root));
        Self {
            default: workload(counts.without("rebuilt_root")),
            by_variant: [("total/rebuild".to_owned(), rebuilt)].into(),
        }
    }
}

/// The suffix of variants on commits by keys of both curves.
pub(crate) const MIXED: &str = "@mixed";

/// The suffix of variants on commits of 100,000 accounts.
pub(crate) const MANY_ACCOUNTS: &str = "@many-accounts";

/// Real events in the folder of fixtures.
const REAL_EVENTS_FILE: &str = "nostr/events.jsonl";

/// Maximum number of events in a sampled group.
const GROUP_EVENTS: usize = 100;

const fn corpus_of(task: Task, names: &'static [&'static str]) -> TaskCorpus {
    TaskCorpus { task, suffix: "", names, is_optional: false, variants: &[] }
}

const FRAMES: &[&str] = &[FRAMES_FILE, "frames.bin"];
const MIXED_COMMITS: TaskCorpus = TaskCorpus {
    suffix: MIXED,
    is_optional: true,
    ..corpus_of(Task::Sigs, &["signed-commits-mixed.bin"])
};
const COMMITS_OF_MANY_ACCOUNTS: TaskCorpus = TaskCorpus {
    suffix: MANY_ACCOUNTS,
    is_optional: true,
    // Parsed keys are not cached, and messages differ from commits by decoding alone.
    variants: &["full", "full/batch", "full/batch-cached"],
    ..corpus_of(Task::Sigs, &["signed-commits-many-accounts.bin"])
};
const FRAMES_OF_MANY_ACCOUNTS: TaskCorpus = TaskCorpus {
    suffix: MANY_ACCOUNTS,
    is_optional: true,
    ..corpus_of(Task::Commit, &["firehose-frames-many-accounts.bin"])
};
const NOSTR_EVENTS: &[&str] = &["nostr-events.jsonl", "events.jsonl"];

/// The corpora of all timed tasks, grouped by task.
const CORPORA: [TaskCorpus; 17] = [
    corpus_of(Task::Decode, FRAMES),
    corpus_of(Task::Sigs, &["signed-commits.bin"]),
    MIXED_COMMITS,
    COMMITS_OF_MANY_ACCOUNTS,
    corpus_of(Task::Schnorr, &["schnorr-events.jsonl"]),
    corpus_of(Task::Mst, &["mst-records.bin"]),
    corpus_of(Task::Repo, &["repository.car"]),
    corpus_of(Task::Commit, FRAMES),
    FRAMES_OF_MANY_ACCOUNTS,
    corpus_of(Task::NostrSerialize, NOSTR_EVENTS),
    corpus_of(Task::NostrDeserialize, NOSTR_EVENTS),
    corpus_of(Task::NostrValidated, NOSTR_EVENTS),
    corpus_of(Task::NostrFields, NOSTR_EVENTS),
    corpus_of(Task::NostrByKind, &["nostr-by-kind.jsonl", "nostr-events.jsonl", "events.jsonl"]),
    corpus_of(
        Task::NostrByCategory,
        &["nostr-by-category.jsonl", "nostr-events.jsonl", "events.jsonl"],
    ),
    corpus_of(Task::NostrBatch, NOSTR_EVENTS),
    corpus_of(Task::NostrSize, NOSTR_EVENTS),
];
