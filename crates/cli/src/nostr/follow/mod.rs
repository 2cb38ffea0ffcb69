//! `wireproof nostr follow`: the valid events of relays, as they come.
//!
//! ```text
//! relays ── Client, a task each ── gather ── judge, on all cores ── Taker ── LineWriter ── standard output
//!    ▲                │ permits for bytes in flight │                                 │
//!    └── the relay waits at the limit ──────────────┘       Checkpoints <── taken ────┘
//! ```

mod args;
mod checkpoints;
mod judge;
mod known;
mod receive;
mod taker;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use wireproof::net::firehose::StopSignal;
use wireproof::net::hosts::Jitter;
use wireproof::net::http::Url;
use wireproof::net::nostr_relay::Client;
use wireproof::net::websocket::Dialer;

use self::checkpoints::{Checkpoints, Resumes};
use self::judge::Judge;
use self::receive::{Batch, Receiver, RelayEnd};
use self::taker::{Counts, Taker};
use super::seen::{MAX_IDS, SeenIds};
use crate::failure::Failure;
use crate::follow::{LineWriter, Status, output_failure};
use crate::interrupt::Shutdown;
use crate::{batch, in_order, network};

pub(crate) use args::NostrFollowArgs;

pub(super) fn run(args: &NostrFollowArgs) -> Result<(), Failure> {
    let runtime = network::runtime()?;
    let result = runtime.block_on(follow(args));
    // A thread that waits for a disk must not delay the end.
    runtime.shutdown_background();
    result
}

async fn follow(args: &NostrFollowArgs) -> Result<(), Failure> {
    let (urls, filter) = (args.urls()?, args.filter()?);
    let http = network::operator_client(&args.network)?;
    let (status, stop) = (Status::new(), StopSignal::new());
    let checkpoints = Arc::new(Checkpoints::open(args, &urls, &filter)?);
    let known = args.known(&filter, &status)?.map(Arc::new);
    let (limit, announcing) = (args.stop_limit(), status.clone());
    let announce = move || announcing.announce_stop(limit);
    let shutdown = Shutdown::listen(stop.clone(), limit, announce)?;
    let (lines, writer) = LineWriter::stdout(&stop)?;

    let names: Vec<String> = urls.iter().map(args::name).collect();
    let seen = Arc::new(Mutex::new(SeenIds::new(MAX_IDS)));
    let judge = Judge {
        filter: filter.clone(),
        ids: args.ids,
        known: known.clone(),
        seen: seen.clone(),
        json: args.json,
        names: names.clone(),
    };
    let taker = Taker::new(args, names.clone(), seen, lines, &checkpoints, &status, &stop);
    let (batches, queue) = mpsc::channel(QUEUED_BATCHES);
    let verifying = tokio::task::spawn_blocking({
        let threads = batch::threads(args.jobs);
        move || verify(queue, threads, &judge, taker)
    });
    let dialer = Dialer::new(http);
    let client = |(relay, url): (usize, &Url)| {
        let options = args.options(checkpoints.resume(relay), known.clone());
        Client::new(dialer.clone(), url.clone(), filter.clone(), options, Jitter::new())
    };
    let clients: Vec<Client> = urls.iter().enumerate().map(client).collect();
    let receiver = Receiver { names, status: status.clone(), stop, ends_with_stored: args.stored };
    let (ends, traffic) = receiver.run(clients, batches, args.max_gather()).await;
    let verified = verifying.await;
    let mut verified =
        verified.unwrap_or_else(|error| Err(Failure::Local(format!("a thread: {error}"))));
    let written = writer.finish(limit / 10 * 6).await;
    status.end();
    if let Ok((_, resumes)) = &mut verified {
        checkpoints.apply_if_idle(resumes);
    }
    let stored = checkpoints.store();
    // A failed write is reported first: dropped lines follow from it.
    written.map_err(output_failure)?;
    let (counts, _) = verified?;
    stored?;
    status.print(&counts.to_text(traffic));
    failure_of(&urls, &ends).map_or_else(|| shutdown.result(), Err)
}

/// Judges batches on several threads, and takes the verdicts in order, until no more batches come.
fn verify(
    mut queue: mpsc::Receiver<Batch>,
    threads: NonZeroUsize,
    judge: &Judge,
    mut taker: Taker,
) -> Result<(Counts, Resumes), Failure> {
    let batches = std::iter::from_fn(|| queue.blocking_recv());
    in_order::run(batches, threads, || judge.worker(), |judged| taker.take(judged))?;
    Ok(taker.finish())
}

/// The failure of a run in which relays could not be followed: all of them, or one whose stored events were wanted.
fn failure_of(urls: &[Url], ends: &[RelayEnd]) -> Option<Failure> {
    let failed = |(url, end): (&Url, &RelayEnd)| match end {
        RelayEnd::Failed(reason) => Some(format!("{}: {reason}", args::name(url))),
        RelayEnd::Stopped | RelayEnd::Complete => None,
    };
    let failed: Vec<String> = urls.iter().zip(ends).filter_map(failed).collect();
    let is_failure = failed.len() == urls.len() || ends.contains(&RelayEnd::Complete);
    match &*failed {
        [first, ..] if is_failure => {
            let counts = format!("{} of {} relays", failed.len(), urls.len());
            Some(Failure::Network(format!("{counts} cannot be followed: {first}")))
        }
        _ => None,
    }
}

/// Batches that wait for a thread.
const QUEUED_BATCHES: usize = 4;
