//! What can be asked of the command?

pub(crate) mod bench;
pub(crate) mod capture;
pub(crate) mod config;
pub(crate) mod follow;
pub(crate) mod frames;
pub(crate) mod network;
pub(crate) mod nostr;
pub(crate) mod plc;
pub(crate) mod repo;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod sim;
pub(crate) mod verify;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use serde::Serialize;

use bench::BenchArgs;
use capture::CaptureArgs;
use config::ConfigCommand;
use follow::FollowArgs;
use frames::FramesCommand;
use nostr::NostrCommand;
use plc::PlcCommand;
use repo::RepoCommand;
use report::ReportArgs;
use resolve::ResolveArgs;
use sim::SimCommand;
use verify::VerifyRepositoryArgs;

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
    #[command(after_help = bench::EXAMPLES)]
    Bench(Box<BenchArgs>),
    #[command(after_help = report::EXAMPLES)]
    Report(ReportArgs),
    /// Makes files to measure and to test with.
    #[command(subcommand)]
    Corpus(CorpusCommand),
    /// Shows what is in a file of frames, a frame, a CAR or a CBOR block, or why it is none.
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Tells which key a text spells, and spells it in every other way.
    #[command(after_help = KEY_EXAMPLES)]
    Key(KeyArgs),
    /// Judges signatures.
    #[command(subcommand)]
    Sig(SigCommand),
    #[command(after_help = resolve::EXAMPLES)]
    Resolve(Box<ResolveArgs>),
    #[command(after_help = verify::EXAMPLES)]
    Verify(Box<VerifyRepositoryArgs>),
    #[command(subcommand)]
    Repo(RepoCommand),
    #[command(subcommand)]
    Frames(FramesCommand),
    #[command(subcommand)]
    Plc(PlcCommand),
    #[command(subcommand)]
    Nostr(NostrCommand),
    #[command(subcommand)]
    Sim(SimCommand),
    #[command(after_help = follow::EXAMPLES)]
    Follow(Box<FollowArgs>),
    #[command(after_help = capture::EXAMPLES)]
    Capture(Box<CaptureArgs>),
    #[command(subcommand)]
    Config(ConfigCommand),
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

#[derive(Debug, Subcommand)]
pub(crate) enum CorpusCommand {
    /// Writes simulated data, the same bytes for the same seed: a stream of firehose frames, the
    /// records of a tree, a repository.
    ///
    /// Each file has a description of the same name beside it that ends in .json: seed, SHA-256,
    /// what is in the file, who signed it. The frames (firehose-frames.bin: a 32-bit big-endian
    /// count, then each frame behind its 32-bit length) also come with accounts.json, an object of
    /// DID to did:key.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(GenerateArgs),
    /// Writes repositories and frames to try a verifier on: most break one rule each, some are odd
    /// but right.
    ///
    /// hostile.json lists the cases: file, rule, verdict, and the layer that must give it. Beside
    /// each file lies a .json of what a verifier is told: account, key, time.
    #[command(after_help = HOSTILE_EXAMPLES)]
    Hostile(HostileArgs),
    /// Writes simulated Nostr events with real ids and signatures, the same bytes for the same seed.
    ///
    /// nostr-events.jsonl has all of them, JSON, one a line; nostr-by-kind.jsonl and
    /// nostr-by-category.jsonl have up to 100 of each of seven kinds and of each class of size and of
    /// tags, behind lines that name them (#kind-1, #tiny). Each has a description of the same name
    /// beside it that ends in .json.
    #[command(after_help = NOSTR_EXAMPLES)]
    Nostr(NostrCorpusArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NostrCorpusArgs {
    /// What everything follows from [default: that of the benchmark].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many events [default: those of the benchmark, 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) events: Option<u32>,
    /// The folder to write to, made if it is not there.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HostileArgs {
    /// What everything follows from [default: that of the published set].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// The folder to write to, made if it is not there.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
}

/// What can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Made {
    /// firehose-frames.bin and accounts.json: a stream of commits.
    Frames,
    /// mst-records.bin: keys and CIDs for a tree, and which of them to look up.
    Records,
    /// repository.car: a whole repository.
    Repository,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// What to make.
    #[arg(value_name = "WHAT", value_enum, default_value = "frames")]
    pub(crate) made: Vec<Made>,
    /// What everything follows from [default: that of the benchmark].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many frames, all of them commits [default: those of the benchmark, 3298].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) frames: Option<u32>,
    /// How many records a tree or a repository has [default: those of the benchmark, 50000 and
    /// 192000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) records: Option<u32>,
    /// The blocks of the repository in no order, instead of that in which a tree is read.
    #[arg(long)]
    pub(crate) shuffled: bool,
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

/// Tells which key a text spells, and spells it in every other way.
///
/// Reads a did:key, a Multikey, the base58 of legacy verification methods, and a point in hexadecimal
/// as SEC 1 writes it, compressed or not.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// The key; `-` for standard input.
    #[arg(value_name = "TEXT|-")]
    pub(crate) text: String,
    /// The curve of a key that does not name it: a legacy one or a bare point [default: that of
    /// which it is a point, if there is only one].
    #[arg(long, visible_alias = "legacy", value_enum)]
    pub(crate) curve: Option<KeyCurve>,
    /// One JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The curves of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyCurve {
    /// secp256k1.
    K256,
    /// secp256r1, also called prime256v1.
    P256,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SigCommand {
    /// Checks that a signature is a key's, over the SHA-256 of a message.
    ///
    /// By the rules of repository data: 64 bytes r and s, not DER, both in range, s in the lower half.
    /// Exit code 0 if it is, 1 if not.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The public key, in any form that `wireproof key` reads.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: String,
    /// The curve of a key that does not name it.
    #[arg(long, visible_alias = "legacy", value_enum)]
    pub(crate) curve: Option<KeyCurve>,
    /// The signature in hexadecimal, or a file with it.
    #[arg(long, value_name = "HEX|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) sig: String,
    #[command(flatten)]
    pub(crate) signed: SignedArgs,
    /// Gives up that a message has one signature: takes s in the upper half too, so that anyone can
    /// turn a signature into another one that is valid. JSON web tokens allow it, repositories do
    /// not.
    #[arg(long)]
    pub(crate) allow_high_s: bool,
}

/// What was signed.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SignedArgs {
    /// A file with the message; `-` for standard input.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) message: Option<PathBuf>,
    /// The message in hexadecimal.
    #[arg(long, value_name = "HEX")]
    pub(crate) hex: Option<String>,
    /// The SHA-256 of the message in hexadecimal.
    #[arg(long, value_name = "HEX")]
    pub(crate) digest: Option<String>,
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

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the data was refused, 2 usage, 3 the network or a remote host failed,
4 a local file or program failed, 130 interrupted.";

const GENERATE_EXAMPLES: &str = "\
Examples:
  wireproof corpus generate --out corpus            the stream that the benchmark measures on
  wireproof corpus generate --seed 7 --frames 100   a small one of your own
  wireproof corpus generate records repository      the others
  wireproof corpus generate repository --records 1000 --shuffled";

const HOSTILE_EXAMPLES: &str = "\
Examples:
  wireproof corpus hostile --out hostile
  jq -r '.cases[] | select(.expect == \"accept\") | .file' hostile/hostile.json

How to try your own verifier: docs/formats/hostile-set.md.";

const NOSTR_EXAMPLES: &str = "\
Examples:
  wireproof corpus nostr --out corpus && wireproof bench nostr --corpus corpus
  wireproof corpus nostr --events 1000 --seed 7";

const INSPECT_EXAMPLES: &str = "\
Examples:
  wireproof inspect repository.car
  wireproof inspect firehose-frames.bin --limit 3
  wireproof inspect frame.bin --json | jq .ops
  curl -s \"$PDS/xrpc/com.atproto.sync.getRepo?did=$DID\" | wireproof inspect -";

const KEY_EXAMPLES: &str = "\
Examples:
  wireproof key did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme
  wireproof key 0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798 --curve k256
  echo zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo | wireproof key - --json | jq -r .did_key";

const VERIFY_EXAMPLES: &str = "\
Examples:
  wireproof sig verify --key \"$DID_KEY\" --sig sig.bin --message unsigned-commit.cbor
  wireproof sig verify --key \"$DID_KEY\" --sig \"$SIG_HEX\" --digest \"$SHA256_HEX\"
  wireproof sig verify --key \"$DID_KEY\" --sig \"$SIG_HEX\" --message token --allow-high-s";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  wireproof completions bash > ~/.local/share/bash-completion/completions/wireproof
  wireproof completions fish > ~/.config/fish/completions/wireproof.fish";
