//! What shall be measured, and how often?

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Task;

/// What to measure, with what, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tasks, in the order of the report.
    pub tasks: Vec<Task>,
    /// The peers by name; `None` for all that there are.
    pub peers: Option<Vec<String>>,
    /// Measured passes of each row.
    pub passes: u32,
    /// Passes before those, whose time is not kept.
    pub warmup: u32,
    /// Makes corpora of a tenth the units, with lower trees.
    pub quick: bool,
    /// The corpus of the plan's one task, or a folder with those of all; `None` makes the default ones.
    pub corpus: Option<PathBuf>,
    /// The folder with a folder for each peer.
    pub runners: PathBuf,
    /// Where corpora, builds and logs are kept between runs.
    pub work_dir: PathBuf,
    /// How we are started ourselves; `None` leaves us out.
    pub own: Option<RunnerCommand>,
    /// How long a runner may take to answer a request.
    pub request_limit: Duration,
    /// How long a peer may think about a hostile case.
    pub case_limit: Duration,
    /// How long it may take to build a peer.
    pub build_limit: Duration,
}

/// The program that speaks the protocol for us.
#[derive(Clone, Debug)]
pub struct RunnerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Default for Plan {
    /// Every task, every peer of this repository but not ourselves, 2 warm-up and 5 measured passes,
    /// two minutes for a request, ten seconds for a hostile case and half an hour for a build.
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

/// The repository that this program was built from, which need not be there any more.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench/ lies in the repository")
}

/// The repository, or the current folder if it is not there.
pub(crate) fn repository_or_here() -> &'static Path {
    if repository().is_dir() { repository() } else { Path::new(".") }
}
