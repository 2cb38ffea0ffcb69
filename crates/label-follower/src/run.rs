//! A run: its labelers, a task each.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::StopSignal;
use follower::Status;
use net::websocket::Dialer;
use program::failure::Failure;
use program::network::Network;
use tokio::task::{JoinError, JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::checkpoints::Checkpoints;
use crate::client::{Client, ClientItem};
use crate::counts::Counts;
use crate::gather::Batch;
use crate::judge::{Judge, JudgedBatch, JudgedItem};
use crate::key_table::KeyTable;
use crate::labeler::{self, Labeler};
use crate::options::{LabelFollowOptions, Start};
use crate::recipient::Recipient;

/// A run of the follower.
pub(crate) struct Run<'a> {
    pub(crate) options: &'a LabelFollowOptions,
    network: Network,
    labelers: Vec<Labeler>,
    keys: Arc<KeyTable>,
    checkpoints: Arc<Checkpoints>,
    pub(crate) status: Status,
    pub(crate) stop: StopSignal,
}

/// How a run has ended.
pub(crate) struct Ended {
    /// The counts, or why the labelers are not followed any more.
    pub(crate) result: Result<Counts, Failure>,
    /// Whether all lines are written, or stored and delivered. Earlier failures follow from failures here.
    pub(crate) output: Result<(), Failure>,
}

/// What the tasks of all labelers share.
struct Shared {
    recipient: Mutex<Recipient>,
    checkpoints: Arc<Checkpoints>,
    counts: Mutex<Counts>,
    /// Lines that may still be passed on.
    room: AtomicU64,
    status: Status,
    stop: StopSignal,
}

impl<'a> Run<'a> {
    /// Finds the labelers, and reads their keys, and their cursors from the folder `cursors`.
    pub(crate) async fn open(
        options: &'a LabelFollowOptions,
        cursors: Option<&Path>,
        status: Status,
        stop: StopSignal,
    ) -> Result<Self, Failure> {
        options.check()?;
        let network = Network::open_with_refresh(&options.network, &[], options.min_refresh / 2)?;
        let mut labelers: Vec<Labeler> = Vec::new();
        for who in &options.labelers {
            let labeler = find(&network, who.as_at_identifier(), options, &stop).await?;
            if labelers.iter().any(|known| known.did == labeler.did) {
                return Err(Failure::Usage(format!("{}: a labeler is named twice", labeler.did)));
            }
            labelers.push(labeler);
        }
        let folder = options.checkpoints.as_deref();
        let checkpoints = Arc::new(Checkpoints::open(cursors, &labelers)?);
        let resolver = network.resolver.clone();
        let keys = KeyTable::open(resolver, options.min_refresh, folder, status.clone())?;
        labelers.iter().for_each(|labeler| keys.follow(labeler.did.as_did()));
        Ok(Self { options, network, labelers, keys: Arc::new(keys), checkpoints, status, stop })
    }

    /// Follows the labelers until a stop is requested, or they can never be followed.
    pub(crate) async fn follow(&self, recipient: Recipient, stop: StopSignal) -> Ended {
        match self.cursors(recipient).await {
            Ok((recipient, cursors)) => self.follow_from(recipient, &cursors, stop).await,
            Err(failure) => Ended { result: Err(failure), output: Ok(()) },
        }
    }

    /// The cursors of the labelers, from the recipient if it stores labels.
    async fn cursors(
        &self,
        recipient: Recipient,
    ) -> Result<(Recipient, Vec<Option<u64>>), Failure> {
        let Recipient::Store(mut store) = recipient else {
            let resume = |index| self.checkpoints.resume(index);
            return Ok((recipient, (0..self.labelers.len()).map(resume).collect()));
        };
        let labelers = self.labelers.clone();
        let read = spawn_blocking(move || {
            let cursors = labelers.iter().map(|labeler| store.cursor(labeler)).collect();
            (Recipient::Store(store), cursors)
        });
        let (recipient, cursors): (_, Result<_, Failure>) = read.await.map_err(thread_failure)?;
        Ok((recipient, cursors?))
    }

    async fn follow_from(
        &self,
        recipient: Recipient,
        cursors: &[Option<u64>],
        stop: StopSignal,
    ) -> Ended {
        let shared = Arc::new(Shared {
            recipient: Mutex::new(recipient),
            checkpoints: self.checkpoints.clone(),
            counts: Mutex::default(),
            room: AtomicU64::new(self.options.events.unwrap_or(u64::MAX)),
            status: self.status.clone(),
            stop: stop.clone(),
        });
        let mut tasks = JoinSet::new();
        for (index, cursor) in cursors.iter().enumerate() {
            let source = self.source(index, *cursor, shared.clone());
            tasks.spawn(source.run());
        }
        let (count, mut failures) = (self.labelers.len(), Vec::new());
        while let Some(ended) = tasks.join_next().await {
            match ended.unwrap_or_else(|error| Err(Failure::Local(format!("a task: {error}")))) {
                Ok(()) => {}
                Err(failure @ Failure::Network(_)) => failures.push(failure),
                Err(failure) => {
                    stop.request();
                    failures.insert(0, failure);
                }
            }
        }
        let counts = *shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let finishing = shared.clone();
        let finished = spawn_blocking(move || finishing.recipient().finish());
        let finished = finished.await.map_err(thread_failure).flatten();
        // A labeler that can never be followed ends the run once no other is left.
        let is_failure = failures.len() == count
            || !matches!(failures.first(), Some(Failure::Network(_)) | None);
        let result = match failures.into_iter().next().filter(|_| is_failure) {
            Some(failure) => Err(failure),
            None => Ok(counts),
        };
        // Labels that could not be stored cannot be at the end either.
        let result = result.and_then(|counts| finished.map(|()| counts));
        Ended { result, output: Ok(()) }
    }

    fn source(&self, index: usize, cursor: Option<u64>, shared: Arc<Shared>) -> Source {
        let labeler = self.labelers[index].clone();
        let start = match self.options.start {
            Start::Oldest => Some(0),
            Start::Now => None,
        };
        let client = Client::new(
            Dialer::new(self.network.http.clone()),
            labeler.method("com.atproto.label.subscribeLabels"),
            cursor.or(start),
            self.options.socket,
            self.options.backoff,
        );
        let accept_earlier_keys = self.options.accept_earlier_keys;
        let judge = Judge::new(labeler, self.keys.clone(), accept_earlier_keys);
        Source { index, client, judge, max_gather: self.options.max_gather, shared }
    }

    /// Stores the cursors and the keys, and prints the counts.
    pub(crate) fn finish(&self, ended: Ended) -> Result<Counts, Failure> {
        self.status.end();
        let stored = self.checkpoints.store();
        let kept = self.keys.store();
        ended.output?;
        let counts = ended.result?;
        stored?;
        kept?;
        self.status.print(&counts.to_text());
        Ok(counts)
    }
}

/// Finds a labeler. A directory or host that is away is asked again for a time.
async fn find(
    network: &Network,
    who: atproto::syntax::AtIdentifier<'_>,
    options: &LabelFollowOptions,
    stop: &StopSignal,
) -> Result<Labeler, Failure> {
    let deadline = options.first_contact.map(|limit| Instant::now() + limit);
    let mut delay = Duration::from_millis(500);
    loop {
        let found = labeler::find(&network.resolver, who).await;
        let is_late = deadline.is_some_and(|deadline| Instant::now() + delay >= deadline);
        match found {
            Err(Failure::Network(_)) if !is_late && !stop.is_requested() => {
                let _ = timeout_at(Instant::now() + delay, stop.requested()).await;
                delay = (delay * 2).min(Duration::from_secs(10));
            }
            found => return found,
        }
    }
}

/// A labeler that is followed.
struct Source {
    index: usize,
    client: Client,
    judge: Judge,
    max_gather: Duration,
    shared: Arc<Shared>,
}

impl Source {
    async fn run(mut self) -> Result<(), Failure> {
        let result = self.follow().await;
        self.client.close().await;
        result
    }

    /// Follows until a stop is requested. Lines that are being passed on are passed on.
    async fn follow(&mut self) -> Result<(), Failure> {
        let stop = self.shared.stop.clone();
        loop {
            let batch = tokio::select! {
                batch = Batch::gather(&mut self.client, self.max_gather) => batch,
                () = stop.requested() => return Ok(()),
            };
            let batch = batch.map_err(|error| {
                let name = self.judge.labeler.origin();
                let text = format!("{name}: not followed any more: {}", error.fault);
                self.shared.status.print_warning(&text);
                Failure::Network(text)
            })?;
            self.report(&batch);
            let judged = tokio::select! {
                judged = self.judge.judge(batch) => judged,
                () = stop.requested() => return Ok(()),
            };
            let passed = self.passing_on(judged);
            passed.await.map_err(thread_failure).flatten()?;
            self.judge.keys.store()?;
            if self.shared.room.load(Relaxed) == 0 {
                stop.request();
                return Ok(());
            }
        }
    }

    fn report(&self, batch: &Batch) {
        let (status, name) = (&self.shared.status, self.judge.labeler.origin());
        for item in &batch.items {
            match item {
                ClientItem::Notice("connected" | "retry", text) => {
                    status.print(&format!("{name}: {text}"));
                }
                ClientItem::Notice(_, text) => status.print_warning(&format!("{name}: {text}")),
                ClientItem::Reset => status.warn("reset", || {
                    format!("{name}: its sequence has begun again: its labels are received from the oldest one on")
                }),
                ClientItem::Message { .. } | ClientItem::Text => {}
            }
        }
    }

    /// A thread that passes lines on, and may wait.
    fn passing_on(&self, judged: JudgedBatch) -> JoinHandle<Result<(), Failure>> {
        let (shared, index) = (self.shared.clone(), self.index);
        let labeler = self.judge.labeler.clone();
        spawn_blocking(move || shared.pass_on(index, &labeler, judged))
    }
}

fn thread_failure(error: JoinError) -> Failure {
    Failure::Local(format!("a thread: {error}"))
}

impl Shared {
    fn recipient(&self) -> MutexGuard<'_, Recipient> {
        self.recipient.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(&self, index: usize, labeler: &Labeler, judged: JudgedBatch) -> Result<(), Failure> {
        let JudgedBatch { lines, items, counts, warnings } = judged;
        for (code, text) in warnings {
            self.status.warn(code, || text);
        }
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(counts);
        let total = *all;
        drop(all);
        let mut recipient = self.recipient();
        let items = &items[..recipient.whole(&items, self.take_room(&items))];
        let starts = std::iter::once(0).chain(items.iter().map(|item| item.end));
        let lines = items.iter().zip(starts).map(|(item, start)| (item, &lines[start..item.end]));
        // The cursor moves with the last label of a message.
        let seq = items.iter().rev().find_map(|item| item.seq);
        recipient.pass_on(labeler, lines, self.checkpoints.start(index, seq))?;
        drop(recipient);
        self.status.print_due_warnings();
        self.status.show(|| total.to_text());
        Ok(self.checkpoints.store_if_due()?)
    }

    /// The number of items whose lines may be passed on.
    fn take_room(&self, items: &[JudgedItem]) -> usize {
        let room = self.room.load(Relaxed);
        let count = usize::try_from(room).unwrap_or(usize::MAX).min(items.len());
        self.room.store(room - count as u64, Relaxed);
        count
    }
}
