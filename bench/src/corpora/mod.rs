//! On which bytes do all peers work? Corpora that are made from a seed, or those that were captured.

mod beside;
pub(crate) mod commits;
pub(crate) mod events;
pub(crate) mod frames;
mod grouped;
pub(crate) mod judged;
mod make;
pub(crate) mod nostr;
pub(crate) mod records;
pub(crate) mod repositories;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bumpalo::Bump;
use simnet::tree_records;
use wireproof::atproto::corpus;
use wireproof::codec::Cid;
use wireproof::kernels::sha256;

use crate::counts::Counts;
use crate::error::CorpusFault;
use crate::{BenchError, CorpusInfo, Plan, Progress, Task};
use beside::{Description, Given};

pub use beside::ACCOUNTS_FILE;
pub(crate) use beside::{Accounts, Owner};
pub use make::FRAMES_FILE;

/// A corpus on disk, and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Corpus {
    pub(crate) task: Task,
    /// What stands behind the variant's name in rows that worked on this corpus.
    pub(crate) suffix: &'static str,
    /// What a runner loads: the corpus, and what belongs to it.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) info: CorpusInfo,
    work: Content,
}

impl Corpus {
    /// What there is to do for a variant.
    pub(crate) fn workload(&self, variant: &str) -> &Workload {
        self.work.others.get(variant).unwrap_or(&self.work.usual)
    }
}

/// What a variant has to do.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// What a unit is called.
    pub(crate) unit: &'static str,
    pub(crate) units: u64,
    /// Bytes of the units alone.
    pub(crate) bytes: u64,
    /// What every peer must find.
    pub(crate) counts: Counts,
}

/// A corpus that a task works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    task: Task,
    suffix: &'static str,
    /// What its file may be called; the first is the name that we give it.
    names: &'static [&'static str],
    /// Whether a folder without it is still a folder of the task.
    is_optional: bool,
}

/// The corpora of the tasks of the plan: those that it names, or the default ones.
pub(crate) fn of_tasks(
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Corpus>, BenchError> {
    let parts = PARTS.into_iter().filter(|part| plan.tasks.contains(&part.task));
    let open = |part, path| open(part, path, &plan.work_dir);
    let Some(named) = &plan.corpus else {
        return parts.map(|part| open(part, make::cached(part, plan, progress)?)).collect();
    };
    let path = std::path::absolute(named).map_err(BenchError::io(named))?;
    match (path.is_dir(), &plan.tasks[..]) {
        (true, _) => {
            let paths = parts.filter_map(|part| Some((part, in_folder(part, &path).transpose()?)));
            paths.map(|(part, path)| open(part, path?)).collect()
        }
        (false, [task]) => parts
            .filter(|part| part.task == *task)
            .take(1)
            .map(|part| open(part, path.clone()))
            .collect(),
        // The tasks on events all work on the same ones.
        (false, tasks) if tasks.iter().all(|task| Task::NOSTR.contains(task)) => {
            parts.map(|part| open(part, path.clone())).collect()
        }
        (false, _) => Err(BenchError::OneFileForManyTasks(path)),
    }
}

/// The manifest of the hostile set: the one that the plan names, or that of the default one.
pub(crate) fn hostile_manifest(
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BenchError> {
    let Some(named) = &plan.corpus else { return make::cached(HOSTILE, plan, progress) };
    let path = std::path::absolute(named).map_err(BenchError::io(named))?;
    match path.is_dir() {
        true => Ok(in_folder(HOSTILE, &path)?.expect("it is not optional")),
        false => Ok(path),
    }
}

fn in_folder(part: Part, dir: &Path) -> Result<Option<PathBuf>, BenchError> {
    let mut candidates = part.names.iter().map(|name| dir.join(name));
    match candidates.find(|file| file.is_file()) {
        Some(file) => Ok(Some(file)),
        None if part.is_optional => Ok(None),
        None => Err(BenchError::NoCorpus { dir: dir.to_owned(), names: part.names }),
    }
}

fn open(part: Part, path: PathBuf, work_dir: &Path) -> Result<Corpus, BenchError> {
    let Part { task, suffix, .. } = part;
    let mut path = path;
    let mut file = fs::read(&path).map_err(BenchError::io(&path))?;
    if let Some(groups) = grouped::drawn(task, &path, &file)? {
        path = grouped::keep(task, &groups, work_dir)?;
        file = groups;
    }
    let sha256 = hex(&sha256::digest(&file));
    let description = Description::of(&path, &sha256)?;
    let given = Given::beside(&path, task, &description)?;
    let content = content(task, &file, &given, description.into_counts(task));
    let work = content.map_err(|fault| BenchError::Corpus { path: path.clone(), fault })?;
    let info = CorpusInfo {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        sha256,
        bytes: file.len() as u64,
        units: work.usual.units,
    };
    Ok(Corpus { task, suffix, files: given.files(path, work_dir)?, info, work })
}

/// What there is to do in a file.
#[derive(Clone, Debug)]
struct Content {
    usual: Workload,
    /// What the variants of these names do instead.
    others: BTreeMap<String, Workload>,
}

/// Splits a file into units; if no counts are stored, ours are the reference.
fn content(
    task: Task,
    file: &[u8],
    given: &Given,
    stored: Option<Counts>,
) -> Result<Content, CorpusFault> {
    Ok(match task {
        Task::Decode => {
            let frames = corpus::read(file)?;
            let counts = stored.unwrap_or_else(|| frames::Tally::of(&frames).into());
            Content::of(task, frames.iter().map(|frame| frame.len()), counts)
        }
        Task::Sigs => {
            let commits = commits::read(file).ok_or(CorpusFault::Commits)?;
            let counts = stored.unwrap_or_else(|| commits::Tally::of(&commits).into());
            Content::of(task, commits.iter().map(|commit| commit.object.len()), counts)
        }
        Task::Schnorr => {
            let lines = events::lines(file).ok_or(CorpusFault::Lines)?;
            let counts = stored.unwrap_or_else(|| events::Tally::of(&lines).into());
            Content::of(task, lines.iter().map(|line| line.len()), counts)
        }
        Task::Mst => {
            let records = tree_records::read(file).ok_or(CorpusFault::Records)?;
            let counts =
                stored.or_else(|| records::counts(&records)).ok_or(CorpusFault::Records)?;
            Content::of_records(&records, &counts)
        }
        Task::Repo => {
            let counts = match (stored, given.owner()) {
                (None, Some(owner)) => repositories::counts(file, owner)?,
                (stored, _) => stored.unwrap_or_default(),
            };
            Content::of_repository(file.len(), counts)
        }
        Task::Commit => {
            let frames = corpus::read(file)?;
            let own = || judged::Tally::of(&frames, given.accounts()).into();
            let counts = stored.unwrap_or_else(own);
            Content::of(task, frames.iter().map(|frame| frame.len()), counts)
        }
        Task::NostrSerialize
        | Task::NostrDeserialize
        | Task::NostrValidated
        | Task::NostrFields
        | Task::NostrByKind
        | Task::NostrByCategory
        | Task::NostrBatch
        | Task::NostrSize => Content::of_events(task, file)?,
        Task::Hostile => unreachable!("its cases are no corpus"),
    })
}

impl Content {
    /// Units of these lengths, the same for every variant.
    fn of(task: Task, lens: impl ExactSizeIterator<Item = usize>, counts: Counts) -> Self {
        let (units, bytes) = (lens.len() as u64, lens.map(|len| len as u64).sum());
        Self {
            usual: Workload { unit: task.unit(), units, bytes, counts },
            others: BTreeMap::new(),
        }
    }

    /// Records to insert, and as other work the lookups.
    fn of_records(file: &tree_records::TreeRecords<'_>, counts: &Counts) -> Self {
        let lens: Vec<u64> =
            file.records.iter().map(|(key, _)| (key.len() + Cid::LEN) as u64).collect();
        let records = Workload {
            unit: Task::Mst.unit(),
            units: lens.len() as u64,
            bytes: lens.iter().sum(),
            counts: counts.only(&["records", "root"]),
        };
        let lookups = Workload {
            unit: "lookup",
            units: file.lookups.len() as u64,
            bytes: file.lookups.iter().map(|at| lens[*at as usize]).sum(),
            counts: counts.only(&["lookups", "found", "lookup_checksum"]),
        };
        let lookup = |name: &str| (name.to_owned(), lookups.clone());
        Self {
            usual: records,
            others: ["lookup", "lookup/batch", "lookup/snapshot"].map(lookup).into(),
        }
    }

    /// Events, of which each format and each question may have counts of its own.
    fn of_events(task: Task, file: &[u8]) -> Result<Self, CorpusFault> {
        let arena = Bump::new();
        let groups = nostr::groups(file).ok_or(CorpusFault::Lines)?;
        let events = nostr::events(&groups, &arena)?;
        let lens: Vec<usize> =
            groups.iter().flat_map(|group| &group.lines).map(|line| line.len()).collect();
        let usual = Self::of(task, lens.into_iter(), nostr::usual(task, &events)).usual;
        let other = |(name, counts)| (name, Workload { counts, ..usual.clone() });
        let others = nostr::expected(task, &events).into_iter().map(other).collect();
        Ok(Self { usual, others })
    }

    /// One archive, and as other work the same with its tree built anew.
    fn of_repository(len: usize, counts: Counts) -> Self {
        let root = counts.text("root").unwrap_or_default().to_owned();
        let workload =
            |counts| Workload { unit: Task::Repo.unit(), units: 1, bytes: len as u64, counts };
        let rebuilt = workload(counts.clone().with("rebuilt_root", root));
        Self {
            usual: workload(counts.without("rebuilt_root")),
            others: [("total/rebuild".to_owned(), rebuilt)].into(),
        }
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Behind the variants that work on commits by keys of both curves.
pub(crate) const MIXED: &str = "@mixed";

const FRAMES: Part = part(Task::Decode, &[FRAMES_FILE, "frames.bin"]);
const COMMITS: Part = part(Task::Sigs, &["signed-commits.bin"]);
const MIXED_COMMITS: Part =
    Part { suffix: MIXED, is_optional: true, ..part(Task::Sigs, &["signed-commits-mixed.bin"]) };
const EVENTS: Part = part(Task::Schnorr, &["schnorr-events.jsonl"]);
const RECORDS: Part = part(Task::Mst, &["mst-records.bin"]);
const REPOSITORY: Part = part(Task::Repo, &["repository.car"]);
const JUDGED: Part = part(Task::Commit, FRAMES.names);
const HOSTILE: Part = part(Task::Hostile, &["hostile.json"]);

const fn part(task: Task, names: &'static [&'static str]) -> Part {
    Part { task, suffix: "", names, is_optional: false }
}

const NOSTR_EVENTS: &[&str] = &["nostr-events.jsonl", "events.jsonl"];

/// All corpora that time is taken on, those of a task together.
const PARTS: [Part; 15] = [
    FRAMES,
    COMMITS,
    MIXED_COMMITS,
    EVENTS,
    RECORDS,
    REPOSITORY,
    JUDGED,
    part(Task::NostrSerialize, NOSTR_EVENTS),
    part(Task::NostrDeserialize, NOSTR_EVENTS),
    part(Task::NostrValidated, NOSTR_EVENTS),
    part(Task::NostrFields, NOSTR_EVENTS),
    part(Task::NostrByKind, &["nostr-by-kind.jsonl", "nostr-events.jsonl", "events.jsonl"]),
    part(Task::NostrByCategory, &["nostr-by-category.jsonl", "nostr-events.jsonl", "events.jsonl"]),
    part(Task::NostrBatch, NOSTR_EVENTS),
    part(Task::NostrSize, NOSTR_EVENTS),
];
