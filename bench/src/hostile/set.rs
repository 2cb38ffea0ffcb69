//! Which cases are there? Those of a folder with a manifest, made from a seed or by someone else.

use std::fs;
use std::path::{Path, PathBuf};

use simnet::hostile::{CaseEntry, Expect, InputKind, Manifest};
use wireproof::kernels::sha256;

use crate::corpora::{self, hex};
use crate::protocol::Request;
use crate::{BenchError, CorpusInfo, Plan, Progress, Task};

/// The cases that every peer is given.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) info: CorpusInfo,
    pub(crate) cases: Vec<Case>,
}

/// A repository or a stream, and what is right to do with it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) kind: InputKind,
    pub(crate) expect: Expect,
    /// The length of the repository or stream.
    pub(crate) bytes: u64,
    /// The repository or stream, and the file that says whose it is.
    files: [PathBuf; 2],
}

impl Case {
    /// What a runner is asked to read.
    pub(crate) fn load(&self) -> Request {
        Request::Load {
            task: Task::Hostile.name().to_owned(),
            variant: path_of(self.kind).to_owned(),
            files: self.files.to_vec(),
        }
    }
}

/// The name of the variant that judges cases of a kind.
pub(crate) fn path_of(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Repo => "repo",
        InputKind::Frames => "frames",
    }
}

/// The set of the plan, if it has the task.
pub(crate) fn open(
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Option<Set>, BenchError> {
    if !plan.tasks.contains(&Task::Hostile) {
        return Ok(None);
    }
    read(&corpora::hostile_manifest(plan, progress)?, plan.quick).map(Some)
}

fn read(manifest: &Path, quick: bool) -> Result<Set, BenchError> {
    let text = fs::read(manifest).map_err(BenchError::io(manifest))?;
    let Manifest { cases, .. } = serde_json::from_slice(&text)
        .map_err(|fault| BenchError::Sidecar { path: manifest.to_owned(), fault })?;
    let wanted = cases.into_iter().filter(|row| !quick || is_quick(row));
    let cases: Vec<Case> = wanted.map(|row| case(row, manifest)).collect();
    let info = CorpusInfo {
        name: Task::Hostile.name().to_owned(),
        sha256: hex(&sha256::digest(&text)),
        bytes: cases.iter().map(|case| case.bytes).sum(),
        units: cases.len() as u64,
    };
    Ok(Set { info, cases })
}

fn is_quick(row: &CaseEntry) -> bool {
    row.code.as_deref().is_none_or(|code| QUICK_CODES.contains(&code))
}

fn case(row: CaseEntry, manifest: &Path) -> Case {
    let file = manifest.with_file_name(&row.file);
    let CaseEntry { name, kind, expect, file_bytes: bytes, .. } = row;
    Case { name, kind, expect, bytes, files: [file.clone(), file.with_extension("json")] }
}

/// The rules whose cases a quick run takes, beside all valid ones: some of each layer.
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
