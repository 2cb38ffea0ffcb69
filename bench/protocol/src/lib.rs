//! The runner protocol of the benchmark, as `bench/runners/PROTOCOL.md` specifies it: the messages, the counts that
//! prove equal work, the names of the checks, and the loop that serves requests.
//!
//! The harness, our own runner and every Rust runner share this crate, so that a name or a sum is written down once.
//! The runners define the work of a task.

#![forbid(unsafe_code)]

pub mod checks;
mod counts;
mod serve;
mod tallies;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use counts::{Count, CountComparison, Counts, Difference};
pub use serve::{Parts, Service, Session, StageClock, Work, serve};
pub use tallies::{
    Checksum, CommitCounts, DecodeCounts, EventCounts, EventField, FieldSums, FieldValue,
    LookupCounts, SignatureCounts, Verdict, VerdictCounts, operation_counts,
};

/// An error of a unit of work or of a whole request.
pub type BoxError = Box<dyn std::error::Error>;

/// A request of the harness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "lowercase")]
pub enum Request {
    /// Name the engine, the tasks, their variants and checks.
    Describe,
    /// Read files into memory for a variant of a task.
    Load(Load),
    /// Do the work once and count the result.
    Prove,
    /// Do the work again and time it.
    Pass,
}

/// The work that [`Request::Load`] asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The task's name.
    pub task: String,
    /// The variant's name.
    pub variant: String,
    /// Absolute paths of the task's files.
    pub files: Vec<PathBuf>,
}

/// The answer to [`Request::Describe`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The libraries that do the work, with their versions.
    pub engine: String,
    /// The version of the peer itself.
    pub version: String,
    /// The peer's programming language.
    pub language: String,
    /// The checks by task and variant.
    pub tasks: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// The answer to [`Request::Load`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// Units of work in the files.
    pub units: u64,
    /// Bytes of these units alone.
    pub bytes: u64,
}

impl Loaded {
    /// Units of these lengths in bytes.
    pub fn of(lens: impl IntoIterator<Item = usize>) -> Self {
        let add = |Self { units, bytes }, len| Self { units: units + 1, bytes: bytes + len as u64 };
        lens.into_iter().fold(Self::default(), add)
    }
}

/// The answer to [`Request::Prove`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The result of the work in numbers and texts.
    pub counts: Counts,
    /// Heap allocations of a warm pass, where the runner counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<u64>,
    /// The peer's own reason for rejecting a hostile case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Proof {
    /// The proof of the task `hostile`: one case, accepted or rejected for a reason.
    pub fn of_case(rejection: Option<String>) -> Self {
        let is_rejected = u64::from(rejection.is_some());
        let counts = Counts::from_iter([("accepted", 1 - is_rejected), ("refused", is_rejected)]);
        Self { counts, allocations: None, reason: rejection }
    }

    /// Adds the heap allocations of a warm pass.
    pub fn with_allocations(self, allocations: u64) -> Self {
        Self { allocations: Some(allocations), ..self }
    }
}

impl<C: Into<Counts>> From<C> for Proof {
    fn from(counts: C) -> Self {
        Self { counts: counts.into(), ..Self::default() }
    }
}

/// The answer to [`Request::Pass`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Nanoseconds of the whole pass.
    pub ns: u64,
    /// Nanoseconds by stage, for tasks with stages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stages_ns: BTreeMap<String, u64>,
    /// Nanoseconds of every [`CHUNK_UNITS`] consecutive units; the last chunk may be shorter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks_ns: Vec<u64>,
}

/// Consecutive units whose time is reported together in [`Timing::chunks_ns`].
pub const CHUNK_UNITS: usize = 20;

/// The answer to a request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Why it failed.
    pub error: String,
}

/// The JSON file of a repository or a hostile case: the account, and the time of verification.
#[derive(Clone, Debug, Deserialize)]
pub struct Owner {
    /// The account's DID.
    pub did: String,
    /// The account's signing key as a `did:key`.
    pub signing_key: String,
    /// The time of verification, in RFC 3339; `None` for the default of the task.
    pub now: Option<String>,
}

/// The signing keys of the accounts as `did:key`, by DID.
pub type Accounts = BTreeMap<String, String>;

/// Makes text of another program fit for one line: shortened, with control characters replaced by spaces.
pub fn one_line(text: &str) -> String {
    let shown: String = text.trim().chars().take(MAX_LINE_CHARS).collect();
    let ellipsis = if text.trim().len() > shown.len() { "…" } else { "" };
    shown.split(|c: char| c.is_control()).collect::<Vec<_>>().join(" ") + ellipsis
}

const MAX_LINE_CHARS: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_program_becomes_one_harmless_line() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc\n"), "a [2Jb c");
        assert_eq!(one_line(&"x".repeat(1000)).chars().count(), MAX_LINE_CHARS + 1);
    }

    #[test]
    fn requests_are_read_as_the_protocol_writes_them() {
        let load = r#"{"cmd":"load","task":"decode","variant":"verified","files":["/a"]}"#;
        let expected = Load {
            task: "decode".to_owned(),
            variant: "verified".to_owned(),
            files: vec!["/a".into()],
        };
        assert_eq!(serde_json::from_str::<Request>(load).unwrap(), Request::Load(expected.clone()));
        assert_eq!(serde_json::to_string(&Request::Load(expected)).unwrap(), load);
        assert_eq!(serde_json::from_str::<Request>(r#"{"cmd":"pass"}"#).unwrap(), Request::Pass);
    }
}
