//! On which bytes do all peers work? A corpus that is made from a seed, or one that was captured.

mod make;
pub(crate) mod tally;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wireproof::atproto::corpus;
use wireproof::kernels::sha256;

use crate::counts::Counts;
use crate::{BenchError, CorpusInfo, Plan, Progress};
use tally::Tally;

pub use make::{FRAMES_FILE, generate};

/// A corpus on disk, and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Corpus {
    pub(crate) path: PathBuf,
    pub(crate) info: CorpusInfo,
    /// Bytes of the units alone.
    pub(crate) unit_bytes: u64,
    /// What every peer must find.
    pub(crate) counts: Counts,
}

/// The corpus of the task `decode`: the one that the plan names, or the default one.
pub(crate) fn frames(
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Corpus, BenchError> {
    let path = match &plan.corpus {
        Some(named) => frames_file(named)?,
        None => make::cached(plan, progress)?,
    };
    open(path)
}

fn frames_file(named: &Path) -> Result<PathBuf, BenchError> {
    let path = std::path::absolute(named).map_err(BenchError::io(named))?;
    if !path.is_dir() {
        return Ok(path);
    }
    let candidates = [FRAMES_FILE, "frames.bin"].map(|name| path.join(name));
    candidates.into_iter().find(|file| file.is_file()).ok_or(BenchError::NoCorpus(path))
}

fn open(path: PathBuf) -> Result<Corpus, BenchError> {
    let file = fs::read(&path).map_err(BenchError::io(&path))?;
    let frames = match corpus::read(&file) {
        Ok(frames) => frames,
        Err(fault) => return Err(BenchError::Corpus { path, fault }),
    };
    let sha256 = hex(&sha256::digest(&file));
    let counts = match stored_counts(&path, &sha256)? {
        Some(counts) => counts,
        None => Tally::of(&frames).into(),
    };
    let info = CorpusInfo {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        sha256,
        bytes: file.len() as u64,
        units: frames.len() as u64,
    };
    let unit_bytes = frames.iter().map(|frame| frame.len() as u64).sum();
    Ok(Corpus { info, unit_bytes, counts, path })
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
