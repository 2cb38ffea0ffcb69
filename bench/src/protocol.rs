//! What do harness and runner say to each other? The lines of `bench/runners/PROTOCOL.md` as types.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::counts::Counts;

/// What the harness asks, one line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "lowercase")]
pub(crate) enum Request {
    /// Who are you, and what can you do?
    Describe,
    /// Read these files for that work.
    Load { task: String, variant: String, files: Vec<PathBuf> },
    /// Do the work once and count what comes out.
    Prove,
    /// Do the work once more and time it.
    Pass,
}

/// The answer to [`Request::Describe`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) engine: String,
    pub(crate) version: String,
    pub(crate) language: String,
    /// The checks of each variant of each task.
    pub(crate) tasks: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// The answer to [`Request::Load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loaded {
    pub(crate) units: u64,
    pub(crate) bytes: u64,
}

/// The answer to [`Request::Prove`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) counts: Counts,
    /// How often the work of a pass asks the heap for memory, once it is warm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allocations: Option<u64>,
    /// Why a case was refused, in the runner's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl From<Counts> for Proof {
    fn from(counts: Counts) -> Self {
        Self { counts, allocations: None, reason: None }
    }
}

/// The answer to [`Request::Pass`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timing {
    pub(crate) ns: u64,
    /// How long each stage took, of a task that has some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) stages_ns: BTreeMap<String, u64>,
    /// How long each [`CHUNK`] of units took, the last perhaps of fewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) chunks_ns: Vec<u64>,
}

/// Units of a pass whose time is told together.
pub(crate) const CHUNK: usize = 20;

/// The answer to a request that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) error: String,
}
