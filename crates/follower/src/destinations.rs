//! The destinations of a run: a consumer of the outbox for each, and a task that delivers to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use delivery::{
    DeadLetters, Delivery, DeliveryMetrics, DeliveryOptions, FailureKind, FileSink, LineForm,
    Outbox, PostgresOptions, PostgresSink, SendFailure, Sink, SqliteOptions, SqliteSink, StartAt,
    TableContent, WebhookOptions, WebhookSecret, WebhookSink, dead_letter_bytes,
};
#[cfg(feature = "kafka")]
use delivery::{KafkaOptions, KafkaSink};
#[cfg(feature = "nats")]
use delivery::{NatsOptions, NatsSink};
use net::firehose::StopSignal;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::ack_stdin;
use super::delivery_args::SinkArgs;
use super::destination::Destination;
use super::metrics::bound_text;
use super::status::Status;
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::network::NetworkArgs;
use crate::{files, network};

/// How destinations are opened.
pub struct DestinationOptions<'a> {
    /// The arguments.
    pub args: &'a SinkArgs,
    /// Where connections may go.
    pub network: &'a NetworkArgs,
    /// What is one line.
    pub form: LineForm,
    /// What tables hold.
    pub content: TableContent,
    /// Folder for refused events.
    pub folder: &'a Path,
    /// Maximum time of a stop.
    pub stop_limit: Duration,
}

/// The open destinations of an outbox.
pub struct Destinations {
    outbox: Outbox,
    all: Vec<OpenDestination>,
    form: LineForm,
    content: TableContent,
    options: DeliveryOptions,
}

/// A destination and the name of its consumer.
struct OpenDestination {
    consumer: String,
    output: Output,
}

enum Output {
    /// With dead letters where events are split, which one that is no line is not.
    Files(FileSink, Option<DeadLetters>),
    Webhook(Box<WebhookSink>, DeadLetters),
    #[cfg(feature = "kafka")]
    Kafka(Box<KafkaSink>, DeadLetters),
    #[cfg(feature = "nats")]
    Nats(Box<NatsSink>, DeadLetters),
    Sqlite(SqliteSink, DeadLetters),
    Postgres(Box<PostgresSink>, DeadLetters),
    /// Standard output, with acknowledgements on standard input.
    Stdout,
    /// A client of the WebSocket server.
    WebSocketClient,
}

impl Destinations {
    /// Opens destinations; of a WebSocket server these clients.
    pub async fn open(
        outbox: &Outbox,
        to: &[Destination],
        clients: &[String],
        options: &DestinationOptions<'_>,
    ) -> Result<Self, Failure> {
        let mut all: Vec<OpenDestination> = Vec::new();
        for destination in to {
            for consumer in destination.consumers(clients) {
                if all.iter().any(|known| known.consumer == consumer) {
                    return Err(Failure::Usage(format!("--to: {consumer} is named twice")));
                }
                let output = open_output(options, outbox, destination, &consumer).await?;
                all.push(OpenDestination { consumer, output });
            }
        }
        let DestinationOptions { form, content, stop_limit, .. } = *options;
        let mut options = DeliveryOptions::default();
        options.stop_timeout = stop_limit / 10;
        Ok(Self { outbox: outbox.clone(), all, form, content, options })
    }

    /// Adds standard output, with acknowledgements on standard input.
    pub(super) fn add_stdout(&mut self) {
        let consumer = "stdout".to_owned();
        self.all.push(OpenDestination { consumer, output: Output::Stdout });
    }

    /// Whether a destination is new to the outbox, or has lost what it had. One of an earlier run that is not named any
    /// more would keep its events until the outbox is full.
    pub async fn check(&self) -> Result<bool, Failure> {
        let known = self.outbox.status().consumers;
        let is_named = |name: &str| self.has(name);
        if let Some(left) = known.iter().find(|consumer| !is_named(&consumer.name)) {
            let (name, events) = (&left.name, left.behind);
            return Err(Failure::Usage(format!(
                "the outbox has {events} events for {name}, a destination of an earlier run: name it again, or remove it \
                 with --forget {name}"
            )));
        }
        let mut has_new = false;
        for OpenDestination { consumer, output } in &self.all {
            let cursor = known.iter().find(|of| of.name == *consumer).map(|of| of.cursor);
            let is_empty = output.is_empty().await?;
            if is_empty && cursor.is_some_and(|cursor| cursor > 0) {
                let text =
                    "the tables have no event of this outbox: those before are missing in them";
                // If standard error is closed, the column `complete` remains.
                let cure = match self.content {
                    TableContent::NostrEvents => "another --state begins with all stored events",
                    _ => "--backfill delivers the records",
                };
                let text = format!("{consumer}: {text}; {cure}");
                let _ = log::print(Level::Warning, &text);
            }
            has_new |= is_empty || cursor.is_none();
        }
        Ok(has_new)
    }

    /// Registers those that are new.
    pub fn register(&self) -> Result<(), Failure> {
        for destination in &self.all {
            self.outbox.register(&destination.consumer, StartAt::Oldest)?;
        }
        Ok(())
    }

    /// Whether a consumer has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|of| of.consumer == name)
    }

    /// Starts a task for each destination, and one that reports their failures.
    pub fn start(self, stop: &StopSignal, status: &Status) -> Result<Tasks, Failure> {
        let (mut tasks, mut watched) = (Tasks::default(), Vec::new());
        for OpenDestination { consumer: name, output } in self.all {
            let consumer = || self.outbox.consumer(&name);
            let (options, stop) = (self.options, stop.clone());
            let metrics = match output {
                // The server attaches it when it connects.
                Output::WebSocketClient => continue,
                Output::Stdout => {
                    let (form, status) = (self.form, status.clone());
                    tasks.deliveries.spawn(ack_stdin::deliver(consumer()?, form, stop, status));
                    continue;
                }
                Output::Files(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, sink, letters, options);
                    start(&mut tasks, &name, delivery, stop)
                }
                Output::Sqlite(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
                Output::Postgres(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, *sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
                Output::Webhook(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, *sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
                #[cfg(feature = "kafka")]
                Output::Kafka(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, *sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
                #[cfg(feature = "nats")]
                Output::Nats(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, *sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
            };
            tasks.metrics.push(metrics.clone());
            watched.push((name, metrics));
        }
        tasks.helpers.spawn(watch(self.outbox, watched, status.clone()));
        Ok(tasks)
    }
}

/// The tasks of a run.
#[derive(Default)]
pub struct Tasks {
    /// One for each destination.
    pub deliveries: JoinSet<Result<(), Failure>>,
    /// What runs beside them; it ends when this value is dropped.
    pub helpers: JoinSet<()>,
    /// The counters of the destinations.
    pub metrics: Vec<Arc<DeliveryMetrics>>,
}

impl Tasks {
    /// Waits until all deliveries have ended; the first failure, if one failed.
    pub async fn join(mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        while let Some(ended) = self.deliveries.join_next().await {
            let ended =
                ended.unwrap_or_else(|error| Err(Failure::Local(format!("a delivery: {error}"))));
            result = result.and(ended);
        }
        result
    }
}

/// Starts a delivery. When it ends, the run stops: without the destination the outbox would only fill.
fn start<S: Sink>(
    tasks: &mut Tasks,
    name: &str,
    delivery: Delivery<S>,
    stop: StopSignal,
) -> Arc<DeliveryMetrics> {
    let (metrics, name) = (delivery.metrics(), name.to_owned());
    tasks.deliveries.spawn(async move {
        let result = delivery.run(stop.clone()).await;
        stop.request();
        result.map(drop).map_err(|error| Failure::Local(format!("{name}: {error}")))
    });
    metrics
}

async fn open_output(
    options: &DestinationOptions<'_>,
    outbox: &Outbox,
    destination: &Destination,
    consumer: &str,
) -> Result<Output, Failure> {
    let DestinationOptions { args, form, content, folder, .. } = *options;
    let failed = |error: &dyn std::fmt::Display| Failure::Local(error.to_string());
    match destination {
        Destination::Files(path) => {
            let mut files = args.file_options();
            files.form = form;
            let sink = FileSink::open(path, files).map_err(|error| failed(&error))?;
            let is_split = form == LineForm::Operations;
            let letters = is_split.then(|| dead_letters(folder, consumer)).transpose()?;
            Ok(Output::Files(sink, letters))
        }
        Destination::Sqlite(path) => {
            let mut tables = SqliteOptions::default();
            tables.content = content;
            let sink = SqliteSink::open(path, outbox.identity(), tables);
            let sink = sink.map_err(|error| failed(&error))?;
            Ok(Output::Sqlite(sink, dead_letters(folder, consumer)?))
        }
        Destination::Postgres(address) => {
            if let Some(text) = address.warning() {
                // If standard error is closed, the operator has chosen it all the same.
                let _ = log::print(Level::Warning, &format!("{consumer}: {text}"));
            }
            let mut tables = PostgresOptions::default();
            tables.content = content;
            let sink = PostgresSink::open(*address.clone(), outbox.identity(), tables).await;
            let sink = sink.map_err(|failure| unavailable(consumer, failure))?;
            Ok(Output::Postgres(Box::new(sink), dead_letters(folder, consumer)?))
        }
        Destination::Webhook(url) => {
            let client = network::operator_client(options.network)?;
            let secret = webhook_secret(args)?;
            let mut sent = WebhookOptions::default();
            (sent.form, sent.body) = (form, args.webhook_body());
            let sink = WebhookSink::new(client, url.clone(), secret, sent);
            Ok(Output::Webhook(Box::new(sink), dead_letters(folder, consumer)?))
        }
        #[cfg(feature = "kafka")]
        Destination::Kafka(address) => {
            let mut sent = KafkaOptions::default();
            sent.form = form;
            let sink = KafkaSink::open(*address.clone(), sent).await;
            let sink = sink.map_err(|failure| unavailable(consumer, failure))?;
            Ok(Output::Kafka(Box::new(sink), dead_letters(folder, consumer)?))
        }
        #[cfg(feature = "nats")]
        Destination::Nats(address) => {
            let mut sent = NatsOptions::default();
            sent.form = form;
            let sink = NatsSink::open(*address.clone(), sent).await;
            let sink = sink.map_err(|failure| unavailable(consumer, failure))?;
            Ok(Output::Nats(Box::new(sink), dead_letters(folder, consumer)?))
        }
        Destination::WebSocket(_) => Ok(Output::WebSocketClient),
    }
}

/// The file of the events that a destination refuses.
fn dead_letters(folder: &Path, consumer: &str) -> Result<DeadLetters, Failure> {
    DeadLetters::open(&letters_path(folder, consumer), consumer, MAX_LETTERS_BYTES)
        .map_err(|error| Failure::Local(error.to_string()))
}

fn letters_path(folder: &Path, consumer: &str) -> PathBuf {
    folder.join(format!("refused-{consumer}.ndjson"))
}

/// Bytes of the events that a destination has refused, in files beside the outbox.
pub(super) fn refused_bytes(outbox: &Outbox, consumer: &str) -> u64 {
    let folder = outbox.path().parent();
    folder.map_or(0, |folder| dead_letter_bytes(&letters_path(folder, consumer)))
}

/// A destination on a host that cannot be opened: one that may be available later is a fault of the network.
fn unavailable(name: &str, failure: SendFailure) -> Failure {
    let text = format!("{name}: {failure}");
    match failure.kind {
        FailureKind::Temporary(_) => Failure::Network(text),
        _ => Failure::Local(text),
    }
}

fn webhook_secret(args: &SinkArgs) -> Result<WebhookSecret, Failure> {
    let Some(path) = &args.webhook_secret_file else {
        let text = "--to: a webhook needs --webhook-secret-file, to sign its requests";
        return Err(Failure::Usage(text.to_owned()));
    };
    let bytes = files::read(path)?;
    let text = String::from_utf8_lossy(bytes.trim_ascii());
    WebhookSecret::parse(&text)
        .map_err(|error| Failure::Usage(format!("--webhook-secret-file: {error}")))
}

impl Output {
    /// Whether the destination knows that it has no event of the outbox.
    async fn is_empty(&self) -> Result<bool, Failure> {
        let position = match self {
            Self::Sqlite(sink, _) => sink.position(),
            Self::Postgres(sink, _) => sink.position().await,
            _ => return Ok(false),
        };
        let position = position.map_err(|error| Failure::Local(error.to_string()))?;
        Ok(position.is_none())
    }
}

/// Waits until every destination has acknowledged all events, or a stop is requested.
pub async fn drain(outbox: &Outbox, stop: &StopSignal, status: &Status) {
    let undelivered = || outbox.status().consumers.iter().map(|of| of.behind).max().unwrap_or(0);
    let mut waited = Duration::ZERO;
    while undelivered() > 0 && !stop.is_requested() {
        sleep(DRAIN_INTERVAL).await;
        waited += DRAIN_INTERVAL;
        if waited == ANNOUNCE_DRAIN_AFTER {
            let count = undelivered();
            status.print(&format!(
                "delivering the last {count} events; Ctrl-C leaves them to the next run"
            ));
        }
    }
}

/// Ends the wait of the stream for room in the outbox: at once if it waits when the stop is requested, else after a time
/// in which the events in flight are stored.
pub async fn stop_appends(outbox: Outbox, stop: StopSignal, limit: Duration) {
    stop.requested().await;
    for _ in 0..STOP_POLLS {
        if outbox.status().reached.is_some() {
            break;
        }
        sleep(limit / STOP_POLLS).await;
    }
    outbox.stop_appends();
}

/// Reports deliveries that fail and an outbox at its bound, for ever.
async fn watch(outbox: Outbox, deliveries: Vec<(String, Arc<DeliveryMetrics>)>, status: Status) {
    let mut tick = interval(WATCH_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut set_aside = vec![0; deliveries.len()];
    loop {
        tick.tick().await;
        for ((name, metrics), reported) in deliveries.iter().zip(&mut set_aside) {
            if let Some(failure) = metrics.last_failure() {
                status.warn("delivery-failed", || format!("{name}: {failure}; it is retried"));
            }
            let count = metrics.set_aside();
            if count > std::mem::replace(reported, count) {
                status.warn("delivery-refused", || {
                    format!("{name}: {count} refused events are in the file of dead letters")
                });
            }
        }
        report_bound(&outbox, &status);
    }
}

fn report_bound(outbox: &Outbox, status: &Status) {
    let state = outbox.status();
    let Some(bound) = state.reached else { return };
    let bound = bound_text(bound);
    let slowest = state.consumers.iter().min_by_key(|consumer| consumer.cursor);
    let name = slowest.map_or("", |consumer| consumer.name.as_str());
    status.warn("outbox-full", || {
        format!("the outbox is at its maximum {bound}: the stream waits for {name}")
    });
}

/// Says what the next run delivers.
pub fn report_undelivered(outbox: &Outbox, status: &Status) {
    for consumer in outbox.status().consumers.iter().filter(|consumer| consumer.behind > 0) {
        let (name, count) = (&consumer.name, consumer.behind);
        status.print(&format!(
            "{name}: {count} stored events are not delivered: the next run delivers them"
        ));
    }
}

/// Maximum size of a file of dead letters and its parts in bytes.
const MAX_LETTERS_BYTES: u64 = 256 << 20;

const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
const ANNOUNCE_DRAIN_AFTER: Duration = Duration::from_secs(1);
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
const STOP_POLLS: u32 = 20;
