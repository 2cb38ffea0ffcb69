//! The event stream that `follow` and `capture` read: arguments, hosts, feed options, and notices.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use net::DurationText;
use net::firehose::{FeedOptions, Notice, StartFrom, Upstream};
use net::hosts::parse_host_url;
use net::http::Url;
use net::websocket::{DialError, DialFault, StreamKind};

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::network::{self, NetworkArgs};

/// The source of a stream.
#[derive(Debug, Args)]
pub struct StreamArgs {
    /// A relay, a PDS or a Jetstream; of several, the next one is used when one fails [default:
    /// bsky.network].
    #[arg(long, env = "WIREPROOF_HOST", value_name = "URL", value_delimiter = ',', help_heading = SOURCE)]
    pub host: Vec<String>,
    /// The directory, and where connections may go.
    #[command(flatten)]
    pub network: NetworkArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl StreamArgs {
    /// Maximum time of a stop.
    pub fn stop_limit(&self) -> Duration {
        self.connection.stop_limit()
    }

    /// Maximum time until a host is reached for the first time, if there is one.
    pub fn first_contact_limit(&self) -> Option<Duration> {
        self.connection.first_contact_limit()
    }

    /// How the hosts are read.
    pub fn feed_options(&self, start: Start) -> FeedOptions {
        let mut options = FeedOptions::default();
        options.start = if start == Start::After(0) { StartFrom::Oldest } else { StartFrom::Live };
        options.backoff = self.connection.backoff(options.backoff);
        options.socket = self.connection.socket(options.socket);
        options
    }
}

/// Where to start with a host that has no stored cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the next event.
    Live,
    /// After this sequence number; 0 for the oldest event.
    After(u64),
}

impl Start {
    /// The cursor to start after, if it is a sequence number.
    pub fn cursor(self) -> Option<u64> {
        match self {
            Self::After(number) if number > 0 => Some(number),
            _ => None,
        }
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "live" => Ok(Self::Live),
            "oldest" => Ok(Self::After(0)),
            number => match number.parse() {
                Ok(number) => Ok(Self::After(number)),
                Err(_) => Err("expected `live`, `oldest` or a sequence number".to_owned()),
            },
        }
    }
}

/// The hosts of a stream.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The URLs.
    pub urls: Vec<Url>,
    /// The origins of the URLs, as lines, notices and metrics have them.
    pub names: Vec<String>,
}

impl Hosts {
    /// The given hosts, or `default` if there are none.
    ///
    /// # Errors
    /// If a host is no URL.
    pub fn new(given: &[String], default: &str) -> Result<Self, Failure> {
        let default = [default.to_owned()];
        let given = if given.is_empty() { &default } else { given };
        let url = |name: &String| {
            parse_host_url(name).map_err(|error| Failure::Usage(format!("--host {name}: {error}")))
        };
        let urls: Vec<Url> = given.iter().map(url).collect::<Result<_, _>>()?;
        let names = urls.iter().map(http_origin).collect();
        Ok(Self { urls, names })
    }

    /// No hosts: all are added to the run.
    pub fn none() -> Self {
        Self { urls: Vec::new(), names: Vec::new() }
    }

    /// The name of a host.
    pub fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    /// The hosts without cursors.
    pub fn upstreams(&self) -> Vec<Upstream> {
        self.urls.iter().cloned().map(Upstream::new).collect()
    }
}

/// The origin with the scheme of HTTP, including `wss://` and `ws://`.
pub fn http_origin(url: &Url) -> String {
    let mut url = url.clone();
    let scheme = if matches!(url.scheme(), "wss" | "https") { "https" } else { "http" };
    // The scheme of a URL with a host can be changed to another one of the web.
    let _ = url.set_scheme(scheme);
    network::origin(&url)
}

/// The line about a notice.
pub fn notice_text(host: &str, notice: &Notice) -> String {
    let message_text = |name: &str, message: &str| match message {
        "" => format!("{host}: {name}"),
        message => format!("{host}: {name}: {message}"),
    };
    match notice {
        Notice::Connected { cursor: Some(cursor), .. } => {
            format!("{host}: connected, resuming after {cursor}")
        }
        Notice::Connected { cursor: None, .. } => format!("{host}: connected, live"),
        Notice::Disconnected { reason, .. } => format!("{host}: {reason}"),
        Notice::ConnectFailed { error, .. } => format!("{host}: {error}{}", hint(error)),
        Notice::HostExcluded { error, .. } => format!("{host}: excluded: {error}"),
        Notice::RetryScheduled { time, .. } => {
            format!("{host}: retrying in {}", DurationText(*time))
        }
        Notice::Rotated { .. } => format!("{host}: switching to this host"),
        Notice::Regressed { after, seq, .. } => {
            format!("{host}: sequence number {seq} after {after}; the event is processed")
        }
        Notice::Reused { seq, .. } => format!("{host}: two events with sequence number {seq}"),
        Notice::OutdatedCursor { cursor, .. } => format!(
            "{host}: the cursor {} is outdated: events are missing",
            cursor.unwrap_or_default()
        ),
        Notice::FutureCursor { cursor, .. } => format!(
            "{host}: the cursor {} is in the future: the host has reset its sequence, which is read from its oldest \
             event; events that it sent before may be missing",
            cursor.unwrap_or_default()
        ),
        Notice::SequenceReset { after, seq, .. } => format!(
            "{host}: sequence number {seq} after {after}: the host has reset its sequence, which is read from its oldest \
             event; events that it sent before may be missing"
        ),
        Notice::ConsumerTooSlow { message, .. } => message_text("ConsumerTooSlow", message),
        Notice::ServerError { name, message, .. } | Notice::ServerInfo { name, message, .. } => {
            message_text(name, message)
        }
        Notice::Gap { after, .. } => format!(
            "{host}: sequence numbers skipped after {after}: {}; their events are lost or not forwarded",
            notice.skipped_seqs()
        ),
        Notice::Repeated { seq, .. } => {
            format!("{host}: sequence number {seq} again with the same bytes; it is skipped")
        }
        other => format!("{host}: {}", other.name()),
    }
}

/// The remedy for a host without the requested stream.
fn hint(error: &DialError) -> &'static str {
    match &error.fault {
        DialFault::Refused(refusal) if refusal.is_no_stream() => match refusal.other_stream {
            Some(StreamKind::Jetstream) => ": use `follow --jetstream`",
            Some(StreamKind::Firehose) => ": leave out --jetstream",
            None => "; it has no such event stream: check --host",
        },
        _ => "",
    }
}

/// Headings of options in the help.
pub const SOURCE: &str = "Source";
/// Messages for an operator.
pub const OPERATION: &str = "Operation";

/// The default relay, which has the events of the whole network.
pub const DEFAULT_RELAY: &str = "bsky.network";
