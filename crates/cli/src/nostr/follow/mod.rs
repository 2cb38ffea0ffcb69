//! `wireproof nostr follow`: the valid events of relays, as they come.
//!
//! ```text
//! relays ── Client, a task each ── gather ── judge, on all cores ── Taker ──┬── LineWriter ── standard output
//!    ▲                │ permits for bytes in flight │                      └── Outbox ── destination, for each of --to
//!    └── the relay waits at the limit ──────────────┘       Checkpoints <── taken by the reader, or stored in the outbox
//! ```

mod args;
mod auth_key;
mod checkpoints;
mod deliver;
mod judge;
mod known;
mod receive;
mod recipient;
mod taker;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use net::firehose::StopSignal;
use net::hosts::Jitter;
use net::http::{self, Url};
use net::websocket::Dialer;
use nostr::Filter;
use nostr::negentropy::Items;
use nostr_relay::{Authenticator, Client, Traffic};
use tokio::sync::mpsc;

use self::checkpoints::{Checkpoints, Resumes};
use self::judge::Judge;
use self::receive::{Batch, Receiver, RelayEnd};
use self::recipient::Recipient;
use self::taker::{Counts, Taker};
use super::seen::{MAX_IDS, SeenIds};
use crate::failure::Failure;
use crate::interrupt::Shutdown;
use crate::{batch, in_order, network};
use follower::{LineWriter, Status, output_failure};

pub(crate) use args::NostrFollowArgs;

pub(super) fn run(args: &NostrFollowArgs) -> Result<(), Failure> {
    let runtime = network::runtime()?;
    let result = runtime.block_on(follow(args));
    // A thread that waits for a disk must not delay the end.
    runtime.shutdown_background();
    result
}

/// A run: what is followed, and up to where it was.
struct Run<'a> {
    args: &'a NostrFollowArgs,
    urls: Vec<Url>,
    /// The names of the relays.
    names: Vec<String>,
    filter: Filter,
    http: http::Client,
    known: Option<Arc<Items>>,
    authenticator: Option<Authenticator>,
    checkpoints: Arc<Checkpoints>,
    status: Status,
    stop: StopSignal,
}

/// How a run has ended.
struct Ended {
    ends: Vec<RelayEnd>,
    traffic: Traffic,
    /// The counts, and the times that follow once all lines are taken.
    verified: Result<(Counts, Resumes), Failure>,
    /// Whether all lines are written, or stored and delivered. What fails before follows from what fails here.
    output: Result<(), Failure>,
}

async fn follow(args: &NostrFollowArgs) -> Result<(), Failure> {
    args.check_delivery()?;
    let (urls, filter) = (args.urls()?, args.filter()?);
    let authenticator = args.auth_key.as_deref().map(auth_key::read).transpose()?;
    let http = network::operator_client(&args.network)?;
    let (status, stop) = (Status::new(), StopSignal::new());
    let checkpoints = Arc::new(Checkpoints::open(args, &urls, &filter)?);
    let known = args.known(&filter, &status)?.map(Arc::new);
    let (limit, announcing) = (args.stop_limit(), status.clone());
    let announce = move || announcing.announce_stop(limit);
    let shutdown = Shutdown::listen(stop.clone(), limit, announce)?;
    let names = urls.iter().map(args::name).collect();
    let run =
        Run { args, urls, names, filter, http, known, authenticator, checkpoints, status, stop };
    let ended = match args.to.is_empty() {
        true => print(&run).await,
        false => deliver::deliver(&run).await,
    };
    run.status.end();
    run.finish(ended?)?.map_or_else(|| shutdown.result(), Err)
}

/// Prints the lines of a run to standard output.
async fn print(run: &Run<'_>) -> Result<Ended, Failure> {
    let (lines, writer) = LineWriter::stdout(&run.stop)?;
    let ended = run.follow(Recipient::stdout(lines), run.stop.clone()).await;
    let written = writer.finish(run.args.stop_limit() / 10 * 6).await;
    Ok(Ended { output: written.map_err(output_failure), ..ended })
}

impl Run<'_> {
    /// Follows the relays until they have ended, or `stop` is requested.
    async fn follow(&self, recipient: Recipient, stop: StopSignal) -> Ended {
        let (args, names) = (self.args, self.names.clone());
        let seen = Arc::new(Mutex::new(SeenIds::new(MAX_IDS)));
        let judge = Judge {
            filter: self.filter.clone(),
            ids: args.ids,
            known: self.known.clone(),
            seen: seen.clone(),
            form: args.line_form(),
            names: names.clone(),
        };
        let taker = Taker::new(self, seen, recipient, stop.clone());
        let (batches, queue) = mpsc::channel(QUEUED_BATCHES);
        let verifying = tokio::task::spawn_blocking({
            let threads = batch::threads(args.jobs);
            move || verify(queue, threads, &judge, taker)
        });
        let dialer = Dialer::new(self.http.clone());
        let client = |(relay, url): (usize, &Url)| {
            let mut options = args.options(self.checkpoints.resume(relay), self.known.clone());
            options.authenticator = self.authenticator.clone();
            let filter = self.filter.clone();
            Client::new(dialer.clone(), url.clone(), filter, options, Jitter::new())
        };
        let clients: Vec<Client> = self.urls.iter().enumerate().map(client).collect();
        let status = self.status.clone();
        let receiver = Receiver { names, status, stop, ends_with_stored: args.stored };
        let (ends, traffic) = receiver.run(clients, batches, args.max_gather()).await;
        let verified = verifying.await;
        let verified =
            verified.unwrap_or_else(|error| Err(Failure::Local(format!("a thread: {error}"))));
        Ended { ends, traffic, verified, output: Ok(()) }
    }

    /// Stores the checkpoints, and prints the counts. The failure of the relays, if some cannot be followed.
    fn finish(&self, ended: Ended) -> Result<Option<Failure>, Failure> {
        let Ended { ends, traffic, mut verified, output } = ended;
        if let Ok((_, resumes)) = &mut verified {
            self.checkpoints.apply_if_idle(resumes);
        }
        let stored = self.checkpoints.store();
        output?;
        let (counts, _) = verified?;
        stored?;
        self.status.print(&counts.to_text(traffic));
        let unreadable = || counts.unreadable_text().map(Failure::Network);
        Ok(failure_of(&self.urls, &ends).or_else(unreadable))
    }
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
        RelayEnd::Incomplete(_) | RelayEnd::Stopped | RelayEnd::Complete => None,
    };
    let incomplete = |(url, end): (&Url, &RelayEnd)| match end {
        RelayEnd::Incomplete(gap) => Some(Failure::Network(format!("{}: {gap}", args::name(url)))),
        _ => None,
    };
    let failed: Vec<String> = urls.iter().zip(ends).filter_map(failed).collect();
    let are_wanted = |end: &RelayEnd| matches!(end, RelayEnd::Complete | RelayEnd::Incomplete(_));
    let is_failure = failed.len() == urls.len() || ends.iter().any(are_wanted);
    match &*failed {
        [first, ..] if is_failure => {
            let counts = format!("{} of {} relays", failed.len(), urls.len());
            Some(Failure::Network(format!("{counts} cannot be followed: {first}")))
        }
        _ => urls.iter().zip(ends).find_map(incomplete),
    }
}

/// Batches that wait for a thread.
const QUEUED_BATCHES: usize = 4;
