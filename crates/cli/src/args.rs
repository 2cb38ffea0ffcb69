//! The top level of the command line. A command's arguments are next to its code.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use program::args::{EXIT_CODES, GlobalArgs};

use crate::admin::{AccountsCommand, CollectionsCommand, PauseArgs, ResumeArgs, StatusArgs};
use crate::capture::CaptureArgs;
use crate::config::ConfigCommand;
use crate::delivery::DeliveryCommand;
use crate::doctor::DoctorArgs;
use crate::frames::FramesCommand;
use crate::get::GetArgs;
use crate::inspect::InspectArgs;
use crate::key::KeyArgs;
use crate::labels::LabelsCommand;
use crate::nostr::NostrCommand;
use crate::page::PageArgs;
use crate::plc::PlcCommand;
use crate::repo::{self, LsArgs, RepoCommand};
use crate::resolve::ResolveArgs;
use crate::sig::SigCommand;
use crate::verify::VerifyArgs;
use follower::FollowArgs;

/// Proof at wire speed for signed, content-addressed social data.
#[derive(Debug, Parser)]
#[command(name = "wireproof", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Inspect(InspectArgs),
    Key(KeyArgs),
    #[command(subcommand)]
    Sig(SigCommand),
    Resolve(Box<ResolveArgs>),
    Verify(Box<VerifyArgs>),
    Get(Box<GetArgs>),
    /// List the records of an account or a CAR file: path, tab, CID. The repository of an account is downloaded and proved.
    #[command(after_help = repo::LS_EXAMPLES)]
    Ls(Box<LsArgs>),
    #[command(subcommand)]
    Repo(RepoCommand),
    #[command(subcommand)]
    Frames(FramesCommand),
    #[command(subcommand)]
    Plc(PlcCommand),
    #[command(subcommand)]
    Labels(LabelsCommand),
    #[command(subcommand)]
    Nostr(NostrCommand),
    Follow(Box<FollowArgs>),
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
    Page(PageArgs),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to complete in.
        shell: Shell,
    },
    /// Write a manual page for every command into a folder.
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The folder; it is created if it is missing.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Read an LMDB database, and write its records to standard output: the process that other commands start.
    #[cfg(feature = "nostr-lmdb")]
    #[command(hide = true)]
    ReadDatabase {
        /// The folder with data.mdb.
        folder: PathBuf,
    },
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  wireproof completions bash > ~/.local/share/bash-completion/completions/wireproof
  wireproof completions fish > ~/.config/fish/completions/wireproof.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  wireproof man ~/.local/share/man/man1
  man wireproof-verify";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use program::programs::WIREPROOF;
    use program::standard_streams::takes_dash;

    use super::*;

    #[test]
    fn the_other_programs_know_the_arguments() {
        WIREPROOF.check_description(&Args::command()).unwrap();
    }

    #[test]
    fn no_folder_is_a_standard_stream() {
        fn assert_none(command: &clap::Command) {
            let folders =
                command.get_arguments().filter(|arg| arg.get_value_hint() == ValueHint::DirPath);
            folders.for_each(|arg| assert!(!takes_dash(arg), "{} {arg}", command.get_name()));
            command.get_subcommands().for_each(assert_none);
        }
        assert_none(&WIREPROOF.with_described_others(Args::command()));
    }
}
