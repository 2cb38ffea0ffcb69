//! The options of a run.

use std::path::PathBuf;
use std::time::Duration;

use atproto::syntax::AtIdentifierBuf;
use follower::{Destination, OutboxArgs};
use net::hosts::BackoffOptions;
use net::websocket::SocketOptions;
use program::arguments;
use program::connection::ConnectionArgs;
use program::failure::Failure;
use program::names;
use program::network::NetworkArgs;

/// The labelers to follow, and the target of labels. [`LabelFollower::builder`](crate::LabelFollower::builder) sets the common
/// options.
#[derive(Debug)]
#[non_exhaustive]
pub struct LabelFollowOptions {
    /// The labelers, which are all followed at once.
    pub labelers: Vec<AtIdentifierBuf>,
    /// Where a labeler begins that was never followed.
    pub start: Start,
    /// The number of lines after which the run ends; `None` for no end.
    pub events: Option<u64>,
    /// Whether labels count that a key signed which the labeler had earlier.
    pub accept_earlier_keys: bool,
    /// Folder for cursors and keys; `None` if they are not stored.
    pub checkpoints: Option<PathBuf>,
    /// Where labels are delivered.
    pub to: Vec<Destination>,
    /// Folder of the outbox and of refused events, which destinations need.
    pub outbox_folder: PathBuf,
    /// Options of the outbox and of destinations.
    pub outbox: OutboxArgs,
    /// Maximum time for which a message waits for others, to be verified together. 2 milliseconds.
    pub max_gather: Duration,
    /// Minimum time between two lookups of the keys of a labeler. 1 second.
    pub min_refresh: Duration,
    /// Delays between connections.
    pub backoff: BackoffOptions,
    /// Options of WebSockets.
    pub socket: SocketOptions<'static>,
    /// Where connections may go.
    pub network: NetworkArgs,
    /// Maximum time of a stop. 10 seconds.
    pub stop_limit: Duration,
    /// Maximum time until a labeler that was never followed is found; `None` waits for ever. 30 seconds.
    pub first_contact: Option<Duration>,
}

/// Where the stream of a labeler begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the oldest label that the service has.
    Oldest,
    /// With the labels that it makes from now on.
    Now,
}

impl LabelFollowOptions {
    /// The options for these labelers, by their defaults, whatever the environment has.
    pub fn new(labelers: Vec<AtIdentifierBuf>) -> Self {
        Self {
            labelers,
            start: Start::Oldest,
            events: None,
            accept_earlier_keys: false,
            checkpoints: None,
            to: Vec::new(),
            outbox_folder: PathBuf::new(),
            outbox: arguments::without_environment(),
            max_gather: Duration::from_millis(2),
            min_refresh: Duration::from_secs(1),
            backoff: BackoffOptions::default(),
            socket: SocketOptions::default(),
            network: NetworkArgs::default(),
            stop_limit: Duration::from_secs(10),
            first_contact: Some(Duration::from_secs(30)),
        }
    }

    /// The options that commands about labelers have in common.
    ///
    /// # Errors
    /// If a labeler is neither a DID nor a handle.
    pub fn of_command(
        labelers: &[String],
        network: &NetworkArgs,
        connection: &ConnectionArgs,
    ) -> Result<Self, Failure> {
        let labelers: Result<Vec<AtIdentifierBuf>, Failure> =
            labelers.iter().map(|who| Ok(names::account(who)?.to_buf())).collect();
        let mut options = Self::new(labelers?);
        options.backoff = connection.backoff(options.backoff);
        options.socket = connection.socket(options.socket);
        options.network = network.clone();
        options.stop_limit = connection.stop_limit();
        options.first_contact = connection.first_contact_limit();
        Ok(options)
    }

    /// Checks that the options fit each other.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let is_server = |to: &Destination| matches!(to, Destination::WebSocket(_));
        let fault = if self.labelers.is_empty() {
            "no labeler is named"
        } else if self.to.iter().any(is_server) {
            "--to ws://…: labels follow has no server for WebSocket clients: name another destination"
        } else if self.to.is_empty() && !self.outbox.forget.is_empty() {
            "--forget needs --to"
        } else {
            return Ok(());
        };
        Err(Failure::Usage(fault.to_owned()))
    }
}
