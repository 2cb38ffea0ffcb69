//! Arguments of `wireproof nostr follow`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use net::cursors::stream_name;
use net::hosts::parse_host_url;
use net::http::Url;
use nostr::negentropy::Items;
use nostr::{Filter, IdSerialization};
use nostr_relay::Options;

use super::super::filter::FilterArgs;
use super::super::id_serialization;
use super::judge::LineForm;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::network::NetworkArgs;
use follower::{DELIVERY, Destination, DestinationParser, OutboxArgs, state_folder};

#[derive(Debug, Args)]
pub(crate) struct NostrFollowArgs {
    /// Relays, which are all followed at once; a bare name is one over TLS.
    #[arg(value_name = "URL", required = true)]
    relays: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Maximum number of stored events of each relay, the newest ones; 0 for new ones alone [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End once every relay has sent its stored events, or has failed three times in a row.
    #[arg(long)]
    pub(super) stored: bool,
    /// End after N lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) events: Option<u64>,
    /// Compare ids with each relay (NIP-77), and fetch only the events that are not in the files of --have.
    #[arg(long, conflicts_with = "limit")]
    negentropy: bool,
    /// Files of events that are not fetched again, and folders of files, as `nostr verify` reads them; repeatable. Only valid
    /// events count.
    #[arg(long, value_name = "FILE|DIR|-", requires = "negentropy")]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(super) have: Vec<PathBuf>,
    /// File with a secret key, as 64 hexadecimal digits or nsec1…, for relays that require authentication (NIP-42). Only its
    /// owner may read it. Each relay that requires it learns the public key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) auth_key: Option<PathBuf>,
    /// The form of control characters in the hashed event: see `nostr verify`.
    #[arg(long, value_name = "FORM", value_parser = id_serialization(), default_value = "either")]
    pub(super) ids: IdSerialization,
    /// Deliver valid events here instead of printing them, from an outbox on disk until each is acknowledged:
    /// file:///FOLDER (files of lines), sqlite:///FILE or postgres://USER@HOST/DATABASE (a table with a row an event),
    /// kafka://HOST/TOPIC, nats://HOST/PREFIX (stream of NATS JetStream), or https://… (signed webhook).
    #[arg(long, value_name = "URI", value_delimiter = ',', conflicts_with = "json")]
    #[arg(value_parser = DestinationParser, help_heading = DELIVERY)]
    pub(super) to: Vec<Destination>,
    #[command(flatten)]
    pub(super) delivery: OutboxArgs,
    /// Print a JSON object a line with the relay and the verdict of each event, and with each message of a relay [default:
    /// valid events alone].
    #[arg(long)]
    json: bool,
    /// Folder for the times up to which each relay was followed [default: wireproof in $XDG_STATE_HOME or ~/.local/state; none
    /// with --stored].
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) state: Option<PathBuf>,
    /// Request events again that were created up to N seconds before the last one, when a relay is followed again: some reach
    /// it late.
    #[arg(long, value_name = "N", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=31_536_000))]
    overlap_seconds: u64,
    /// Milliseconds for which few events wait for more, to be verified together; 0 never waits.
    #[arg(long, env = "WIREPROOF_GATHER_MS", value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000))]
    gather_ms: u64,
    /// Verify on this many threads [default: the number of cores].
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl NostrFollowArgs {
    /// Checks that the options of the delivery fit each other.
    pub(super) fn check_delivery(&self) -> Result<(), Failure> {
        let is_server = |to: &Destination| matches!(to, Destination::WebSocket(_));
        let fault = match () {
            () if self.to.iter().any(is_server) => {
                "--to ws://…: nostr follow has no server for WebSocket clients: name another destination"
            }
            () if self.to.is_empty() && !self.delivery.forget.is_empty() => "--forget needs --to",
            () => return Ok(()),
        };
        Err(Failure::Usage(fault.to_owned()))
    }

    /// The folder of the times up to which relays were followed; `None` if they are not stored.
    pub(super) fn checkpoint_folder(&self) -> Result<Option<PathBuf>, Failure> {
        match (self.stored, &self.state) {
            (true, None) => Ok(None),
            (_, folder) => Ok(Some(state_folder(folder.as_deref())?.join("nostr"))),
        }
    }

    /// What the lines have.
    pub(super) fn line_form(&self) -> LineForm {
        match (self.json, self.to.is_empty()) {
            (true, _) => LineForm::Verdicts,
            (false, true) => LineForm::Received,
            (false, false) => LineForm::Canonical,
        }
    }

    /// The relays, each once.
    pub(super) fn urls(&self) -> Result<Vec<Url>, Failure> {
        let mut urls: Vec<Url> = Vec::new();
        for text in &self.relays {
            let url = parse_host_url(text).map_err(|error| Failure::Usage(error.to_string()))?;
            if urls.iter().any(|other| name(other) == name(&url)) {
                return Err(Failure::Usage(format!("{}: a relay is named twice", name(&url))));
            }
            urls.push(url);
        }
        Ok(urls)
    }

    /// The filter of the requests.
    pub(super) fn filter(&self) -> Result<Filter, Failure> {
        Ok(Filter { limit: self.limit, ..self.filter.to_request()? })
    }

    /// The options of a client that was followed up to `resume` before.
    pub(super) fn options(&self, resume: Option<u64>, known: Option<Arc<Items>>) -> Options {
        let mut options = Options::default();
        options.resume = resume;
        options.known = known;
        options.stored_only = self.stored;
        options.overlap = Duration::from_secs(self.overlap_seconds);
        options.answer_timeout = self.connection.idle_timeout() / 2;
        options.backoff = self.connection.backoff(options.backoff);
        options.socket = self.connection.socket(options.socket);
        options
    }

    /// Whether ids are compared.
    pub(super) fn compares(&self) -> bool {
        self.negentropy
    }

    /// Maximum time for which an event waits for others.
    pub(super) fn max_gather(&self) -> Duration {
        Duration::from_millis(self.gather_ms)
    }

    /// Maximum time of a stop.
    pub(super) fn stop_limit(&self) -> Duration {
        self.connection.stop_limit()
    }
}

/// The name of a relay in output: its URL without a query, which may have a secret.
pub(super) fn name(url: &Url) -> String {
    stream_name(url)
}
