//! `wireproof follow --jetstream`: the same lines of what nobody signed.
//!
//! One task reads, in one order, and lines go out in that order; so the last event whose line is out is
//! the place to go on from.

mod line;
mod place;
mod tally;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use wireproof::atproto::syntax::DidBuf;
use wireproof::net::firehose::StopSignal;
use wireproof::net::hosts::Jitter;
use wireproof::net::jetstream::{
    self, Client, Compression, Filter, JetstreamItem, Options, Version,
};
use wireproof::net::websocket::Dialer;
use wireproof::store::Store;

use super::args::FollowArgs;
use super::lines::Lines;
use super::metrics::{JetstreamSeries, Metrics};
use super::selection::Selection;
use super::status::Status;
use super::stopping::Stopping;
use super::watch::Watch;
use super::{Hosts, feed_options, open_lines, state};
use crate::failure::Failure;
use crate::network::Network;
use place::Told;

pub(super) use place::Places;
pub(super) use tally::Tally;

pub(super) async fn follow(args: &FollowArgs) -> Result<(), Failure> {
    let selection = Selection::new(&args.dids, &args.collections)?;
    let hosts = Hosts::new(&args.from.host, DEFAULT)?;
    let network = Network::open(&args.from.network)?;
    let metrics = match args.metrics {
        Some(address) => Some(Metrics::bind(address).await?),
        None => None,
    };
    let store = state::open(args)?;
    let options = options(args)?;
    let streams =
        hosts.urls.iter().map(|url| jetstream::stream_name(url, options.version)).collect();
    let places = Arc::new(Places::load(streams, &store, args.cursor.number())?);
    let origins = places.origins(&hosts.urls);
    let (dialer, chance) = (Dialer::new(network.http), Jitter::new());
    let client = Client::new(dialer, &origins, wanted(&selection)?, options, chance);
    let client = client.map_err(|error| Failure::Usage(error.to_string()))?;

    let watch = Arc::new(Watch::new(hosts.names));
    let tally = Arc::new(Tally::new(hosts.urls.len()));
    let (status, stop) = (Status::new(), StopSignal::new());
    let metrics = metrics.map(|listener| {
        let (watch, tally, places) = (watch.clone(), tally.clone(), places.clone());
        Metrics::new(listener, JetstreamSeries { watch, tally, places }, &status)
    });
    let stopping = Stopping::start(stop.clone(), status.clone());
    let (lines, writer) = open_lines(&stop)?;
    let (limit, status) = (args.events, &status);
    let reader = Reader { watch: &watch, tally: &tally, lines, places: &places, status, limit };
    let read = tokio::select! {
        read = reader.read(client, &store, &stop) => read,
        never = Metrics::serve(metrics) => match never {},
    };
    status.end();
    // First everything is written, then the place is kept.
    writer.finish()?;
    places.keep(&store).await?;
    read?;
    stopping.conclude()
}

/// Reads and prints.
struct Reader<'r> {
    watch: &'r Watch,
    tally: &'r Tally,
    lines: Lines<Told>,
    places: &'r Places,
    status: &'r Status,
    limit: Option<u64>,
}

impl Reader<'_> {
    /// Reads until somebody asks to stop, there are enough lines, or nothing more can come.
    async fn read(
        &self,
        mut client: Client,
        store: &Store,
        stop: &StopSignal,
    ) -> Result<(), Failure> {
        let mut keeping = interval_at(Instant::now() + KEEP_EVERY, KEEP_EVERY);
        keeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut line, mut count) = (Vec::new(), 0);
        while self.limit.is_none_or(|limit| count < limit) {
            let item = tokio::select! {
                biased;
                () = stop.requested() => break,
                _ = keeping.tick() => {
                    self.places.keep(store).await?;
                    continue;
                }
                item = client.next() => item.map_err(|error| Failure::Network(error.to_string()))?,
            };
            line.clear();
            let place = match &item {
                JetstreamItem::Notice(notice) => {
                    self.notice(notice);
                    continue;
                }
                JetstreamItem::Event(event) if self.places.is_old((event.host.0, event.cursor)) => {
                    continue;
                }
                JetstreamItem::Event(event) => {
                    self.watch.see_told(event.micros, event.received);
                    self.tally.event(event);
                    line::write(&mut line, self.watch.host(event.host.0), event);
                    Some((event.host.0, event.cursor))
                }
                JetstreamItem::Unrecognized(strange) => {
                    self.tally.strange();
                    line::write_strange(&mut line, self.watch.host(strange.host.0), strange);
                    None
                }
            };
            // Waits while too many lines are on their way: nothing is read then.
            let told = tokio::select! {
                told = self.places.begin(place) => told,
                () = stop.requested() => break,
            };
            self.lines.push(&line, told);
            self.watch.lines.fetch_add(1, Relaxed);
            count += 1;
        }
        client.close().await;
        Ok(())
    }

    fn notice(&self, notice: &jetstream::Notice) {
        self.tally.notice(notice);
        self.watch.note(notice);
        self.status.notice(self.watch, notice);
    }
}

fn options(args: &FollowArgs) -> Result<Options, Failure> {
    let feed = feed_options(&args.from, args.cursor);
    let version = match args.jetstream {
        Some(1) => Version::V1,
        _ => Version::V2,
    };
    let compression = match (&args.dictionary, args.compress, version) {
        (Some(path), ..) => {
            let bytes = std::fs::read(path).map_err(Failure::file(path))?;
            Compression::Given(Arc::from(bytes))
        }
        (None, true, Version::V2) => Compression::Served(None),
        (None, true, Version::V1) => {
            let what = "--compress: version 1 needs the dictionary too, with --dictionary";
            return Err(Failure::Usage(what.to_owned()));
        }
        (None, false, _) => Compression::None,
    };
    Ok(Options {
        version,
        start: feed.start,
        compression,
        backoff: feed.backoff,
        socket: feed.socket,
        message_timeout: feed.message_timeout,
        ..Options::default()
    })
}

fn wanted(selection: &Selection) -> Result<Filter, Failure> {
    let did = |did: &String| -> DidBuf { did.parse().expect("read as one") };
    let collection = |name: &String| match name.ends_with('.') {
        true => format!("{name}*"),
        false => name.clone(),
    };
    Ok(Filter {
        collections: selection.collections.iter().map(collection).collect(),
        dids: selection.dids.iter().map(did).collect(),
        ..Filter::default()
    })
}

/// After how much time the place is kept.
const KEEP_EVERY: Duration = Duration::from_secs(1);

const DEFAULT: &str = "jetstream1.us-east.bsky.network";
