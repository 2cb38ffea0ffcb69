//! The deliveries of a run: the outbox, and a task for each destination.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use wireproof::delivery::{
    DeadLetters, Delivery, DeliveryMetrics, DeliveryOptions, FailureKind, FileSink, KafkaOptions,
    KafkaSink, LineForm, NatsOptions, NatsSink, Outbox, PostgresOptions, PostgresSink, SendFailure,
    Sink, SqliteOptions, SqliteSink, StartAt, WebSocketMetrics, WebSocketServer, WebhookOptions,
    WebhookSecret, WebhookSink,
};
use wireproof::net::firehose::StopSignal;
use wireproof::store::{Store, StoreError};
use wireproof::verify::sync::{AccountState, ChainState, SyncState};

use super::args::FollowArgs;
use super::destination::Destination;
use super::histories::{Histories, HistoryParts, HistoryQueue};
use super::lines_to_outbox::LinesToOutbox;
use super::listing::Listing;
use super::metrics::bound_text;
use super::outbox_acks::Unstored;
use super::run::{Run, Setup};
use super::status::Status;
use super::status_checks::{StatusChecker, StatusChecks};
use super::{ack_stdin, outbox_binding, state, websocket};
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::{files, network};

/// The outbox of a run, and its destinations.
pub(super) struct Deliveries {
    outbox: Outbox,
    destinations: Vec<OpenDestination>,
    server: Option<WebSocketServer>,
    options: DeliveryOptions,
    /// The lines of standard output.
    form: LineForm,
    /// The lists of accounts whose history is delivered.
    listings: Vec<Listing>,
}

/// A destination and the name of its consumer.
struct OpenDestination {
    consumer: String,
    output: Output,
}

enum Output {
    Files(FileSink),
    Webhook(Box<WebhookSink>, DeadLetters),
    Kafka(Box<KafkaSink>, DeadLetters),
    Nats(Box<NatsSink>, DeadLetters),
    Sqlite(SqliteSink),
    Postgres(PostgresSink),
    /// Standard output, with acknowledgements on standard input.
    Stdout,
    /// A client of the WebSocket server.
    WebSocketClient,
}

impl Deliveries {
    /// Opens the outbox and the destinations, registers those that are new, and notes the accounts whose history is to
    /// be delivered.
    pub(super) async fn open(setup: &Setup<'_>) -> Result<Self, Failure> {
        let args = setup.args;
        let state = state::folder(args)?;
        let folder = args.outbox_folder()?;
        let outbox = Outbox::open(&folder.join("outbox.sqlite"), args.delivery.outbox_options())?;
        outbox_binding::check(&state, &outbox, args.verify_level())?;
        args.delivery.forget.iter().try_for_each(|name| outbox.remove(name))?;
        let destinations = open_destinations(args, &outbox, &folder).await?;
        let server = websocket::bind(args, &outbox, &setup.network.resolver)?;
        let has_new = check_consumers(&outbox, &destinations).await?;
        if has_new {
            outbox.restart_histories()?;
        }
        for destination in &destinations {
            outbox.register(&destination.consumer, StartAt::Oldest)?;
        }
        for name in &setup.selection.changes().paused_destinations {
            if destinations.iter().any(|of| of.consumer == *name) {
                outbox.set_paused(name, true)?;
            }
        }
        let listings = match args.backfills() {
            true => find_accounts(setup, &outbox).await?,
            false => Vec::new(),
        };
        let mut options = DeliveryOptions::default();
        options.stop_timeout = args.stream.stop_limit() / 10;
        Ok(Self { outbox, destinations, server, options, form: args.line_form(), listings })
    }

    /// The outbox.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The counters of the WebSocket server, if there is one.
    pub(super) fn websocket_metrics(&self) -> Option<Arc<WebSocketMetrics>> {
        self.server.as_ref().map(WebSocketServer::metrics)
    }

    /// Stores the lines of a run, and delivers them. A run that ends by itself waits until every destination has
    /// acknowledged all of them.
    pub(super) async fn run(self, mut run: Run<'_>) -> Result<(), Failure> {
        let (outbox, stop, status) = (self.outbox.clone(), run.stop.clone(), run.status.clone());
        let unstored = Unstored::new(stop.clone());
        let (recipient, checker) = recipient_of(&run, &outbox, &unstored);
        let room_limit = run.args.stream.stop_limit() / 10 * 4;
        let histories = match run.args.backfills() {
            true => Some(self.histories(&mut run)?),
            false => None,
        };
        let mut tasks = self.start(&stop, &status)?;
        if let Some(queue) = histories {
            tasks.helpers.spawn(queue.run(stop.clone()));
        }
        tasks.helpers.spawn(checker.run(stop.clone()));
        tasks.helpers.spawn(stop_appends(outbox.clone(), stop.clone(), room_limit));
        let followed = run.follow(recipient, None).await;
        if followed.is_orderly() {
            drain(&outbox, &stop, &status).await;
        }
        stop.request();
        let delivered = tasks.join().await;
        let flushed = outbox.flush();
        report_undelivered(&outbox, &status);
        unstored.error().map_or(Ok(()), |error| Err(Failure::Local(error)))?;
        delivered?;
        flushed?;
        followed.check("stored in the outbox")?.result()
    }

    /// The histories of a run.
    fn histories(&self, run: &mut Run<'_>) -> Result<HistoryQueue, Failure> {
        let parts = HistoryParts {
            outbox: self.outbox.clone(),
            requests: run.requests.clone(),
            resolver: run.resolver.clone(),
            selection: run.selection.clone(),
            status: run.status.clone(),
            progress: run.stats.histories.clone(),
            client: run.xrpc.clone(),
            list_interval: run.args.delivery.list_interval(),
            outdated: run.outdated.clone(),
        };
        let lost = without_state(&run.selection.dids.snapshot(), &run.store)?;
        let (histories, queue) = Histories::new(parts, self.listings.clone(), lost)?;
        run.histories = Some(histories);
        Ok(queue)
    }

    /// Starts a task for each destination, and one that reports their failures.
    fn start(self, stop: &StopSignal, status: &Status) -> Result<Tasks, Failure> {
        let (mut tasks, mut watched) = (Tasks::default(), Vec::new());
        if let Some(server) = self.server {
            tasks.deliveries.spawn(websocket::serve(server, stop.clone(), status.clone()));
        }
        for OpenDestination { consumer: name, output } in self.destinations {
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
                Output::Files(sink) => {
                    start(&mut tasks, &name, Delivery::new(consumer()?, sink, None, options), stop)
                }
                Output::Sqlite(sink) => {
                    start(&mut tasks, &name, Delivery::new(consumer()?, sink, None, options), stop)
                }
                Output::Postgres(sink) => {
                    start(&mut tasks, &name, Delivery::new(consumer()?, sink, None, options), stop)
                }
                Output::Webhook(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, *sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
                Output::Kafka(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, *sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
                Output::Nats(sink, letters) => {
                    let delivery = Delivery::new(consumer()?, *sink, Some(letters), options);
                    start(&mut tasks, &name, delivery, stop)
                }
            };
            watched.push((name, metrics));
        }
        tasks.helpers.spawn(watch(self.outbox, watched, status.clone()));
        Ok(tasks)
    }
}

/// Notes the accounts whose history is to be delivered, and returns the lists that were read.
async fn find_accounts(setup: &Setup<'_>, outbox: &Outbox) -> Result<Vec<Listing>, Failure> {
    let dids = setup.selection.dids.snapshot();
    outbox.await_histories(dids.iter().map(String::as_str))?;
    let listings = setup.args.listings(&setup.hosts.urls[0])?;
    for listing in &listings {
        listing.read(&setup.network.xrpc, outbox).await?;
    }
    Ok(listings)
}

/// The accounts that are not in the state file: what happened since their history is not known.
fn without_state(dids: &HashSet<String>, store: &Store) -> Result<Vec<Box<str>>, StoreError> {
    let dids: Vec<&str> = dids.iter().map(String::as_str).collect();
    let mut accounts = vec![AccountState::UNKNOWN; dids.len()];
    store.chain_state()?.load_many(&dids, &mut accounts)?;
    let is_known =
        |account: &AccountState| account.head.is_some() || account.sync != SyncState::Synchronized;
    let all = dids.into_iter().zip(accounts);
    Ok(all.filter(|(_, account)| !is_known(account)).map(|(did, _)| did.into()).collect())
}

/// Where the lines of a run go, and what checks the statuses among them.
fn recipient_of(
    run: &Run<'_>,
    outbox: &Outbox,
    unstored: &Arc<Unstored>,
) -> (LinesToOutbox, StatusChecker) {
    let status = || run.status.clone();
    let (checks, queue) = StatusChecks::new(status());
    let (outbox, stats, unstored) = (outbox.clone(), run.stats.clone(), unstored.clone());
    let statuses = run.statuses.clone();
    let checker = StatusChecker { queue, statuses, outbox: outbox.clone(), status: status() };
    (LinesToOutbox { outbox, stats, unstored, checks }, checker)
}

/// The tasks of a run.
#[derive(Default)]
struct Tasks {
    /// One for each destination.
    deliveries: JoinSet<Result<(), Failure>>,
    /// What runs beside them; it ends when this value is dropped.
    helpers: JoinSet<()>,
}

impl Tasks {
    /// Waits until all deliveries have ended; the first failure, if one failed.
    async fn join(mut self) -> Result<(), Failure> {
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

/// Opens the destinations of `--to` and `--ack-stdin`.
async fn open_destinations(
    args: &FollowArgs,
    outbox: &Outbox,
    folder: &Path,
) -> Result<Vec<OpenDestination>, Failure> {
    let mut all: Vec<OpenDestination> = Vec::new();
    for destination in &args.delivery.to {
        for consumer in destination.consumers(&args.delivery.ws_consumer) {
            if all.iter().any(|known| known.consumer == consumer) {
                return Err(Failure::Usage(format!("--to: {consumer} is named twice")));
            }
            let output = open_output(args, outbox, folder, destination, &consumer).await?;
            all.push(OpenDestination { consumer, output });
        }
    }
    if args.delivery.ack_stdin {
        all.push(OpenDestination { consumer: "stdout".to_owned(), output: Output::Stdout });
    }
    Ok(all)
}

async fn open_output(
    args: &FollowArgs,
    outbox: &Outbox,
    folder: &Path,
    destination: &Destination,
    consumer: &str,
) -> Result<Output, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Local(error.to_string());
    match destination {
        Destination::Files(folder) => FileSink::open(folder, args.file_options())
            .map(Output::Files)
            .map_err(|error| failed(&error)),
        Destination::Sqlite(path) => {
            SqliteSink::open(path, outbox.identity(), SqliteOptions::default())
                .map(Output::Sqlite)
                .map_err(|error| failed(&error))
        }
        Destination::Postgres(address) => {
            let options = PostgresOptions::default();
            let sink = PostgresSink::open(*address.clone(), outbox.identity(), options).await;
            sink.map(Output::Postgres).map_err(|failure| unavailable(consumer, failure))
        }
        Destination::Webhook(url) => {
            let client = network::operator_client(&args.stream.network)?;
            let secret = webhook_secret(args)?;
            let mut options = WebhookOptions::default();
            options.form = args.line_form();
            let sink = WebhookSink::new(client, url.clone(), secret, options);
            Ok(Output::Webhook(Box::new(sink), dead_letters(folder, consumer)?))
        }
        Destination::Kafka(address) => {
            let mut options = KafkaOptions::default();
            options.form = args.line_form();
            let sink = KafkaSink::open(*address.clone(), options).await;
            let sink = sink.map_err(|failure| unavailable(consumer, failure))?;
            Ok(Output::Kafka(Box::new(sink), dead_letters(folder, consumer)?))
        }
        Destination::Nats(address) => {
            let mut options = NatsOptions::default();
            options.form = args.line_form();
            let sink = NatsSink::open(*address.clone(), options).await;
            let sink = sink.map_err(|failure| unavailable(consumer, failure))?;
            Ok(Output::Nats(Box::new(sink), dead_letters(folder, consumer)?))
        }
        Destination::WebSocket(_) => Ok(Output::WebSocketClient),
    }
}

/// The file of the events that a destination refuses.
fn dead_letters(folder: &Path, consumer: &str) -> Result<DeadLetters, Failure> {
    let path = folder.join(format!("refused-{consumer}.ndjson"));
    DeadLetters::open(&path, consumer, MAX_LETTERS_BYTES)
        .map_err(|error| Failure::Local(error.to_string()))
}

/// A destination on a host that cannot be opened: one that may be available later is a fault of the network.
fn unavailable(name: &str, failure: SendFailure) -> Failure {
    let text = format!("{name}: {failure}");
    match failure.kind {
        FailureKind::Temporary(_) => Failure::Network(text),
        _ => Failure::Local(text),
    }
}

fn webhook_secret(args: &FollowArgs) -> Result<WebhookSecret, Failure> {
    let Some(path) = &args.delivery.webhook_secret_file else {
        let text = "--to: a webhook needs --webhook-secret-file, to sign its requests";
        return Err(Failure::Usage(text.to_owned()));
    };
    let bytes = files::read(path)?;
    let text = String::from_utf8_lossy(bytes.trim_ascii());
    WebhookSecret::parse(&text)
        .map_err(|error| Failure::Usage(format!("--webhook-secret-file: {error}")))
}

/// Whether a destination is new to the outbox, or has lost what it had. One of an earlier run that is not named any
/// more would keep its events until the outbox is full.
async fn check_consumers(
    outbox: &Outbox,
    destinations: &[OpenDestination],
) -> Result<bool, Failure> {
    let known = outbox.status().consumers;
    let is_named = |name: &str| destinations.iter().any(|of| of.consumer == name);
    if let Some(left) = known.iter().find(|consumer| !is_named(&consumer.name)) {
        let (name, events) = (&left.name, left.behind);
        return Err(Failure::Usage(format!(
            "the outbox has {events} events for {name}, a destination of an earlier run: name it again, or remove it \
             with --forget {name}"
        )));
    }
    let mut has_new = false;
    for OpenDestination { consumer, output } in destinations {
        let cursor = known.iter().find(|of| of.name == *consumer).map(|of| of.cursor);
        let is_empty = output.is_empty().await?;
        if is_empty && cursor.is_some_and(|cursor| cursor > 0) {
            let text = "the tables have no event of this outbox: those before are missing in them";
            // If standard error is closed, the column `complete` remains.
            let text = format!("{consumer}: {text}; --backfill delivers the records");
            let _ = log::print(Level::Warning, &text);
        }
        has_new |= is_empty || cursor.is_none();
    }
    Ok(has_new)
}

impl Output {
    /// Whether the destination knows that it has no event of the outbox.
    async fn is_empty(&self) -> Result<bool, Failure> {
        let position = match self {
            Self::Sqlite(sink) => sink.position(),
            Self::Postgres(sink) => sink.position().await,
            _ => return Ok(false),
        };
        let position = position.map_err(|error| Failure::Local(error.to_string()))?;
        Ok(position.is_none())
    }
}

/// Waits until every destination has acknowledged all events, or a stop is requested.
async fn drain(outbox: &Outbox, stop: &StopSignal, status: &Status) {
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
async fn stop_appends(outbox: Outbox, stop: StopSignal, limit: Duration) {
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
fn report_undelivered(outbox: &Outbox, status: &Status) {
    for consumer in outbox.status().consumers.iter().filter(|consumer| consumer.behind > 0) {
        let (name, count) = (&consumer.name, consumer.behind);
        status.print(&format!(
            "{name}: {count} stored events are not delivered: the next run delivers them"
        ));
    }
}

/// Maximum size of a file of dead letters in bytes.
const MAX_LETTERS_BYTES: u64 = 256 << 20;

const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
const ANNOUNCE_DRAIN_AFTER: Duration = Duration::from_secs(1);
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
const STOP_POLLS: u32 = 20;
