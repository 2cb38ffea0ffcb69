//! What can be asked of the command?

use std::path::PathBuf;

use ::bench::Task;
use ::bench::report::Baseline;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

/// Proof at wire speed for signed, content-addressed social data.
#[derive(Debug, Parser)]
#[command(name = "wireproof", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// When to colour what goes to a terminal; NO_COLOR is honoured.
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true, value_name = "WHEN")]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measures how fast implementations do the same work.
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Prints a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell that shall complete.
        shell: Shell,
    },
    /// Serves the harness: requests on standard input, answers on standard output.
    #[command(hide = true)]
    Runner,
}

/// Measures how fast implementations do the same work.
///
/// Makes the corpus (or takes one), builds the peers whose tools it finds, holds what each decodes
/// against what the corpus holds, measures them in turn on one core, and prints a table. A peer that
/// cannot be built or run is listed with the reason.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// What to measure [default: everything].
    #[arg(value_name = "TASK", value_parser = task())]
    pub(crate) tasks: Vec<Task>,
    /// Which peers to measure, by the names of bench/runners and `wireproof` [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) peers: Option<Vec<String>>,
    /// Measured passes of each row [default: 5, with --quick 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) passes: Option<u32>,
    /// Passes before those, whose time is not kept [default: 2, with --quick 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) warmup: Option<u32>,
    /// A corpus a tenth the size and fewer passes: shows that all works, not how fast.
    #[arg(long)]
    pub(crate) quick: bool,
    /// A file of frames, or a folder with one, instead of the default corpus.
    #[arg(long, value_name = "PATH", env = "WIREPROOF_BENCH_CORPUS", value_hint = ValueHint::AnyPath)]
    pub(crate) corpus: Option<PathBuf>,
    /// Where results go as JSON; `-` prints them, and nothing else, to standard output
    /// [default: results.json in the work folder].
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// What ratios are held against [default: go-indigo where hashes are checked, rust-raw where not].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    pub(crate) baseline: Option<Baseline>,
    /// The folder with a folder for each peer [default: bench/runners of this repository].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_RUNNERS", value_hint = ValueHint::DirPath)]
    pub(crate) runners: Option<PathBuf>,
    /// Where corpora, builds and logs are kept [default: target/bench of this repository].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_WORK_DIR", value_hint = ValueHint::DirPath)]
    pub(crate) work_dir: Option<PathBuf>,
}

fn task() -> impl TypedValueParser<Value = Task> {
    let names = PossibleValuesParser::new(Task::ALL.map(Task::name));
    names.map(|name| Task::from_name(&name).expect("one of the possible values"))
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the data was refused, 2 usage, 3 the network or a remote host failed,
4 a local file or program failed, 130 interrupted.";

const BENCH_EXAMPLES: &str = "\
Examples:
  wireproof bench                                   everything, with every peer
  wireproof bench decode --peers wireproof,go-raw   two peers
  wireproof bench decode --corpus frames.bin --json - | jq '.rows[] | {peer, variant, per_s}'
  wireproof bench decode --baseline rust-rsky       ratios against another peer

How a run works and what it does not measure: bench/METHOD.md. In whose favour it may lean:
bench/BIAS.md.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  wireproof completions bash > ~/.local/share/bash-completion/completions/wireproof
  wireproof completions fish > ~/.config/fish/completions/wireproof.fish";
