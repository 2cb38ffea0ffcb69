//! A run from the plan to the results, task by task: builds the peers that a task needs, then measures it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use atproto::syntax::DatetimeBuf;
use protocol::Request;

use crate::build::{self, Builder, LaunchCommand, PeerProcess};
use crate::connection::Core;
use crate::corpora::{self, Corpus};
use crate::hostile::CaseSet;
use crate::measure::{self, Bench};
use crate::peers::{self, Peer};
use crate::schedule::{self, Built};
use crate::{
    BenchError, CorpusInfo, Plan, Progress, Results, Row, SCHEMA, Settings, Task, Unavailable,
    machine, nostr, own, terminal,
};

/// Measures the rows of `plan` and reports every step to `progress`.
///
/// Task by task: the peers that a task is the first to need are built, the task is measured, and its rows are
/// reported. If the first task has peers that are not built yet, it is measured once without them before. A peer that
/// cannot be built or run, or whose counts differ, is in the results with the reason.
///
/// # Errors
/// If a peer is unknown, a corpus is invalid, Rust peers have another profile than `release` in a run that is not quick, or a folder
/// cannot be written.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results, BenchError> {
    let started = now_in_seconds();
    let plan = &normalized(plan)?;
    if let Some(profile) = build::other_rust_profile().filter(|_| !plan.quick) {
        return Err(BenchError::RustProfile(profile));
    }
    let chosen = peers::choose(plan, &plan.tasks)?;
    let _lock = lock(&plan.work_dir, progress)?;
    let builder = Builder::new(&plan.work_dir, plan.build_limit);
    let bench = Bench { plan, builder: &builder, core: Core::choose() };
    let mut run = BenchRun::new(bench, chosen.unavailable, progress);
    run.open_given_corpora()?;
    run.find_built(chosen.peers);
    run.look_first()?;
    for at in 0..plan.tasks.len() {
        run.build_for(at);
        run.measure(at)?;
    }
    let BenchRun { mut rows, corpora, unavailable, .. } = run;
    let mut toolchains = builder.into_toolchains();
    toolchains.extend(build::other_rust_profile().map(|name| ("rust profile".to_owned(), name)));
    terminal::sort(&mut rows);
    Ok(Results {
        schema: SCHEMA.to_owned(),
        started,
        settings: Some(settings(plan)),
        corpora,
        rows,
        unavailable,
        machine: machine::describe(toolchains),
    })
}

fn settings(plan: &Plan) -> Settings {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    Settings {
        passes: plan.passes,
        warmup: plan.warmup,
        pass_at_least_ms: plan.pass_at_least.map(|least| least.as_millis() as u64),
        one_pass_over_ms: plan.one_pass_over.map(|limit| limit.as_millis() as u64),
        quick: plan.quick,
        corpus: plan.corpus.as_ref().and_then(name),
        backend: plan.own.as_ref().and_then(|own| own.backend.clone()),
    }
}

/// The plan with an absolute work folder, which is created, and with every task once in the order of the report.
fn normalized(plan: &Plan) -> Result<Plan, BenchError> {
    let work_dir = std::path::absolute(&plan.work_dir).map_err(BenchError::io(&plan.work_dir))?;
    fs::create_dir_all(&work_dir).map_err(BenchError::io(&work_dir))?;
    let mut tasks = plan.tasks.clone();
    tasks.sort();
    tasks.dedup();
    Ok(Plan { work_dir, tasks, ..plan.clone() })
}

/// Locks the work folder. Two runs would disturb each other's builds and times, so the later one waits.
pub(crate) fn lock(
    work_dir: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<File, BenchError> {
    let path = work_dir.join("lock");
    let file = File::create(&path).map_err(BenchError::io(&path))?;
    if file.try_lock().is_err() {
        progress(Progress::Waiting);
        file.lock().map_err(BenchError::io(&path))?;
    }
    Ok(file)
}

/// The state of a run.
struct BenchRun<'r> {
    bench: Bench<'r>,
    progress: &'r mut dyn FnMut(Progress<'_>),
    /// Corpora that the plan names, opened before the first build so that an invalid one ends the run at once.
    given: BTreeMap<Task, Input>,
    /// Peers that are not built yet, with the index of the first task that needs them, in this order.
    waiting: Vec<(usize, Peer)>,
    /// Builds of the run, and how many of them are finished.
    builds: u64,
    built: u64,
    /// Peers that are built and have a task of the plan.
    peers: Vec<PeerProcess>,
    unavailable: Vec<Unavailable>,
    corpora: Vec<CorpusInfo>,
    rows: Vec<Row>,
}

/// The input of the peers of a task.
#[derive(Clone)]
enum Input {
    Corpora(Vec<Corpus>),
    Cases(CaseSet),
}

impl<'r> BenchRun<'r> {
    fn new(
        bench: Bench<'r>,
        unavailable: Vec<Unavailable>,
        progress: &'r mut dyn FnMut(Progress<'_>),
    ) -> Self {
        Self {
            bench,
            progress,
            given: BTreeMap::new(),
            waiting: Vec::new(),
            builds: 0,
            built: 0,
            peers: Vec::new(),
            unavailable,
            corpora: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn open_given_corpora(&mut self) -> Result<(), BenchError> {
        if self.bench.plan.corpus.is_none() {
            return Ok(());
        }
        for task in &self.bench.plan.tasks {
            let input = self.open(*task)?;
            self.given.insert(*task, input);
        }
        Ok(())
    }

    fn open(&mut self, task: Task) -> Result<Input, BenchError> {
        let plan = self.bench.plan;
        Ok(match task {
            Task::Hostile => Input::Cases(CaseSet::open(plan, self.progress)?),
            _ => Input::Corpora(corpora::of_task(task, plan, self.progress)?),
        })
    }

    /// Describes the peers that are built already; the others wait for their builds.
    fn find_built(&mut self, chosen: Vec<(usize, Peer)>) {
        for (need, peer) in chosen {
            match self.bench.builder.find(&peer) {
                Some(command) => self.add(&peer.id, Ok(command)),
                None => self.waiting.push((need, peer)),
            }
        }
        self.builds = self.waiting.len() as u64;
        (self.progress)(Progress::Planned { builds: self.builds });
    }

    /// Measures the first task without the peers that it waits for, so that the first table does not wait for builds.
    ///
    /// These rows are shown and not kept: the whole task is measured after the builds.
    fn look_first(&mut self) -> Result<(), BenchError> {
        let missing: Vec<Unavailable> = self
            .waiting
            .iter()
            .take_while(|(need, _)| *need == 0)
            .map(|(_, peer)| wait(peer))
            .collect();
        let Some(task) = self.bench.plan.tasks.first().filter(|_| !missing.is_empty()) else {
            return Ok(());
        };
        let input = self.input(*task)?;
        let rows = self.rows(*task, &input, missing.len() as u64)?;
        if !rows.is_empty() {
            (self.progress)(Progress::Measured { rows: &rows, missing: &missing });
        }
        Ok(())
    }

    /// Builds the peers that the task at this index is the first to need.
    fn build_for(&mut self, at: usize) {
        let count = self.waiting.iter().take_while(|(need, _)| *need <= at).count();
        let peers: Vec<Peer> = self.waiting.drain(..count).map(|(_, peer)| peer).collect();
        let (before, total) = (self.built, self.builds);
        let results = schedule::build_all(self.bench.builder, &peers, &mut |peers, done| {
            (self.progress)(Progress::Building { peers, done: before + done, total });
        });
        self.built += peers.len() as u64;
        for (peer, result) in peers.iter().zip(results) {
            self.add(&peer.id, result);
        }
    }

    /// Adds a peer that has a task of the plan, or the reason why it is unavailable.
    fn add(&mut self, id: &str, built: Built) {
        let plan = self.bench.plan;
        match built.and_then(|command| self.describe(id, command)) {
            Ok(peer) if plan.tasks.iter().any(|task| peer.has_task(*task)) => self.peers.push(peer),
            // A peer without these tasks is reported only if it was requested.
            Ok(_) if plan.peers.is_none() => {}
            Ok(_) => self.unavailable.push(peers::without_task(id)),
            Err(reason) => self.unavailable.push(Unavailable { peer: id.to_owned(), reason }),
        }
        // Our own runner first, then the others by name, in whichever order they were built.
        self.peers
            .sort_by(|a, b| (a.peer != own::PEER, &a.peer).cmp(&(b.peer != own::PEER, &b.peer)));
        self.unavailable.sort_by(|a, b| a.peer.cmp(&b.peer));
    }

    fn describe(&self, id: &str, command: LaunchCommand) -> Result<PeerProcess, String> {
        let log = self.bench.builder.clear_runner_log(id);
        log.map_err(|error| format!("its log: {error}"))?;
        let mut connection = self.bench.start(id, &command).map_err(|error| error.to_string())?;
        let description = connection.request(&Request::Describe);
        let description = description.map_err(|error| format!("describe: {error}"))?;
        Ok(PeerProcess { peer: id.to_owned(), command, description })
    }

    /// Measures the task at this index and keeps its rows.
    fn measure(&mut self, at: usize) -> Result<(), BenchError> {
        let task = self.bench.plan.tasks[at];
        let input = self.input(task)?;
        let rows = self.rows(task, &input, 0)?;
        (self.progress)(Progress::Measured { rows: &rows, missing: &[] });
        self.rows.extend(rows);
        for info in input.into_infos() {
            if !self.corpora.contains(&info) {
                self.corpora.push(info);
            }
        }
        Ok(())
    }

    fn input(&mut self, task: Task) -> Result<Input, BenchError> {
        match self.given.get(&task) {
            Some(input) => Ok(input.clone()),
            None => self.open(task),
        }
    }

    /// The rows of a task, sorted, while `missing` of its peers are not built.
    fn rows(&mut self, task: Task, input: &Input, missing: u64) -> Result<Vec<Row>, BenchError> {
        let bench = &self.bench;
        let peers = &self.peers;
        let progress = &mut *self.progress;
        let mut rows = match input {
            Input::Corpora(corpora) => {
                let rows = measure::row_count(peers, corpora);
                progress(Progress::Task { task, rows, cases: 0, missing });
                let mut rows = bench.rows(peers, corpora, progress);
                rows.extend(nostr::size_rows(bench.plan, corpora)?);
                rows
            }
            Input::Cases(set) => {
                progress(Progress::Task { task, rows: 0, cases: set.runs(peers), missing });
                set.run(bench.plan, peers, bench.builder, progress)?
            }
        };
        terminal::sort(&mut rows);
        Ok(rows)
    }
}

impl Input {
    fn into_infos(self) -> Vec<CorpusInfo> {
        match self {
            Self::Corpora(corpora) => corpora.into_iter().map(|corpus| corpus.info).collect(),
            Self::Cases(set) => vec![set.info],
        }
    }
}

/// A peer that waits for its build.
fn wait(peer: &Peer) -> Unavailable {
    Unavailable { peer: peer.id.clone(), reason: "waits for its build".to_owned() }
}

/// The time in UTC, to the second, as in RFC 3339.
fn now_in_seconds() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let time = DatetimeBuf::from_unix_micros(seconds.saturating_mul(1_000_000));
    time.map_or_else(String::new, |time| time.as_str().replace(".000Z", "Z"))
}
