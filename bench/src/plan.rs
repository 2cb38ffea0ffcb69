//! The plan of a run: the tasks, the peers and the repetitions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Task;

/// The tasks, the peers and the repetitions of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tasks; they are measured once, in the order of the report.
    pub tasks: Vec<Task>,
    /// The peers by name; `None` for all.
    pub peers: Option<Vec<String>>,
    /// Measured passes of a row.
    pub passes: u32,
    /// Unmeasured passes before them.
    pub warmup: u32,
    /// How often a task whose rows are [uneven](crate::is_uneven) gets as many measured passes again.
    pub extensions: u32,
    /// A pass repeats the work until it takes about as long, and its time is the mean; `None` for one execution a pass.
    pub pass_at_least: Option<Duration>,
    /// A row whose proof takes longer makes one measured pass and no other; `None` for all passes of every row.
    pub one_pass_over: Option<Duration>,
    /// Whether tasks also use their further default corpora.
    pub all_corpora: bool,
    /// Whether to make corpora of a tenth of the units, with lower trees.
    pub quick: bool,
    /// The corpus of the plan's one task, or a folder with the corpora of all tasks; `None` makes the default ones.
    pub corpus: Option<PathBuf>,
    /// The folder with captured data, whose `nostr/events.jsonl` has real events; `None` leaves their sizes out.
    pub fixtures: Option<PathBuf>,
    /// The folder with one folder per peer; `None` leaves all but our own runner out.
    pub runners: Option<PathBuf>,
    /// The folder for corpora, builds and logs, which are kept between runs.
    pub work_dir: PathBuf,
    /// Our own runner; `None` leaves it out.
    pub own: Option<RunnerCommand>,
    /// Time limit of a request.
    pub request_limit: Duration,
    /// Time limit of a hostile case.
    pub case_limit: Duration,
    /// Time limit of a peer's build.
    pub build_limit: Duration,
}

/// The program that is our own runner.
#[derive(Clone, Debug)]
pub struct RunnerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// The instruction sets that its arguments keep it to; `None` for all that the processor has.
    pub backend: Option<String>,
}

impl Default for Plan {
    /// The default run without our own runner: [`Task::DEFAULT`], 1 warm-up and 3 measured passes or one pass of rows whose proof
    /// takes over a second, two minutes for a request, ten seconds for a hostile case and half an hour for a build.
    ///
    /// A program that `cargo run` starts, or that lies in the `target` folder of its checkout, has the peers and the work
    /// folder of that checkout; another one has no peers, and works in the user's cache folder.
    fn default() -> Self {
        let checkout = checkout();
        Self {
            tasks: Task::DEFAULT.to_vec(),
            peers: None,
            passes: 3,
            warmup: 1,
            extensions: 0,
            pass_at_least: None,
            one_pass_over: Some(Duration::from_secs(1)),
            all_corpora: false,
            quick: false,
            corpus: None,
            fixtures: None,
            runners: checkout.as_ref().map(|checkout| checkout.join(RUNNERS)),
            work_dir: checkout.map_or_else(cache, |checkout| checkout.join("target/bench")),
            own: None,
            request_limit: Duration::from_secs(120),
            case_limit: Duration::from_secs(10),
            build_limit: Duration::from_secs(30 * 60),
        }
    }
}

impl Plan {
    /// Measures every row with the passes of a published run: all tasks, all corpora, 2 warm-up and 5 measured passes of at
    /// least 0.3 seconds, and up to three times as many again where a task is uneven.
    #[must_use]
    pub fn all(self) -> Self {
        let tasks = Task::ALL.to_vec();
        let pass_at_least = Some(Duration::from_millis(300));
        let passes = Self { passes: 5, warmup: 2, extensions: 3, pass_at_least, ..self };
        Self { tasks, all_corpora: true, one_pass_over: None, ..passes }
    }

    /// Uses small corpora, 1 warm-up and 3 measured passes, or one of rows whose proof takes over half a second unless every row
    /// makes all.
    #[must_use]
    pub fn quick(self) -> Self {
        let one_pass_over = self.one_pass_over.map(|_| Duration::from_millis(500));
        let passes = Self { passes: 3, warmup: 1, extensions: 0, pass_at_least: None, ..self };
        Self { quick: true, one_pass_over, ..passes }
    }
}

/// The checkout that this program is run from by `cargo run`, or in whose `target` folder it lies.
///
/// The current folder is not searched: the programs in it would be built and run.
fn checkout() -> Option<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let program = std::env::current_exe().ok();
    let above_target = program.as_deref().and_then(|program| {
        let target = program.ancestors().find(|folder| folder.ends_with("target"))?;
        target.parent().map(Path::to_owned)
    });
    let folders = package.iter().flat_map(|package| package.ancestors()).map(Path::to_owned);
    let has_runners = |folder: &PathBuf| folder.join(RUNNERS).join("tasks.json").is_file();
    folders.chain(above_target).find(has_runners)
}

/// The folder of the user for files that can be made again.
fn cache() -> PathBuf {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache.unwrap_or_default().join("wireproof/bench")
}

const RUNNERS: &str = "bench/runners";
