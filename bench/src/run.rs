//! A run from the plan to the results: builds the peers, proves equal work, then measures passes in turn.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use protocol::{CHUNK_UNITS, CountComparison, Counts, Load, Loaded, Proof, Request, Timing};

use crate::build::{Builder, LaunchCommand, PeerProcess};
use crate::connection::{Connection, ConnectionError, Core};
use crate::corpora::{self, Corpus, Workload};
use crate::hostile::CaseSet;
use crate::peers::{self, Peer};
use crate::{
    BenchError, Chunks, CorpusInfo, Parity, Plan, Progress, Rate, Results, Row, SCHEMA, Settings,
    Unavailable, machine, nostr, terminal,
};

/// Measures the rows of `plan` and reports each step to `progress`.
///
/// A peer that cannot be built or run, or whose counts differ, is in the results with the reason.
///
/// # Errors
/// If a peer is unknown, a corpus is invalid, or a folder cannot be written.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results, BenchError> {
    let started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let plan = &with_absolute_work_dir(plan)?;
    let chosen = peers::choose(plan)?;
    let _lock = lock(&plan.work_dir, progress)?;
    let corpora = corpora::of_tasks(plan, progress)?;
    let hostile = CaseSet::open(plan, progress)?;

    let mut builder = Builder::new(&plan.work_dir, plan.build_limit);
    let run = Run { plan, core: Core::choose() };
    let (peers, unavailable) = run.prepare(&chosen, &mut builder, progress);
    let mut measurements = measurements(&peers, &corpora);
    let cases = hostile.as_ref().map_or(0, |set| set.runs(&peers));
    progress(Progress::Known { rows: measurements.len() as u64, cases });
    run.execute(&mut measurements, &builder, progress);

    let mut rows: Vec<Row> = measurements.into_iter().map(Measurement::into_row).collect();
    if let Some(set) = &hostile {
        rows.extend(set.run(plan, &peers, &builder, progress)?);
    }
    rows.extend(nostr::size_rows(plan, &corpora)?);
    terminal::sort(&mut rows);
    Ok(Results {
        schema: SCHEMA.to_owned(),
        started,
        machine: machine::describe(builder.into_toolchains()),
        settings: Some(settings(plan)),
        corpora: infos(corpora, hostile),
        rows,
        unavailable,
    })
}

fn settings(plan: &Plan) -> Settings {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    Settings {
        passes: plan.passes,
        warmup: plan.warmup,
        quick: plan.quick,
        corpus: plan.corpus.as_ref().and_then(name),
    }
}

/// The corpora of the run, each file once.
fn infos(corpora: Vec<Corpus>, hostile: Option<CaseSet>) -> Vec<CorpusInfo> {
    let sets = hostile.into_iter().map(|set| set.info);
    let mut infos: Vec<CorpusInfo> = Vec::new();
    for info in corpora.into_iter().map(|corpus| corpus.info).chain(sets) {
        if !infos.contains(&info) {
            infos.push(info);
        }
    }
    infos
}

fn with_absolute_work_dir(plan: &Plan) -> Result<Plan, BenchError> {
    let work_dir = std::path::absolute(&plan.work_dir).map_err(BenchError::io(&plan.work_dir))?;
    fs::create_dir_all(&work_dir).map_err(BenchError::io(&work_dir))?;
    Ok(Plan { work_dir, ..plan.clone() })
}

/// Locks the work folder. Two runs would disturb each other's builds and times, so the later one waits.
fn lock(work_dir: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<File, BenchError> {
    let path = work_dir.join("lock");
    let file = File::create(&path).map_err(BenchError::io(&path))?;
    if file.try_lock().is_err() {
        progress(Progress::Waiting);
        file.lock().map_err(BenchError::io(&path))?;
    }
    Ok(file)
}

struct Run<'p> {
    plan: &'p Plan,
    core: Option<Core>,
}

impl Run<'_> {
    /// Builds and describes each peer. Returns those with a task of the plan, and the others with the reason.
    fn prepare(
        &self,
        peers: &[Peer],
        builder: &mut Builder,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> (Vec<PeerProcess>, Vec<Unavailable>) {
        let (mut prepared, mut unavailable) = (Vec::new(), Vec::new());
        for (done, peer) in peers.iter().enumerate() {
            let (done, total) = (done as u64, peers.len() as u64);
            progress(Progress::Building { peer: &peer.id, done, total });
            let has_task = |peer: &PeerProcess| self.plan.tasks.iter().any(|it| peer.has_task(*it));
            match self.prepare_peer(peer, builder) {
                Ok(peer) if has_task(&peer) => prepared.push(peer),
                // A peer without these tasks is reported only if it was requested.
                Ok(_) if self.plan.peers.is_none() => {}
                Ok(_) => unavailable.push(Unavailable {
                    peer: peer.id.clone(),
                    reason: "has none of the requested tasks".to_owned(),
                }),
                Err(reason) => unavailable.push(Unavailable { peer: peer.id.clone(), reason }),
            }
        }
        (prepared, unavailable)
    }

    fn prepare_peer(&self, peer: &Peer, builder: &mut Builder) -> Result<PeerProcess, String> {
        let command = builder.prepare(peer)?;
        builder.clear_runner_log(&peer.id).map_err(|error| format!("its log: {error}"))?;
        let mut connection =
            self.start(&peer.id, &command, builder).map_err(|error| error.to_string())?;
        let description = connection.request(&Request::Describe);
        let description = description.map_err(|error| format!("describe: {error}"))?;
        Ok(PeerProcess { peer: peer.id.clone(), command, description })
    }

    fn start(
        &self,
        peer: &str,
        command: &LaunchCommand,
        builder: &Builder,
    ) -> Result<Connection, ConnectionError> {
        let log = builder.runner_log(peer).map_err(ConnectionError::Start)?;
        Connection::start(command.command(), self.core, log, self.plan.request_limit)
    }

    /// Runs task after task, so that only the processes of one exist at a time.
    fn execute(
        &self,
        measurements: &mut [Measurement<'_>],
        builder: &Builder,
        progress: &mut dyn FnMut(Progress<'_>),
    ) {
        let rounds = u64::from(self.plan.warmup + self.plan.passes);
        let rows = measurements.len() as u64;
        let (mut before, mut done) = (0, 0);
        for of_task in measurements.chunk_by_mut(|one, next| one.corpus.task == next.corpus.task) {
            self.prove(of_task, builder, &mut |row, peer, variant| {
                let row = before + row as u64;
                progress(Progress::Proving { peer, variant, row, rows });
            });
            self.measure(of_task, &mut |row, peer, variant| {
                let (row, total) = (before + row as u64, rounds * rows);
                progress(Progress::Pass { peer, variant, row, done, total });
                done += 1;
            });
            of_task.iter_mut().for_each(|measurement| measurement.connection = None);
            before += of_task.len() as u64;
        }
    }

    /// Does each work once and compares its counts with the corpus; `begin` is called before each.
    fn prove(
        &self,
        measurements: &mut [Measurement<'_>],
        builder: &Builder,
        begin: &mut dyn FnMut(usize, &str, &str),
    ) {
        for (row, measurement) in measurements.iter_mut().enumerate() {
            begin(row, &measurement.peer.peer, &measurement.name);
            match self.start(&measurement.peer.peer, &measurement.peer.command, builder) {
                Ok(connection) => measurement.prove(connection),
                Err(error) => measurement.fail("start", &error),
            }
        }
    }

    /// Makes passes in turn: first passes of all rows, then second passes of all rows, and so on; `begin` is called
    /// before each.
    fn measure(
        &self,
        measurements: &mut [Measurement<'_>],
        begin: &mut dyn FnMut(usize, &str, &str),
    ) {
        let (warmup, passes) = (self.plan.warmup, self.plan.passes);
        for round in 0..warmup + passes {
            for (row, measurement) in measurements.iter_mut().enumerate() {
                begin(row, &measurement.peer.peer, &measurement.name);
                measurement.pass(round >= warmup);
            }
        }
    }
}

/// One variant of one peer on one corpus, with its results so far. Each has a separate process, so passes
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
    passes_ns: Vec<u64>,
    stages_ns: BTreeMap<String, Vec<u64>>,
    chunks_ns: Vec<u64>,
    allocations: Option<u64>,
    counts: Counts,
    parity: Parity,
    notes: Vec<String>,
    has_failed: bool,
}

/// A measurement for each variant of each peer on each corpus, task by task.
fn measurements<'p>(peers: &'p [PeerProcess], corpora: &'p [Corpus]) -> Vec<Measurement<'p>> {
    let of_peer = |peer: &'p PeerProcess| {
        corpora.iter().flat_map(move |corpus| {
            let variants = peer.description.tasks.get(corpus.task.name()).into_iter().flatten();
            variants.map(move |(variant, checks)| Measurement::new(peer, corpus, variant, checks))
        })
    };
    let mut measurements: Vec<_> = peers.iter().flat_map(of_peer).collect();
    measurements.sort_by_key(|measurement| measurement.corpus.task);
    measurements
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

    fn prove(&mut self, mut connection: Connection) {
        let load = Request::Load(Load {
            task: self.corpus.task.name().to_owned(),
            variant: self.variant.to_owned(),
            files: self.corpus.files.clone(),
        });
        let loaded: Loaded = match connection.request(&load) {
            Ok(loaded) => loaded,
            Err(error) => return self.fail("load", &error),
        };
        let proof: Proof = match connection.request(&Request::Prove) {
            Ok(proof) => proof,
            Err(error) => return self.fail("prove", &error),
        };
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
        let Some(connection) = &mut self.connection else { return };
        match connection.request(&Request::Pass) {
            Ok(timing) if is_measured => self.record(timing),
            Ok(_) => {}
            Err(error) => self.fail("pass", &error),
        }
    }

    fn record(&mut self, Timing { ns, stages_ns, chunks_ns }: Timing) {
        self.passes_ns.push(ns);
        // The last chunk may be shorter.
        let whole = self.corpus.workload(self.variant).units as usize / CHUNK_UNITS;
        self.chunks_ns.extend(chunks_ns.into_iter().take(whole));
        for (stage, ns) in stages_ns {
            self.stages_ns.entry(stage).or_default().push(ns);
        }
    }

    fn fail(&mut self, request: &str, error: &ConnectionError) {
        self.connection = None;
        self.has_failed = true;
        self.notes.push(format!("{request}: {error}"));
    }

    fn into_row(self) -> Row {
        let Workload { unit, units, bytes, .. } = *self.corpus.workload(self.variant);
        let per_s = Rate::of(units, &self.passes_ns).filter(|_| !self.has_failed);
        let megabytes_per_unit = bytes as f64 / 1e6 / units.max(1) as f64;
        Row {
            language: self.peer.description.language.clone(),
            version: self.peer.description.version.clone(),
            checks: self.checks.to_vec(),
            unit: unit.to_owned(),
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
            note: (!self.notes.is_empty()).then(|| self.notes.join("; ")),
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
