//! `cargo xtask mutants`: mutation testing by the program in `mutants/`, which needs a parser of Rust that nothing
//! else here needs.

use clap::Args;

use crate::process;

/// Arguments of the program.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Crates and options; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds and runs the program.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut command = process::command("cargo", &["run", "-q", "-p", "wireproof-mutants", "--"]);
    process::run(command.args(&options.args))
}
