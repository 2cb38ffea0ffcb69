//! The default corpus: simulated, the same bytes for the same seed, and kept between runs.

use std::fs;
use std::path::{Path, PathBuf};

use simnet::firehose::{Corpus, Manifest, Spec};

use crate::plan::{self, Plan};
use crate::{BenchError, Progress, stamp};

/// The name of a file of frames; what is in it stands beside it in a file that ends in `.json`.
pub const FRAMES_FILE: &str = "firehose-frames.bin";

/// Makes the stream of `spec` and writes it into `dir`, its description beside it. Tells `progress`
/// how many frames of how many are done.
///
/// # Errors
/// If a file cannot be written.
pub fn generate(
    spec: &Spec,
    dir: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Manifest, BenchError> {
    let corpus = Corpus::generate(spec, progress);
    let file = corpus.to_file();
    let manifest = Manifest::new(&corpus, &file);
    let mut description = serde_json::to_vec_pretty(&manifest).expect("text and numbers");
    description.push(b'\n');
    fs::create_dir_all(dir).map_err(BenchError::io(dir))?;
    let path = dir.join(FRAMES_FILE);
    replace(&path, &file)?;
    replace(&path.with_extension("json"), &description)?;
    Ok(manifest)
}

/// Writes a file so that nobody ever sees half of it.
fn replace(path: &Path, content: &[u8]) -> Result<(), BenchError> {
    let partial = path.with_extension("partial");
    fs::write(&partial, content).map_err(BenchError::io(&partial))?;
    fs::rename(&partial, path).map_err(BenchError::io(path))
}

/// The default corpus in the work folder, made if it is not there yet.
pub(super) fn cached(
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BenchError> {
    let spec = spec(plan.quick);
    let dir = plan.work_dir.join("corpora").join(folder(&spec));
    let path = dir.join(FRAMES_FILE);
    if !path.with_extension("json").is_file() {
        let mut tell = |done: usize, total: usize| {
            let (done, total) = (done as u64, total as u64);
            progress(Progress::Corpus { name: FRAMES_FILE, done, total });
        };
        generate(&spec, &dir, &mut tell)?;
    }
    Ok(path)
}

fn spec(quick: bool) -> Spec {
    if quick { Spec { frames: QUICK_FRAMES, ..Spec::quick() } } else { Spec::default() }
}

/// A folder for each stream that the generator as it stands can make.
fn folder(spec: &Spec) -> String {
    let generator = stamp::of(&[plan::repository_or_here().join("crates/simnet/src")], "");
    let generator = generator.unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
    let Spec { seed, frames, max_height } = spec;
    format!("firehose-{seed}-{frames}-{max_height}-{:.12}", generator)
}

/// Enough for a pass of milliseconds, made in a moment.
const QUICK_FRAMES: usize = 320;
