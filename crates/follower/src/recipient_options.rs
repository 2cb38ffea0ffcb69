//! Options of a run whose events go to a recipient, in place of lines and destinations.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use net::firehose::MoreHosts;

use super::admin_args::AdminArgs;
use super::args::FollowArgs;
use crate::failure::Failure;
use crate::stream::{Start, StreamArgs};

/// The source of a run, and the place of its state.
#[derive(Debug)]
pub struct RecipientOptions {
    /// The hosts.
    pub stream: StreamArgs,
    /// The collections whose commits are selected; all, if there is none.
    pub collections: Vec<String>,
    /// The selected accounts, as `--dids` names them; all, if there is none.
    pub dids: Vec<String>,
    /// The folder of cursors, keys and account states.
    pub state: PathBuf,
    /// Where to start with a host that has no cursor.
    pub cursor: Start,
    /// Whether the repository of an account whose chain is broken is downloaded.
    pub resync: bool,
    /// Whether the recipient needs whole repositories, and not the selected collections alone.
    pub whole_repositories: bool,
    /// The address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// The admin API.
    pub admin: AdminArgs,
    /// The number of events after which the run ends.
    pub events: Option<u64>,
    /// Hosts that are followed at the same time as one of the source; without a host of the source, they alone.
    pub more_hosts: Option<MoreHosts>,
    /// The time in milliseconds for which a verifying thread with few events waits for more.
    pub gather_ms: u64,
    /// The number of verifying threads; one per core, if it is not given.
    pub workers: Option<u16>,
}

/// The options of `follow`, by their defaults.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    follow: FollowArgs,
}

impl FollowArgs {
    /// The arguments of a run for a recipient.
    ///
    /// # Errors
    /// If a variable of the environment has a value that is not valid.
    pub fn for_recipient(options: RecipientOptions) -> Result<Self, Failure> {
        let defaults = Defaults::try_parse_from(["follow"]);
        let defaults = defaults.map_err(|error| Failure::Usage(error.to_string()))?.follow;
        Ok(Self {
            stream: options.stream,
            collections: options.collections,
            dids: options.dids,
            state: Some(options.state),
            cursor: options.cursor,
            resync: options.resync,
            whole_repositories: options.whole_repositories,
            metrics: options.metrics,
            admin: options.admin,
            events: options.events,
            gather_ms: options.gather_ms,
            workers: options.workers,
            more_hosts: options.more_hosts,
            ..defaults.without_delivery()
        })
    }
}
