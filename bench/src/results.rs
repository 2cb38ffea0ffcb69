//! What did a run find? The document `results.json`, whose numbers a table can be made from again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Counts, Task};

pub use simnet::hostile::Expect;

/// The name of this form of the document.
pub const SCHEMA: &str = "wireproof-bench/1";

/// All that a run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// When the run began, by RFC 3339.
    pub started: String,
    /// Where it ran.
    pub machine: Machine,
    /// How it was asked to measure; not in documents of earlier times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// The bytes that were worked on.
    pub corpora: Vec<CorpusInfo>,
    /// What was measured: by task, then by kind of variant, the fastest first.
    pub rows: Vec<Row>,
    /// Peers that could not be measured at all.
    pub unavailable: Vec<Unavailable>,
}

/// What a run was asked for, as far as its numbers depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Measured passes of each row.
    pub passes: u32,
    /// Passes before those.
    pub warmup: u32,
    /// Whether the corpora were small ones.
    pub quick: bool,
    /// The last part of the path of a corpus that was given, instead of the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<String>,
}

/// Where a run took place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// Cores that the run could use. It measures on one.
    pub cores: usize,
    /// Instruction sets that some peer may use.
    pub features: Vec<String>,
    /// The operating system, its architecture and version.
    pub os: String,
    /// The versions of compilers and interpreters, by name.
    pub toolchains: BTreeMap<String, String>,
}

/// The bytes that a task worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusInfo {
    /// Its name: that of the file, without the ending.
    pub name: String,
    /// The SHA-256 of the file in hexadecimal.
    pub sha256: String,
    /// The length of the file.
    pub bytes: u64,
    /// How many units of work are in it.
    pub units: u64,
}

/// One way of one peer to do a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The task.
    pub task: String,
    /// The way.
    pub variant: String,
    /// The peer.
    pub peer: String,
    /// What the peer is written in.
    pub language: String,
    /// The peer's version.
    pub version: String,
    /// The checks that the measured path makes, by the names of the runner protocol.
    pub checks: Vec<String>,
    /// What a unit of work is.
    pub unit: String,
    /// Units done in a pass.
    pub units: u64,
    /// Bytes of those units together.
    pub bytes: u64,
    /// The time of each measured pass, in the order in which they were made.
    pub passes_ns: Vec<u64>,
    /// The time of each stage in each of those passes, of a task that has stages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stages_ns: BTreeMap<String, Vec<u64>>,
    /// Units a second; nothing if a pass is missing.
    pub per_s: Option<Rate>,
    /// Megabytes (10⁶) a second at the median.
    pub mb_per_s: Option<f64>,
    /// Nanoseconds a unit over small parts of a pass, of a runner that tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<Chunks>,
    /// Heap allocations a unit, of a runner that counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<f64>,
    /// How long all units are in a format; such a row has no passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// What came out of the work.
    pub counts: Counts,
    /// Valid cases that were not accepted, of the task `hostile`, whose counts are over the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_refused: Option<u64>,
    /// What came of each case of the task `hostile`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseOutcome>,
    /// Whether that is what the corpus holds.
    pub parity: Parity,
    /// What a reader must know of this row: differences, counts not given, what failed.
    pub note: Option<String>,
}

impl Row {
    /// Whether the row did the same work as the others, all of it, and may be ranked.
    pub fn is_ranked(&self) -> bool {
        self.parity == Parity::Ok && self.per_s.is_some()
    }

    /// The kind of the variant, and the corpus if it is a second one, which follows an `@`: rows of
    /// one kind are ranked together.
    ///
    /// The kind is the part before the first `/`, or all of the name where the rest of it says that the
    /// work is another.
    pub fn group(&self) -> String {
        let (way, corpus) = match self.variant.split_once('@') {
            Some((way, _)) => (way, &self.variant[way.len()..]),
            None => (self.variant.as_str(), ""),
        };
        let kind = match Task::from_name(&self.task) {
            Some(task) if task.has_work_in_every_name() => way,
            _ => way.split('/').next().unwrap_or_default(),
        };
        format!("{kind}{corpus}")
    }

    /// The median of units a second, if every pass was made.
    pub fn median(&self) -> Option<f64> {
        self.per_s.map(|rate| rate.median)
    }
}

/// Units a second over all measured passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// In the slowest pass.
    pub min: f64,
    /// In the middle one; between the middle two of an even number.
    pub median: f64,
    /// In the fastest.
    pub max: f64,
}

impl Rate {
    /// The rates of passes that each did `units`; `None` without a pass.
    pub fn of(units: u64, passes_ns: &[u64]) -> Option<Self> {
        let per_s = |ns: &u64| units as f64 * 1e9 / (*ns).max(1) as f64;
        let mut rates: Vec<f64> = passes_ns.iter().map(per_s).collect();
        rates.sort_by(f64::total_cmp);
        let (min, max) = (*rates.first()?, *rates.last()?);
        let (below, above) = (rates[(rates.len() - 1) / 2], rates[rates.len() / 2]);
        Some(Self { min, median: f64::midpoint(below, above), max })
    }
}

/// How long the units of a row are together in a format, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// As the format writes them.
    pub raw: u64,
    /// Under gzip at its level 6.
    pub gzip6: u64,
    /// Under Zstandard at its level 3.
    pub zstd3: u64,
    /// With each unit behind its length, under Zstandard at its level 3.
    pub framed_zstd3: u64,
}

/// How evenly a pass goes: nanoseconds a unit, over all parts of so many units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chunks {
    /// Units in a part.
    pub events: u32,
    /// In the middle part.
    pub p50_ns: f64,
    /// In the part that 5 of 100 are slower than.
    pub p95_ns: f64,
    /// In the part that 1 of 100 is slower than.
    pub p99_ns: f64,
    /// In the slowest.
    pub max_ns: f64,
}

impl Chunks {
    /// Over parts that took so many nanoseconds each; `None` without any.
    pub fn of(units: u32, mut chunks_ns: Vec<u64>) -> Option<Self> {
        chunks_ns.sort_unstable();
        let at = |percent: usize| {
            let place = (chunks_ns.len() * percent / 100).min(chunks_ns.len() - 1);
            chunks_ns[place] as f64 / f64::from(units)
        };
        (!chunks_ns.is_empty()).then(|| Self {
            events: units,
            p50_ns: at(50),
            p95_ns: at(95),
            p99_ns: at(99),
            max_ns: at(100),
        })
    }
}

/// What a peer made of a hostile case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseOutcome {
    /// The case.
    pub name: String,
    /// What is right.
    pub expect: Expect,
    /// What the peer did.
    pub outcome: Outcome,
    /// Why it refused, in its own words, or how it ended.
    pub reason: Option<String>,
}

impl CaseOutcome {
    /// Whether the peer did what is right.
    pub fn is_right(&self) -> bool {
        match self.expect {
            Expect::Accept => self.outcome == Outcome::Accepted,
            Expect::Refuse => self.outcome == Outcome::Refused,
        }
    }
}

/// What a peer does with a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It calls the case valid.
    Accepted,
    /// It calls it invalid.
    Refused,
    /// Its process ends without a word.
    Crashed,
    /// It says nothing in time.
    Hung,
}

/// Whether a row did the work that the corpus holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parity {
    /// Every count that the peer gave is the corpus's.
    Ok,
    /// Some count is another.
    Mismatch,
    /// The peer failed before it gave any.
    Unproven,
}

/// A peer that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Its name.
    pub peer: String,
    /// Why, in a line.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_tell_the_middle_the_slow_and_the_slowest() {
        let chunks = Chunks::of(20, (1..=200).rev().map(|n| 20 * n).collect()).unwrap();
        let Chunks { p50_ns, p95_ns, p99_ns, max_ns, .. } = chunks;
        assert_eq!([p50_ns, p95_ns, p99_ns, max_ns], [101.0, 191.0, 199.0, 200.0]);
        assert_eq!(Chunks::of(20, vec![40]).unwrap().p99_ns, 2.0);
        assert_eq!(Chunks::of(20, Vec::new()), None);
    }

    #[test]
    fn a_rate_is_that_of_the_slowest_the_middle_and_the_fastest_pass() {
        let rate = Rate::of(10, &[2_000_000_000, 1_000_000_000, 4_000_000_000]).unwrap();
        assert_eq!(rate, Rate { min: 2.5, median: 5.0, max: 10.0 });
        assert_eq!(Rate::of(10, &[1_000_000_000, 2_000_000_000]).unwrap().median, 7.5);
        assert_eq!(Rate::of(10, &[]), None);
    }
}
