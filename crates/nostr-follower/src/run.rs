//! A run: its parts, and how it ends.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use follower::Status;
use net::firehose::StopSignal;
use net::hosts::Jitter;
use net::http::{self, Url};
use net::websocket::Dialer;
use nostr_relay::{Client, Traffic};
use program::failure::Failure;
use program::{batch, in_order, network};
use tokio::sync::mpsc;

use crate::checkpoints::{Checkpoints, Resumes};
use crate::judge::Judge;
use crate::options::{NostrFollowOptions, relay_name};
use crate::receive::{Batch, Receiver, RelayEnd};
use crate::recipient::Recipient;
use crate::seen::{MAX_IDS, SeenIds};
use crate::taker::{Counts, Taker};

/// A run: its relays, and the times up to which they were followed.
pub(crate) struct Run<'a> {
    pub(crate) options: &'a NostrFollowOptions,
    /// The names of the relays.
    pub(crate) names: Vec<String>,
    http: http::Client,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) status: Status,
    pub(crate) stop: StopSignal,
}

/// How a run has ended.
pub(crate) struct Ended {
    pub(crate) ends: Vec<RelayEnd>,
    pub(crate) traffic: Traffic,
    /// The counts, and the times that follow once all lines are taken.
    pub(crate) verified: Result<(Counts, Resumes), Failure>,
    /// Whether all lines are written, or stored and delivered. Earlier failures follow from failures here.
    pub(crate) output: Result<(), Failure>,
}

impl<'a> Run<'a> {
    /// Reads the checkpoints. No connection is made yet.
    pub(crate) fn open(
        options: &'a NostrFollowOptions,
        status: Status,
        stop: StopSignal,
    ) -> Result<Self, Failure> {
        options.check()?;
        let http = network::operator_client(&options.network)?;
        let checkpoints = Arc::new(Checkpoints::open(options)?);
        let names = options.relays.iter().map(relay_name).collect();
        Ok(Self { options, names, http, checkpoints, status, stop })
    }

    /// Follows the relays until they have ended, or `stop` is requested.
    pub(crate) async fn follow(&self, recipient: Recipient, stop: StopSignal) -> Ended {
        let (options, names) = (self.options, self.names.clone());
        let seen = Arc::new(Mutex::new(SeenIds::new(MAX_IDS)));
        let judge = Judge {
            filter: options.filter.clone(),
            ids: options.ids,
            known: options.known().cloned(),
            seen: seen.clone(),
            form: options.form,
            names: names.clone(),
        };
        let taker = Taker::new(
            names.clone(),
            options.events.unwrap_or(u64::MAX),
            seen,
            recipient,
            self.checkpoints.clone(),
            self.status.clone(),
            stop.clone(),
        );
        let (batches, queue) = mpsc::channel(QUEUED_BATCHES);
        let verifying = tokio::task::spawn_blocking({
            let threads = batch::threads(options.threads);
            move || verify(queue, threads, &judge, taker)
        });
        let dialer = Dialer::new(self.http.clone());
        let client = |(relay, url): (usize, &Url)| {
            let client = options.client(self.checkpoints.resume(relay));
            let filter = options.filter.clone();
            Client::new(dialer.clone(), url.clone(), filter, client, Jitter::new())
        };
        let clients: Vec<Client> = options.relays.iter().enumerate().map(client).collect();
        let ends_with_stored = options.ends_with_stored();
        let is_new = |relay: &usize| self.checkpoints.resume(*relay).is_none();
        let first_contacts = (0..names.len())
            .map(|relay| options.first_contact.filter(|_| is_new(&relay)))
            .collect();
        let status = self.status.clone();
        let receiver = Receiver { names, status, stop, ends_with_stored, first_contacts };
        let (ends, traffic) = receiver.run(clients, batches, options.max_gather).await;
        let verified = verifying.await;
        let verified =
            verified.unwrap_or_else(|error| Err(Failure::Local(format!("a thread: {error}"))));
        Ended { ends, traffic, verified, output: Ok(()) }
    }

    /// Stores the checkpoints, and prints the counts. Returns the counts, and the relays' failure if some cannot be followed.
    pub(crate) fn finish(&self, ended: Ended) -> Result<(Counts, Option<Failure>), Failure> {
        self.status.end();
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
        let failure = failure_of(&self.options.relays, &ends).or_else(unreadable);
        Ok((counts, failure))
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
        RelayEnd::Failed(reason) => Some(format!("{}: {reason}", relay_name(url))),
        RelayEnd::Incomplete(_) | RelayEnd::Stopped | RelayEnd::Complete => None,
    };
    let incomplete = |(url, end): (&Url, &RelayEnd)| match end {
        RelayEnd::Incomplete(gap) => Some(Failure::Network(format!("{}: {gap}", relay_name(url)))),
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
