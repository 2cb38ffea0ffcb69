//! `wireproof follow`: prints the events of a stream as lines of JSON.
//!
//! ```text
//! hosts ── Firehose ── Printer::event on each worker ── LineWriter ── standard output
//!              │                                            │
//!              │ <────────────────── ack ───────────────────┘ once a line is written and flushed
//!              └── StateJournal: cursors, account states and keys, as far as acked
//! ```

mod args;
mod jetstream;
mod keys;
mod line;
mod metrics;
mod printer;
mod repetition_marks;
mod selection;
mod state;
mod stats;
mod status;
mod stdout;
mod taken;
mod warnings;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use wireproof::atproto::event::Options as Decoding;
use wireproof::net::firehose::{
    self, Firehose, KeyProvider, ResolverKeys, ResyncOptions, ServerStatuses, StopSignal, Upstream,
    Verification,
};
use wireproof::store::{Store, StoreState, crash_point};
use wireproof::verify::sync::Policy;

use crate::failure::Failure;
use crate::interrupt::Shutdown;
use crate::network::{self, Network};
use crate::stream::{DEFAULT_RELAY, Hosts};
use keys::StoredKeys;
use metrics::{FirehoseSeries, Metrics};
use printer::Printer;
use repetition_marks::RepetitionMarks;
use selection::Selection;
use state::StateJournal;
use stats::RunStats;
use status::Status;
use writer::LineWriter;

pub(crate) use args::FollowArgs;

pub(crate) fn run(args: &FollowArgs) -> Result<(), Failure> {
    let runtime = network::runtime()?;
    let result = match args.jetstream {
        Some(_) => runtime.block_on(jetstream::follow(args)),
        None => runtime.block_on(follow(args)),
    };
    // A thread that waits for a disk must not delay the end.
    runtime.shutdown_background();
    result
}

async fn follow(args: &FollowArgs) -> Result<(), Failure> {
    let selection = Selection::new(&args.dids, &args.collections)?;
    let hosts = Hosts::new(&args.stream.host, DEFAULT_RELAY)?;
    let network = Network::open(&args.stream.network, &hosts.urls)?;
    let listener = Metrics::bind(args.metrics).await?;
    let store = state::open(args)?;
    let keys = Arc::new(stored_keys(args, &hosts, &network, &store)?);
    let mut options = options(args, &hosts, &network, keys.clone());
    if let Some(resync) = &mut options.resync {
        let accounts = store.desynchronized(resync.max_queued)?;
        resync.desynchronized = accounts.into_iter().map(Box::from).collect();
    }
    let mut states =
        (0..options.workers).map(|_| store.chain_state()).collect::<Result<Vec<_>, _>>()?;
    let states = move |_| -> StoreState { states.pop().expect("one for each worker") };

    let firehose = Firehose::new(&network.http, options);
    let (stats, metrics) = (Arc::new(RunStats::new(hosts.names)), firehose.metrics());
    let (status, stop) = (Status::new(), StopSignal::new());
    let endpoint = listener.map(|listener| {
        let (stats, metrics, store) = (stats.clone(), metrics.clone(), store.clone());
        let series = FirehoseSeries { stats, metrics, resolver: network.resolver, store };
        Metrics::new(listener, series, &status)
    });
    let (limit, announcing) = (args.stream.stop_limit(), status.clone());
    let announce = move || announcing.announce_stop(limit);
    let shutdown = Shutdown::listen(stop.clone(), limit, announce)?;
    let (lines, writer) = LineWriter::stdout(&stop)?;
    let streams = hosts.urls.iter().map(|url| Upstream::new(url.clone()).stream_name());
    let marks = Arc::new(RepetitionMarks::load(store.clone(), streams)?);
    let (shown, printed) = (status.clone(), Arc::clone(&marks));
    let printer = Printer { lines, selection, stats: Arc::clone(&stats), status: shown, marks };
    let initial_cursor = args.cursor.cursor();
    let journal = StateJournal { store, keys, initial_cursor };
    let run = firehose.run(printer, journal, states, stop);
    let result = tokio::select! {
        result = run => result,
        never = Metrics::serve(endpoint) => match never {},
        never = status.update(&stats, &metrics) => match never {},
    };
    status.end();
    status.print_skipped(&stats, &metrics.snapshot());
    let written = writer.finish(limit / 10).await;
    crash_point("run/finished");
    let marked = printed.finish();
    // A failed write is reported first: dropped events follow from it.
    written.map_err(writer::failure)?;
    let summary = result.map_err(|error| state::failure(error, &stats, &metrics))?;
    marked?;
    let unacknowledged = summary.unacknowledged;
    if unacknowledged > 0 {
        status.print(&format!(
            "{unacknowledged} events were not printed, or not taken by the reader: the next run repeats them"
        ));
    }
    shutdown.result()
}

/// Keys from the directory, which are stored; with `--pds` those of the server's accounts.
fn stored_keys(
    args: &FollowArgs,
    hosts: &Hosts,
    network: &Network,
    store: &Store,
) -> Result<StoredKeys, Failure> {
    let server = match (args.pds, &*args.stream.host, &*hosts.urls) {
        (false, ..) => None,
        (true, [_], [server]) => Some(server.clone()),
        _ => return Err(Failure::Usage("--pds: name one server with --host".to_owned())),
    };
    Ok(StoredKeys::new(ResolverKeys::new(network.resolver.clone()), server, store.clone()))
}

fn options(
    args: &FollowArgs,
    hosts: &Hosts,
    network: &Network,
    keys: Arc<dyn KeyProvider>,
) -> firehose::Options {
    let mut options = firehose::Options::new(hosts.urls.clone(), keys);
    let decoding = Decoding::default();
    let mut policy = Policy::default();
    policy.strict_records = args.strict_records;
    let verify = match (args.verify && !args.no_verify, options.verify) {
        (true, Verification::On { keys, cache_bytes, .. }) => {
            Verification::On { policy, keys, cache_bytes }
        }
        _ => Verification::Off { decoding },
    };
    options.resync = (args.resync && matches!(verify, Verification::On { .. })).then(|| {
        let mut resync = ResyncOptions::new(network.xrpc.clone(), network.resolver.clone());
        resync.repository.strict_records = args.strict_records;
        resync
    });
    let (client, resolver) = (network.xrpc.clone(), network.resolver.clone());
    options.statuses = Some(Arc::new(ServerStatuses::new(client, resolver)));
    options.verify = verify;
    options.feed = args.stream.feed_options(args.cursor);
    options.workers = args.workers.map_or(options.workers, usize::from);
    options.limits.max_gather = Duration::from_millis(args.gather_ms);
    options.max_events = args.events;
    options.clock_servers = vec![network.directory.clone()];
    // The rest is for the writer.
    options.stop_timeout = args.stream.stop_limit() / 10 * 8;
    options
}
