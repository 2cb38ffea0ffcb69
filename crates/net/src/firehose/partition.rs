//! One worker's partition of the accounts: which of their events are next, and which have to wait?
//!
//! ```text
//! inbox ─> ready ──────────> batch ─> processor ─> handler
//!            │ ▲               │
//!            ▼ │ in front      ▼
//!          waiting <── key in doubt, out of step ── job ─ ─ > message
//! ```
//!
//! Events of an account stay in order: while it waits, what comes of it waits behind, and when it goes
//! on, what waited goes before what is ready. Nothing here waits for others: not for time, nor a socket.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use verify::sync::{ChainState, Head, SyncState};

use super::arrival::FrameKind;
use super::counter::Dispatcher;
use super::handler::Handler;
use super::inbox::WorkerMessage;
use super::item::{Answer, Item, Numbers};
use super::keys::KeyError;
use super::options::Options;
use super::processor::{self, BatchOutcome, Processor, UnresolvedKey, Verifier};
use super::recording::RecordingState;
use super::resync::{ResyncResult, ResyncedRepo};
use super::waiting::{self, For, Waiting};

/// A worker's partition.
pub(super) struct Partition<H, S> {
    /// The worker's number.
    pub(super) number: usize,
    pub(super) counter: Dispatcher<H>,
    pub(super) processor: Processor<S>,
    pub(super) jobs: UnboundedSender<Job>,
    /// Events that are next, in order.
    pub(super) ready: VecDeque<Item>,
    pub(super) waiting: Waiting,
    /// The accounts whose repositories are being fetched.
    pub(super) mending: HashMap<u64, Box<str>>,
    pub(super) habits: WorkerConfig,
    /// Whether no more events come: then nobody waits for a repository.
    pub(super) is_closing: bool,
}

/// How a worker works.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerConfig {
    /// Events in a batch.
    pub(super) max_batch: usize,
    /// How long events wait for a repository.
    pub(super) max_hold: Duration,
    /// Whether repositories are fetched anew.
    pub(super) resyncs: bool,
}

/// Something that a worker has done for it, and does not wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// To find out a key.
    Key { worker: usize, account: u64, did: Box<str>, is_doubted: bool },
    /// To fetch a repository, of this revision or a later one.
    Repository { worker: usize, account: u64, did: Box<str>, known: Option<Head> },
}

impl<H: Handler, S: ChainState> Partition<H, S> {
    /// The partition of the worker with this number, and what is known of its accounts.
    pub(super) fn new(
        number: usize,
        options: &Options,
        counter: Dispatcher<H>,
        state: S,
        jobs: UnboundedSender<Job>,
        numbers: &Numbers,
    ) -> Self {
        let bounds = &options.limits;
        let habits = WorkerConfig {
            max_batch: bounds.max_batch.max(1),
            max_hold: bounds.max_hold,
            resyncs: options.resync.is_some(),
        };
        let waiting = Waiting::new(waiting::ParkedLimits::of(bounds, options.workers));
        let processor = Processor::new(options, state, numbers);
        let (ready, mending, is_closing) = Default::default();
        Self { number, counter, processor, jobs, ready, waiting, mending, habits, is_closing }
    }

    /// Settles the next batch. Whether there was one.
    pub(super) fn step(&mut self) -> Result<bool, S::Error> {
        let items = self.gather();
        if items.is_empty() {
            return Ok(false);
        }
        match &mut self.processor {
            Processor::Reader(decoder) => processor::read(decoder, &items, &self.counter),
            Processor::Judge(judge) => {
                let outcome = judge.settle(items, &self.counter)?;
                self.follow(outcome)?;
            }
        }
        Ok(true)
    }

    /// Takes what a message says.
    pub(super) fn read(&mut self, message: WorkerMessage) -> Result<(), S::Error> {
        match message {
            WorkerMessage::OutOfStep(account, did) => self.mend(account, did)?,
            WorkerMessage::Found(account, answer) => self.go_on_with(account, &answer),
            WorkerMessage::ResyncResult(account, mended) => self.mended(account, mended)?,
            // The worker's own affair.
            WorkerMessage::LastCall => {}
        }
        Ok(())
    }

    /// Lets go of what has waited for a repository for too long.
    pub(super) fn let_go_of_overdue(&mut self, now: Instant) {
        for account in self.waiting.overdue(self.habits.max_hold, now) {
            self.go_on(account);
        }
    }

    /// No more events come: nothing waits for repositories any longer. An account that is out of step
    /// will be found so by a later run.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        self.let_go_of_all(For::Repository);
    }

    fn let_go_of_all(&mut self, cause: For) {
        for account in self.waiting.accounts(cause) {
            self.go_on(account);
        }
    }

    /// The next batch: events that do not wait, and nothing of an account behind a message that changes
    /// how the account is judged.
    fn gather(&mut self) -> Vec<Item> {
        let (mut batch, mut changed, mut bytes) = (Vec::new(), Vec::new(), 0);
        while batch.len() < self.habits.max_batch
            && bytes < MAX_BATCH_BYTES
            && let Some(item) = self.ready.pop_front_if(|item| !changed.contains(&item.account))
        {
            if self.waiting.cause(item.account).is_some() {
                self.hold(item);
                continue;
            }
            if matches!(item.arrival.kind, FrameKind::Account | FrameKind::Identity) {
                changed.push(item.account);
            }
            bytes += item.len();
            batch.push(item);
        }
        batch
    }

    /// Lets an event wait with its account; if those are too many, they wait no longer.
    fn hold(&mut self, item: Item) {
        let account = item.account;
        if !self.waiting.push(item) {
            return;
        }
        match self.waiting.cause(account) {
            Some(For::Key) => {
                let answer = Answer { found: Err(KeyError::Crowded), is_last: true };
                self.go_on_with(account, &Arc::new(answer));
            }
            _ => self.go_on(account),
        }
    }

    /// An account goes on, before everything that is ready.
    fn go_on(&mut self, account: u64) {
        for item in self.waiting.end(account).into_iter().rev() {
            self.ready.push_front(item);
        }
    }

    /// An account that waits for its key goes on with what was found out about it.
    fn go_on_with(&mut self, account: u64, answer: &Arc<Answer>) {
        if self.waiting.cause(account) != Some(For::Key) {
            return;
        }
        for mut item in self.waiting.end(account).into_iter().rev() {
            item.answer = Some(answer.clone());
            self.ready.push_front(item);
        }
    }

    /// Lets accounts wait for what a batch has shown to be missing.
    fn follow(&mut self, outcome: BatchOutcome) -> Result<(), S::Error> {
        let BatchOutcome { doubts, unsettled, out_of_step } = outcome;
        for UnresolvedKey { account, did, is_doubted, .. } in doubts {
            self.waiting.begin(account, For::Key, Instant::now());
            self.send(Job::Key { worker: self.number, account, did, is_doubted });
        }
        unsettled.into_iter().for_each(|item| self.hold(item));
        for (account, did) in out_of_step {
            self.mend(account, did)?;
        }
        Ok(())
    }

    /// Has a repository fetched, if nobody is fetching it, and lets the account wait for it.
    fn mend(&mut self, account: u64, did: Box<str>) -> Result<(), S::Error> {
        if !self.habits.resyncs || self.is_closing || self.mending.contains_key(&account) {
            return Ok(());
        }
        let known = self.known(&did)?;
        self.mending.insert(account, did.clone());
        // Who waits for its key already, waits for that.
        self.waiting.begin(account, For::Repository, Instant::now());
        self.send(Job::Repository { worker: self.number, account, did, known });
        Ok(())
    }

    /// What became of the repository of an account.
    fn mended(&mut self, account: u64, mended: ResyncResult) -> Result<(), S::Error> {
        let Some(did) = self.mending.remove(&account) else { return Ok(()) };
        match mended {
            Ok(resynced) => {
                if self.known(&did)?.is_some_and(|known| resynced.head.rev < known.rev) {
                    // It went on in the meantime, and did not wait.
                    return self.mend(account, did);
                }
                self.accept(account, &resynced)?;
            }
            Err(why) => self.counter.handler.resync_failed(&did, &why),
        }
        if self.waiting.cause(account) == Some(For::Repository) {
            self.go_on(account);
        }
        Ok(())
    }

    /// The account is where its repository is.
    fn accept(&mut self, account: u64, resynced: &Arc<ResyncedRepo>) -> Result<(), S::Error> {
        let Processor::Judge(processor) = &mut self.processor else { return Ok(()) };
        let Verifier { state, numbers, .. } = &mut **processor;
        let mut state = RecordingState::new(state, numbers, self.counter.keeps_accounts);
        state.change(&resynced.did, |known| {
            known.head = Some(resynced.head);
            known.sync = SyncState::Synchronized;
        })?;
        self.counter.resynced(account, resynced, state.stored.unwrap_or_default());
        Ok(())
    }

    fn known(&mut self, did: &str) -> Result<Option<Head>, S::Error> {
        let Processor::Judge(processor) = &mut self.processor else { return Ok(None) };
        let mut account = [Default::default()];
        processor.state.load_many(&[did], &mut account)?;
        Ok(account[0].head)
    }

    fn send(&self, job: Job) {
        // Nobody runs jobs any longer when the run ends; then nobody waits for them either.
        let _ = self.jobs.send(job);
    }
}

/// A batch ends with the event that makes it longer than this.
const MAX_BATCH_BYTES: usize = 8 << 20;
