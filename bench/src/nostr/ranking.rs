//! Ranks formats of Nostr events by the results of a run.
//!
//! | criterion | points of a format, of 100 |
//! |---|---|
//! | speed | geometric mean of its shares of the fastest encoder and of the fastest decoder |
//! | size | the same of the fewest bytes, bare and as framed events under Zstandard |
//! | validated | its share of the fastest decoding with id and signature, in batches where there are any |
//! | tooling | our judgement of the available libraries, with reasons |
//!
//! The score is the weighted mean of the points, with a range: the scores by the slowest and by the fastest passes. Formats
//! whose ranges overlap are not told apart by the run, so a format's rank counts only the formats whose whole range lies above
//! its own. Only our own codecs are compared, so that the quality of a library does
//! not decide; only rows with equal work count.

use nostr_formats::Format;
use serde::Serialize;

use crate::own::PEER;
use crate::{Rate, Results, Row, Task};

/// The weights of the criteria.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Weights {
    /// Encoding and decoding.
    pub speed: u32,
    /// Bytes, raw and compressed.
    pub size: u32,
    /// Events decoded, hashed and verified.
    pub validated: u32,
    /// Libraries and languages.
    pub tooling: u32,
}

impl Default for Weights {
    /// Weights for a relay.
    fn default() -> Self {
        Self { speed: 20, size: 25, validated: 40, tooling: 15 }
    }
}

/// A criterion for comparing formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Criterion {
    /// Encoding and decoding.
    Speed,
    /// Bytes, raw and compressed.
    Size,
    /// Events decoded, hashed and verified.
    Validated,
    /// Libraries and languages.
    Tooling,
}

impl Criterion {
    /// All, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Speed, Self::Size, Self::Validated, Self::Tooling];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Size => "size",
            Self::Validated => "validated",
            Self::Tooling => "tooling",
        }
    }

    /// The tasks whose rows the criterion needs.
    pub fn tasks(self) -> &'static [Task] {
        match self {
            Self::Speed => &[Task::NostrSerialize, Task::NostrDeserialize],
            Self::Size => &[Task::NostrSize],
            Self::Validated => &[Task::NostrValidated],
            Self::Tooling => &[],
        }
    }
}

impl Weights {
    /// The weight of `criterion`.
    pub fn of(&self, criterion: Criterion) -> u32 {
        match criterion {
            Criterion::Speed => self.speed,
            Criterion::Size => self.size,
            Criterion::Validated => self.validated,
            Criterion::Tooling => self.tooling,
        }
    }
}

/// The formats, best first, and their weights.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// When the run began.
    pub started: String,
    /// The processor of the run.
    pub cpu: String,
    /// The requested weights.
    pub weights: Weights,
    /// Criteria with a weight but without rows in the results; they are left out.
    pub unmeasured: Vec<Criterion>,
    /// The formats.
    pub candidates: Vec<Candidate>,
    /// Formats that have rows, but not for every criterion.
    pub incomplete: Vec<Incomplete>,
}

/// A ranked format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The format's name.
    pub format: &'static str,
    /// One more than the number of formats whose score is higher in every pass; formats with the same rank are tied.
    pub rank: usize,
    /// The weighted mean of the points, by the median passes.
    pub score: f64,
    /// The same by the slowest passes.
    pub score_min: f64,
    /// The same by the fastest passes.
    pub score_max: f64,
    /// Its points, in the order of [`Criterion::ALL`]; `None` where nothing was measured.
    pub points: [Option<f64>; 4],
    /// The reason for its points for tooling.
    pub tooling: &'static str,
}

/// A format that cannot be ranked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Incomplete {
    /// The format's name.
    pub format: &'static str,
    /// The criteria without rows.
    pub missing: Vec<Criterion>,
}

/// Why results cannot be ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankingFault {
    /// There are no rows to compare.
    #[error(
        "no rows of our own codecs in the tasks nostr-serialize, -deserialize, -validated or -size"
    )]
    NoRows,
    /// No criterion has a weight.
    #[error("every weight is 0")]
    NoWeights,
}

/// Ranks the formats that `results` have rows of.
///
/// # Errors
/// If there are no rows, or all weights are 0.
pub fn recommend(results: &Results, weights: Weights) -> Result<Recommendation, RankingFault> {
    let has_weight = |criterion: &Criterion| weights.of(*criterion) > 0;
    let weighted: Vec<Criterion> = Criterion::ALL.into_iter().filter(has_weight).collect();
    if weighted.is_empty() {
        return Err(RankingFault::NoWeights);
    }
    let by = |pass: fn(Rate) -> f64| -> Vec<Measured> {
        Format::ALL.iter().filter_map(|format| Measured::of(*format, results, pass)).collect()
    };
    let measured = by(|rate| rate.median);
    let (slowest, fastest) = (by(|rate| rate.min), by(|rate| rate.max));
    if measured.is_empty() {
        return Err(RankingFault::NoRows);
    }
    let best = Best::of(&measured);
    let is_measured =
        |it: &Criterion| measured.iter().any(|format| format.points(*it, &best).is_some());
    let (measured_criteria, unmeasured): (Vec<_>, Vec<_>) =
        weighted.into_iter().partition(is_measured);
    let (mut candidates, mut incomplete) = (Vec::new(), Vec::new());
    for (at, format) in measured.iter().enumerate() {
        let score = |format: &Measured| format.score(&best, &weights, &measured_criteria);
        let lacks = |it: &Criterion| format.points(*it, &best).is_none();
        let missing: Vec<_> = measured_criteria.iter().copied().filter(lacks).collect();
        if missing.is_empty() {
            candidates.push(Candidate {
                score: score(format),
                score_min: score(&slowest[at]),
                score_max: score(&fastest[at]),
                ..format.candidate(&best)
            })
        } else {
            incomplete.push(Incomplete { format: format.format.name(), missing })
        }
    }
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    rank(&mut candidates);
    Ok(Recommendation {
        started: results.started.clone(),
        cpu: results.machine.cpu.clone(),
        weights,
        unmeasured,
        candidates,
        incomplete,
    })
}

/// Ranks candidates, best first. The sort is by rank, then by score.
fn rank(candidates: &mut [Candidate]) {
    let mins: Vec<f64> = candidates.iter().map(|it| it.score_min).collect();
    for candidate in candidates.iter_mut() {
        candidate.rank = 1 + mins.iter().filter(|min| **min > candidate.score_max).count();
    }
    candidates.sort_by_key(|candidate| candidate.rank);
}

/// The measurements of a format.
struct Measured {
    format: Format,
    encoded_per_s: Option<f64>,
    decoded_per_s: Option<f64>,
    validated_per_s: Option<f64>,
    raw_bytes: Option<f64>,
    framed_bytes: Option<f64>,
}

impl Measured {
    /// The measurements by one pass of every row; `None` without a row of the format.
    fn of(format: Format, results: &Results, pass: fn(Rate) -> f64) -> Option<Self> {
        let name = format.name();
        let batch = format!("{name}/batch");
        let rate = |task, variant| rate(results, task, variant).map(pass);
        let validated = |variant| rate(Task::NostrValidated, variant);
        let sizes = row(results, Task::NostrSize, name).and_then(|row| row.sizes);
        let measured = Self {
            format,
            encoded_per_s: rate(Task::NostrSerialize, name),
            decoded_per_s: rate(Task::NostrDeserialize, name),
            validated_per_s: validated(&batch).or_else(|| validated(name)),
            raw_bytes: sizes.map(|sizes| sizes.raw as f64),
            framed_bytes: sizes.map(|sizes| sizes.framed_zstd3 as f64),
        };
        measured.is_any().then_some(measured)
    }

    fn is_any(&self) -> bool {
        let Self { encoded_per_s, decoded_per_s, validated_per_s, raw_bytes, .. } = *self;
        let all = [encoded_per_s, decoded_per_s, validated_per_s, raw_bytes];
        all.iter().any(Option::is_some)
    }

    fn points(&self, criterion: Criterion, best: &Best) -> Option<f64> {
        let share = |value: Option<f64>, of: f64| value.map(|value| 100.0 * value / of);
        let inverse = |value: Option<f64>, of: f64| value.map(|value| 100.0 * of / value);
        let mean = |one: Option<f64>, other: Option<f64>| Some((one? * other?).sqrt());
        match criterion {
            Criterion::Speed => mean(
                share(self.encoded_per_s, best.encoded_per_s),
                share(self.decoded_per_s, best.decoded_per_s),
            ),
            Criterion::Size => mean(
                inverse(self.raw_bytes, best.raw_bytes),
                inverse(self.framed_bytes, best.framed_bytes),
            ),
            Criterion::Validated => share(self.validated_per_s, best.validated_per_s),
            Criterion::Tooling => Some(tooling(self.format.name()).0),
        }
    }

    /// The weighted mean of the points.
    fn score(&self, best: &Best, weights: &Weights, criteria: &[Criterion]) -> f64 {
        let weight = |criterion: &Criterion| f64::from(weights.of(*criterion));
        let total: f64 = criteria.iter().map(weight).sum();
        let part = |it: &Criterion| weight(it) * self.points(*it, best).unwrap_or_default();
        criteria.iter().map(part).sum::<f64>() / total
    }

    /// The points, without rank and score.
    fn candidate(&self, best: &Best) -> Candidate {
        Candidate {
            format: self.format.name(),
            rank: 0,
            score: 0.0,
            score_min: 0.0,
            score_max: 0.0,
            points: Criterion::ALL.map(|criterion| self.points(criterion, best)),
            tooling: tooling(self.format.name()).1,
        }
    }
}

/// The best values of the measurements over all formats.
struct Best {
    encoded_per_s: f64,
    decoded_per_s: f64,
    validated_per_s: f64,
    raw_bytes: f64,
    framed_bytes: f64,
}

impl Best {
    fn of(measured: &[Measured]) -> Self {
        let most = |value: fn(&Measured) -> Option<f64>| {
            measured.iter().filter_map(value).fold(0.0, f64::max)
        };
        let least = |value: fn(&Measured) -> Option<f64>| {
            measured.iter().filter_map(value).fold(f64::INFINITY, f64::min)
        };
        Self {
            encoded_per_s: most(|it| it.encoded_per_s),
            decoded_per_s: most(|it| it.decoded_per_s),
            validated_per_s: most(|it| it.validated_per_s),
            raw_bytes: least(|it| it.raw_bytes),
            framed_bytes: least(|it| it.framed_bytes),
        }
    }
}

fn row<'r>(results: &'r Results, task: Task, variant: &str) -> Option<&'r Row> {
    let is_it = |row: &&Row| row.task == task.name() && row.variant == variant && row.peer == PEER;
    results.rows.iter().find(is_it)
}

fn rate(results: &Results, task: Task, variant: &str) -> Option<Rate> {
    row(results, task, variant).filter(|row| row.is_ranked()).and_then(|row| row.per_s)
}

/// Points for the available libraries, with a reason. A judgement, not a measurement.
fn tooling(format: &str) -> (f64, &'static str) {
    match format {
        "json" => (100.0, "what every client and relay uses; in every language and browser"),
        "proto-string" | "proto-binary" => {
            (90.0, "a schema, and generated code in every language; archives use it")
        }
        "proto-binary-hex" => (80.0, "a schema, with two kinds of values that readers must merge"),
        "cbor-schemaless" => (85.0, "RFC 8949, read by libraries of every language as it is"),
        "cbor-packed" => (75.0, "RFC 8949, but positions and the hexadecimal rule must be known"),
        "cbor-intkey" => {
            (70.0, "RFC 8949, but numbers of keys and the hexadecimal rule must be known")
        }
        "msgpack" => (75.0, "libraries of every language, but positions must be known"),
        "flatbuffers" => (70.0, "a schema and generated code in some fifteen languages"),
        "capnp-schema" => (60.0, "a schema and generated code in some ten languages"),
        "capnp-schema-packed" => (55.0, "as capnp-schema, and packing, which fewer libraries have"),
        "capnp" | "capnp-packed" => {
            (30.0, "a schema round blobs that only this layout's code reads")
        }
        "notepack" => (50.0, "a specification, libraries in Rust and C, an archive that uses it"),
        "ndb-note" => (35.0, "the notes of one database, in C and Rust"),
        "dannypack" => (15.0, "one implementation in Rust"),
        "packed-event" => (20.0, "the index of one relay, in C++"),
        "wireproof" => (10.0, "one implementation, this one"),
        _ => (0.0, "not judged"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Machine, Parity, SCHEMA, Sizes};

    fn row(task: Task, variant: &str, per_s: f64, bytes: Option<u64>) -> Row {
        Row {
            per_s: (per_s > 0.0).then_some(Rate { min: per_s, median: per_s, max: per_s }),
            sizes: bytes.map(|raw| Sizes { raw, gzip6: raw, zstd3: raw, framed_zstd3: raw }),
            parity: Parity::Ok,
            ..Row::new(task, variant, PEER)
        }
    }

    fn results(rows: Vec<Row>) -> Results {
        Results {
            schema: SCHEMA.to_owned(),
            started: "2026-11-21T00:00:00Z".to_owned(),
            machine: Machine {
                cpu: "a processor".to_owned(),
                cores: 1,
                virtual_machine: None,
                memory_bytes: None,
                memory_limit_bytes: None,
                cpu_limit: None,
                features: Vec::new(),
                os: String::new(),
                toolchains: BTreeMap::new(),
            },
            settings: None,
            corpora: Vec::new(),
            rows,
            unavailable: Vec::new(),
        }
    }

    /// The rows of a format with one speed for all tasks.
    fn rows(format: &str, per_s: f64, bytes: u64) -> [Row; 4] {
        [
            row(Task::NostrSerialize, format, per_s, None),
            row(Task::NostrDeserialize, format, per_s, None),
            row(Task::NostrValidated, &format!("{format}/batch"), per_s, None),
            row(Task::NostrSize, format, 0.0, Some(bytes)),
        ]
    }

    #[test]
    fn the_best_format_in_every_criterion_has_all_points() {
        let both = [rows("json", 100.0, 200), rows("proto-binary", 200.0, 100)].concat();
        let found =
            recommend(&results(both), Weights { tooling: 0, ..Weights::default() }).unwrap();
        let scores: Vec<_> = found.candidates.iter().map(|it| (it.format, it.score)).collect();
        assert_eq!(scores, [("proto-binary", 100.0), ("json", 50.0)]);
    }

    #[test]
    fn formats_whose_passes_overlap_are_tied_and_the_next_is_behind_both() {
        let mut rows =
            [rows("json", 95.0, 100), rows("capnp", 100.0, 100), rows("msgpack", 50.0, 100)]
                .concat();
        for rate in rows.iter_mut().filter_map(|row| row.per_s.as_mut()) {
            *rate = Rate { min: 0.9 * rate.median, max: 1.1 * rate.median, ..*rate };
        }
        let weights = Weights { tooling: 0, ..Weights::default() };
        let found = recommend(&results(rows), weights).unwrap();
        let ranks: Vec<_> = found.candidates.iter().map(|it| (it.format, it.rank)).collect();
        assert_eq!(ranks, [("capnp", 1), ("json", 1), ("msgpack", 3)]);
    }

    #[test]
    fn weights_change_the_ranking() {
        let both = [rows("json", 100.0, 200), rows("capnp", 200.0, 100)].concat();
        let weights = Weights { speed: 0, size: 0, validated: 0, tooling: 1 };
        let found = recommend(&results(both), weights).unwrap();
        assert_eq!(found.candidates[0].format, "json");
    }

    #[test]
    fn a_format_without_a_row_is_reported_and_not_ranked() {
        let mut both = [rows("json", 100.0, 200), rows("capnp", 200.0, 100)].concat();
        both.pop();
        let found = recommend(&results(both), Weights::default()).unwrap();
        assert_eq!(found.candidates.len(), 1);
        let missing = Incomplete { format: "capnp", missing: vec![Criterion::Size] };
        assert_eq!(found.incomplete, [missing]);
    }

    #[test]
    fn a_criterion_without_rows_does_not_count() {
        let rows = rows("json", 100.0, 200)[..2].to_vec();
        let found =
            recommend(&results(rows), Weights { tooling: 0, ..Weights::default() }).unwrap();
        assert_eq!(found.unmeasured, [Criterion::Size, Criterion::Validated]);
        assert_eq!(found.candidates[0].score, 100.0);
    }

    #[test]
    fn rows_of_other_peers_and_rows_with_other_work_do_not_count() {
        let mut rows = rows("json", 100.0, 200).to_vec();
        rows[0].peer = "rust-nostr".to_owned();
        rows[1].parity = Parity::Mismatch;
        rows.truncate(2);
        assert_eq!(recommend(&results(rows), Weights::default()), Err(RankingFault::NoRows));
        let none = Weights { speed: 0, size: 0, validated: 0, tooling: 0 };
        assert_eq!(recommend(&results(Vec::new()), none), Err(RankingFault::NoWeights));
    }

    #[test]
    fn sizes_of_real_events_do_not_change_the_ranking() {
        let simulated = [rows("json", 100.0, 200), rows("capnp", 200.0, 100)].concat();
        let mut both = simulated.clone();
        for (variant, bytes) in [("json@real", 100), ("capnp@real", 900)] {
            both.push(row(Task::NostrSize, variant, 0.0, Some(bytes)));
        }
        both.swap(0, 8);
        let ranked = |rows| recommend(&results(rows), Weights::default()).unwrap();
        assert_eq!(ranked(both), ranked(simulated));
    }

    #[test]
    fn every_format_has_points_for_tooling() {
        for format in Format::ALL {
            assert!(tooling(format.name()).0 > 0.0, "{}", format.name());
        }
    }
}
