//! The options that every program has.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use kernels::cpu::{self, Level};

use crate::failure::Failure;
use crate::log::LogArgs;
use crate::output::{Color, Output};

/// The options before or after any command.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// When to use colour on a terminal; NO_COLOR is honoured.
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true, value_name = "WHEN")]
    color: Color,
    /// Trust this configuration file with every option [default: wireproof.toml in the current folder,
    /// which can only set selections and limits].
    #[arg(long, env = "WIREPROOF_CONFIG", global = true, value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Use no kernels beyond portable, neon, avx2 or avx512; results do not depend on it [default: the fastest here].
    #[arg(long, env = "WIREPROOF_BACKEND", global = true, value_name = "LEVEL")]
    #[arg(hide_short_help = true)]
    pub backend: Option<Level>,
    #[command(flatten)]
    log: LogArgs,
}

impl GlobalArgs {
    /// Applies the options to this process, and returns its standard output.
    ///
    /// # Errors
    /// If this processor lacks the kernels of `--backend`.
    pub fn apply(&self) -> Result<Output, Failure> {
        self.log.apply();
        if let Some(level) = self.backend {
            cpu::limit_to(level).map_err(|error| Failure::Usage(format!("--backend: {error}")))?;
        }
        Ok(Output::new(self.color))
    }
}

/// The meanings of exit codes, for the help of a program.
pub const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 the data was refused, 2 usage, 3 the network or a remote host failed,
4 a local file or program failed, or the reader of the output of `follow` ended, 130 interrupted.
SIGTERM ends `follow` with 0.";
