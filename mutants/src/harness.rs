//! Runs tests: first all without a mutant, for their times and the mutants that they reach; then the tests that
//! reach a mutant with it active.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::tree::{Program, at_path};

/// A test, its time, and the mutants that it reaches.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Test {
    name: String,
    passes: bool,
    seconds: f64,
    reached: Vec<u32>,
}

/// The tests of a program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Recorded {
    program: PathBuf,
    folder: PathBuf,
    /// When the program was built, in nanoseconds since 1970.
    built: u128,
    pub(crate) name: String,
    tests: Vec<Test>,
}

/// The outcome of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) enum Outcome {
    /// A test failed.
    Caught,
    /// A test exceeded its time.
    TimedOut,
    /// Every test that reaches it passes.
    Survived,
    /// No test reaches it.
    Unreached,
    /// It does not compile.
    Unviable,
}

/// Runs every test of the programs once. A program that is recorded already is not run again.
pub(crate) fn record(
    programs: &[Program],
    cache: &Path,
    jobs: usize,
) -> Result<Vec<Recorded>, String> {
    let old: Vec<Recorded> = fs::read(cache)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let mut all = Vec::new();
    for program in programs {
        let built = built(&program.path)?;
        let same = |old: &&Recorded| old.program == program.path && old.built == built;
        all.push(match old.iter().find(same) {
            Some(recorded) => recorded.clone(),
            None => Recorded {
                program: program.path.clone(),
                folder: program.folder.clone(),
                built,
                name: program.name.clone(),
                tests: tests(program, jobs)?,
            },
        });
    }
    let text = serde_json::to_vec(&all).map_err(|error| error.to_string())?;
    fs::write(cache, text).map_err(|error| at_path(cache, &error))?;
    Ok(all)
}

fn built(program: &Path) -> Result<u128, String> {
    let time = fs::metadata(program).and_then(|metadata| metadata.modified());
    let time = time.map_err(|error| at_path(program, &error))?;
    let since = time.duration_since(std::time::UNIX_EPOCH).map_err(|error| error.to_string())?;
    Ok(since.as_nanos())
}

fn tests(program: &Program, jobs: usize) -> Result<Vec<Test>, String> {
    let mut list = Command::new(&program.path);
    list.args(["--list", "--format", "terse"]).current_dir(&program.folder);
    let listed = list.output().map_err(|error| at_path(&program.path, &error))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    eprintln!("{}: {} tests", program.name, names.len());
    let mut tests = in_parallel(&names, jobs, |name| recorded(program, name))
        .into_iter()
        .collect::<Result<Vec<Test>, String>>()?;
    for test in tests.iter().filter(|test| !test.passes) {
        eprintln!("{}: {} fails without a mutant and is left out", program.name, test.name);
    }
    tests.retain(|test| test.passes);
    tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(tests)
}

/// Runs a test twice: to record the mutants that it reaches, and without recording, which is many times as fast.
fn recorded(program: &Program, name: &str) -> Result<Test, String> {
    let file = format!("wireproof-mutants-{}-{}", std::process::id(), name.replace("::", "."));
    let file = std::env::temp_dir().join(file);
    let _ = fs::remove_file(&file);
    let (records, _) = timed(program, name, ("WIREPROOF_MUTANTS_REACHED", file.as_os_str()))?;
    let bytes = fs::read(&file).unwrap_or_default();
    let _ = fs::remove_file(&file);
    let reached = bytes.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
    let (passes, seconds) = timed(program, name, ("WIREPROOF_MUTANT", "0".as_ref()))?;
    let passes = records && passes;
    Ok(Test { name: name.to_owned(), passes, seconds, reached: reached.collect() })
}

/// Whether a test passes, and its seconds.
fn timed(
    program: &Program,
    name: &str,
    (variable, value): (&str, &OsStr),
) -> Result<(bool, f64), String> {
    let mut command = limited(&program.path, &program.folder, &[name], RECORDING_SECONDS);
    command.env(variable, value);
    let started = Instant::now();
    let status = finish(&mut command, Duration::from_secs(RECORDING_SECONDS))?;
    Ok((status.is_some_and(|status| status.success()), started.elapsed().as_secs_f64()))
}

/// The tests that reach a mutant, by mutant.
#[derive(Debug)]
pub(crate) struct Reaching<'a> {
    recorded: &'a [Recorded],
    /// Program and test, the cheapest first.
    by_mutant: HashMap<u32, Vec<(usize, usize)>>,
}

impl<'a> Reaching<'a> {
    pub(crate) fn new(recorded: &'a [Recorded]) -> Self {
        let mut by_mutant = HashMap::<u32, Vec<(usize, usize)>>::new();
        for (program, of) in recorded.iter().enumerate() {
            for (at, test) in of.tests.iter().enumerate() {
                for &id in &test.reached {
                    by_mutant.entry(id).or_default().push((program, at));
                }
            }
        }
        for tests in by_mutant.values_mut() {
            tests.sort_by(|a, b| {
                recorded[a.0].tests[a.1].seconds.total_cmp(&recorded[b.0].tests[b.1].seconds)
            });
        }
        Self { recorded, by_mutant }
    }

    /// Runs tests with the mutant active until one fails.
    pub(crate) fn outcome(&self, id: u32) -> Result<Outcome, String> {
        let Some(tests) = self.by_mutant.get(&id) else { return Ok(Outcome::Unreached) };
        // Batches of growing cost: most mutants fail in the first.
        let mut rest = &tests[..];
        for budget in BUDGETS {
            let mut cost = 0.0;
            let fits = rest.iter().take_while(|at| {
                cost += self.recorded[at.0].tests[at.1].seconds;
                cost <= budget
            });
            let (batch, later) = rest.split_at(fits.count());
            if let Some(outcome) = self.run_batch(id, batch)? {
                return Ok(outcome);
            }
            rest = later;
        }
        Ok(Outcome::Survived)
    }

    /// `None` where all pass.
    fn run_batch(&self, id: u32, batch: &[(usize, usize)]) -> Result<Option<Outcome>, String> {
        let mut by_program = BTreeMap::<usize, Vec<&Test>>::new();
        for (program, test) in batch {
            by_program.entry(*program).or_default().push(&self.recorded[*program].tests[*test]);
        }
        for (program, tests) in by_program {
            let program = &self.recorded[program];
            if built(&program.program)? != program.built {
                return Err(format!("{}: another build has replaced the tests", program.name));
            }
            if let Some(outcome) = program.confirmed(id, &tests)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }
}

impl Recorded {
    /// Runs tests with the mutant active. `None` where all pass, or where they fail without a mutant as well: a busy
    /// machine may delay them too much.
    fn confirmed(&self, id: u32, tests: &[&Test]) -> Result<Option<Outcome>, String> {
        for _ in 0..ATTEMPTS {
            let Some(outcome) = self.run(id, tests)? else { return Ok(None) };
            if self.run(NO_MUTANT, tests)?.is_none() {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Runs tests once. `None` where all pass.
    fn run(&self, id: u32, tests: &[&Test]) -> Result<Option<Outcome>, String> {
        let seconds: f64 = tests.iter().map(|test| test.seconds).sum();
        let limit = (seconds * SLOWER) as u64 + LEAST_SECONDS;
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        let mut command = limited(&self.program, &self.folder, &names, limit);
        command.env("WIREPROOF_MUTANT", id.to_string());
        let ended = finish(&mut command, Duration::from_secs(limit * WAITING_LONGER))?;
        Ok(match ended {
            Some(status) if status.success() => None,
            Some(status) if !is_out_of_time(status) => Some(Outcome::Caught),
            _ => Some(Outcome::TimedOut),
        })
    }
}

/// A command for tests by their whole names, with bounds on processor time and memory: a mutant may run forever.
fn limited(program: &Path, folder: &Path, names: &[&str], seconds: u64) -> Command {
    let script = format!("ulimit -t {seconds} -v {MEMORY_KIB} -c 0; exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).arg(program).args(names);
    command.args(["--exact", "--test-threads", "1", "-q"]);
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder).env("RUST_BACKTRACE", "0");
    // The same cases for every mutant; a failure is not made smaller.
    command.env("PROPTEST_RNG_SEED", "1").env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    command.env("WIREPROOF_MODEL_SCHEDULES", MODEL_SCHEDULES);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Waits for the end of a command. `None` after the time, when it is killed.
fn finish(command: &mut Command, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    let _ = child.kill();
    child.wait().map_err(|error| error.to_string())?;
    Ok(None)
}

#[cfg(unix)]
fn is_out_of_time(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    matches!(status.signal(), Some(SIGXCPU | SIGKILL))
}

/// Applies a function to all items with `jobs` threads; results are in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    let result = work(item);
                    results.lock().expect("no worker panics").push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no worker panics");
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Seconds of tests per batch; tests that exceed the last are not run.
const BUDGETS: [f64; 5] = [0.1, 0.4, 2.0, 8.0, 32.0];

/// Runs of tests that fail, each followed by one without a mutant, until the latter passes.
const ATTEMPTS: usize = 4;

/// The number of no mutant: they start at one.
const NO_MUTANT: u32 = 0;

/// Tests may take the recorded time times this, plus the seconds on the next line.
const SLOWER: f64 = 4.0;
const LEAST_SECONDS: u64 = 2;

/// Times the bound on processor time that tests may wait.
const WAITING_LONGER: u64 = 5;

const RECORDING_SECONDS: u64 = 300;

/// Schedules of the follower's model, so that it takes about a second.
const MODEL_SCHEDULES: &str = "60";
const MEMORY_KIB: u64 = 8 << 20;

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
