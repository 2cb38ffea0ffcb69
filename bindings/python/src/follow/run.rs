//! The run of a firehose: its parts from the options, until it is stopped or fails.

use std::collections::HashSet;
use std::sync::Arc;

use follower::{Start, VerifiedStream};
use net::firehose::{
    self, AccountSet, Firehose, Journal, JournalError, ResolverKeys, ResyncCollections, RunError,
    StartFrom, StopSignal,
};
use net::identity::IdentityError;
use pyo3::prelude::*;
use store::{self, Store, StoreError, StoreState};
use verify::sync::{AccountState, MemoryState};

use super::handler::{QueueHandler, Selection};
use super::options::FollowOptions;
use super::queue::{Failure, Queue};
use crate::accounts::store_error;
use crate::network::{Network, SHUTDOWN_TIMEOUT, runtime};
use crate::resolve::find;

/// A run that has not started.
pub(super) struct Run {
    options: FollowOptions,
    network: Network,
    store: Option<Store>,
}

impl Run {
    /// Opens the state file and the network clients.
    pub(super) fn open(options: FollowOptions) -> PyResult<Self> {
        let open = |path| Store::open(path, store::Options::default()).map_err(store_error);
        let store = options.state.as_deref().map(open).transpose()?;
        let network = options.network.open(&options.hosts)?;
        Ok(Self { options, network, store })
    }

    /// Runs until `stop` is requested or the run fails. The end is recorded in the queue when nothing is left of the run.
    pub(super) fn run(self, queue: &Arc<Queue>, stop: &StopSignal) {
        let guard = EndGuard(queue);
        let failure = match runtime() {
            Ok(runtime) => {
                let ended = runtime.block_on(self.follow(queue, stop));
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
                ended.err()
            }
            Err(error) => Some(Failure::Runtime(error)),
        };
        drop(guard);
        queue.end(failure);
    }

    async fn follow(mut self, queue: &Arc<Queue>, stop: &StopSignal) -> Result<(), Failure> {
        let accounts = tokio::select! {
            accounts = self.select_accounts() => accounts.map_err(Failure::Identity)?,
            () = stop.requested() => return Ok(()),
        };
        let failed = |error: StoreError| Failure::Run(RunError::State(error.into()));
        let options = self.run_options(accounts.as_ref()).map_err(failed)?;
        let hosts = &options.hosts;
        let selection = Selection { accounts, collections: self.options.collections };
        let handler = QueueHandler::new(queue.clone(), hosts, selection);
        let start = self.options.start;
        let workers = options.workers;
        let firehose = Firehose::new(&self.network.http, options);
        let ended = match self.store.take() {
            None => {
                let states = |_| MemoryState::default();
                firehose
                    .run(handler, StateJournal { store: None, start }, states, stop.clone())
                    .await
            }
            Some(store) => {
                let states = (0..workers).map(|_| store.chain_state());
                let mut states: Vec<StoreState> =
                    states.collect::<Result<_, _>>().map_err(failed)?;
                let states = move |_| states.pop().expect("one for each worker");
                let journal = StateJournal { store: Some(store), start };
                firehose.run(handler, journal, states, stop.clone()).await
            }
        };
        ended.map(drop).map_err(Failure::Run)
    }

    /// The selected accounts, with handles resolved.
    async fn select_accounts(&self) -> Result<Option<AccountSet>, IdentityError> {
        let Some(names) = &self.options.accounts else { return Ok(None) };
        let mut accounts = HashSet::new();
        for name in names {
            let did = if name.starts_with("did:") {
                name.clone()
            } else {
                find(&self.network.resolver, name).await?.did().to_string()
            };
            accounts.insert(did);
        }
        Ok(Some(accounts.into()))
    }

    fn run_options(&self, accounts: Option<&AccountSet>) -> Result<firehose::Options, StoreError> {
        let (given, network) = (&self.options, &self.network);
        let stream = VerifiedStream {
            hosts: &given.hosts,
            resolver: &network.resolver,
            xrpc: &network.xrpc,
            directory: &network.directory,
            keys: Arc::new(ResolverKeys::new(network.resolver.clone())),
            policy: Some(given.policy),
            resyncs: given.resync,
            store: self.store.as_ref(),
            accounts,
            collections: ResyncCollections::default(),
        };
        let mut options = stream.options(&stream.statuses())?;
        if given.start == Start::After(0) {
            options.feed.start = StartFrom::Oldest;
        }
        options.workers = given.workers.unwrap_or(options.workers);
        options.limits.max_events = given.in_flight;
        options.stop_timeout = given.stop_timeout;
        Ok(options)
    }
}

/// Cursors and account states in the state file, or nowhere.
struct StateJournal {
    store: Option<Store>,
    start: Start,
}

impl Journal for StateJournal {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        let stored = self.store.as_ref().map(|store| store.cursor(stream)).transpose();
        let given = match self.start {
            Start::After(seq) if seq > 0 => Some(seq),
            Start::Live | Start::After(_) => None,
        };
        Ok(stored.map_err(JournalError::new)?.flatten().or(given))
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        match &self.store {
            None => Ok(()),
            Some(store) => store.checkpoint(cursors, accounts).map_err(JournalError::new),
        }
    }

    fn keeps_accounts(&self) -> bool {
        self.store.is_some()
    }
}

/// Records the end of a run that panics.
struct EndGuard<'q>(&'q Queue);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(Some(Failure::Run(RunError::Panicked)));
        }
    }
}
