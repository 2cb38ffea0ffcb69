//! Arguments of `wireproof bench`.

use std::path::PathBuf;

use ::bench::Task;
use ::bench::terminal::Baseline;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};
use net::http::Url;

use super::archive_args::ArchiveArgs;
use super::collections_args::CollectionsArgs;
use crate::network::{DownloadArgs, NETWORK, NetworkArgs};

/// Measure how fast implementations do the same work.
///
/// For every task: generates a corpus (or takes one), builds the peers whose tools are installed, checks that the
/// counts of every peer equal the counts of the corpus, measures the peers in turn on one core, and prints a table. A
/// peer that cannot be built or run is listed with the reason.
///
/// The default run takes less than twenty minutes with the builds of its peers, and some minutes after them: the
/// tasks decode, sigs, schnorr, mst, repo, commit, nostr-validated and nostr-size, 3 passes after 1 warm-up, and
/// one pass of a row whose first execution takes over a second.
/// `--all` measures every task and corpus with 5 passes after 2 warm-ups; published numbers come from
/// such a run. `--quick` uses small corpora, and takes a minute and a half once the peers are
/// built.
///
/// Peers are built from the clone that the command is run from; an installed command needs `--runners`.
///
/// `hostile` measures no time: peers get every malformed repository and stream in a separate process, and the table
/// shows which inputs they accept, refuse, crash on or hang on. Exit code 1 if wireproof judges one wrongly.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(super) command: Option<BenchCommand>,
    /// Tasks to measure [default: the tasks above, with --all every task].
    #[arg(value_name = "TASK", value_parser = tasks())]
    pub(super) tasks: Vec<Tasks>,
    /// The corpus of the task, or a folder with the corpora of all tasks. `repo` needs a .json next to its .car, with
    /// did and signing_key; `commit` needs accounts.json next to its frames: an object of DID to did:key, or an array
    /// of {did, didDoc} [default: generated].
    #[arg(long, value_name = "PATH", env = "WIREPROOF_BENCH_CORPUS", value_hint = ValueHint::AnyPath)]
    pub(super) corpus: Option<PathBuf>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// How to measure.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Peers to measure: folders of bench/runners, and `wireproof` [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) peers: Option<Vec<String>>,
    /// Measure every task, corpus and row with all passes.
    #[arg(long)]
    pub(super) all: bool,
    /// Measured passes per row [default: 3, with --all 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) passes: Option<u32>,
    /// Warm-up passes per row, which are not measured [default: 1, with --all 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(super) warmup: Option<u32>,
    /// Use corpora a tenth the size and fewer passes, to check that everything works.
    #[arg(long)]
    pub(super) quick: bool,
    /// File for the results as JSON; `-` prints them to standard output instead of tables [default:
    /// results.json in the work folder].
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(super) json: Option<PathBuf>,
    /// Folder of captured data: the events of nostr/events.jsonl in it get rows `@real` in nostr-size.
    #[arg(long, value_name = "DIR", env = "WIREPROOF_FIXTURES", value_hint = ValueHint::DirPath)]
    pub(super) fixtures: Option<PathBuf>,
    /// Folder for the HTML page [default: report in the work folder; none with `--json -`].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) report: Option<PathBuf>,
    /// Maximum time of a peer for one hostile case.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(super) case_limit: u32,
    /// The peer that ratios are relative to [default: go-indigo where hashes are checked, rust-raw where
    /// not, rust-libsecp256k1 for signatures].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    pub(super) baseline: Option<Baseline>,
    /// Folder with one folder per peer [default: bench/runners of the clone that the command is run from].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_RUNNERS", value_hint = ValueHint::DirPath)]
    pub(super) runners: Option<PathBuf>,
    /// Folder for corpora, builds and logs [default: target/bench of that clone, else wireproof/bench in
    /// $XDG_CACHE_HOME or ~/.cache].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_WORK_DIR", value_hint = ValueHint::DirPath)]
    pub(super) work_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// Measure how fast implementations verify the repository of an account.
    ///
    /// Resolves the account, downloads and verifies the repository once, saves it with its owner's key in
    /// the work folder, and measures the peers of the task `repo` on that file: every hash, the signature,
    /// the tree.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(Box<BenchVerifyArgs>),
    /// Compare two runs: list the ratios that moved beyond the spread of their passes.
    ///
    /// A ratio relates a row to its baseline in the same run; speeds of two runs are not compared. Exit
    /// code 1 if a row of wireproof fell by more than the tolerance, or lost its rank.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Prove the checks that peers claim: the letters in the tables.
    ///
    /// Sends the peers inputs that break the rule of one check and that a peer with this check must reject. Exit code 1
    /// if a claim is false, or if a decoder makes a check that it does not claim.
    #[command(after_help = CLAIMS_EXAMPLES)]
    Claims(ClaimsArgs),
    Archive(ArchiveArgs),
    Collections(CollectionsArgs),
}

#[derive(Debug, Args)]
pub(super) struct ClaimsArgs {
    /// Peers to test: folders of bench/runners, and `wireproof` [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) peers: Option<Vec<String>>,
    /// Maximum time of a peer for one input.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(super) case_limit: u32,
    /// Folder with one folder per peer [default: bench/runners of the clone that the command is run from].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_RUNNERS", value_hint = ValueHint::DirPath)]
    pub(super) runners: Option<PathBuf>,
    /// Folder for inputs, builds and logs [default: target/bench of this repository].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_WORK_DIR", value_hint = ValueHint::DirPath)]
    pub(super) work_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The results of the earlier run.
    #[arg(value_name = "OLD|-", value_hint = ValueHint::FilePath)]
    pub(super) old: PathBuf,
    /// The results of the later run.
    #[arg(value_name = "NEW|-", value_hint = ValueHint::FilePath)]
    pub(super) new: PathBuf,
    /// The tolerated loss as a part of a ratio: 0.1 is a tenth.
    #[arg(long, value_name = "PART", default_value_t = 0.1, value_parser = part)]
    pub(super) tolerance: f64,
    /// Peers whose regressions count [default: wireproof].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) peers: Option<Vec<String>>,
    /// The peer that ratios are relative to [default: as in a run].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    pub(super) baseline: Option<Baseline>,
}

fn part(text: &str) -> Result<f64, String> {
    let part: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..1.0).contains(&part) { Ok(part) } else { Err("not from 0 to less than 1".to_owned()) }
}

#[derive(Debug, Args)]
pub(super) struct BenchVerifyArgs {
    /// The account.
    #[arg(value_name = "HANDLE|DID")]
    pub(super) who: String,
    #[command(flatten)]
    pub(super) run: RunArgs,
    /// Server to download from [default: the account's own].
    #[arg(long, value_name = "URL", help_heading = NETWORK)]
    pub(super) from: Option<Url>,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten)]
    pub(super) download: DownloadArgs,
}

/// The tasks of one name.
type Tasks = &'static [Task];

fn tasks() -> impl TypedValueParser<Value = Tasks> {
    let names = Task::ALL.iter().map(|task| task.name()).chain([NOSTR]);
    PossibleValuesParser::new(names).map(|name| match Task::from_name(&name) {
        Some(task) => {
            let index = Task::ALL.iter().position(|one| *one == task).expect("it is one of all");
            &ALL[index..=index]
        }
        None => &NOSTR_TASKS,
    })
}

static NOSTR_TASKS: [Task; Task::NOSTR.len()] = Task::NOSTR;
static ALL: [Task; Task::ALL.len()] = Task::ALL;

/// The name of all tasks on Nostr events.
const NOSTR: &str = "nostr";

const EXAMPLES: &str = "\
Examples:
  wireproof bench                                   the default tasks, all peers
  wireproof bench --all                             every task, with the passes of a published run
  wireproof bench decode --peers wireproof,go-raw   two peers
  wireproof bench sigs schnorr                      signatures only
  wireproof bench nostr                             Nostr events in every format
  wireproof bench hostile                           malformed input
  wireproof bench repo --corpus repository.car      a repository of your own
  wireproof bench verify atproto.com                the repository of an account
  wireproof bench decode --corpus frames.bin --json - | jq '.rows[] | {peer, variant, per_s}'
  wireproof bench decode --baseline rust-rsky       ratios to another peer
  wireproof bench compare old.json new.json         ratios that moved between two runs

How a run works, and its limits: bench/METHOD.md. Known biases: bench/BIAS.md.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  wireproof bench verify atproto.com --peers wireproof,go-indigo
  wireproof bench verify ada.test --plc http://localhost:4480 --development-port 4481";

const CLAIMS_EXAMPLES: &str = "\
Examples:
  wireproof bench claims                        all peers
  wireproof bench claims --peers wireproof,go-indigo
  wireproof bench claims --runners docs/guide/examples/runners";

const COMPARE_EXAMPLES: &str = "\
Examples:
  wireproof bench compare bench/results/2026-11-21-epyc/results.json target/bench/results.json
  wireproof bench compare old.json new.json --tolerance 0.05 --peers wireproof,rust-rsky
  wireproof bench compare old.json new.json --baseline rust-raw";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_tasks_of_a_default_run() {
        let mut command = BenchArgs::augment_args(clap::Command::new("bench"));
        let help = command.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let names = Task::DEFAULT.map(Task::name);
        let [others @ .., last] = &names[..] else { panic!("no task") };
        let tasks = format!("tasks {} and {last}", others.join(", "));
        assert!(help.contains(&tasks), "{tasks} is not in {help}");
    }
}
