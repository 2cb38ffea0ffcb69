//! `wireproof follow`: a stream of events, a line of JSON for each.
//!
//! ```text
//! hosts ── Firehose ── Printer::event on each worker ── Lines ── standard output
//!              │                                           │
//!              │ <────────────── acknowledged ─────────────┘ when it is written and flushed
//!              └── StateFile: cursors, accounts, keys, as far as acknowledged
//! ```

mod args;
mod hosts;
mod jetstream;
mod journal;
mod keys;
mod line;
mod lines;
mod metrics;
mod notices;
mod printer;
mod selection;
mod state;
mod status;
mod stopping;
mod watch;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use wireproof::atproto::event::{Options as Decoding, Values};
use wireproof::net::firehose::{
    self, FeedOptions, Firehose, KeyProvider, ResolverKeys, ResyncOptions, ServerKeys, StartFrom,
    StopSignal, Verification,
};
use wireproof::net::hosts::BackoffOptions;
use wireproof::net::websocket::SocketOptions;
use wireproof::store::{Store, StoreState};
use wireproof::verify::sync::Policy;

use crate::failure::Failure;
use crate::network::{self, Network};
use journal::StateFile;
use keys::StoredKeys;
use lines::{Lines, LinesWriter};
use metrics::{Metrics, Series};
use printer::{Limit, Printer};
use selection::Selection;
use status::Status;
use stopping::Stopping;
use watch::Watch;

pub(crate) use args::{FollowArgs, FromArgs, Start};
pub(crate) use hosts::{Hosts, RELAY};
pub(crate) use notices::text as notice_text;

pub(crate) fn run(args: &FollowArgs) -> Result<(), Failure> {
    let runtime = network::runtime()?;
    match args.jetstream {
        Some(_) => runtime.block_on(jetstream::follow(args)),
        None => runtime.block_on(follow(args)),
    }
}

async fn follow(args: &FollowArgs) -> Result<(), Failure> {
    let selection = Selection::new(&args.dids, &args.collections)?;
    let hosts = Hosts::new(&args.from.host, RELAY)?;
    let network = Network::open(&args.from.network)?;
    let metrics = match args.metrics {
        Some(address) => Some(Metrics::bind(address).await?),
        None => None,
    };
    let store = state::open(args)?;
    let KeyRing { keys, stored } = KeyRing::new(args, &hosts, &network, &store)?;
    let mut options = options(args, &hosts, &network, keys);
    if let Some(resync) = &mut options.resync {
        let out_of_step = store.desynchronized(resync.max_queued)?;
        resync.desynchronized = out_of_step.into_iter().map(Box::from).collect();
    }
    let mut accounts =
        (0..options.workers).map(|_| store.chain_state()).collect::<Result<Vec<_>, _>>()?;
    let states = move |_| -> StoreState { accounts.pop().expect("one for each worker") };

    let limit = args.events.map(|lines| Limit::new(lines, &mut options.limits));
    let firehose = Firehose::new(&network.http, options);
    let (watch, counters) = (Arc::new(Watch::new(hosts.names)), firehose.metrics());
    let (status, stop) = (Status::new(), StopSignal::new());
    let metrics = metrics.map(|listener| {
        let (watch, counters, store) = (watch.clone(), counters.clone(), store.clone());
        let series = Series { watch, counters, resolver: network.resolver, store };
        Metrics::new(listener, series, &status)
    });
    let stopping = Stopping::start(stop.clone(), status.clone());
    let (lines, writer) = open_lines(&stop)?;
    let printer = Printer {
        lines,
        selection,
        watch: Arc::clone(&watch),
        status: status.clone(),
        limit,
        stop: stop.clone(),
    };
    let journal = StateFile { store, keys: stored, first: args.cursor.number() };
    let run = firehose.run(printer, journal, states, stop);
    let ended = tokio::select! {
        ended = run => ended,
        never = Metrics::serve(metrics) => match never {},
        never = status.tell(&watch, &counters) => match never {},
    };
    status.end();
    // Who could not write tells why; that events were dropped then follows from it.
    writer.finish()?;
    ended?;
    stopping.conclude()
}

/// Who knows the keys.
struct KeyRing {
    keys: Arc<dyn KeyProvider>,
    /// The same, if they are kept: whose server it is that was named with a key is not.
    stored: Option<Arc<StoredKeys>>,
}

impl KeyRing {
    fn new(
        args: &FollowArgs,
        hosts: &Hosts,
        network: &Network,
        store: &Store,
    ) -> Result<Self, Failure> {
        let resolver = network.resolver.clone();
        if !args.pds {
            let stored = Arc::new(StoredKeys::new(ResolverKeys::new(resolver), store.clone()));
            return Ok(Self { keys: stored.clone(), stored: Some(stored) });
        }
        match (&*args.from.host, &*hosts.urls) {
            ([_], [server]) => {
                let keys = Arc::new(ServerKeys::new(resolver, server.clone()));
                Ok(Self { keys, stored: None })
            }
            _ => Err(Failure::Usage("--pds: name one server, by --host".to_owned())),
        }
    }
}

/// Lines to standard output. If nobody takes them any more there is no use in going on.
fn open_lines<A: lines::Acknowledge>(
    stop: &StopSignal,
) -> Result<(Lines<A>, LinesWriter<A>), Failure> {
    let stop = stop.clone();
    let opened = Lines::start(io::stdout(), move || stop.request());
    opened.map_err(|error| Failure::Local(format!("no thread: {error}")))
}

fn options(
    args: &FollowArgs,
    hosts: &Hosts,
    network: &Network,
    keys: Arc<dyn KeyProvider>,
) -> firehose::Options {
    let usual = firehose::Options::new(hosts.urls.clone(), keys);
    let decoding = Decoding { values: Values::Build, ..Decoding::default() };
    let policy = Policy::default();
    let verify = match (args.verify && !args.no_verify, usual.verify) {
        (true, Verification::On { keys, cache_bytes, .. }) => {
            Verification::On { policy, keys, cache_bytes }
        }
        _ => Verification::Off { decoding },
    };
    let is_on = matches!(verify, Verification::On { .. });
    firehose::Options {
        feed: feed_options(&args.from, args.cursor),
        workers: args.workers.map_or(usual.workers, usize::from),
        verify,
        resync: (args.resync && is_on)
            .then(|| ResyncOptions::new(network.xrpc.clone(), network.resolver.clone())),
        ..usual
    }
}

impl Start {
    /// Where to begin, if that is a number.
    fn number(self) -> Option<u64> {
        match self {
            Self::Behind(number) if number > 0 => Some(number),
            _ => None,
        }
    }
}

/// How streams are read.
pub(crate) fn feed_options(from: &FromArgs, start: Start) -> FeedOptions {
    let usual = FeedOptions::default();
    let idle_timeout = Duration::from_secs(from.idle_seconds);
    let ping_interval = usual.socket.ping_interval.min(idle_timeout / 2);
    FeedOptions {
        start: if start == Start::Behind(0) { StartFrom::Oldest } else { StartFrom::Live },
        backoff: BackoffOptions {
            initial: from.backoff_first_ms.map_or(usual.backoff.initial, Duration::from_millis),
            max: from.backoff_max_ms.map_or(usual.backoff.max, Duration::from_millis),
            ..usual.backoff
        },
        socket: SocketOptions { idle_timeout, ping_interval, ..usual.socket },
        ..usual
    }
}
