//! The options of a run.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use follower::{Destination, OutboxArgs};
use net::cursors::stream_name;
use net::http::Url;
use nostr::{Filter, IdSerialization};
use nostr_relay::Options;
use program::arguments;
use program::failure::Failure;
use program::network::NetworkArgs;

/// The relays to follow, and the target of events. [`NostrFollower::builder`](crate::NostrFollower::builder) sets the
/// common options.
#[derive(Debug)]
#[non_exhaustive]
pub struct NostrFollowOptions {
    /// The relays, which are all followed at once.
    pub relays: Vec<Url>,
    /// The filter of the requests.
    pub filter: Filter,
    /// The options of every relay's client. Its time to resume comes from the checkpoints.
    pub client: Options,
    /// The number of lines after which the run ends; `None` for no end.
    pub events: Option<u64>,
    /// The form of control characters in the hashed event.
    pub ids: IdSerialization,
    /// The content of lines.
    pub form: LineForm,
    /// Folder for the times up to which relays were followed; `None` if they are not stored.
    pub checkpoints: Option<PathBuf>,
    /// Where events are delivered.
    pub to: Vec<Destination>,
    /// Folder of the outbox and of refused events, which destinations need.
    pub outbox_folder: PathBuf,
    /// Options of the outbox and of destinations.
    pub outbox: OutboxArgs,
    /// Maximum time for which an event waits for others, to be verified together. 2 milliseconds.
    pub max_gather: Duration,
    /// Number of verifying threads; `None` for one per core.
    pub threads: Option<NonZeroUsize>,
    /// Where connections may go.
    pub network: NetworkArgs,
    /// Maximum time of a stop. 10 seconds.
    pub stop_limit: Duration,
    /// Maximum time until a relay that was never followed is reached; `None` waits for ever. 30 seconds.
    pub first_contact: Option<Duration>,
}

/// The content of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// Valid events, with the received texts.
    Received,
    /// The seven fields of valid events and nothing else: the same line whatever relay sent it.
    Canonical,
    /// The relay and the verdict of events, and messages about relays.
    Verdicts,
}

impl NostrFollowOptions {
    /// The options for these relays, by their defaults, whatever the environment has.
    pub fn new(relays: Vec<Url>) -> Self {
        Self {
            relays,
            filter: Filter::default(),
            client: Options::default(),
            events: None,
            ids: IdSerialization::Either,
            form: LineForm::Received,
            checkpoints: None,
            to: Vec::new(),
            outbox_folder: PathBuf::new(),
            outbox: arguments::without_environment(),
            max_gather: Duration::from_millis(2),
            threads: None,
            network: NetworkArgs::default(),
            stop_limit: Duration::from_secs(10),
            first_contact: Some(Duration::from_secs(30)),
        }
    }

    /// Checks that the options of the delivery fit each other.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let is_server = |to: &Destination| matches!(to, Destination::WebSocket(_));
        let twice = self.relays.iter().enumerate().find(|(at, url)| {
            self.relays[..*at].iter().any(|other| relay_name(other) == relay_name(url))
        });
        let fault = match twice {
            Some((_, url)) => format!("{}: a relay is named twice", relay_name(url)),
            None if self.relays.is_empty() => "no relay is named".to_owned(),
            None if self.to.iter().any(is_server) => {
                "--to ws://…: nostr follow has no server for WebSocket clients: name another destination".to_owned()
            }
            None if self.to.is_empty() && !self.outbox.forget.is_empty() => {
                "--forget needs --to".to_owned()
            }
            None => return Ok(()),
        };
        Err(Failure::Usage(fault))
    }

    /// The options of a client that was followed up to `resume` before.
    pub(crate) fn client(&self, resume: Option<u64>) -> Options {
        let mut options = self.client.clone();
        options.resume = resume;
        options
    }

    /// Whether a relay ends with its stored events.
    pub(crate) fn ends_with_stored(&self) -> bool {
        self.client.stored_only
    }

    /// The known events, which are not requested.
    pub(crate) fn known(&self) -> Option<&Arc<nostr::negentropy::Items>> {
        self.client.known.as_ref()
    }
}

/// The name of a relay in output: its URL without a query, which may have a secret.
pub fn relay_name(url: &Url) -> String {
    stream_name(url)
}
