//! `wireproof doctor`: what this machine and this build can do.

use clap::{Args, Subcommand};
use serde::Serialize;
use wireproof::kernels::cpu::{self, Kernel};

use crate::failure::Failure;
use crate::output::{Output, table};

/// Show what the command finds on this machine.
#[derive(Debug, Subcommand)]
pub(crate) enum DoctorCommand {
    /// Print the back end of each kernel: the one in use, and those that the processor has.
    ///
    /// A kernel takes the fastest that the processor has. --backend or WIREPROOF_BACKEND keeps every command to less, for
    /// tests and benchmarks; results are the same.
    #[command(after_help = EXAMPLES)]
    Cpu(CpuArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CpuArgs {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &DoctorCommand, output: Output) -> Result<(), Failure> {
    let DoctorCommand::Cpu(args) = command;
    let kernels = cpu::kernels().into_iter().map(Line::from).collect();
    let report = Report { architecture: std::env::consts::ARCH, kernels };
    output.document(&report, args.json, Report::to_text)
}

#[derive(Serialize)]
struct Report {
    architecture: &'static str,
    kernels: Vec<Line>,
}

/// A kernel and its back ends.
#[derive(Serialize)]
struct Line {
    kernel: &'static str,
    in_use: &'static str,
    available: Vec<&'static str>,
}

impl From<Kernel> for Line {
    fn from(Kernel { name, in_use, available, .. }: Kernel) -> Self {
        Self { kernel: name, in_use, available }
    }
}

impl Report {
    fn to_text(&self) -> String {
        let row = |line: &Line| {
            [line.kernel.to_owned(), line.in_use.to_owned(), line.available.join(", ")]
        };
        let rows = self.kernels.iter().map(row);
        format!(
            "architecture: {}\n\n{}",
            self.architecture,
            table(["kernel", "in use", "available"], rows)
        )
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof doctor cpu
  WIREPROOF_BACKEND=avx2 wireproof doctor cpu --json";
