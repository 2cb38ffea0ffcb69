//! What can be said about the network?

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use wireproof::net::http::{Limits, Url};

/// Who is asked, and where connections may go.
#[derive(Clone, Debug, Args)]
pub(crate) struct NetworkArgs {
    /// The directory of did:plc [default: https://plc.directory].
    #[arg(long, value_name = "URL", env = "WIREPROOF_PLC", help_heading = NETWORK)]
    pub(crate) plc: Option<Url>,
    /// Gives up the internet and TLS: connects to this machine alone, over plain HTTP too. DnsResolver under
    /// .test and .localhost are this machine, and the DNS is not asked.
    #[arg(long, env = "WIREPROOF_DEVELOPMENT", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = NETWORK)]
    pub(crate) development: bool,
    /// The port at which handles under .test are asked; goes with --development, and switches it on.
    #[arg(long, value_name = "PORT", env = "WIREPROOF_DEVELOPMENT_PORT", help_heading = NETWORK)]
    pub(crate) development_port: Option<u16>,
    /// Gives up the authorities that this system trusts: takes certificates by those in this file (PEM)
    /// alone; goes with --development, and switches it on.
    #[arg(long, value_name = "FILE.pem", env = "WIREPROOF_DEVELOPMENT_TRUST_ONLY")]
    #[arg(value_hint = ValueHint::FilePath, help_heading = NETWORK)]
    pub(crate) development_trust_only: Option<PathBuf>,
}

impl NetworkArgs {
    /// Whether this machine is all that there is.
    pub(crate) fn is_development(&self) -> bool {
        self.development || self.development_port.is_some() || self.development_trust_only.is_some()
    }
}

/// Bounds of what is fetched.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FetchArgs {
    /// The longest repository [default: 4 GiB].
    #[arg(long, value_name = "N", env = "WIREPROOF_MAX_BYTES", help_heading = NETWORK)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_bytes: Option<u64>,
    /// How long a repository may take to come [default: 3600].
    #[arg(long, value_name = "N", env = "WIREPROOF_MAX_SECONDS", help_heading = NETWORK)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) max_seconds: Option<u64>,
    /// How long a host may be silent while it sends one [default: 30].
    #[arg(long, value_name = "N", env = "WIREPROOF_MAX_SILENT_SECONDS", help_heading = NETWORK)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) max_silent_seconds: Option<u64>,
}

impl FetchArgs {
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::REPOSITORY;
        Limits {
            max_bytes: self.max_bytes.unwrap_or(usual.max_bytes),
            max_time: self.max_seconds.map_or(usual.max_time, Duration::from_secs),
            idle_timeout: self.max_silent_seconds.map_or(usual.idle_timeout, Duration::from_secs),
            ..usual
        }
    }
}

/// The heading of such arguments in the help.
pub(crate) const NETWORK: &str = "Network";
