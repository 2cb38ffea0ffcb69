//! `wireproof completions`: a script for a shell.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Args;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn print(shell: Shell, output: Output) -> Result<(), Failure> {
    // Not straight to standard output, because `generate` panics if nobody reads.
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "wireproof", &mut script);
    Ok(output.stdout().write_all(&script)?)
}
