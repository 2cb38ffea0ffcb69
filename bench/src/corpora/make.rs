//! The default corpora: simulated, the same bytes for the same seed, and kept between runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use simnet::firehose::{Corpus, Manifest, Spec};
use simnet::{schnorr_events, signed_commits};

use super::{MIXED, Part};
use crate::plan::{self, Plan};
use crate::{BenchError, Progress, Task, stamp};

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
    keep(&dir.join(FRAMES_FILE), &file, &manifest)?;
    Ok(manifest)
}

/// Writes a corpus, and the description beside it last: where there is one, the corpus is whole.
fn keep(path: &Path, file: &[u8], manifest: &impl Serialize) -> Result<(), BenchError> {
    let mut description = serde_json::to_vec_pretty(manifest).expect("text and numbers");
    description.push(b'\n');
    let dir = path.parent().expect("a file in a folder");
    fs::create_dir_all(dir).map_err(BenchError::io(dir))?;
    replace(path, file)?;
    replace(&path.with_extension("json"), &description)
}

/// Writes a file so that nobody ever sees half of it.
fn replace(path: &Path, content: &[u8]) -> Result<(), BenchError> {
    let partial = path.with_extension("partial");
    fs::write(&partial, content).map_err(BenchError::io(&partial))?;
    fs::rename(&partial, path).map_err(BenchError::io(path))
}

/// The default corpus in the work folder, made if it is not there yet.
pub(super) fn cached(
    part: Part,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BenchError> {
    let name = part.names[0];
    let recipe = Recipe::of(part, plan.quick);
    let dir = plan.work_dir.join("corpora").join(recipe.folder());
    let path = dir.join(name);
    if !path.with_extension("json").is_file() {
        recipe.make(&path, &mut |done, total| {
            let (done, total) = (done as u64, total as u64);
            progress(Progress::Corpus { name, done, total });
        })?;
    }
    Ok(path)
}

/// How a default corpus is made.
enum Recipe {
    Frames(Spec),
    Commits(signed_commits::Spec),
    Events(schnorr_events::Spec),
}

impl Recipe {
    fn of(part: Part, quick: bool) -> Self {
        match part.task {
            Task::Decode => Self::Frames(frames(quick)),
            Task::Sigs => Self::Commits(commits(part.suffix == MIXED, quick)),
            Task::Schnorr => Self::Events(events(quick)),
        }
    }

    fn make(&self, path: &Path, progress: &mut dyn FnMut(usize, usize)) -> Result<(), BenchError> {
        match self {
            Self::Frames(spec) => {
                let dir = path.parent().expect("a file in a folder");
                generate(spec, dir, progress).map(|_| ())
            }
            Self::Commits(spec) => {
                progress(0, spec.accounts * spec.commits_per_account);
                let corpus = signed_commits::Corpus::generate(spec);
                let file = corpus.to_file();
                keep(path, &file, &signed_commits::Manifest::new(&corpus, &file))
            }
            Self::Events(spec) => {
                progress(0, spec.events);
                let corpus = schnorr_events::Corpus::generate(spec);
                let file = corpus.to_file();
                let manifest = schnorr_events::Manifest::new(&corpus, &file);
                keep(path, file.as_bytes(), &manifest)
            }
        }
    }

    /// A folder for each corpus that the generator as it stands can make.
    fn folder(&self) -> String {
        let generator = stamp::of(&[plan::repository_or_here().join("crates/simnet/src")], "");
        let generator = generator.unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
        let name = match self {
            Self::Frames(Spec { seed, frames, max_height }) => {
                format!("firehose-{seed}-{frames}-{max_height}")
            }
            Self::Commits(spec) => {
                let signed_commits::Spec { seed, accounts, commits_per_account, p256_percent } =
                    spec;
                format!("commits-{seed}-{accounts}-{commits_per_account}-{p256_percent}")
            }
            Self::Events(schnorr_events::Spec { seed, authors, events }) => {
                format!("events-{seed}-{authors}-{events}")
            }
        };
        format!("{name}-{generator:.12}")
    }
}

fn frames(quick: bool) -> Spec {
    if quick { Spec { frames: QUICK_FRAMES, ..Spec::quick() } } else { Spec::default() }
}

fn commits(mixed: bool, quick: bool) -> signed_commits::Spec {
    use signed_commits::Spec;
    let spec = if mixed { Spec::mixed() } else { Spec::default() };
    if quick { Spec { accounts: QUICK_ACCOUNTS, ..spec } } else { spec }
}

fn events(quick: bool) -> schnorr_events::Spec {
    use schnorr_events::Spec;
    if quick { Spec { events: QUICK_EVENTS, ..Spec::quick() } } else { Spec::default() }
}

/// Enough for a pass of milliseconds, made in a moment.
const QUICK_FRAMES: usize = 320;

/// Each commits eight times: more than one batch of ours.
const QUICK_ACCOUNTS: usize = 40;

/// More than one batch of ours.
const QUICK_EVENTS: usize = 400;
