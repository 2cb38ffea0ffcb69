//! Measures the rows of one task: proves that they do the same work, then makes passes in turn.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use protocol::{CHUNK_UNITS, CountComparison, Counts, Load, Loaded, Proof, Request, Timing};

use crate::build::{Builder, LaunchCommand, PeerProcess};
use crate::connection::{Connection, ConnectionError, Core};
use crate::corpora::{Corpus, Workload};
use crate::{Chunks, EVEN, Parity, Plan, Progress, Rate, Row};
use results::middle_spread;

/// Everything that measuring needs in addition to peers and corpora.
pub(crate) struct Bench<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) builder: &'p Builder,
    pub(crate) core: Option<Core>,
}

impl Bench<'_> {
    /// The rows of `peers` on the corpora of one task.
    pub(crate) fn rows(
        &self,
        peers: &[PeerProcess],
        corpora: &[Corpus],
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Vec<Row> {
        let mut measurements = measurements(peers, corpora);
        self.prove(&mut measurements, progress);
        self.measure(&mut measurements, progress);
        self.extend(&mut measurements, progress);
        measurements.into_iter().map(Measurement::into_row).collect()
    }

    /// Starts a peer with its standard error going to its log.
    pub(crate) fn start(
        &self,
        peer: &str,
        command: &LaunchCommand,
    ) -> Result<Connection, ConnectionError> {
        let log = self.builder.runner_log(peer).map_err(ConnectionError::Start)?;
        Connection::start(command.command(), self.core, log, self.plan.request_limit)
    }

    /// Does every work once and compares its counts with the corpus.
    fn prove(&self, measurements: &mut [Measurement<'_>], progress: &mut dyn FnMut(Progress<'_>)) {
        let rows = measurements.len() as u64;
        for (row, measurement) in measurements.iter_mut().enumerate() {
            let (peer, variant) = (&measurement.peer.peer, &measurement.name);
            progress(Progress::Proving { peer, variant, row: row as u64, rows });
            match self.start(peer, &measurement.peer.command) {
                Ok(connection) => measurement.prove(connection, self.plan),
                Err(error) => measurement.fail("start", &error),
            }
        }
    }

    /// Makes passes in turn: first passes of all rows, then second passes of all rows, and so on.
    fn measure(
        &self,
        measurements: &mut [Measurement<'_>],
        progress: &mut dyn FnMut(Progress<'_>),
    ) {
        let total = measurements.iter().map(|measurement| u64::from(measurement.passes_left)).sum();
        let mut done = 0;
        for round in (1..=self.plan.warmup + self.plan.passes).rev() {
            let of_round = |it: &(usize, &mut Measurement<'_>)| it.1.passes_left >= round;
            for (row, measurement) in measurements.iter_mut().enumerate().filter(of_round) {
                let (peer, variant) = (&measurement.peer.peer, &measurement.name);
                progress(Progress::Pass { peer, variant, row: row as u64, done, total });
                measurement.pass(round <= self.plan.passes);
                done += 1;
            }
        }
    }

    /// Makes as many passes of every row again while the task is uneven. Every pass counts.
    fn extend(&self, measurements: &mut [Measurement<'_>], progress: &mut dyn FnMut(Progress<'_>)) {
        for _ in 0..self.plan.extensions {
            if !are_uneven(measurements) {
                return;
            }
            for measurement in measurements.iter_mut() {
                measurement.passes_left = self.plan.passes;
            }
            self.measure(measurements, progress);
        }
    }
}

/// Whether more than half of the measurements without a failure are uneven.
fn are_uneven(measurements: &[Measurement<'_>]) -> bool {
    let measured = || measurements.iter().filter(|measurement| measurement.connection.is_some());
    let is_uneven = |it: &&Measurement<'_>| middle_spread(&it.passes_ns) > EVEN;
    2 * measured().filter(is_uneven).count() > measured().count()
}

/// How often a pass does work that takes this long once, to last at least `least`.
fn executions(least: Option<Duration>, once: Duration) -> u32 {
    let least = least.unwrap_or_default().as_secs_f64();
    let times = (least / once.as_secs_f64().max(1e-6)).ceil();
    (times as u32).clamp(1, MOST_EXECUTIONS)
}

/// The mean, rounded down; 0 of none.
fn mean(times_ns: impl Iterator<Item = u64>) -> u64 {
    let (sum, count) = times_ns.fold((0, 0), |(sum, count), ns| (sum + u128::from(ns), count + 1));
    u64::try_from(sum / u128::from(count.max(1_u64))).unwrap_or(u64::MAX)
}

/// The number of rows that `peers` have on the corpora.
pub(crate) fn row_count(peers: &[PeerProcess], corpora: &[Corpus]) -> u64 {
    measurements(peers, corpora).len() as u64
}

/// One variant of one peer on one corpus, with its results so far. It has a separate process, so passes
/// can be interleaved without loading again.
struct Measurement<'p> {
    peer: &'p PeerProcess,
    corpus: &'p Corpus,
    /// The variant by the peer's name for it.
    variant: &'p str,
    /// The variant with the corpus's suffix.
    name: String,
    checks: &'p [String],
    /// `None` before the proof and after a failure.
    connection: Option<Connection>,
    /// Passes to make, warm-up included.
    passes_left: u32,
    /// How often a pass does the work.
    executions: u32,
    passes_ns: Vec<u64>,
    stages_ns: BTreeMap<String, Vec<u64>>,
    chunks_ns: Vec<u64>,
    allocations: Option<u64>,
    counts: Counts,
    parity: Parity,
    notes: Vec<String>,
    has_failed: bool,
}

/// A measurement per variant, peer and corpus of a task.
fn measurements<'p>(peers: &'p [PeerProcess], corpora: &'p [Corpus]) -> Vec<Measurement<'p>> {
    let of_peer = |peer: &'p PeerProcess| {
        corpora.iter().flat_map(move |corpus| {
            let variants = peer.description.tasks.get(corpus.task.name()).into_iter().flatten();
            let measured = variants.filter(|(variant, _)| corpus.has_variant(variant));
            measured.map(move |(variant, checks)| Measurement::new(peer, corpus, variant, checks))
        })
    };
    peers.iter().flat_map(of_peer).collect()
}

impl<'p> Measurement<'p> {
    fn new(
        peer: &'p PeerProcess,
        corpus: &'p Corpus,
        variant: &'p str,
        checks: &'p [String],
    ) -> Self {
        Self {
            peer,
            corpus,
            variant,
            name: format!("{variant}{}", corpus.suffix),
            checks,
            connection: None,
            passes_left: 0,
            executions: 1,
            passes_ns: Vec::new(),
            stages_ns: BTreeMap::new(),
            chunks_ns: Vec::new(),
            allocations: None,
            counts: Counts::default(),
            parity: Parity::Unproven,
            notes: Vec::new(),
            has_failed: false,
        }
    }

    fn prove(&mut self, mut connection: Connection, plan: &Plan) {
        let load = Request::Load(Load {
            task: self.corpus.task.name().to_owned(),
            variant: self.variant.to_owned(),
            files: self.corpus.files.clone(),
        });
        let loaded: Loaded = match connection.request(&load) {
            Ok(loaded) => loaded,
            Err(error) => return self.fail("load", &error),
        };
        let began = Instant::now();
        let proof: Proof = match connection.request(&Request::Prove) {
            Ok(proof) => proof,
            Err(error) => return self.fail("prove", &error),
        };
        let took = began.elapsed();
        let is_slow = plan.one_pass_over.is_some_and(|limit| took > limit);
        self.executions = executions(plan.pass_at_least, took);
        self.passes_left = if is_slow { plan.passes.min(1) } else { plan.warmup + plan.passes };
        self.allocations = proof.allocations;
        self.compare(loaded, proof.counts);
        self.connection = Some(connection);
    }

    fn compare(&mut self, loaded: Loaded, counts: Counts) {
        let workload = self.corpus.workload(self.variant);
        let expected = Loaded { units: workload.units, bytes: workload.bytes };
        let comparison = counts.compare(&workload.counts);
        let is_parity = loaded == expected && comparison.is_parity();
        self.parity = if is_parity { Parity::Ok } else { Parity::Mismatch };
        if loaded != expected {
            let Loaded { units, bytes } = loaded;
            self.notes.push(format!(
                "loaded {units} units of {bytes} bytes instead of {} of {}",
                expected.units, expected.bytes
            ));
        }
        self.notes.extend(notes(&comparison));
        self.counts = counts;
    }

    fn pass(&mut self, is_measured: bool) {
        self.passes_left -= 1;
        let Some(connection) = &mut self.connection else { return };
        let requests = (0..self.executions).map(|_| connection.request(&Request::Pass));
        match requests.collect::<Result<Vec<Timing>, ConnectionError>>() {
            Ok(timings) if is_measured => self.record(timings),
            Ok(_) => {}
            Err(error) => self.fail("pass", &error),
        }
    }

    /// Keeps the mean of the executions of a pass, and the chunks of the last one.
    fn record(&mut self, timings: Vec<Timing>) {
        self.passes_ns.push(mean(timings.iter().map(|timing| timing.ns)));
        let Some(last) = timings.last() else { return };
        for stage in last.stages_ns.keys() {
            let of_stage = timings.iter().filter_map(|timing| timing.stages_ns.get(stage).copied());
            self.stages_ns.entry(stage.clone()).or_default().push(mean(of_stage));
        }
        // The last chunk may be shorter.
        let whole = self.corpus.workload(self.variant).units as usize / CHUNK_UNITS;
        self.chunks_ns.extend(last.chunks_ns.iter().copied().take(whole));
    }

    fn fail(&mut self, request: &str, error: &ConnectionError) {
        self.connection = None;
        self.has_failed = true;
        self.notes.push(format!("{request}: {error}"));
    }

    fn into_row(self) -> Row {
        let Workload { unit, units, bytes, unheld, .. } = self.corpus.workload(self.variant);
        let (units, bytes) = (*units, *bytes);
        let notes: Vec<String> = self.notes.into_iter().chain(unheld.note()).collect();
        let per_s = Rate::of(units, &self.passes_ns).filter(|_| !self.has_failed);
        let megabytes_per_unit = bytes as f64 / 1e6 / units.max(1) as f64;
        Row {
            language: self.peer.description.language.clone(),
            version: self.peer.description.version.clone(),
            checks: self.checks.to_vec(),
            unit: (*unit).to_owned(),
            unheld: unheld.events,
            units,
            bytes,
            passes_ns: self.passes_ns,
            stages_ns: self.stages_ns,
            per_s,
            mb_per_s: per_s.map(|rate| rate.median * megabytes_per_unit),
            chunks: Chunks::of(CHUNK_UNITS as u32, self.chunks_ns),
            allocations: self.allocations.map(|count| count as f64 / units.max(1) as f64),
            counts: self.counts,
            parity: self.parity,
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            ..Row::new(self.corpus.task, self.name, &self.peer.peer)
        }
    }
}

fn notes(comparison: &CountComparison) -> Vec<String> {
    let mut notes: Vec<_> = comparison.differences.iter().map(ToString::to_string).collect();
    if comparison.equal == 0 && notes.is_empty() {
        notes.push("no count in common with the corpus".to_owned());
    }
    if !comparison.not_given.is_empty() {
        notes.push(format!("not given: {}", comparison.not_given.join(", ")));
    }
    notes
}

/// A proof may take longer than an execution after it, so a pass of very short work is not repeated without limit.
const MOST_EXECUTIONS: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_repeats_work_that_is_shorter_than_it() {
        let (least, ms) = (Some(Duration::from_millis(300)), Duration::from_millis);
        assert_eq!(executions(None, ms(1)), 1);
        assert_eq!(
            [1, 10, 299, 300, 4_000].map(|once| executions(least, ms(once))),
            [300, 30, 2, 1, 1]
        );
        assert_eq!(executions(least, Duration::ZERO), MOST_EXECUTIONS);
    }

    #[test]
    fn the_time_of_a_pass_is_the_mean_of_its_executions() {
        assert_eq!(mean([3, 4, 6].into_iter()), 4);
        assert_eq!(mean([u64::MAX; 3].into_iter()), u64::MAX);
        assert_eq!(mean([].into_iter()), 0);
    }
}
