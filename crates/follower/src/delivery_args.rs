//! Arguments of the delivery of events.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum, ValueHint};
use delivery::{FileOptions, Options, WebhookBody};

use crate::help::EXPERT;

use super::consumer_args::ConsumerArgs;
use super::destination::{Destination, DestinationParser};

/// The destinations of events, and the outbox.
#[derive(Debug, Args)]
pub(crate) struct DeliveryArgs {
    /// Deliver events here instead of printing them: file:///FOLDER (files of lines), sqlite:///FILE or
    /// postgres://USER@HOST/DATABASE (tables), kafka://HOST/TOPIC, nats://HOST/PREFIX (stream of NATS JetStream),
    /// https://… (signed webhook), or ws://127.0.0.1:PORT (a server for WebSocket clients). An outbox on disk keeps
    /// events until they are acknowledged. Implies --resync.
    #[arg(long, env = "WIREPROOF_TO", value_name = "URI", value_delimiter = ',')]
    #[arg(value_parser = DestinationParser, help_heading = DELIVERY)]
    pub(super) to: Vec<Destination>,
    /// Print events from the outbox, and read acknowledgements from standard input: a line with the `id` of an event
    /// acknowledges it and all events printed before it.
    #[arg(long, env = "WIREPROOF_ACK_STDIN", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = DELIVERY)]
    pub(super) ack_stdin: bool,
    /// Deliver all records of the accounts of --dids before their new events: every repository is fetched and verified
    /// once for all destinations. Without --dids, the accounts are the ones that --host lists for --collections.
    #[arg(long, env = "WIREPROOF_BACKFILL", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = DELIVERY)]
    pub(super) backfill: bool,
    /// Deliver all records of all accounts of these servers. They come before the accounts' new events, at the rate
    /// that the server allows. Implies --backfill; --dids and --collections still select the new events.
    #[arg(long, env = "WIREPROOF_ALL_FROM", value_name = "HOST", value_delimiter = ',')]
    #[arg(help_heading = DELIVERY)]
    pub(super) all_from: Vec<String>,
    /// Seconds between reads of the lists of --all-from and of collections, for new accounts.
    #[arg(long, env = "WIREPROOF_LIST_SECONDS", value_name = "N", default_value_t = 3600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=31_536_000), help_heading = EXPERT)]
    list_seconds: u64,
    #[command(flatten)]
    pub(super) stored: OutboxArgs,
    /// Names of the clients of a ws:// server; a name has its own cursor, and one connection at a time.
    #[arg(long, env = "WIREPROOF_WS_CONSUMER", value_name = "NAME", value_delimiter = ',')]
    #[arg(default_value = "websocket", help_heading = EXPERT)]
    pub(super) ws_consumer: Vec<String>,
    #[command(flatten)]
    pub(super) consumers: ConsumerArgs,
    /// Origins of web pages that may connect to a ws:// server, such as https://app.example [default: none].
    #[arg(long, env = "WIREPROOF_WS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    #[arg(help_heading = EXPERT)]
    pub(super) ws_origin: Vec<String>,
}

impl DeliveryArgs {
    /// Whether events go through the outbox.
    pub(super) fn uses_outbox(&self) -> bool {
        self.ack_stdin || !self.to.is_empty()
    }

    /// The interval at which lists are read on.
    pub(super) fn list_interval(&self) -> Duration {
        Duration::from_secs(self.list_seconds)
    }
}

/// Options of the outbox and of destinations.
#[derive(Clone, Debug, Args)]
pub struct OutboxArgs {
    /// Folder for the outbox and for refused events [default: outbox in the state folder].
    #[arg(long, env = "WIREPROOF_OUTBOX", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = DELIVERY)]
    pub outbox: Option<PathBuf>,
    /// Number of undelivered events at which the stream waits.
    #[arg(long, env = "WIREPROOF_OUTBOX_EVENTS", value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), help_heading = EXPERT)]
    outbox_events: u64,
    /// Size of undelivered events in bytes at which the stream waits.
    #[arg(long, env = "WIREPROOF_OUTBOX_BYTES", value_name = "N", default_value_t = 1 << 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), help_heading = EXPERT)]
    outbox_bytes: u64,
    /// Age of the oldest undelivered event in hours at which the stream waits.
    #[arg(long, env = "WIREPROOF_OUTBOX_HOURS", value_name = "N", default_value_t = 72)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=87_600), help_heading = EXPERT)]
    outbox_hours: u64,
    /// Remove this destination of an earlier run from the outbox, with the events that only it awaits.
    #[arg(long, value_name = "NAME", help_heading = DELIVERY)]
    pub forget: Vec<String>,
    /// How events are delivered.
    #[command(flatten)]
    pub sinks: SinkArgs,
}

/// Options of destinations.
#[derive(Clone, Debug, Args)]
pub struct SinkArgs {
    /// File with the secret that signs webhooks: `whsec_` and base64, or 24 to 64 bytes of text.
    #[arg(long, env = "WIREPROOF_WEBHOOK_SECRET_FILE", value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath, help_heading = DELIVERY)]
    pub webhook_secret_file: Option<PathBuf>,
    /// Form of the body of a webhook.
    #[arg(long, env = "WIREPROOF_WEBHOOK_BODY", value_enum, value_name = "FORM")]
    #[arg(default_value_t = WebhookForm::Json, help_heading = EXPERT)]
    webhook_body: WebhookForm,
    /// Size in bytes at which a file of events is complete.
    #[arg(long, env = "WIREPROOF_FILE_BYTES", value_name = "N", default_value_t = 256 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), help_heading = EXPERT)]
    file_bytes: u64,
    /// Age in seconds at which a file of events is complete.
    #[arg(long, env = "WIREPROOF_FILE_SECONDS", value_name = "N", default_value_t = 3600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=31_536_000), help_heading = EXPERT)]
    file_seconds: u64,
}

/// The form of the body of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WebhookForm {
    /// One JSON document, an array of lines: the libraries of Standard Webhooks parse it.
    Json,
    /// JSON lines.
    Ndjson,
}

impl OutboxArgs {
    /// The bounds of the outbox.
    pub fn outbox_options(&self) -> Options {
        let mut options = Options::default();
        options.max_events = self.outbox_events;
        options.max_bytes = self.outbox_bytes;
        options.max_age = Duration::from_secs(self.outbox_hours * 3600);
        options
    }
}

impl SinkArgs {
    /// The form of the body of a webhook.
    pub fn webhook_body(&self) -> WebhookBody {
        match self.webhook_body {
            WebhookForm::Json => WebhookBody::Json,
            WebhookForm::Ndjson => WebhookBody::Ndjson,
        }
    }

    /// The bounds of files.
    pub fn file_options(&self) -> FileOptions {
        let mut options = FileOptions::default();
        options.max_bytes = self.file_bytes;
        options.max_age = Duration::from_secs(self.file_seconds);
        options
    }
}

/// The heading of these arguments in the help.
pub const DELIVERY: &str = "Delivery";
