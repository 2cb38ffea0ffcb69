//! The parts of a run of a backfill, and the reasons that its work ends early.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use archive::{Archive, Collections, HideList, Ledger, StoredRevisions};
use net::http::Limits;
use net::xrpc::PacedClient;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinError, spawn_blocking};

use crate::holder::Holder;
use crate::identities::Identities;
use crate::place::{Places, PromptLists};
use crate::progress::RunProgress;
use crate::selection::Selection;
use program::failure::Failure;

/// The parts of a run.
pub(crate) struct BackfillParts {
    pub(crate) identities: Identities,
    pub(crate) client: PacedClient,
    pub(crate) limits: Limits,
    pub(crate) archive: Archive,
    pub(crate) ledger: Ledger,
    /// The collections that are fetched; `None` for whole repositories.
    pub(crate) parts: Option<Collections>,
    pub(crate) selection: Selection,
    pub(crate) holder: Holder,
    pub(crate) concurrent_lists: usize,
    pub(crate) retry_delay: Duration,
    /// Whether nothing is printed.
    pub(crate) is_silent: bool,
}

/// A run of a backfill.
pub(crate) struct BackfillRun {
    pub(crate) identities: Identities,
    pub(crate) client: PacedClient,
    pub(crate) limits: Limits,
    pub(crate) archive: Archive,
    /// The collections that are fetched; `None` for whole repositories.
    pub(crate) parts: Option<Collections>,
    pub(crate) selection: Selection,
    pub(crate) stored: StoredRevisions,
    /// Accounts that the archive does not accept again: they were erased.
    pub(crate) hidden: HideList,
    pub(crate) ledger: Ledger,
    /// This process, as the leases name it.
    pub(crate) holder: Holder,
    pub(crate) places: Arc<Places>,
    pub(crate) prompt: PromptLists,
    /// Bytes of repositories that are stored together.
    pub(crate) batch_bytes: u64,
    /// Batches that are stored at a time: each is proved and compressed by one thread, with its own memory.
    pub(crate) storers: Semaphore,
    pub(crate) retry_delay: Duration,
    pub(crate) is_silent: bool,
    pub(crate) progress: RunProgress,
    pub(crate) messages: Option<UnboundedReceiver<String>>,
}

/// Why a page was not processed.
pub(crate) enum PageError {
    /// The list cannot be read.
    List(String),
    /// Another process has the list.
    Elsewhere,
    /// The run cannot go on.
    Run(Failure),
}

impl From<Failure> for PageError {
    fn from(failure: Failure) -> Self {
        Self::Run(failure)
    }
}

impl BackfillRun {
    pub(crate) fn new(parts: BackfillParts) -> Self {
        let (sender, messages) = unbounded_channel();
        let batch_bytes = batch_bytes(parts.client.space().pool_bytes(), parts.concurrent_lists);
        Self {
            identities: parts.identities,
            client: parts.client,
            limits: parts.limits,
            archive: parts.archive,
            stored: StoredRevisions::new(parts.parts.clone()),
            parts: parts.parts,
            selection: parts.selection,
            hidden: HideList::default(),
            ledger: parts.ledger,
            holder: parts.holder,
            places: Places::new(parts.concurrent_lists),
            prompt: PromptLists::default(),
            batch_bytes,
            storers: Semaphore::new(storers()),
            retry_delay: parts.retry_delay,
            is_silent: parts.is_silent,
            progress: RunProgress::new(sender),
            messages: Some(messages),
        }
    }

    /// Reads which repositories were stored since the last time.
    pub(crate) async fn read_stored(self: &Arc<Self>) -> Result<(), Failure> {
        self.on_thread(|run, runtime| Ok(runtime.block_on(run.stored.update(&run.archive))?)).await
    }

    /// Runs work with the archive on a thread of its own, so that no other task waits for it.
    pub(crate) async fn on_thread<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Handle) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let run = self.clone();
        let runtime = Handle::current();
        spawn_blocking(move || work(&run, &runtime)).await.map_err(ended_early)?
    }
}

/// Bytes of archives that are stored together: the batches of all lists have room in the pool of the space for archives.
fn batch_bytes(pool_bytes: u64, lists: usize) -> u64 {
    (pool_bytes / lists.max(1) as u64).clamp(MIN_BATCH_BYTES, MAX_BATCH_BYTES)
}

/// One more than processors, as an object store lets a thread wait.
fn storers() -> usize {
    available_parallelism().map_or(1, NonZeroUsize::get) + 1
}

/// A task that has panicked: a bug of this program.
pub(crate) fn ended_early(error: JoinError) -> Failure {
    Failure::Local(format!("a part of the program failed: {error}"))
}

const MIN_BATCH_BYTES: u64 = 4 << 20;
const MAX_BATCH_BYTES: u64 = 128 << 20;
