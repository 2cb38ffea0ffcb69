//! `cargo xtask speed collections`: `bench collections` of 20,000 repositories.

use clap::Args;

use super::table::report;
use crate::process;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Number of repositories.
    #[arg(long, default_value = "20000")]
    repositories: u32,
    /// Write the table into docs/measured.md.
    #[arg(long)]
    publish: bool,
}

pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let repositories = options.repositories.to_string();
    let arguments = ["bench", "collections", "--repositories", &repositories];
    let text = process::output(&mut process::command(program, &arguments))?;
    report("collections", &format!("```text\n{text}```\n"), options.publish)
}
