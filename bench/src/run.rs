//! What happens in a run, from the plan to the results.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::corpora::{self, Corpus, Workload};
use crate::counts::{CountComparison, Counts};
use crate::exchange::{Fault, Runner};
use crate::hostile::{self, Set};
use crate::peers::{self, Launch, Peer, Workshop};
use crate::pin::Core;
use crate::protocol::{CHUNK, Description, Loaded, Proof, Request, Timing};
use crate::{
    BenchError, Chunks, CorpusInfo, Parity, Plan, Progress, Rate, Results, Row, SCHEMA, Settings,
    Task, Unavailable, machine, nostr, terminal,
};

/// Measures what `plan` says, and tells `progress` of each step.
///
/// A peer that cannot be built or run, or finds something else in the corpus, is in the results with
/// the reason.
///
/// # Errors
/// If there is nothing to measure with or on: an unknown peer, a corpus that is none, a folder that
/// cannot be written.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results, BenchError> {
    let started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let plan = &with_absolute_work_dir(plan)?;
    let chosen = peers::choose(plan)?;
    let _one_run_at_a_time = lock(&plan.work_dir, progress)?;
    let corpora = corpora::of_tasks(plan, progress)?;
    let hostile = hostile::open(plan, progress)?;

    let mut workshop = Workshop::new(&plan.work_dir, plan.build_limit);
    let mut bench = Bench { plan, corpora: &corpora, core: Core::choose(), lanes: Vec::new() };
    let (guests, unavailable) = bench.invite(&chosen, &mut workshop, progress);
    bench.open_lanes(&guests);
    let cases = hostile.as_ref().map_or(0, |set| hostile::cases(set, &guests));
    progress(Progress::Known { rows: bench.lanes.len() as u64, cases });
    bench.work(&workshop, progress);

    let mut rows: Vec<Row> = bench.lanes.into_iter().map(Lane::into_row).collect();
    if let Some(set) = &hostile {
        rows.extend(hostile::judge(plan, set, &guests, &workshop, progress)?);
    }
    rows.extend(nostr::rows(plan, &corpora)?);
    terminal::sort(&mut rows);
    Ok(Results {
        schema: SCHEMA.to_owned(),
        started,
        machine: machine::describe(workshop.into_toolchains()),
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

/// What was worked on, each file once.
fn infos(corpora: Vec<Corpus>, hostile: Option<Set>) -> Vec<CorpusInfo> {
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

/// Two runs would disturb each other's builds and times: the later one waits.
fn lock(work_dir: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<File, BenchError> {
    let path = work_dir.join("lock");
    let file = File::create(&path).map_err(BenchError::io(&path))?;
    if file.try_lock().is_err() {
        progress(Progress::Waiting);
        file.lock().map_err(BenchError::io(&path))?;
    }
    Ok(file)
}

/// A run that is under way.
struct Bench<'p> {
    plan: &'p Plan,
    corpora: &'p [Corpus],
    core: Option<Core>,
    lanes: Vec<Lane<'p>>,
}

/// One way of one peer to do a task on a corpus, and what is known of it so far. Each has a process of
/// its own, so that passes can take turns without loading anything again.
struct Lane<'p> {
    peer: String,
    corpus: &'p Corpus,
    /// As the peer knows it.
    variant: String,
    /// As it stands in its row: with the corpus's suffix.
    name: String,
    checks: Vec<String>,
    language: String,
    version: String,
    launch: Launch,
    /// `None` before it has proved its work, and after it has failed.
    runner: Option<Runner>,
    passes_ns: Vec<u64>,
    stages_ns: BTreeMap<String, Vec<u64>>,
    chunks_ns: Vec<u64>,
    allocations: Option<u64>,
    counts: Counts,
    parity: Parity,
    notes: Vec<String>,
    has_failed: bool,
}

/// A peer that is built, and has said what it can do.
pub(crate) struct Guest {
    pub(crate) peer: String,
    pub(crate) launch: Launch,
    pub(crate) description: Description,
}

impl Guest {
    fn does(&self, task: Task) -> bool {
        self.description.tasks.get(task.name()).is_some_and(|variants| !variants.is_empty())
    }
}

impl<'p> Bench<'p> {
    /// Builds each peer and asks what it can do. Answers those that can do something here, and those
    /// that cannot with the reason.
    fn invite(
        &self,
        peers: &[Peer],
        workshop: &mut Workshop,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> (Vec<Guest>, Vec<Unavailable>) {
        let (mut guests, mut unavailable) = (Vec::new(), Vec::new());
        for (done, peer) in peers.iter().enumerate() {
            let (done, total) = (done as u64, peers.len() as u64);
            progress(Progress::Building { peer: &peer.id, done, total });
            let has_part = |guest: &Guest| self.plan.tasks.iter().any(|task| guest.does(*task));
            match self.introduce(peer, workshop) {
                Ok(guest) if has_part(&guest) => guests.push(guest),
                // A peer that has no part in these tasks is missing only where it was asked for.
                Ok(_) if self.plan.peers.is_none() => {}
                Ok(_) => unavailable.push(Unavailable {
                    peer: peer.id.clone(),
                    reason: "does none of the tasks that were asked for".to_owned(),
                }),
                Err(reason) => unavailable.push(Unavailable { peer: peer.id.clone(), reason }),
            }
        }
        (guests, unavailable)
    }

    fn introduce(&self, peer: &Peer, workshop: &mut Workshop) -> Result<Guest, String> {
        let launch = workshop.prepare(peer)?;
        workshop.clear_runner_log(&peer.id).map_err(|error| format!("its log: {error}"))?;
        let mut runner =
            self.start(&peer.id, &launch, workshop).map_err(|fault| fault.to_string())?;
        let description =
            runner.ask(&Request::Describe).map_err(|fault| format!("describe: {fault}"))?;
        Ok(Guest { peer: peer.id.clone(), launch, description })
    }

    /// A lane for each way of each guest to do each task whose time is taken.
    fn open_lanes(&mut self, guests: &[Guest]) {
        self.lanes = guests.iter().flat_map(|guest| lanes(guest, self.corpora)).collect();
        self.lanes.sort_by_key(|lane| lane.corpus.task);
    }

    /// Takes the tasks one after the other, so that only the processes of one are there at a time.
    fn work(&mut self, workshop: &Workshop, progress: &mut dyn FnMut(Progress<'_>)) {
        let mut lanes = std::mem::take(&mut self.lanes);
        let rounds = u64::from(self.plan.warmup + self.plan.passes);
        let rows = lanes.len() as u64;
        let (mut before, mut done) = (0, 0);
        for of_task in lanes.chunk_by_mut(|one, next| one.corpus.task == next.corpus.task) {
            self.prove(of_task, workshop, &mut |row, peer, variant| {
                let row = before + row as u64;
                progress(Progress::Proving { peer, variant, row, rows });
            });
            self.measure(of_task, &mut |row, peer, variant| {
                let (row, total) = (before + row as u64, rounds * rows);
                progress(Progress::Pass { peer, variant, row, done, total });
                done += 1;
            });
            of_task.iter_mut().for_each(|lane| lane.runner = None);
            before += of_task.len() as u64;
        }
        self.lanes = lanes;
    }

    fn start(&self, peer: &str, launch: &Launch, workshop: &Workshop) -> Result<Runner, Fault> {
        let log = workshop.runner_log(peer).map_err(Fault::Start)?;
        Runner::start(launch.command(), self.core, log, self.plan.request_limit)
    }

    /// Lets each lane do its work once, and holds what it found against the corpus. `begins` is told of
    /// each.
    fn prove(
        &self,
        lanes: &mut [Lane<'_>],
        workshop: &Workshop,
        begins: &mut dyn FnMut(usize, &str, &str),
    ) {
        for (row, lane) in lanes.iter_mut().enumerate() {
            begins(row, &lane.peer, &lane.name);
            match self.start(&lane.peer, &lane.launch, workshop) {
                Ok(runner) => lane.prove(runner),
                Err(fault) => lane.fail("start", &fault),
            }
        }
    }

    /// Lets the lanes make their passes in turn: each its first, then each its second, and so on.
    /// `begins` is told of each.
    fn measure(&self, lanes: &mut [Lane<'_>], begins: &mut dyn FnMut(usize, &str, &str)) {
        let (warmup, passes) = (self.plan.warmup, self.plan.passes);
        for round in 0..warmup + passes {
            for (row, lane) in lanes.iter_mut().enumerate() {
                begins(row, &lane.peer, &lane.name);
                lane.pass(round >= warmup);
            }
        }
    }
}

/// The lanes of a peer: each of its variants on each corpus of its task.
fn lanes<'p>(guest: &Guest, corpora: &'p [Corpus]) -> Vec<Lane<'p>> {
    let Guest { peer, launch, description } = guest;
    let none = BTreeMap::new();
    let on_corpus = |corpus: &'p Corpus| {
        let variants = description.tasks.get(corpus.task.name()).unwrap_or(&none);
        let lane = |(variant, checks): (&String, &Vec<String>)| Lane {
            peer: peer.clone(),
            corpus,
            variant: variant.clone(),
            name: format!("{variant}{}", corpus.suffix),
            checks: checks.clone(),
            language: description.language.clone(),
            version: description.version.clone(),
            launch: launch.clone(),
            runner: None,
            passes_ns: Vec::new(),
            stages_ns: BTreeMap::new(),
            chunks_ns: Vec::new(),
            allocations: None,
            counts: Counts::default(),
            parity: Parity::Unproven,
            notes: Vec::new(),
            has_failed: false,
        };
        variants.iter().map(lane).collect::<Vec<_>>()
    };
    corpora.iter().flat_map(on_corpus).collect()
}

impl Lane<'_> {
    fn prove(&mut self, mut runner: Runner) {
        let load = Request::Load {
            task: self.corpus.task.name().to_owned(),
            variant: self.variant.clone(),
            files: self.corpus.files.clone(),
        };
        let loaded: Loaded = match runner.ask(&load) {
            Ok(loaded) => loaded,
            Err(fault) => return self.fail("load", &fault),
        };
        let proof: Proof = match runner.ask(&Request::Prove) {
            Ok(proof) => proof,
            Err(fault) => return self.fail("prove", &fault),
        };
        self.allocations = proof.allocations;
        self.judge(loaded, proof.counts);
        self.runner = Some(runner);
    }

    fn judge(&mut self, loaded: Loaded, counts: Counts) {
        let workload = self.corpus.workload(&self.variant);
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
        let Some(runner) = &mut self.runner else { return };
        match runner.ask(&Request::Pass) {
            Ok(timing) if is_measured => self.keep(timing),
            Ok(_) => {}
            Err(fault) => self.fail("pass", &fault),
        }
    }

    fn keep(&mut self, Timing { ns, stages_ns, chunks_ns }: Timing) {
        self.passes_ns.push(ns);
        // The last chunk may be of fewer units.
        let whole = self.corpus.workload(&self.variant).units as usize / CHUNK;
        self.chunks_ns.extend(chunks_ns.into_iter().take(whole));
        for (stage, ns) in stages_ns {
            self.stages_ns.entry(stage).or_default().push(ns);
        }
    }

    fn fail(&mut self, request: &str, fault: &Fault) {
        self.runner = None;
        self.has_failed = true;
        self.notes.push(format!("{request}: {fault}"));
    }

    fn into_row(self) -> Row {
        let Workload { unit, units, bytes, .. } = *self.corpus.workload(&self.variant);
        let per_s = Rate::of(units, &self.passes_ns).filter(|_| !self.has_failed);
        let megabytes_a_unit = bytes as f64 / 1e6 / units.max(1) as f64;
        Row {
            task: self.corpus.task.name().to_owned(),
            variant: self.name,
            peer: self.peer,
            language: self.language,
            version: self.version,
            checks: self.checks,
            unit: unit.to_owned(),
            units,
            bytes,
            passes_ns: self.passes_ns,
            stages_ns: self.stages_ns,
            per_s,
            mb_per_s: per_s.map(|rate| rate.median * megabytes_a_unit),
            chunks: Chunks::of(CHUNK as u32, self.chunks_ns),
            allocations: self.allocations.map(|count| count as f64 / units.max(1) as f64),
            sizes: None,
            counts: self.counts,
            valid_refused: None,
            cases: Vec::new(),
            parity: self.parity,
            note: (!self.notes.is_empty()).then(|| self.notes.join("; ")),
        }
    }
}

fn notes(comparison: &CountComparison) -> Vec<String> {
    let mut notes: Vec<_> = comparison.differences.iter().map(ToString::to_string).collect();
    if comparison.equal == 0 && notes.is_empty() {
        notes.push("no count that the corpus has".to_owned());
    }
    if !comparison.not_given.is_empty() {
        notes.push(format!("not given: {}", comparison.not_given.join(", ")));
    }
    notes
}
