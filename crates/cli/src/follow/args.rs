//! Arguments of `wireproof follow`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{BoolishValueParser, FalseyValueParser};
use clap::{ArgAction, Args, ValueHint};

/// Follows a stream of events and prints a line of JSON for each.
///
/// Every event is judged: the account's key signed its commit, the operations are all that changed, and
/// the commit continues the one before. Each line says so, or why not; what is not proved comes
/// without its records. Nothing is dropped, and what was printed is not printed again: the next run
/// goes on behind the last line of this one. After a crash the last lines may come twice.
///
/// Ctrl-C finishes what is under way and keeps the place (exit code 130); a second one does not wait.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub(crate) from: FromArgs,
    /// Judges events; `--verify=false` or --no-verify prints them as they come.
    #[arg(long, env = "WIREPROOF_VERIFY", action = ArgAction::Set, value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_value_t = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) verify: bool,
    /// Prints events as they come.
    #[arg(long, overrides_with = "verify")]
    pub(crate) no_verify: bool,
    /// Prints only what happens in these collections: app.bsky.feed.post, or app.bsky.graph.* for all
    /// that begin so.
    #[arg(long, env = "WIREPROOF_COLLECTIONS", value_name = "LIST", value_delimiter = ',')]
    pub(crate) collections: Vec<String>,
    /// Prints only what happens to these accounts; `@FILE` for a file with one a line.
    #[arg(long, env = "WIREPROOF_DIDS", value_name = "LIST|@FILE", value_delimiter = ',')]
    pub(crate) dids: Vec<String>,
    /// Follows a Jetstream instead, which sends JSON that nobody signed; of version 2, or of the one
    /// that is given [default host: jetstream1.us-east.bsky.network].
    #[arg(long, env = "WIREPROOF_JETSTREAM", value_name = "VERSION", num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "2")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) jetstream: Option<u8>,
    /// Lets a Jetstream compress, with the dictionary that it serves (version 2).
    #[arg(long, env = "WIREPROOF_COMPRESS", requires = "jetstream")]
    #[arg(value_parser = FalseyValueParser::new())]
    pub(crate) compress: bool,
    /// Lets a Jetstream compress with the dictionary in this file.
    #[arg(long, env = "WIREPROOF_DICTIONARY", value_name = "FILE", requires = "jetstream")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) dictionary: Option<PathBuf>,
    /// Takes --host for the server (PDS) of the accounts that it tells of, and refuses what happens to an
    /// account whose DID document names another one.
    #[arg(long, env = "WIREPROOF_PDS", conflicts_with = "jetstream")]
    #[arg(value_parser = FalseyValueParser::new())]
    pub(crate) pds: bool,
    /// Fetches the repository of an account anew when something of it is missing, and proves it.
    #[arg(long, env = "WIREPROOF_RESYNC", value_parser = FalseyValueParser::new())]
    pub(crate) resync: bool,
    /// The folder with cursors, keys and what is known of accounts [default: wireproof in
    /// $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) state: Option<PathBuf>,
    /// How long the file with them may become; what does not fit ends the run, as a full disk does.
    #[arg(long, env = "WIREPROOF_STATE_BYTES", value_name = "N")]
    pub(crate) state_bytes: Option<u64>,
    /// Where to begin with a host that was never followed before: `live`, `oldest` for all that it
    /// still has, or a sequence number.
    #[arg(long, env = "WIREPROOF_CURSOR", value_name = "CURSOR", default_value = "live")]
    pub(crate) cursor: Start,
    /// Serves what Prometheus scrapes at /metrics of this address, which must be of this machine.
    #[arg(long, env = "WIREPROOF_METRICS", value_name = "127.0.0.1:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Ends after the lines of so many events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events: Option<u64>,
    /// How many threads judge [default: one a core].
    #[arg(long, env = "WIREPROOF_WORKERS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
}

/// Where a stream comes from.
#[derive(Debug, Args)]
pub(crate) struct FromArgs {
    /// A relay, a PDS or a Jetstream; several, to go to the next one when one fails [default: bsky.network].
    #[arg(long, env = "WIREPROOF_HOST", value_name = "URL", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    #[command(flatten)]
    pub(crate) network: crate::network::NetworkArgs,
    /// The shortest wait before a host is tried again.
    #[arg(long, env = "WIREPROOF_BACKOFF_FIRST_MS", value_name = "MS", hide = true)]
    pub(crate) backoff_first_ms: Option<u64>,
    /// The longest wait before a host is tried again.
    #[arg(long, env = "WIREPROOF_BACKOFF_MAX_MS", value_name = "MS", hide = true)]
    pub(crate) backoff_max_ms: Option<u64>,
    /// How long a host may be silent.
    #[arg(long, env = "WIREPROOF_IDLE_SECONDS", value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) idle_seconds: u64,
}

/// Where to begin with a host whose cursor nobody kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With what happens next.
    Live,
    /// Behind this number; 0 for all that there is.
    Behind(u64),
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "live" => Ok(Self::Live),
            "oldest" => Ok(Self::Behind(0)),
            number => number
                .parse()
                .map(Self::Behind)
                .map_err(|_| "`live`, `oldest` or a sequence number is wanted".to_owned()),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof follow | jq -c 'select(.verdict != \"verified\")'
  wireproof follow --collections app.bsky.feed.post | jq -r '.ops[].record.text'
  wireproof follow --host https://one.example.com --host https://two.example.com --resync
  wireproof follow --dids @dids.txt --cursor oldest --state state --metrics 127.0.0.1:9464

All of these can be in the environment (WIREPROOF_HOST, …) and in wireproof.toml: `wireproof config show`.";
