//! Who works for a run? Workers, a scribe, and somebody who runs errands.

use std::error::Error;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use verify::sync::ChainState;

use super::ack::Books;
use super::checkpoint::Scribe;
use super::counter::Counter;
use super::counters::Counters;
use super::errands::Runner;
use super::handler::Handler;
use super::inbox::{Inbox, Letter};
use super::intake::Intake;
use super::item::{Numbers, worker_of};
use super::journal::Journal;
use super::ledger::Ledger;
use super::options::{Options, Verify};
use super::room::Room;
use super::run::RunError;
use super::share::Share;
use super::worker;

/// Everybody who works for a run.
#[derive(Debug)]
pub(super) struct Crew {
    pub(super) books: Arc<Books>,
    pub(super) inboxes: Arc<[Inbox]>,
    pub(super) counters: Arc<Counters>,
    pub(super) intake: Intake,
    /// Hears nothing more when all workers have gone.
    pub(super) workers: Receiver<()>,
    /// Who runs errands.
    pub(super) runner: JoinSet<()>,
    /// Who writes the journal.
    pub(super) scribe: Option<JoinHandle<()>>,
}

/// The names of the hosts' streams, with their cursors in the journal.
pub(super) type Streams = Vec<(String, Option<u64>)>;

impl Crew {
    /// Has everybody begin.
    pub(super) fn hire<H, J, S>(
        options: &Options,
        counters: &Arc<Counters>,
        streams: Streams,
        handler: &Arc<H>,
        journal: J,
        mut states: impl FnMut(usize) -> S,
    ) -> Result<Self, RunError>
    where
        H: Handler,
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let (errands, received) = mpsc::unbounded_channel();
        let (gone, workers) = mpsc::channel(1);
        let (numbers, mut standings) = (Numbers::default(), Vec::new());
        let mut crew = Self::gather(options, counters, streams, &numbers, workers);
        let runner = Runner::new(options, crew.inboxes.clone(), counters.clone());
        crew.runner.spawn(runner.run(received));
        let is_judged = matches!(options.verify, Verify::On { .. });
        let keeps_accounts = is_judged && journal.keeps_accounts();
        for number in 0..crew.inboxes.len() {
            let counter = Counter::new(handler, &crew.books, counters, keeps_accounts);
            standings.push(counter.standings.clone());
            let (state, errands) = (states(number), errands.clone());
            let share = Share::new(number, options, counter, state, errands, &numbers);
            crew.employ(share, gone.clone())?;
        }
        for did in options.resync.iter().flat_map(|resync| &resync.out_of_step) {
            crew.tell_out_of_step(numbers.of(Some(did)), did);
        }
        let scribe = Scribe::new(journal, &crew.books, standings, counters, options);
        crew.scribe = Some(spawn("wireproof-journal".to_owned(), move || scribe.run())?);
        Ok(crew)
    }

    /// The books and the rooms, in which nobody works yet.
    fn gather(
        options: &Options,
        counters: &Arc<Counters>,
        streams: Streams,
        numbers: &Numbers,
        workers: Receiver<()>,
    ) -> Self {
        let bounds = &options.bounds;
        let (streams, cursors): (Vec<String>, Vec<Option<u64>>) = streams.into_iter().unzip();
        let room = Room::new(bounds.max_events.max(1), bounds.max_bytes);
        let books = Books::new(streams, Ledger::new(cursors), room);
        counters.watch(books.clone());
        let count = options.workers.max(1);
        let inboxes: Arc<[Inbox]> = (0..count).map(|_| Inbox::default()).collect();
        let intake = Intake::new(books.clone(), inboxes.clone(), counters.clone(), numbers.clone());
        let (counters, runner) = (counters.clone(), JoinSet::new());
        Self { books, inboxes, counters, intake, workers, runner, scribe: None }
    }

    /// Tells its worker that an account was out of step before the run.
    fn tell_out_of_step(&self, account: u64, did: &str) {
        let worker = worker_of(account, self.inboxes.len());
        self.inboxes[worker].post(Letter::OutOfStep(account, did.into()));
    }

    /// Has somebody work on a share.
    fn employ<H, S>(&self, share: Share<H, S>, gone: Sender<()>) -> Result<(), RunError>
    where
        H: Handler,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let (inboxes, number) = (self.inboxes.clone(), share.number);
        let work = move || {
            worker::work(share, &inboxes[number]);
            drop(gone);
        };
        spawn(format!("wireproof-{number}"), work).map(drop)
    }
}

impl Drop for Crew {
    /// Sends everybody home.
    fn drop(&mut self) {
        self.books.fate.seal(RunError::Abandoned);
        self.inboxes.iter().for_each(Inbox::close);
        self.runner.abort_all();
        self.books.bell.ring_last();
    }
}

fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    std::thread::Builder::new().name(name).spawn(work).map_err(RunError::Thread)
}
