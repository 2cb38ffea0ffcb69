//! What can be measured?

use std::path::PathBuf;

use ::bench::Task;
use ::bench::terminal::Baseline;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};
use wireproof::net::http::Url;

use super::network::{FetchArgs, NETWORK, NetworkArgs};

/// Measures how fast implementations do the same work.
///
/// Makes a corpus for each task (or takes one), builds the peers whose tools it finds, holds what each
/// finds against what the corpus holds, measures them in turn on one core, and prints a table for each
/// task. A peer that cannot be built or run is listed with the reason.
///
/// `hostile` takes no time: it gives each peer every malformed repository and stream, in a process of
/// its own, and prints who accepts, refuses, crashes or hangs. Exit code 1 if that is us.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) chain: Option<ChainCommand>,
    /// What to measure [default: everything].
    #[arg(value_name = "TASK", value_parser = tasks())]
    pub(crate) tasks: Vec<Tasks>,
    /// The corpus of the one task, or a folder with those of all, instead of the default ones. `repo`
    /// wants a .json beside its .car, with did and signing_key; `commit` accounts.json beside its
    /// frames: an object of DID to did:key, or an array of {did, didDoc}.
    #[arg(long, value_name = "PATH", env = "WIREPROOF_BENCH_CORPUS", value_hint = ValueHint::AnyPath)]
    pub(crate) corpus: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// How to measure, whatever it is.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Which peers to measure, by the names of bench/runners and `wireproof` [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) peers: Option<Vec<String>>,
    /// Measured passes of each row [default: 5, with --quick 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) passes: Option<u32>,
    /// Passes before those, whose time is not kept [default: 2, with --quick 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) warmup: Option<u32>,
    /// Corpora a tenth the size and fewer passes: shows that all works, not how fast.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where results go as JSON; `-` prints them, and nothing else, to standard output
    /// [default: results.json in the work folder].
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// The folder that the page for a browser goes to [default: report in the work folder; none with
    /// `--json -`].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) report: Option<PathBuf>,
    /// How long a peer may think about a hostile case.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) case_limit: u32,
    /// What ratios are held against [default: go-indigo where hashes are checked, rust-raw where not,
    /// rust-libsecp256k1 for signatures].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    pub(crate) baseline: Option<Baseline>,
    /// The folder with a folder for each peer [default: bench/runners of this repository].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_RUNNERS", value_hint = ValueHint::DirPath)]
    pub(crate) runners: Option<PathBuf>,
    /// Where corpora, builds and logs are kept [default: target/bench of this repository].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_WORK_DIR", value_hint = ValueHint::DirPath)]
    pub(crate) work_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChainCommand {
    /// Measures how fast implementations verify the repository of an account.
    ///
    /// Resolves and fetches once, proves the repository, keeps it with its owner's key in the work
    /// folder, and lets the peers of the task `repo` verify it from there: every hash, the signature,
    /// the tree.
    #[command(after_help = CHAIN_EXAMPLES)]
    Verify(Box<BenchVerifyArgs>),
    /// Says which ratios moved between two runs, beyond what their own passes differ by.
    ///
    /// A ratio is that of a row to the one it is held against in the same run: speeds of two runs are not
    /// compared. Exit code 1 if one of ours fell by more than the tolerance, or lost its rank.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The results of the earlier run.
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub(crate) old: PathBuf,
    /// The results of the later run.
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    pub(crate) new: PathBuf,
    /// The part of a ratio that may be lost: 0.1 is a tenth.
    #[arg(long, value_name = "PART", default_value_t = 0.1, value_parser = part)]
    pub(crate) tolerance: f64,
    /// Whose regressions count [default: ours].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) peers: Option<Vec<String>>,
    /// What ratios are held against [default: as the run does].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    pub(crate) baseline: Option<Baseline>,
}

fn part(text: &str) -> Result<f64, String> {
    let part: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..1.0).contains(&part) { Ok(part) } else { Err("from 0 to less than 1".to_owned()) }
}

#[derive(Debug, Args)]
pub(crate) struct BenchVerifyArgs {
    /// Whose repository.
    #[arg(value_name = "HANDLE|DID")]
    pub(crate) who: String,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Another server to fetch from than the account's own.
    #[arg(long, value_name = "URL", help_heading = NETWORK)]
    pub(crate) from: Option<Url>,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
}

/// A task, or those that share a name.
pub(crate) type Tasks = &'static [Task];

fn tasks() -> impl TypedValueParser<Value = Tasks> {
    let names = Task::ALL.iter().map(|task| task.name()).chain([NOSTR]);
    PossibleValuesParser::new(names).map(|name| match Task::from_name(&name) {
        Some(task) => {
            let at = Task::ALL.iter().position(|one| *one == task).expect("it is one of all");
            &ALL[at..=at]
        }
        None => &NOSTR_TASKS,
    })
}

static NOSTR_TASKS: [Task; Task::NOSTR.len()] = Task::NOSTR;
static ALL: [Task; Task::ALL.len()] = Task::ALL;

/// The name of all tasks on Nostr events.
const NOSTR: &str = "nostr";

pub(crate) const EXAMPLES: &str = "\
Examples:
  wireproof bench                                   everything, with every peer
  wireproof bench decode --peers wireproof,go-raw   two peers
  wireproof bench sigs schnorr                      signatures alone
  wireproof bench nostr                             Nostr events in every format
  wireproof bench hostile                           who accepts what is malformed
  wireproof bench repo --corpus repository.car      a repository of your own
  wireproof bench verify atproto.com                the repository of an account
  wireproof bench decode --corpus frames.bin --json - | jq '.rows[] | {peer, variant, per_s}'
  wireproof bench decode --baseline rust-rsky       ratios against another peer
  wireproof bench compare old.json new.json         what moved between two runs

How a run works and what it does not measure: bench/METHOD.md. In whose favour it may lean:
bench/BIAS.md.";

const CHAIN_EXAMPLES: &str = "\
Examples:
  wireproof bench verify atproto.com --peers wireproof,go-indigo
  wireproof bench verify ada.test --plc http://localhost:4480 --development-port 4481";

const COMPARE_EXAMPLES: &str = "\
Examples:
  wireproof bench compare bench/results/2026-11-21-epyc/results.json target/bench/results.json
  wireproof bench compare old.json new.json --tolerance 0.05 --peers wireproof,rust-rsky
  wireproof bench compare old.json new.json --baseline rust-raw";
