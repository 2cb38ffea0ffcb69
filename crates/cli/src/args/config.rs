//! What can be asked of the configuration?

use clap::{Args, Subcommand};

/// What the environment and files say.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Prints the values that count where no flag is given, as a wireproof.toml.
    ///
    /// A flag comes before the environment (`WIREPROOF_…`), that before wireproof.toml in the current
    /// folder, that before $XDG_CONFIG_HOME/wireproof/wireproof.toml, and all before the default.
    #[command(after_help = EXAMPLES)]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Tells of each value where it is from.
    #[arg(long)]
    pub(crate) origin: bool,
}

const EXAMPLES: &str = "\
Examples:
  wireproof config show --origin
  wireproof config show > wireproof.toml";
