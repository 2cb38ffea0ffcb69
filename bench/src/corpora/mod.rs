//! On which bytes do all peers work? Corpora that are made from a seed, or those that were captured.

pub(crate) mod commits;
pub(crate) mod events;
pub(crate) mod frames;
mod make;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wireproof::atproto::corpus;
use wireproof::kernels::sha256;

use crate::counts::Counts;
use crate::error::CorpusFault;
use crate::{BenchError, CorpusInfo, Plan, Progress, Task};

pub use make::{FRAMES_FILE, generate};

/// A corpus on disk, and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Corpus {
    pub(crate) task: Task,
    /// What stands behind the variant's name in rows that worked on this corpus.
    pub(crate) suffix: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) info: CorpusInfo,
    /// Bytes of the units alone.
    pub(crate) unit_bytes: u64,
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
    let Some(named) = &plan.corpus else {
        return parts.map(|part| open(part, make::cached(part, plan, progress)?)).collect();
    };
    let path = std::path::absolute(named).map_err(BenchError::io(named))?;
    match (path.is_dir(), &plan.tasks[..]) {
        (true, _) => parts.filter_map(|part| in_folder(part, &path).transpose()).collect(),
        (false, [task]) => parts
            .filter(|part| part.task == *task)
            .take(1)
            .map(|part| open(part, path.clone()))
            .collect(),
        (false, _) => Err(BenchError::OneFileForManyTasks(path)),
    }
}

fn in_folder(part: Part, dir: &Path) -> Result<Option<Corpus>, BenchError> {
    let mut candidates = part.names.iter().map(|name| dir.join(name));
    match candidates.find(|file| file.is_file()) {
        Some(file) => open(part, file).map(Some),
        None if part.is_optional => Ok(None),
        None => Err(BenchError::NoCorpus { dir: dir.to_owned(), names: part.names }),
    }
}

fn open(part: Part, path: PathBuf) -> Result<Corpus, BenchError> {
    let Part { task, suffix, .. } = part;
    let file = fs::read(&path).map_err(BenchError::io(&path))?;
    let sha256 = hex(&sha256::digest(&file));
    let stored = stored_counts(&path, &sha256)?;
    let content = match content(task, &file, stored) {
        Ok(content) => content,
        Err(fault) => return Err(BenchError::Corpus { path, fault }),
    };
    let info = CorpusInfo {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        sha256,
        bytes: file.len() as u64,
        units: content.units,
    };
    let Content { unit_bytes, counts, .. } = content;
    Ok(Corpus { task, suffix, path, info, unit_bytes, counts })
}

/// What is in a file.
struct Content {
    units: u64,
    unit_bytes: u64,
    counts: Counts,
}

/// Splits a file into units; if no counts are stored, ours are the reference.
fn content(task: Task, file: &[u8], stored: Option<Counts>) -> Result<Content, CorpusFault> {
    Ok(match task {
        Task::Decode => {
            let frames = corpus::read(file)?;
            let counts = stored.unwrap_or_else(|| frames::Tally::of(&frames).into());
            Content::new(frames.iter().map(|frame| frame.len()), counts)
        }
        Task::Sigs => {
            let commits = commits::read(file).ok_or(CorpusFault::Commits)?;
            let counts = stored.unwrap_or_else(|| commits::Tally::of(&commits).into());
            Content::new(commits.iter().map(|commit| commit.object.len()), counts)
        }
        Task::Schnorr => {
            let lines = events::lines(file).ok_or(CorpusFault::Lines)?;
            let counts = stored.unwrap_or_else(|| events::Tally::of(&lines).into());
            Content::new(lines.iter().map(|line| line.len()), counts)
        }
    })
}

impl Content {
    fn new(lens: impl ExactSizeIterator<Item = usize>, counts: Counts) -> Self {
        Self { units: lens.len() as u64, unit_bytes: lens.map(|len| len as u64).sum(), counts }
    }
}

/// The counts that lie beside a corpus, in the file of the same name that ends in `.json`, if there
/// is one and it has any.
fn stored_counts(corpus: &Path, sha256: &str) -> Result<Option<Counts>, BenchError> {
    #[derive(Deserialize)]
    struct Sidecar {
        counts: Option<Counts>,
        sha256: Option<String>,
    }
    let path = corpus.with_extension("json");
    let Ok(text) = fs::read(&path) else { return Ok(None) };
    match serde_json::from_slice::<Sidecar>(&text) {
        Ok(Sidecar { sha256: Some(described), .. }) if described != sha256 => {
            Err(BenchError::OtherCorpus(path))
        }
        Ok(sidecar) => Ok(sidecar.counts),
        Err(fault) => Err(BenchError::Sidecar { path, fault }),
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Behind the variants that work on commits by keys of both curves.
pub(crate) const MIXED: &str = "@mixed";

const FRAMES: Part = Part {
    task: Task::Decode,
    suffix: "",
    names: &[FRAMES_FILE, "frames.bin"],
    is_optional: false,
};
const COMMITS: Part =
    Part { task: Task::Sigs, suffix: "", names: &["signed-commits.bin"], is_optional: false };
const MIXED_COMMITS: Part = Part {
    task: Task::Sigs,
    suffix: MIXED,
    names: &["signed-commits-mixed.bin"],
    is_optional: true,
};
const EVENTS: Part =
    Part { task: Task::Schnorr, suffix: "", names: &["schnorr-events.jsonl"], is_optional: false };

/// All corpora, those of a task together.
const PARTS: [Part; 4] = [FRAMES, COMMITS, MIXED_COMMITS, EVENTS];
