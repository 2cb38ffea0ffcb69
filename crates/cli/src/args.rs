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
    Bench(Box<BenchArgs>),
    /// Makes files to measure and to test with.
    #[command(subcommand)]
    Corpus(CorpusCommand),
    /// Shows what is in a file of frames, a frame, a CAR or a CBOR block, or why it is none.
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
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

#[derive(Debug, Subcommand)]
pub(crate) enum CorpusCommand {
    /// Writes a simulated stream of firehose frames, the same bytes for the same seed.
    ///
    /// Two files: firehose-frames.bin (a 32-bit big-endian count, then each frame behind its 32-bit
    /// length) and firehose-frames.json (seed, SHA-256, counts, and the accounts with their keys).
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(GenerateArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// What everything follows from [default: that of the benchmark].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many frames, all of them commits [default: those of the benchmark, 3298].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) frames: Option<u32>,
    /// The folder to write to, made if it is not there.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
}

/// Shows what is in a file of frames, a frame, a CAR or a CBOR block, or why it is none.
///
/// Everything is checked, shown or not: canonical DAG-CBOR, every hash against its CID, every bound.
/// Bytes that break a rule are refused with the rule, the offset and the bytes around it, and exit
/// code 1.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// The file; `-` for standard input.
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// One JSON document instead of a tree, with links as {"$link": …} and bytes as {"$bytes": …}.
    #[arg(long)]
    pub(crate) json: bool,
    /// How many frames or blocks to show; 0 for all [default: 10, with --json all].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// What the bytes are, instead of finding out.
    #[arg(long = "as", value_enum, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
}

/// What bytes can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A file of frames.
    Corpus,
    /// One frame of an event stream.
    Frame,
    /// A CAR v1 archive.
    Car,
    /// One DAG-CBOR item.
    Cbor,
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

const GENERATE_EXAMPLES: &str = "\
Examples:
  wireproof corpus generate --out corpus            the stream that the benchmark measures on
  wireproof corpus generate --seed 7 --frames 100   a small one of your own";

const INSPECT_EXAMPLES: &str = "\
Examples:
  wireproof inspect repository.car
  wireproof inspect firehose-frames.bin --limit 3
  wireproof inspect frame.bin --json | jq .ops
  curl -s \"$PDS/xrpc/com.atproto.sync.getRepo?did=$DID\" | wireproof inspect -";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  wireproof completions bash > ~/.local/share/bash-completion/completions/wireproof
  wireproof completions fish > ~/.config/fish/completions/wireproof.fish";
