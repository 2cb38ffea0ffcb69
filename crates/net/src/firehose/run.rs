//! The front door: from hosts to handler, until somebody asks to stop or something fails.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use atproto::event::Decoder;
use crypto::KeyCache;
use tokio::sync::{Semaphore, mpsc};
use verify::sync::{ChainState, Judge};

use super::ack::Books;
use super::checkpoint::{Pace, Scribe};
use super::counter::Counter;
use super::counters::Counters;
use super::desk::JudgesDesk;
use super::errands::Runner;
use super::feed::{Feed, FeedError, Item, Origin};
use super::handler::Handler;
use super::inbox::{Inbox, Letter};
use super::intake::Intake;
use super::item::Numbers;
use super::journal::{Journal, JournalError};
use super::keys::{FixedKeys, Keys};
use super::ledger::Ledger;
use super::notice::Notice;
use super::options::{Options, Verify};
use super::resync::Mender;
use super::room::Room;
use super::share::{Desk, Errand, Habits, Share};
use super::source::Source;
use super::standings::Standings;
use super::stop::Stop;
use super::waiting::{self, Waiting, Weight};
use super::worker;
use crate::hosts::Chance;
use crate::http;
use crate::websocket::Dialer;

/// Follows a stream; see the [module](super).
#[derive(Debug)]
pub struct Firehose {
    dialer: Dialer,
    options: Options,
    counters: Arc<Counters>,
}

/// How a run that was asked to stop has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many events were handed over.
    pub handed_over: u64,
    /// How many came but were not acknowledged in time. The cursors are behind them: they come again.
    pub left: usize,
    /// The streams, each with its cursor in the journal.
    pub cursors: Vec<(String, Option<u64>)>,
}

/// Why a run has ended that was not asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing more can come.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The handler dropped an event's word instead of giving it.
    #[error("an event was dropped instead of acknowledged: {stream}, seq {seq:?}")]
    Unacknowledged {
        /// The stream; empty for a repository, which is of none.
        stream: String,
        /// The event's place in it, if it has one.
        seq: Option<u64>,
    },
    /// The journal could not be read or written.
    #[error("the journal failed: {0}")]
    Journal(#[from] JournalError),
    /// What is known of accounts could not be loaded or stored.
    #[error("the state of accounts failed: {0}")]
    State(Box<dyn Error + Send + Sync>),
    /// A worker panicked: the handler, or a fault of ours.
    #[error("a worker panicked")]
    Panicked,
    /// This system gives no more threads.
    #[error("no thread: {0}")]
    Thread(io::Error),
    /// The future of the run was dropped.
    #[error("the run was abandoned")]
    Abandoned,
}

impl Firehose {
    /// A run with these options, which connects as `http` does. It has not begun.
    pub fn new(http: &http::Client, options: Options) -> Self {
        Self { dialer: Dialer::new(http.clone()), options, counters: Arc::default() }
    }

    /// What has happened so far, for as long as one likes to look.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// Runs until `stop` is asked to, and then finishes what is under way. `states` is asked for what
    /// each worker knows of its accounts; of those of other workers it is never asked.
    ///
    /// Runs in a runtime of Tokio with time and I/O. To drop the future stops as well, but finishes
    /// nothing.
    ///
    /// # Errors
    /// If no host is left that would have us, the journal or a state fails, or the handler drops an
    /// event or panics. What is acknowledged by then is journaled, if the journal is not what failed.
    ///
    /// # Panics
    /// If there is no host, or outside of a runtime.
    pub async fn run<H, J, S>(
        self,
        handler: H,
        journal: J,
        states: impl FnMut(usize) -> S,
        stop: Stop,
    ) -> Result<Summary, RunError>
    where
        H: Handler,
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let (mut origins, mut streams) = (Vec::new(), Vec::new());
        for url in &self.options.hosts {
            let mut origin = Origin::new(url.clone());
            let stream = origin.stream();
            origin.cursor = journal.cursor(&stream)?;
            streams.push((stream, origin.cursor));
            origins.push(origin);
        }
        let chance = Chance::new();
        let feed = Feed::new(self.dialer.clone(), &origins, self.options.feed, chance);
        self.drive(feed, streams, handler, journal, states, stop).await
    }

    /// The same, with what comes from elsewhere.
    pub(super) async fn drive<H, J, S>(
        self,
        mut source: impl Source,
        streams: Vec<(String, Option<u64>)>,
        handler: H,
        journal: J,
        states: impl FnMut(usize) -> S,
        stop: Stop,
    ) -> Result<Summary, RunError>
    where
        H: Handler,
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        let mut crew = Crew::hire(&self, streams, &handler, journal, states)?;
        let ended = crew.read(&mut source, &*handler, &stop).await;
        source.close().await;
        let summary = crew.drain(self.options.patience).await?;
        ended.map(|()| summary)
    }
}

/// Everybody who works for a run.
#[derive(Debug)]
struct Crew<J> {
    books: Arc<Books>,
    inboxes: Arc<[Inbox]>,
    counters: Arc<Counters>,
    intake: Intake,
    /// Hears nothing more when all workers have gone.
    workers: mpsc::Receiver<()>,
    runner: tokio::task::JoinHandle<()>,
    scribe: Option<JoinHandle<J>>,
}

impl<J: Journal> Crew<J> {
    fn hire<H, S>(
        firehose: &Firehose,
        streams: Vec<(String, Option<u64>)>,
        handler: &Arc<H>,
        journal: J,
        mut states: impl FnMut(usize) -> S,
    ) -> Result<Self, RunError>
    where
        H: Handler,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let Firehose { options, counters, .. } = firehose;
        let count = options.workers.max(1);
        let bounds = &options.bounds;
        let (streams, cursors): (Vec<String>, Vec<Option<u64>>) = streams.into_iter().unzip();
        let ledger = Ledger::new(cursors.iter().copied());
        let books = Books::new(streams, ledger, Room::new(bounds.max_events, bounds.max_bytes));
        counters.watch(books.clone());
        let inboxes: Arc<[Inbox]> = (0..count).map(|_| Inbox::default()).collect();
        let standings: Vec<Arc<Standings>> = (0..count).map(|_| Arc::default()).collect();
        let (errands, received) = mpsc::unbounded_channel();
        let (gone, workers) = mpsc::channel(1);
        let numbers = Numbers::default();
        let keeps_accounts =
            journal.keeps_accounts() && matches!(options.verify, Verify::On { .. });
        let pace = Pace { time: options.checkpoint_every, events: options.checkpoint_events };
        let scribe = Scribe {
            journal,
            written: cursors,
            books: books.clone(),
            standings: standings.clone(),
            counters: counters.clone(),
            pace,
        };
        let runner = Runner {
            inboxes: inboxes.clone(),
            keys: keys(&options.verify),
            counters: counters.clone(),
            lookups: [DIRECTORY_LOOKUPS, OTHER_LOOKUPS].map(Semaphore::new),
            mender: options.resync.clone().map(Mender::new),
        };
        let crew = Self {
            intake: Intake::new(books.clone(), inboxes.clone(), counters.clone(), numbers.clone()),
            workers,
            runner: tokio::spawn(runner.run(received)),
            scribe: Some(spawn("wireproof-journal".to_owned(), move || scribe.run())?),
            books,
            inboxes,
            counters: counters.clone(),
        };
        for (number, standings) in standings.into_iter().enumerate() {
            let counter = Counter {
                handler: handler.clone(),
                books: crew.books.clone(),
                standings,
                counters: counters.clone(),
                keeps_accounts,
            };
            let share = share(number, options, counter, states(number), errands.clone(), &numbers);
            let (inboxes, gone) = (crew.inboxes.clone(), gone.clone());
            spawn(format!("wireproof-{number}"), move || {
                worker::work(share, &inboxes[number]);
                drop(gone);
            })?;
        }
        Ok(crew)
    }

    /// Reads until somebody asks to stop, or something fails. What fails elsewhere is told in the end.
    async fn read(
        &mut self,
        source: &mut impl Source,
        handler: &impl Handler,
        stop: &Stop,
    ) -> Result<(), RunError> {
        let books = self.books.clone();
        let mut ends = pin!(async {
            tokio::select! {
                () = stop.asked() => {}
                () = books.fate.sealed() => {}
            }
        });
        loop {
            tokio::select! {
                biased;
                () = &mut ends => break,
                passed = self.pass(source, handler) => passed?,
            }
        }
        self.intake.pass_on();
        Ok(())
    }

    /// Passes on what there is at once; if need be, when there is something.
    async fn pass(
        &mut self,
        source: &mut impl Source,
        handler: &impl Handler,
    ) -> Result<(), RunError> {
        let mut next = Some(source.next().await?);
        while let Some(told) = next.take() {
            match told {
                Item::Arrival(arrival) => self.intake.take(arrival).await,
                Item::Notice(notice) => self.notice(&notice, handler),
            }
            if !self.intake.is_full() {
                next = source.try_next()?;
            }
        }
        self.intake.pass_on();
        Ok(())
    }

    fn notice(&mut self, notice: &Notice, handler: &impl Handler) {
        self.counters.noticed(notice);
        if let Notice::FutureCursor { host, .. } = notice {
            // What came before belongs to the numbers that are void.
            self.intake.pass_on();
            self.books.ledger().forget(*host);
        }
        handler.notice(notice);
    }

    /// Lets everything that is under way come to its end, writes the journal for the last time, and says
    /// how it went.
    async fn drain(mut self, patience: Duration) -> Result<Summary, RunError> {
        self.inboxes.iter().for_each(Inbox::close);
        if tokio::time::timeout(patience, self.workers.recv()).await.is_err() {
            self.inboxes.iter().for_each(|inbox| inbox.post(Letter::LastCall));
            self.workers.recv().await;
        }
        self.runner.abort();
        let books = &self.books;
        let settled = async {
            while books.open() > 0 && !books.fate.is_sealed() {
                books.settling.notified().await;
            }
        };
        // Who is not done by then is told of in the summary.
        let _ = tokio::time::timeout(patience, settled).await;
        books.bell.ring_last();
        if let Some(scribe) = self.scribe.take() {
            let joined = tokio::task::spawn_blocking(move || scribe.join()).await;
            if !matches!(joined, Ok(Ok(_))) {
                books.fate.seal(RunError::Panicked);
            }
        }
        match books.fate.take() {
            Some(reason) => Err(reason),
            None => Ok(self.summary()),
        }
    }

    fn summary(&self) -> Summary {
        let ledger = self.books.ledger();
        Summary {
            handed_over: self.counters.handed_over.load(Relaxed),
            left: ledger.out(),
            cursors: self.books.streams.iter().cloned().zip(ledger.cursors()).collect(),
        }
    }
}

impl<J> Drop for Crew<J> {
    /// Sends everybody home.
    fn drop(&mut self) {
        self.books.fate.seal(RunError::Abandoned);
        self.inboxes.iter().for_each(Inbox::close);
        self.runner.abort();
        self.books.bell.ring_last();
    }
}

fn share<H, S>(
    number: usize,
    options: &Options,
    counter: Counter<H>,
    state: S,
    errands: mpsc::UnboundedSender<Errand>,
    numbers: &Numbers,
) -> Share<H, S> {
    let bounds = &options.bounds;
    let workers = options.workers.max(1);
    let desk = match &options.verify {
        Verify::Off { decoding } => Desk::Reader(Decoder::new(*decoding)),
        Verify::On { policy, keys, cache_bytes } => {
            let cache = KeyCache::new(cache_bytes / workers, seed());
            let (judge, keys) = (Judge::new(*policy, cache), keys.clone());
            let fetches_new =
                options.resync.as_ref().is_some_and(|resync| resync.on_first_sighting);
            let numbers = numbers.clone();
            Desk::Judge(Box::new(JudgesDesk { judge, state, keys, numbers, fetches_new }))
        }
    };
    let account = Weight { events: bounds.max_account_events, bytes: bounds.max_account_bytes };
    let held =
        Weight { events: bounds.max_held_events / workers, bytes: bounds.max_held_bytes / workers };
    let habits = Habits {
        max_batch: bounds.max_batch.max(1),
        max_hold: bounds.max_hold,
        resyncs: options.resync.is_some(),
    };
    Share {
        number,
        counter,
        desk,
        errands,
        ready: Default::default(),
        waiting: Waiting::new(waiting::Bounds { account, held }),
        mending: Default::default(),
        habits,
        is_closing: false,
    }
}

fn keys(verify: &Verify) -> Arc<dyn Keys> {
    match verify {
        Verify::On { keys, .. } => keys.clone(),
        Verify::Off { .. } => Arc::new(FixedKeys(|_: &str| None)),
    }
}

fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    std::thread::Builder::new().name(name).spawn(work).map_err(RunError::Thread)
}

/// Sixteen bytes that nobody outside knows.
fn seed() -> [u8; 16] {
    let random = RandomState::new();
    let halves = [random.hash_one(0), random.hash_one(1)];
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&halves[0].to_le_bytes());
    seed[8..].copy_from_slice(&halves[1].to_le_bytes());
    seed
}

/// How many keys are looked for at once at the directory, and how many elsewhere.
const DIRECTORY_LOOKUPS: usize = 64;
const OTHER_LOOKUPS: usize = 32;
