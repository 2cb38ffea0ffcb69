//! Arguments of `wireproof nostr follow`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use net::hosts::parse_host_url;
use net::http::Url;
use nostr::{Filter, IdSerialization};
use nostr_follower::{LineForm, NostrFollowOptions};

use super::super::filter::FilterArgs;
use super::super::id_serialization;
use super::auth_key;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::network::NetworkArgs;
use follower::{DELIVERY, Destination, DestinationParser, OutboxArgs, Status, state_folder};

#[derive(Debug, Args)]
pub(crate) struct NostrFollowArgs {
    /// Relays to follow, all at once; a bare name is a relay over TLS.
    #[arg(value_name = "URL", required = true)]
    relays: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Maximum number of stored events per relay, the newest ones; 0 for new events only [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End once every relay has sent its stored events, or has failed three times in a row.
    #[arg(long)]
    stored: bool,
    /// End after N lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Compare ids with the relays (NIP-77), and fetch only the events that are not in the files of --have.
    #[arg(long, conflicts_with = "limit")]
    negentropy: bool,
    /// Files of events that are not fetched again, and folders of files, as `nostr verify` reads them; repeatable. Only valid
    /// events count.
    #[arg(long, value_name = "FILE|DIR|-", requires = "negentropy")]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(super) have: Vec<PathBuf>,
    /// File with a secret key, as 64 hexadecimal digits or nsec1…, for relays that require authentication (NIP-42).
    /// Only its owner may read it. Relays that require authentication learn the public key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    auth_key: Option<PathBuf>,
    /// The form of control characters in the hashed event: see `nostr verify`.
    #[arg(long, value_name = "FORM", value_parser = id_serialization(), default_value = "either")]
    pub(super) ids: IdSerialization,
    /// Deliver valid events here instead of printing them: file:///FOLDER (files of lines), sqlite:///FILE or
    /// postgres://USER@HOST/DATABASE (a table with a row per event), kafka://HOST/TOPIC, nats://HOST/PREFIX (stream of
    /// NATS JetStream), or https://… (signed webhook). An outbox on disk keeps events until they are acknowledged.
    #[arg(long, value_name = "URI", value_delimiter = ',', conflicts_with = "json")]
    #[arg(value_parser = DestinationParser, help_heading = DELIVERY)]
    to: Vec<Destination>,
    #[command(flatten)]
    delivery: OutboxArgs,
    /// Print a JSON object per line with the relay and the verdict of every event, and with every message of a relay
    /// [default: valid events only].
    #[arg(long)]
    json: bool,
    /// Folder for the times up to which relays were followed [default: wireproof in $XDG_STATE_HOME or ~/.local/state;
    /// none with --stored].
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
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
    network: NetworkArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl NostrFollowArgs {
    /// Whether events go to destinations, and nothing to standard output.
    pub(super) fn delivers(&self) -> bool {
        !self.to.is_empty()
    }

    /// The options of the run. The files of `--have` are read.
    pub(super) fn options(&self, status: &Status) -> Result<NostrFollowOptions, Failure> {
        let mut options = NostrFollowOptions::new(self.urls()?);
        options.filter = self.filter()?;
        options.client.stored_only = self.stored;
        options.client.overlap = Duration::from_secs(self.overlap_seconds);
        options.client.answer_timeout = self.connection.idle_timeout() / 2;
        options.client.backoff = self.connection.backoff(options.client.backoff);
        options.client.socket = self.connection.socket(options.client.socket);
        options.client.authenticator = self.auth_key.as_deref().map(auth_key::read).transpose()?;
        options.client.known = self.known(&options.filter, status)?.map(Arc::new);
        options.events = self.events;
        options.ids = self.ids;
        options.form = self.line_form();
        options.checkpoints = self.checkpoint_folder()?;
        if !self.to.is_empty() {
            options.outbox_folder = self.outbox_folder()?;
        }
        options.to = self.to.clone();
        options.outbox = self.delivery.clone();
        options.max_gather = Duration::from_millis(self.gather_ms);
        options.threads = self.jobs;
        options.network = self.network.clone();
        options.stop_limit = self.connection.stop_limit();
        options.first_contact = self.connection.first_contact_limit();
        Ok(options)
    }

    /// The folder of the times up to which relays were followed; `None` if they are not stored.
    fn checkpoint_folder(&self) -> Result<Option<PathBuf>, Failure> {
        match (self.stored, &self.state) {
            (true, None) => Ok(None),
            (_, folder) => Ok(Some(state_folder(folder.as_deref())?.join("nostr"))),
        }
    }

    /// The folder of the outbox and of refused events, apart from the folder of `follow`.
    fn outbox_folder(&self) -> Result<PathBuf, Failure> {
        let folder = match &self.delivery.outbox {
            Some(folder) => folder.clone(),
            None => state_folder(self.state.as_deref())?.join("outbox"),
        };
        Ok(folder.join("nostr"))
    }

    /// The content of the lines.
    fn line_form(&self) -> LineForm {
        match (self.json, self.to.is_empty()) {
            (true, _) => LineForm::Verdicts,
            (false, true) => LineForm::Received,
            (false, false) => LineForm::Canonical,
        }
    }

    fn urls(&self) -> Result<Vec<Url>, Failure> {
        let url =
            |text: &String| parse_host_url(text).map_err(|error| Failure::Usage(error.to_string()));
        self.relays.iter().map(url).collect()
    }

    /// The filter of the requests.
    fn filter(&self) -> Result<Filter, Failure> {
        Ok(Filter { limit: self.limit, ..self.filter.to_request()? })
    }

    /// Whether ids are compared.
    pub(super) fn compares(&self) -> bool {
        self.negentropy
    }
}
