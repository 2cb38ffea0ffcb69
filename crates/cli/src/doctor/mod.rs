//! `wireproof doctor`: the diagnosis of an account or of a host, and the abilities of this machine and this build.

mod account;
mod cpu;
mod evidence;
mod findings;
mod host;
mod report;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::output::Output;
use account::AccountArgs;
use cpu::CpuArgs;
use host::HostArgs;

/// Diagnose an account or a host, or show the kernels that this machine can run.
///
/// Compares the account in the directory, on its server, on relays and in the state of `follow`. The
/// directory's log is verified, and the newest commit must be signed with the account's key; relays are asked again for
/// --wait-seconds while they are behind. Exit code 0 if nothing is wrong, 1 if something is, 3 if nothing else is wrong
/// but a host does not answer, 4 if the state cannot be read. All findings: docs/reference/doctor.md.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    command: Option<DoctorCommand>,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Debug, Subcommand)]
enum DoctorCommand {
    /// Print the back ends of every kernel: the one in use, and all that the processor supports.
    ///
    /// A kernel uses the fastest back end that the processor supports. For tests and benchmarks, --backend or
    /// WIREPROOF_BACKEND limits every command to slower ones; results are the same.
    #[command(after_help = cpu::EXAMPLES)]
    Cpu(CpuArgs),
    /// Judge a PDS or a relay by the protocol.
    ///
    /// Listens to the live stream, replays it, lists the accounts, and asks for a sample of them by every method. Events,
    /// repositories and proofs are verified, and answers are compared with each other. Every finding has a code, and a
    /// command that shows it again. Exit code 0 if the host breaks no rule, 1 if it does, 3 if it does not answer. All
    /// findings: docs/reference/doctor.md.
    #[command(after_help = host::EXAMPLES)]
    Host(Box<HostArgs>),
}

pub(crate) fn run(args: &DoctorArgs, output: Output) -> Result<(), Failure> {
    match &args.command {
        Some(DoctorCommand::Cpu(args)) => cpu::run(args, output),
        Some(DoctorCommand::Host(args)) => host::run(args, output),
        None => account::run(&args.account, output),
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof doctor atproto.com
  wireproof doctor did:plc:ewvi7nxzyoun6zhxrhs64oiz --host relay1.us-east.bsky.network --json
  wireproof doctor atproto.com --state /var/lib/wireproof
  wireproof doctor host https://pds.example.com
  wireproof doctor cpu";
