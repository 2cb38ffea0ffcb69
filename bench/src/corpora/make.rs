//! The default corpus: simulated, the same bytes for the same seed, and kept between runs.

use std::path::PathBuf;

use crate::{BenchError, Plan, Progress};

/// The name of a file of frames.
pub const FRAMES_FILE: &str = "firehose-frames.bin";

/// TODO
pub fn default_spec() {}

pub(super) fn cached(
    plan: &Plan,
    _progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BenchError> {
    Err(BenchError::NoCorpus(plan.work_dir.clone()))
}
