//! The plan of a run: what to measure, with which peers, how often.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Task;

/// What to measure, with which peers, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tasks, in the order of the report.
    pub tasks: Vec<Task>,
    /// The peers by name; `None` for all.
    pub peers: Option<Vec<String>>,
    /// Measured passes of each row.
    pub passes: u32,
    /// Unmeasured passes before those.
    pub warmup: u32,
    /// Whether to make corpora of a tenth of the units, with lower trees.
    pub quick: bool,
    /// The corpus of the plan's one task, or a folder with those of all tasks; `None` makes the default ones.
    pub corpus: Option<PathBuf>,
    /// The folder with one folder per peer.
    pub runners: PathBuf,
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
}

impl Default for Plan {
    /// Every task, every peer of this repository without our own runner, 2 warm-up and 5 measured passes, two minutes
    /// for a request, ten seconds for a hostile case and half an hour for a build.
    fn default() -> Self {
        Self {
            tasks: Task::ALL.to_vec(),
            peers: None,
            passes: 5,
            warmup: 2,
            quick: false,
            corpus: None,
            runners: repository().join("bench/runners"),
            work_dir: repository_or_here().join("target/bench"),
            own: None,
            request_limit: Duration::from_secs(120),
            case_limit: Duration::from_secs(10),
            build_limit: Duration::from_secs(30 * 60),
        }
    }
}

/// The repository that this program was built from, which may be gone.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench/ lies in the repository")
}

/// The repository, or the current folder if it is gone.
pub(crate) fn repository_or_here() -> &'static Path {
    if repository().is_dir() { repository() } else { Path::new(".") }
}
