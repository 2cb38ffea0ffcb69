//! `wireproof doctor`: the diagnosis of an account, and the abilities of this machine and this build.

mod account;
mod cpu;
mod evidence;
mod findings;
mod report;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::output::Output;
use account::AccountArgs;
use cpu::CpuArgs;

/// Diagnose an account, or show the kernels that this machine can run.
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
}

pub(crate) fn run(args: &DoctorArgs, output: Output) -> Result<(), Failure> {
    match &args.command {
        Some(DoctorCommand::Cpu(args)) => cpu::run(args, output),
        None => account::run(&args.account, output),
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof doctor atproto.com
  wireproof doctor did:plc:ewvi7nxzyoun6zhxrhs64oiz --host relay1.us-east.bsky.network --json
  wireproof doctor atproto.com --state /var/lib/wireproof
  wireproof doctor cpu";
