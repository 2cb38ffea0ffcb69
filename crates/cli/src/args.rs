//! The top level of the command line. Each command's arguments are beside its code.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use kernels::cpu::Level;

use crate::admin::{AccountsCommand, CollectionsCommand, PauseArgs, ResumeArgs, StatusArgs};
use crate::archive::ArchiveCommand;
use crate::backfill::BackfillArgs;
use crate::bench::BenchArgs;
use crate::capture::CaptureArgs;
use crate::config::ConfigCommand;
use crate::corpus::CorpusCommand;
use crate::delivery::DeliveryCommand;
use crate::doctor::DoctorArgs;
use crate::follow::FollowArgs;
use crate::frames::FramesCommand;
use crate::inspect::InspectArgs;
use crate::key::KeyArgs;
use crate::log::LogArgs;
use crate::nostr::NostrCommand;
use crate::output::Color;
use crate::plc::PlcCommand;
use crate::repo::RepoCommand;
use crate::report::ReportArgs;
use crate::resolve::ResolveArgs;
use crate::sig::SigCommand;
use crate::sim::SimCommand;
use crate::verify::VerifyArgs;

/// Proof at wire speed for signed, content-addressed social data.
#[derive(Debug, Parser)]
#[command(name = "wireproof", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// When to use colour on a terminal; NO_COLOR is honoured.
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true, value_name = "WHEN")]
    pub(crate) color: Color,
    /// Trust this configuration file with every option [default: wireproof.toml in the current folder,
    /// which can only set selections and limits].
    #[arg(long, env = "WIREPROOF_CONFIG", global = true, value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Use no kernels beyond portable, neon, avx2 or avx512; results do not depend on it [default: the fastest here].
    #[arg(long, env = "WIREPROOF_BACKEND", global = true, value_name = "LEVEL")]
    #[arg(hide_short_help = true)]
    pub(crate) backend: Option<Level>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<BenchArgs>),
    Report(ReportArgs),
    #[command(subcommand)]
    Corpus(CorpusCommand),
    Inspect(InspectArgs),
    Key(KeyArgs),
    #[command(subcommand)]
    Sig(SigCommand),
    Resolve(Box<ResolveArgs>),
    Verify(Box<VerifyArgs>),
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
    Follow(Box<FollowArgs>),
    #[command(subcommand)]
    Archive(ArchiveCommand),
    Backfill(Box<BackfillArgs>),
    #[command(subcommand)]
    Delivery(DeliveryCommand),
    #[command(subcommand)]
    Accounts(AccountsCommand),
    #[command(subcommand)]
    Collections(CollectionsCommand),
    Status(StatusArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Capture(Box<CaptureArgs>),
    #[command(subcommand)]
    Config(ConfigCommand),
    Doctor(Box<DoctorArgs>),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to complete in.
        shell: Shell,
    },
    /// Write a manual page for each command into a folder.
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The folder; it is created if it is missing.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Serve the benchmark harness: requests on standard input, responses on standard output.
    #[command(hide = true)]
    Runner,
    /// Read an LMDB database, and write its records to standard output: the process that other commands start.
    #[cfg(feature = "nostr-lmdb")]
    #[command(hide = true)]
    ReadDatabase {
        /// The folder with data.mdb.
        folder: PathBuf,
    },
}

const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 the data was refused, 2 usage, 3 the network or a remote host failed,
4 a local file or program failed, or the reader of the output of `follow` ended, 130 interrupted.
SIGTERM ends `follow` with 0.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  wireproof completions bash > ~/.local/share/bash-completion/completions/wireproof
  wireproof completions fish > ~/.config/fish/completions/wireproof.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  wireproof man ~/.local/share/man/man1
  man wireproof-verify";
