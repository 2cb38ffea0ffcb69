//! The results of a run: the document `results.json`, from which tables and pages are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use protocol::Counts;

use crate::{Task, Unavailable, variant};

pub use simnet::hostile::Expect;

/// The version of the document.
pub const SCHEMA: &str = "wireproof-bench/1";

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// When the run began, in RFC 3339.
    pub started: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// How it measured; missing in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// The corpora it worked on.
    pub corpora: Vec<CorpusInfo>,
    /// The rows, sorted by task, then by group of variants, then by speed.
    pub rows: Vec<Row>,
    /// Peers that could not be measured.
    pub unavailable: Vec<Unavailable>,
}

/// The options of a run that its numbers depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Measured passes of a row.
    pub passes: u32,
    /// Unmeasured passes before them.
    pub warmup: u32,
    /// Milliseconds that a pass lasts at least, by repeating the work; `None` for one execution a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_at_least_ms: Option<u64>,
    /// Milliseconds of a proof over which a row made one measured pass and no other; `None` if every row made all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_pass_over_ms: Option<u64>,
    /// Whether small corpora were used.
    pub quick: bool,
    /// The file name of a given corpus; `None` for the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<String>,
    /// The instruction sets that our own runner was kept to; `None` for all that the processor has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Available cores. A run measures on one.
    pub cores: usize,
    /// The product of the virtual machine that this is; `None` for hardware, and in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<String>,
    /// Memory in bytes, where the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The memory limit of the run's control group in bytes; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The processor limit of the run's control group in thousandths of a core; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<u64>,
    /// Available instruction sets.
    pub features: Vec<String>,
    /// The operating system, its version and architecture.
    pub os: String,
    /// The versions of compilers and interpreters, by name.
    pub toolchains: BTreeMap<String, String>,
}

/// A corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusInfo {
    /// The file's name without its extension.
    pub name: String,
    /// SHA-256 of the file in hexadecimal.
    pub sha256: String,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Units of work in the file.
    pub units: u64,
}

/// One variant of a task, done by one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The task.
    pub task: String,
    /// The variant.
    pub variant: String,
    /// The peer.
    pub peer: String,
    /// The peer's programming language.
    pub language: String,
    /// The peer's version.
    pub version: String,
    /// The checks that the measured path makes, by their names in the runner protocol.
    pub checks: Vec<String>,
    /// The name of a unit of work.
    pub unit: String,
    /// Units in a pass.
    pub units: u64,
    /// Bytes of these units.
    pub bytes: u64,
    /// Nanoseconds of the measured passes, in order.
    pub passes_ns: Vec<u64>,
    /// Nanoseconds of the stages in these passes, for tasks with stages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stages_ns: BTreeMap<String, Vec<u64>>,
    /// Units per second; `None` if a pass is missing.
    pub per_s: Option<Rate>,
    /// Megabytes (10⁶ bytes) per second at the median.
    pub mb_per_s: Option<f64>,
    /// Nanoseconds per unit over small parts of a pass, where the runner reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<Chunks>,
    /// Heap allocations per unit, where the runner counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<f64>,
    /// The total size of all units in a format; such a row has no passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// The sizes of the same units as JSON, where the format cannot hold all events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_sizes: Option<Sizes>,
    /// Events of the corpus that the format cannot hold: they are not in the row, and the note names them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unheld: u64,
    /// The counts of the work.
    pub counts: Counts,
    /// Valid cases that were not accepted, in the task `hostile`; `counts` covers the invalid ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_refused: Option<u64>,
    /// The outcomes of the cases of the task `hostile`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseOutcome>,
    /// Whether the counts equal the counts of the corpus.
    pub parity: Parity,
    /// Differences, counts not given, failures.
    pub note: Option<String>,
}

impl Row {
    /// A row without passes, counts or cases.
    pub fn new(task: Task, variant: impl Into<String>, peer: impl Into<String>) -> Self {
        Self {
            task: task.name().to_owned(),
            variant: variant.into(),
            peer: peer.into(),
            language: "rust".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            checks: Vec::new(),
            unit: task.unit().to_owned(),
            units: 0,
            bytes: 0,
            passes_ns: Vec::new(),
            stages_ns: BTreeMap::new(),
            per_s: None,
            mb_per_s: None,
            chunks: None,
            allocations: None,
            sizes: None,
            json_sizes: None,
            unheld: 0,
            counts: Counts::default(),
            valid_refused: None,
            cases: Vec::new(),
            parity: Parity::Unproven,
            note: None,
        }
    }

    /// Whether the row did the same work as the others in every pass.
    pub fn is_ranked(&self) -> bool {
        self.parity == Parity::Ok && self.per_s.is_some()
    }

    /// The group of rows that this row is ranked in: the part of the variant before the first `/`, or the whole
    /// variant for tasks where every name is different work; then `@` and the corpus if it is a second one.
    pub fn group(&self) -> String {
        let (variant, corpus) = match self.variant.split_once('@') {
            Some((variant, _)) => (variant, &self.variant[variant.len()..]),
            None => (self.variant.as_str(), ""),
        };
        let group = match Task::from_name(&self.task) {
            Some(task) if task.has_distinct_variants() => variant,
            _ => variant.split('/').next().unwrap_or_default(),
        };
        format!("{group}{corpus}")
    }

    /// Whether the row works on many units in a call: a part of its variant begins with `batch`.
    pub fn is_batch(&self) -> bool {
        variant::is_batch(&self.variant)
    }

    /// The units per call and the memory that is kept, in words; `None` for one unit per call.
    pub fn batch_label(&self) -> Option<&'static str> {
        variant::batch_label(&self.task, &self.variant)
    }

    /// Whether the row uses something that its caller makes before or keeps: cached keys, an index, a builder.
    pub fn is_prepared(&self) -> bool {
        variant::is_prepared(&self.variant)
    }

    /// What a [prepared](Self::is_prepared) row uses, with the units per call if there are many; empty for a plain one.
    pub fn prepared_label(&self) -> String {
        variant::prepared_label(&self.task, &self.variant)
    }

    /// The work of the row, whatever its way: its group without batches, caches, indexes and builders.
    pub fn work(&self) -> String {
        variant::work(&self.group())
    }

    /// Whether the row forces a back end instead of the default one. Such rows explain our numbers; they never represent us
    /// in a sentence or a picture.
    pub fn is_forced(&self) -> bool {
        variant::is_forced(&self.variant)
    }

    /// The number of threads in the variant's name; other rows use one core.
    pub fn threads(&self) -> Option<u32> {
        let parts = self.variant.split(['/', '@']);
        parts.filter_map(|part| part.strip_prefix("threads-")?.parse().ok()).next()
    }

    /// How the work was done, in words: one at a time or many, which memory, which corpus. Empty if there is one way only.
    pub fn label(&self) -> String {
        variant::labels(&self.task, &self.variant).join(", ")
    }

    /// The fastest pass over the slowest, minus one; zero without passes.
    pub fn spread(&self) -> f64 {
        self.per_s.map_or(0.0, |rate| rate.max / rate.min - 1.0)
    }

    /// The distance between the quartiles of the passes' rates over their median; zero without passes.
    pub fn middle_spread(&self) -> f64 {
        middle_spread(&self.passes_ns)
    }

    /// The median of units per second, if no pass is missing.
    pub fn median(&self) -> Option<f64> {
        self.per_s.map(|rate| rate.median)
    }
}

/// The distance between the quartiles of the passes' rates over their median; zero without passes.
pub fn middle_spread(passes_ns: &[u64]) -> f64 {
    let mut rates: Vec<f64> = passes_ns.iter().map(|ns| 1.0 / (*ns).max(1) as f64).collect();
    rates.sort_by(f64::total_cmp);
    let Some(last) = rates.len().checked_sub(1) else { return 0.0 };
    let quantile = |share: f64| {
        let at = share * last as f64;
        let [below, above] = [at.floor(), at.ceil()].map(|at| rates[at as usize]);
        below + (above - below) * at.fract()
    };
    (quantile(0.75) - quantile(0.25)) / quantile(0.5)
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Whether more than half of the measured rows spread over [`EVEN`] in the middle half of their passes. A run with such a
/// task is not published.
pub fn is_uneven(rows: &[&Row]) -> bool {
    let measured = rows.iter().filter(|row| row.per_s.is_some());
    2 * rows.iter().filter(|row| row.middle_spread() > EVEN).count() > measured.count()
}

/// The greatest [middle spread](Row::middle_spread) of an even row.
pub const EVEN: f64 = 0.2;

/// Units per second over all measured passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The rate of the slowest pass.
    pub min: f64,
    /// The rate of the middle pass; the midpoint of the two middle ones for an even number.
    pub median: f64,
    /// The rate of the fastest pass.
    pub max: f64,
}

impl Rate {
    /// The rates of passes over `units`; `None` without a pass.
    pub fn of(units: u64, passes_ns: &[u64]) -> Option<Self> {
        let per_s = |ns: &u64| units as f64 * 1e9 / (*ns).max(1) as f64;
        let mut rates: Vec<f64> = passes_ns.iter().map(per_s).collect();
        rates.sort_by(f64::total_cmp);
        let (min, max) = (*rates.first()?, *rates.last()?);
        let (below, above) = (rates[(rates.len() - 1) / 2], rates[rates.len() / 2]);
        Some(Self { min, median: f64::midpoint(below, above), max })
    }
}

/// The total size of a row's units in a format, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Uncompressed.
    pub raw: u64,
    /// The units, compressed one by one by gzip at level 6.
    pub gzip6: u64,
    /// The units, compressed one by one by Zstandard at level 3.
    pub zstd3: u64,
    /// All length-prefixed units compressed together by Zstandard at level 3.
    pub framed_zstd3: u64,
}

/// Percentiles of nanoseconds per unit over chunks of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chunks {
    /// Units in a chunk.
    pub events: u32,
    /// The median.
    pub p50_ns: f64,
    /// The 95th percentile.
    pub p95_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The maximum.
    pub max_ns: f64,
}

impl Chunks {
    /// The percentiles over chunks of `units` with these durations; `None` without chunks.
    pub fn of(units: u32, mut chunks_ns: Vec<u64>) -> Option<Self> {
        chunks_ns.sort_unstable();
        let at = |percent: usize| {
            let index = (chunks_ns.len() * percent / 100).min(chunks_ns.len() - 1);
            chunks_ns[index] as f64 / f64::from(units)
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

/// The outcome of a hostile case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseOutcome {
    /// The case's name.
    pub name: String,
    /// The right outcome.
    pub expect: Expect,
    /// The peer's outcome.
    pub outcome: Outcome,
    /// The peer's own reason for rejecting the case, or how its process ended.
    pub reason: Option<String>,
}

impl CaseOutcome {
    /// Whether the outcome is the right one.
    pub fn is_right(&self) -> bool {
        match self.expect {
            Expect::Accept => self.outcome == Outcome::Accepted,
            Expect::InvalidRecord => matches!(self.outcome, Outcome::Accepted | Outcome::Refused),
            Expect::Refuse => self.outcome == Outcome::Refused,
        }
    }

    /// The right outcome in a word. A verifier may accept a case with an invalid record and not deliver the record,
    /// or, if it is strict about records, refuse it.
    pub fn must(&self) -> &'static str {
        match self.expect {
            Expect::Accept => "accept",
            Expect::InvalidRecord => "either",
            Expect::Refuse => "refuse",
        }
    }
}

/// The reaction of a peer to a hostile case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It accepted the case.
    Accepted,
    /// It rejected the case.
    Refused,
    /// Its process ended without an answer.
    Crashed,
    /// It did not answer in time.
    Hung,
}

/// Whether a row's counts equal the counts of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parity {
    /// Every given count is equal.
    Ok,
    /// Some count differs.
    Mismatch,
    /// The peer failed before it gave any count.
    Unproven,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str) -> Row {
        Row::new(Task::Decode, variant, crate::PEER)
    }

    #[test]
    fn rows_of_a_forced_back_end_are_told_from_the_default_ones() {
        assert!(row("verified/batch/forced-portable").is_forced());
        assert!(!row("verified/batch").is_forced());
    }

    #[test]
    fn batches_and_threads_are_read_from_the_name() {
        let batches = ["full/batch", "full/batch-cached@mixed", "verified/batch-32"];
        assert!(batches.iter().all(|name| row(name).is_batch()));
        assert!(!row("full").is_batch() && !row("full@batch").is_batch());
        assert_eq!([row("full/threads-4").threads(), row("full").threads()], [Some(4), None]);
    }

    #[test]
    fn a_single_slow_pass_widens_the_spread_and_not_its_middle() {
        let mut row = row("verified");
        row.passes_ns = vec![100, 100, 100, 100, 200];
        row.per_s = Rate::of(1, &row.passes_ns);
        assert_eq!((row.spread(), row.middle_spread()), (1.0, 0.0));
        row.passes_ns = vec![100, 100, 125, 200, 200];
        assert_eq!(row.middle_spread(), (1.0 / 100.0 - 1.0 / 200.0) * 125.0);
        assert_eq!(Row { passes_ns: Vec::new(), ..row }.middle_spread(), 0.0);
    }

    #[test]
    fn chunks_have_a_median_two_percentiles_and_a_maximum() {
        let chunks = Chunks::of(20, (1..=200).rev().map(|n| 20 * n).collect()).unwrap();
        let Chunks { p50_ns, p95_ns, p99_ns, max_ns, .. } = chunks;
        assert_eq!([p50_ns, p95_ns, p99_ns, max_ns], [101.0, 191.0, 199.0, 200.0]);
        assert_eq!(Chunks::of(20, vec![40]).unwrap().p99_ns, 2.0);
        assert_eq!(Chunks::of(20, Vec::new()), None);
    }

    #[test]
    fn a_rate_has_the_slowest_the_median_and_the_fastest_pass() {
        let rate = Rate::of(10, &[2_000_000_000, 1_000_000_000, 4_000_000_000]).unwrap();
        assert_eq!(rate, Rate { min: 2.5, median: 5.0, max: 10.0 });
        assert_eq!(Rate::of(10, &[1_000_000_000, 2_000_000_000]).unwrap().median, 7.5);
        assert_eq!(Rate::of(10, &[]), None);
    }
}
