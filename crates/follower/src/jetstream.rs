//! `wireproof follow --jetstream`: the same lines from a Jetstream, whose events are not signed.
//!
//! One task reads and prints in order, so the cursor of the last line written is the one to resume after.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atproto::syntax::DidBuf;
use base::crash_point;
use delivery::LineForm;
use net::firehose::{PauseSignal, StopSignal};
use net::hosts::Jitter;
use net::http::Url;
use net::jetstream::{
    self, Client, Compression, Filter, JetstreamItem, Notice, Options, Upstream, Version,
};
use net::websocket::Dialer;
use store::{Store, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use verify::sync::AccountState;

use super::args::FollowArgs;
use super::handles;
use super::line::{self, NOT_ASKED_CODE, UNDECODABLE, UNREADABLE_CODE};
use super::lines_to_stdout::in_form;
use super::metrics::{JetstreamCounts, JetstreamSeries, Metrics, Readiness};
use super::printed_events::{self, EventHash, PrintedEvents};
use super::reload;
use super::selection::Selection;
use super::state;
use super::stats::RunStats;
use super::status::Status;
use super::stored_changes::StoredChanges;
use super::taken::Acknowledge;
use super::writer::{LineSender, LineWriter};
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Shutdown;
use crate::network::Network;
use crate::stream::Hosts;

pub(super) async fn follow(args: &FollowArgs) -> Result<(), Failure> {
    let changes = StoredChanges::load(&state::folder(args)?)?;
    let hosts = Hosts::new(&args.stream.host, DEFAULT_HOST)?;
    let network = Network::open(&args.stream.network, &hosts.urls)?;
    let (accounts, resolver) = (args.accounts(), network.resolver);
    let selected = handles::selected(&accounts, &resolver).await?;
    let selection = Selection::new(selected, &args.collections, None, changes)?;
    let listener = Metrics::bind(args.metrics).await?;
    let store = state::open(args)?;
    let options = options(args)?;
    let stream = |url: &Url| jetstream::stream_name(url, options.version);
    let streams: Vec<String> = hosts.urls.iter().map(stream).collect();
    state::check_cursor(args, &streams, &store)?;
    let contact_limit = state::first_contact_limit(args, &streams, &store)?;
    state::forget_cursors(args, &streams, &store)?;
    let cursors = CursorTracker::load(streams, &store, args.start().cursor())?;
    let upstreams = cursors.upstreams(&hosts.urls);
    let dialer = Dialer::new(network.http);
    let client = Client::new(dialer, &upstreams, filter(&selection), options, Jitter::new());
    let client = client.map_err(|error| Failure::Usage(error.to_string()))?;

    let stats = Arc::new(RunStats::new(hosts.names));
    let (status, stop) = (Status::new(), StopSignal::new());
    let metrics = listener.map(|listener| {
        let (stats, counts) = (Arc::clone(&stats), Arc::clone(&cursors.counts));
        let readiness = Readiness {
            stats: stats.clone(),
            outbox: None,
            stop: stop.clone(),
            pause: PauseSignal::new(),
        };
        Metrics::new(listener, JetstreamSeries { stats, counts }, readiness, &status)
    });
    let (stop_limit, announcing) = (args.stream.stop_limit(), status.clone());
    let announce = move || announcing.announce_stop(stop_limit);
    let shutdown = Shutdown::listen(stop.clone(), stop_limit, announce)?;
    let (lines, writer) = LineWriter::stdout(&stop)?;
    let cursors = &cursors;
    let status = &status;
    let limit = args.events;
    let form = args.line_form();
    let selection = &selection;
    let reloaded = &Notify::new();
    let reader = Reader { stats: &stats, lines, cursors, status, limit, form, selection, reloaded };
    let read = tokio::select! {
        failure = stats.contact.missed(contact_limit) => Err(failure),
        read = reader.read(client, &store, &stop) => read,
        never = reload::on_hangup(&accounts, selection, &resolver, status, |_, _| reloaded.notify_one()) => match never {},
        never = Metrics::serve(metrics) => match never {},
    };
    status.end();
    // The cursor is stored after all lines are written that can be.
    writer.finish(stop_limit / 10 * 6).await.map_err(super::writer::failure)?;
    crash_point("jetstream/finished");
    let stored = timeout(stop_limit / 10 * 2, cursors.store(&store)).await;
    stored
        .map_err(|_| Failure::Local("the last cursor was not stored in time".to_owned()))?
        .map_err(|error| state::state_failure(&error, &stats, &lock(&cursors.counts).cursors))?;
    read?;
    shutdown.result()
}

/// Reads events and prints them.
struct Reader<'r> {
    stats: &'r RunStats,
    lines: LineSender<PendingLine>,
    cursors: &'r CursorTracker,
    status: &'r Status,
    limit: Option<u64>,
    form: LineForm,
    selection: &'r Selection,
    /// Notified when the selection has changed.
    reloaded: &'r Notify,
}

impl Reader<'_> {
    /// Reads until the stop signal, the limit, or the end of the stream.
    async fn read(
        &self,
        mut client: Client,
        store: &Store,
        stop: &StopSignal,
    ) -> Result<(), Failure> {
        let mut checkpoint = interval_at(Instant::now() + CHECKPOINT_EVERY, CHECKPOINT_EVERY);
        checkpoint.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut line = Vec::new();
        let mut printed = 0;
        let mut started = BTreeSet::new();
        while self.limit.is_none_or(|limit| printed < limit) {
            let item = tokio::select! {
                biased;
                () = stop.requested() => break,
                _ = checkpoint.tick() => {
                    self.status.print_due_warnings();
                    self.cursors.store(store).await?;
                    continue;
                }
                () = self.reloaded.notified() => {
                    if let Err(error) = client.set_filter(filter(self.selection)) {
                        self.status.print_warning(&format!("the filter stays as it was: {error}"));
                    }
                    continue;
                }
                item = client.next() => item.map_err(|error| Failure::Network(error.to_string()))?,
            };
            line.clear();
            let Some(cursor) = self.write_line(&item, &mut line) else { continue };
            if let Some(((host, first), _)) = cursor
                && started.insert(host)
            {
                // Durable before the line, for a run that is killed before its first checkpoint.
                self.cursors.start(host, first.saturating_sub(1));
                self.cursors.store(store).await?;
            }
            // While too many lines are in flight, nothing is read.
            let pending = tokio::select! {
                pending = self.cursors.start_line(cursor) => pending,
                () = stop.requested() => break,
            };
            self.lines.push(&in_form(self.form, &line), pending);
            self.stats.lines.fetch_add(1, Relaxed);
            printed += 1;
        }
        client.close().await;
        Ok(())
    }

    /// Writes the line of an item, and returns the cursor that it advances to. `None` if the item has no
    /// line.
    fn write_line(&self, item: &JetstreamItem, line: &mut Vec<u8>) -> Option<Option<PrintedAt>> {
        match item {
            JetstreamItem::Notice(notice) => {
                self.cursors.update(|counts| *entry(&mut counts.notices, notice.name()) += 1);
                if let Notice::Connected { host, cursor: None } = notice {
                    self.cursors.start(host.0, jetstream::live_cursor());
                }
                self.stats.record(notice);
                self.status.notice(self.stats, notice);
                None
            }
            JetstreamItem::Event(event) => {
                let (cursor, hash) = ((event.host.0, event.cursor), printed_events::hash(event));
                if self.cursors.was_printed(cursor, &hash) {
                    return None;
                }
                self.stats.sample_lag_at(event.micros, event.received);
                self.cursors.update(|counts| {
                    counts.last_seqs[event.host.0] = Some(event.cursor);
                    *entry(&mut counts.events, event.kind().name()) += 1;
                    *entry(&mut counts.verdicts, NOT_ASKED_CODE) += 1;
                });
                line::write_jetstream(line, self.stats.host(event.host.0), event);
                Some(Some((cursor, hash)))
            }
            JetstreamItem::Unrecognized(message) => {
                self.cursors.update(|counts| {
                    *entry(&mut counts.events, UNDECODABLE) += 1;
                    *entry(&mut counts.verdicts, UNREADABLE_CODE) += 1;
                });
                line::write_unrecognized(line, self.stats.host(message.host.0), message);
                Some(None)
            }
        }
    }
}

fn entry<'c>(
    counts: &'c mut std::collections::BTreeMap<&'static str, u64>,
    name: &'static str,
) -> &'c mut u64 {
    counts.entry(name).or_default()
}

/// The host of an event, its cursor, and the hash of the event.
type PrintedAt = ((usize, u64), EventHash);

/// The cursors of the hosts, which advance as lines are written.
struct CursorTracker {
    streams: Vec<String>,
    /// The stored cursors of the previous run.
    stored: Vec<Option<u64>>,
    counts: Arc<Mutex<JetstreamCounts>>,
    /// The printed events at the cursors of the hosts.
    printed: Arc<Mutex<Vec<PrintedEvents>>>,
    permits: Arc<Semaphore>,
}

/// A line that is not yet written.
struct PendingLine {
    cursor: Option<PrintedAt>,
    counts: Arc<Mutex<JetstreamCounts>>,
    printed: Arc<Mutex<Vec<PrintedEvents>>>,
    _permit: OwnedSemaphorePermit,
}

impl CursorTracker {
    /// Loads the stored cursors; `first` for streams without one.
    fn load(streams: Vec<String>, store: &Store, first: Option<u64>) -> Result<Self, StoreError> {
        let load = |stream: &String| store.cursor(stream);
        let stored: Vec<_> = streams.iter().map(load).collect::<Result<_, StoreError>>()?;
        let counts = JetstreamCounts {
            last_seqs: vec![None; streams.len()],
            cursors: stored.iter().map(|cursor| cursor.or(first)).collect(),
            ..JetstreamCounts::default()
        };
        let printed = streams
            .iter()
            .zip(&stored)
            .map(|(stream, cursor)| Ok(PrintedEvents::new(*cursor, store.recent(stream)?)));
        let printed: Vec<PrintedEvents> = printed.collect::<Result<_, StoreError>>()?;
        let (counts, printed) = (Arc::new(Mutex::new(counts)), Arc::new(Mutex::new(printed)));
        let permits = Arc::new(Semaphore::new(MAX_LINES));
        Ok(Self { streams, stored, counts, printed, permits })
    }

    /// The hosts with their cursors.
    fn upstreams(&self, urls: &[Url]) -> Vec<Upstream> {
        let upstream = |(url, cursor): (&Url, &Option<u64>)| {
            let mut upstream = Upstream::new(url.clone());
            upstream.cursor = *cursor;
            upstream
        };
        urls.iter().zip(&lock(&self.counts).cursors).map(upstream).collect()
    }

    fn update(&self, change: impl FnOnce(&mut JetstreamCounts)) {
        change(&mut lock(&self.counts));
    }

    /// Whether an earlier run has printed this event: hosts resume with those at the cursor. Of a state of an earlier
    /// version only the cursor is known, which belongs to one event unless it is a time.
    fn was_printed(&self, (host, cursor): (usize, u64), hash: &EventHash) -> bool {
        let printed = &lock(&self.printed)[host];
        let is_number = cursor < jetstream::MIN_TIME_CURSOR;
        let is_at_cursor = printed.is_empty() && is_number && self.stored[host] == Some(cursor);
        is_at_cursor || printed.was_printed_before(hash)
    }

    /// Sets the cursor of a host without one.
    fn start(&self, host: usize, cursor: u64) {
        self.update(|counts| {
            counts.cursors[host].get_or_insert(cursor);
        });
    }

    /// Registers a line that advances to `cursor`, once fewer than the maximum are in flight.
    async fn start_line(&self, cursor: Option<PrintedAt>) -> PendingLine {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        self.update(|counts| counts.in_flight += 1);
        let (counts, printed) = (Arc::clone(&self.counts), Arc::clone(&self.printed));
        PendingLine { cursor, counts, printed, _permit: permit }
    }

    /// The cursors of all streams, and their printed events if these have changed.
    fn changed(&self) -> (Vec<Option<u64>>, Vec<Option<Vec<EventHash>>>) {
        let counts = lock(&self.counts);
        let printed = lock(&self.printed).iter_mut().map(PrintedEvents::take_changed).collect();
        (counts.cursors.clone(), printed)
    }

    /// Stores the cursors.
    async fn store(&self, store: &Store) -> Result<(), StoreError> {
        let (cursors, printed) = self.changed();
        let recent: Vec<(String, Vec<EventHash>)> = { self.streams.iter().cloned().zip(printed) }
            .filter_map(|(stream, printed)| Some((stream, printed?)))
            .collect();
        let cursors: Vec<(String, u64)> = { self.streams.iter().cloned().zip(cursors) }
            .filter_map(|(stream, cursor)| Some((stream, cursor?)))
            .collect();
        let store = store.clone();
        let checkpoint = move || {
            for (stream, hashes) in recent {
                store.set_recent(&stream, hashes)?;
            }
            store.checkpoint(&cursors, &NO_ACCOUNTS)
        };
        tokio::task::spawn_blocking(checkpoint).await.expect("a checkpoint does not panic")
    }
}

impl Acknowledge for PendingLine {
    fn done(self) {
        let mut counts = lock(&self.counts);
        counts.in_flight -= 1;
        if let Some(((host, cursor), hash)) = self.cursor {
            // The event is known as printed before the cursor is at it.
            lock(&self.printed)[host].printed(cursor, hash);
            counts.cursors[host] = Some(cursor);
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn options(args: &FollowArgs) -> Result<Options, Failure> {
    let feed = args.stream.feed_options(args.start());
    let version = match args.jetstream {
        Some(1) => Version::V1,
        _ => Version::V2,
    };
    let compression = match (&args.dictionary, args.compress, version) {
        (Some(path), ..) => Compression::Given(Arc::from(files::read(path)?)),
        (None, true, Version::V2) => Compression::Served(None),
        (None, true, Version::V1) => {
            let what = "--compress: version 1 needs the dictionary too, with --dictionary";
            return Err(Failure::Usage(what.to_owned()));
        }
        (None, false, _) => Compression::None,
    };
    let mut options = Options::default();
    options.version = version;
    options.start = feed.start;
    options.compression = compression;
    options.backoff = feed.backoff;
    options.socket = feed.socket;
    options.message_timeout = feed.message_timeout;
    Ok(options)
}

fn filter(selection: &Selection) -> Filter {
    let did = |did: &String| -> DidBuf { did.parse().expect("a parsed DID") };
    Filter {
        collections: selection.filter().collection_names(),
        dids: selection.dids.snapshot().iter().map(did).collect(),
        ..Filter::default()
    }
}

const DEFAULT_HOST: &str = "jetstream1.us-east.bsky.network";
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of lines in flight.
const MAX_LINES: usize = 8192;

const NO_ACCOUNTS: [(&str, AccountState); 0] = [];
