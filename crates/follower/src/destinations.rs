//! The destinations of a run: one consumer of the outbox and one delivery task per destination.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use delivery::{
    AnyAddress, AnySink, DeadLetters, Delivery, DeliveryMetrics, DeliveryOptions, FailureKind,
    LineForm, OpenFailure, Outbox, SendFailure, SinkOptions, StartAt, TableContent, WebhookSecret,
};
use net::firehose::StopSignal;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::Level;

use super::ack_stdin;
use super::delivery_args::SinkArgs;
use super::destination::Destination;
use super::metrics::bound_text;
use super::refused_events;
use super::status::Status;
use crate::failure::Failure;
use crate::messages;
use crate::network::NetworkArgs;
use crate::{files, network};

/// How destinations are opened.
pub struct DestinationOptions<'a> {
    /// The arguments.
    pub args: &'a SinkArgs,
    /// Where connections may go.
    pub network: &'a NetworkArgs,
    /// The unit of a line.
    pub form: LineForm,
    /// The content of tables.
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
    Sink(OpenSink),
    /// Standard output, with acknowledgements on standard input.
    Stdout,
    /// A client of the WebSocket server.
    WebSocketClient,
}

struct OpenSink {
    sink: AnySink,
    /// For the events that it refuses, if it can.
    letters: Option<DeadLetters>,
    stores_positions: bool,
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
                let output = match destination {
                    Destination::Sink(address) => {
                        Output::Sink(open_sink(options, outbox, address).await?)
                    }
                    Destination::WebSocket(_) => Output::WebSocketClient,
                };
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

    /// Whether a destination is new to the outbox, or has lost its content. One of an earlier run that is not named any
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
            let is_empty = output.is_empty(&self.outbox).await?;
            if is_empty && cursor.is_some_and(|cursor| cursor > 0) {
                let text =
                    "the tables have no event of this outbox: earlier events are missing in them";
                let cure = match self.content {
                    TableContent::NostrEvents => "another --state begins with all stored events",
                    TableContent::Labels => "another --state begins with all labels",
                    _ => "--backfill delivers the records",
                };
                let text = format!("{consumer}: {text}; {cure}");
                messages::print(Level::WARN, &text);
            }
            has_new |= is_empty || cursor.is_none();
        }
        Ok(has_new)
    }

    /// Registers new destinations.
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

    /// Starts a task per destination, and one that reports their failures.
    pub fn start(self, stop: &StopSignal, status: &Status) -> Result<Tasks, Failure> {
        let (mut tasks, mut watched) = (Tasks::default(), Vec::new());
        for OpenDestination { consumer: name, output } in self.all {
            let consumer = || self.outbox.consumer(&name);
            let (options, stop) = (self.options, stop.clone());
            let sink = match output {
                Output::Sink(sink) => sink,
                // The server attaches it when it connects.
                Output::WebSocketClient => continue,
                Output::Stdout => {
                    let (form, status) = (self.form, status.clone());
                    tasks.deliveries.spawn(ack_stdin::deliver(consumer()?, form, stop, status));
                    continue;
                }
            };
            let delivery = Delivery::new(consumer()?, sink.sink, sink.letters, options);
            let metrics = start(&mut tasks, &name, delivery, stop);
            tasks.metrics.push(metrics.clone());
            watched.push((name, metrics));
        }
        status.set_destinations(&watched);
        tasks.helpers.spawn(watch(self.outbox, watched, status.clone()));
        Ok(tasks)
    }
}

/// The tasks of a run.
#[derive(Default)]
pub struct Tasks {
    /// One per destination.
    pub deliveries: JoinSet<Result<(), Failure>>,
    /// Tasks that run next to them; they end when this value is dropped.
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
fn start(
    tasks: &mut Tasks,
    name: &str,
    delivery: Delivery,
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

async fn open_sink(
    options: &DestinationOptions<'_>,
    outbox: &Outbox,
    address: &AnyAddress,
) -> Result<OpenSink, Failure> {
    let consumer = &address.consumer;
    if let Some(text) = address.warning {
        messages::print(Level::WARN, &format!("{consumer}: {text}"));
    }
    let sink_options = sink_options(options, outbox, address)?;
    let sink = address.open(&sink_options).await;
    let sink = sink.map_err(|failure| not_opened(consumer, failure))?;
    let can_refuse = address.can_refuse(&sink_options);
    let letters = can_refuse.then(|| refused_events::open(options.folder, consumer)).transpose()?;
    Ok(OpenSink { sink, letters, stores_positions: address.stores_positions })
}

fn sink_options(
    options: &DestinationOptions<'_>,
    outbox: &Outbox,
    address: &AnyAddress,
) -> Result<SinkOptions, Failure> {
    let mut sinks = SinkOptions::new(outbox.identity());
    sinks.form = options.form;
    sinks.content = options.content;
    sinks.files = options.args.file_options();
    sinks.webhook_body = options.args.webhook_body();
    if address.signs_requests {
        sinks.http = Some(network::operator_client(options.network)?);
        sinks.webhook_secret = Some(webhook_secret(options.args)?);
    }
    Ok(sinks)
}

/// A sink that cannot be opened. If it may be available later on a host, the fault is the network's.
fn not_opened(consumer: &str, failure: OpenFailure) -> Failure {
    match failure {
        OpenFailure::Remote(SendFailure { kind: FailureKind::Temporary(_), reason, .. }) => {
            Failure::Network(format!(
                "{consumer}: {reason}: start the server first, or check its address"
            ))
        }
        OpenFailure::Remote(failure) => Failure::Local(format!("{consumer}: {failure}")),
        other => Failure::Local(other.to_string()),
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
    async fn is_empty(&self, outbox: &Outbox) -> Result<bool, Failure> {
        match self {
            Self::Sink(OpenSink { sink, stores_positions: true, .. }) => {
                let position = sink.stored(outbox.identity()).await;
                Ok(position.map_err(|error| Failure::Local(error.to_string()))?.is_none())
            }
            _ => Ok(false),
        }
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

/// Reports the events that the next run delivers.
pub fn report_undelivered(outbox: &Outbox, status: &Status) {
    for consumer in outbox.status().consumers.iter().filter(|consumer| consumer.behind > 0) {
        let (name, count) = (&consumer.name, consumer.behind);
        status.print(&format!(
            "{name}: {count} stored events are not delivered: the next run delivers them"
        ));
    }
}

const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
const ANNOUNCE_DRAIN_AFTER: Duration = Duration::from_secs(1);
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
const STOP_POLLS: u32 = 20;
