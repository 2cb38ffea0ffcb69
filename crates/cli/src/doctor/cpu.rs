//! `wireproof doctor cpu`: the back ends of the kernels.

use clap::Args;
use kernels::cpu::{self, Kernel};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{Output, table};

#[derive(Debug, Args)]
pub(crate) struct CpuArgs {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CpuArgs, output: Output) -> Result<(), Failure> {
    let kernels = cpu::kernels().into_iter().map(KernelRow::from).collect();
    let report = Report { architecture: std::env::consts::ARCH, kernels };
    output.document(&report, args.json, Report::to_text)
}

#[derive(Serialize)]
struct Report {
    architecture: &'static str,
    kernels: Vec<KernelRow>,
}

/// A kernel and its back ends.
#[derive(Serialize)]
struct KernelRow {
    kernel: &'static str,
    in_use: &'static str,
    available: Vec<&'static str>,
}

impl From<Kernel> for KernelRow {
    fn from(Kernel { name, in_use, available, .. }: Kernel) -> Self {
        Self { kernel: name, in_use, available }
    }
}

impl Report {
    fn to_text(&self) -> String {
        let row = |line: &KernelRow| {
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

pub(super) const EXAMPLES: &str = "\
Examples:
  wireproof doctor cpu
  WIREPROOF_BACKEND=avx2 wireproof doctor cpu --json";
