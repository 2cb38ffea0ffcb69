//! `wireproof follow --jetstream`: the same lines of what nobody signed.
//!
//! One task reads, in one order, and lines go out in that order; so the last event whose line is out is
//! the place to go on from.

mod line;
mod place;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use wireproof::atproto::syntax::DidBuf;
use wireproof::net::firehose::Stop;
use wireproof::net::hosts::Chance;
use wireproof::net::jetstream::{self, Client, Compression, Item, Options, Version, Wanted};
use wireproof::net::websocket::Dialer;
use wireproof::store::Store;

use super::lines::Lines;
use super::notices;
use super::selection::Selection;
use super::status::Status;
use super::stopping::Stopping;
use super::{Hosts, feed_options, open_lines, state};
use crate::args::follow::FollowArgs;
use crate::failure::Failure;
use crate::network::Network;
use place::{Places, Told};

pub(super) async fn follow(args: &FollowArgs) -> Result<(), Failure> {
    if args.metrics.is_some() {
        let what = "--metrics: there is nothing to tell of a Jetstream yet";
        return Err(Failure::Usage(what.to_owned()));
    }
    let selection = Selection::new(&args.dids, &args.collections)?;
    let hosts = Hosts::new(&args.from.host, DEFAULT)?;
    let network = Network::open(&args.from.network)?;
    let store = state::open(args)?;
    let options = options(args)?;
    let streams = hosts.urls.iter().map(|url| jetstream::stream(url, options.version)).collect();
    let places = Places::load(streams, &store, args.cursor.number())?;
    let origins = places.origins(&hosts.urls);
    let (dialer, chance) = (Dialer::new(network.http), Chance::new());
    let client = Client::new(dialer, &origins, wanted(&selection)?, options, chance);
    let client = client.map_err(|error| Failure::Usage(error.to_string()))?;

    let (status, stop) = (Status::new(), Stop::new());
    let stopping = Stopping::start(stop.clone(), status.clone());
    let (lines, writer) = open_lines(&stop)?;
    let reader =
        Reader { hosts: &hosts.names, lines, places: &places, status: &status, limit: args.events };
    let read = reader.read(client, &store, &stop).await;
    status.end();
    // First everything is written, then the place is kept.
    writer.finish()?;
    places.keep(&store).await?;
    read?;
    stopping.conclude()
}

/// Reads and prints.
struct Reader<'r> {
    hosts: &'r [String],
    lines: Lines<Told>,
    places: &'r Places,
    status: &'r Status,
    limit: Option<u64>,
}

impl Reader<'_> {
    /// Reads until somebody asks to stop, there are enough lines, or nothing more can come.
    async fn read(&self, mut client: Client, store: &Store, stop: &Stop) -> Result<(), Failure> {
        let mut keeping = interval_at(Instant::now() + KEEP_EVERY, KEEP_EVERY);
        keeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut line, mut count) = (Vec::new(), 0);
        while self.limit.is_none_or(|limit| count < limit) {
            let item = tokio::select! {
                biased;
                () = stop.asked() => break,
                _ = keeping.tick() => {
                    self.places.keep(store).await?;
                    continue;
                }
                item = client.next() => item.map_err(|error| Failure::Network(error.to_string()))?,
            };
            line.clear();
            let place = match &item {
                Item::Notice(notice) => {
                    self.notice(notice);
                    continue;
                }
                Item::Event(event) if self.places.is_old((event.host.0, event.cursor)) => continue,
                Item::Event(event) => {
                    line::write(&mut line, &self.hosts[event.host.0], event);
                    Some((event.host.0, event.cursor))
                }
                Item::Strange(strange) => {
                    line::write_strange(&mut line, &self.hosts[strange.host.0], strange);
                    None
                }
            };
            // Waits while too many lines are on their way: nothing is read then.
            let told = tokio::select! {
                told = self.places.begin(place) => told,
                () = stop.asked() => break,
            };
            self.lines.push(&line, told);
            count += 1;
        }
        client.close().await;
        Ok(())
    }

    fn notice(&self, notice: &jetstream::Notice) {
        let host = self.hosts.get(notice.host().0).map_or("", String::as_str);
        let Some(text) = notices::text(host, notice) else { return };
        match notices::may_be_many(notice) {
            true => self.status.say_sometimes(&text),
            false => self.status.say(&text),
        }
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
        first: feed.first,
        compression,
        pace: feed.pace,
        socket: feed.socket,
        max_quiet: feed.max_quiet,
        ..Options::default()
    })
}

fn wanted(selection: &Selection) -> Result<Wanted, Failure> {
    let did = |did: &String| -> DidBuf { did.parse().expect("read as one") };
    let collection = |name: &String| match name.ends_with('.') {
        true => format!("{name}*"),
        false => name.clone(),
    };
    Ok(Wanted {
        collections: selection.collections.iter().map(collection).collect(),
        dids: selection.dids.iter().map(did).collect(),
        ..Wanted::default()
    })
}

/// After how much time the place is kept.
const KEEP_EVERY: Duration = Duration::from_secs(1);

const DEFAULT: &str = "jetstream1.us-east.bsky.network";
