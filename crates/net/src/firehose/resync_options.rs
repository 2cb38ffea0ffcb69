//! Options of resyncs.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use atproto::syntax::CollectionPatternBuf;
use codec::Cid;
use verify::repository;
use verify::sync::{AccountState, Head, SyncState};

use super::account_set::AccountSet;
use super::resync_requests::ResyncRequests;
use crate::http::Limits;
use crate::identity::Resolver;
use crate::xrpc::{self, WantedPart};

/// Options of resyncs. Start from [`ResyncOptions::new`] and assign fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResyncOptions {
    /// The client that fetches repositories.
    pub client: xrpc::Client,
    /// The resolver of accounts' hosts and keys.
    pub resolver: Resolver,
    /// Folder for archives while they are in use. The system's folder for temporary files.
    pub folder: PathBuf,
    /// Limits of an archive. [`Limits::REPOSITORY`].
    pub limits: Limits,
    /// Bound of the bytes of all archives that are received, wait for their verification, or are held by the program as a
    /// [`ResyncedRepo`](super::ResyncedRepo); at least the maximum size of one and 16 MiB: see [`ArchiveSpace`](crate::archive_space::ArchiveSpace). 1 GiB.
    pub max_bytes_in_use: u64,
    /// Options of the verification of a repository.
    pub repository: repository::Options,
    /// Maximum number of concurrent fetches. 16.
    pub max_fetches: usize,
    /// Maximum number of concurrent fetches from the hosts of one registrable domain; if they were slow a short
    /// time ago, one. Eight.
    pub max_fetches_per_domain: usize,
    /// Maximum number of concurrent fetches from one host. Two.
    pub max_fetches_per_host: usize,
    /// Maximum number of queued accounts; others stay desynchronized until their next event. 4,096.
    pub max_queued: usize,
    /// Number of attempts before an account backs off. Three.
    pub attempts: u32,
    /// Number of times for which a failed resync is repeated during the run, after the backoff of its account: a minute,
    /// then twice as long every time, up to 64 minutes. Meanwhile the account's events wait as for the first one. Without,
    /// the account's next event starts another resync. None.
    pub retries: u32,
    /// Whether to fetch the repository of an account that was not known before. No.
    pub on_first_seen: bool,
    /// Accounts that were desynchronized at the end of an earlier run: they are fetched at the start, as
    /// their next event may be far away. None.
    pub desynchronized: Vec<Box<str>>,
    /// The only accounts whose repositories are fetched; others stay desynchronized. `None` for all accounts.
    pub accounts: Option<AccountSet>,
    /// The collections of which records are fetched, with the proof that there are no others, where that costs less than the whole
    /// repository. None: whole repositories.
    pub collections: ResyncCollections,
    /// Requests of the program.
    pub requests: ResyncRequests,
    /// Whether requests to a host have a rate that adapts to it, for many repositories: 8 a second at first, doubled with
    /// every second of answers until the host is overloaded, at most 50.
    /// Limits that hosts name are waited for up to an hour. No.
    pub is_paced: bool,
}

/// Selected collections.
pub(super) type Collections = Arc<[CollectionPatternBuf]>;

/// The collections of which resyncs fetch the records. Clones share it, and it may change during a run: a resync that has begun keeps the
/// collections of its beginning.
#[derive(Clone, Debug, Default)]
pub struct ResyncCollections(Arc<RwLock<WantedCollections>>);

#[derive(Debug, Default)]
struct WantedCollections {
    /// `None` for whole repositories.
    all: Option<Collections>,
    /// The collections that the consumer has of the accounts in `widened`.
    base: Collections,
    widened: HashSet<Box<str>>,
}

/// A part of a repository that a resync asks for.
#[derive(Clone, Debug)]
pub(super) struct ResyncPart {
    pub(super) collections: Collections,
    /// What the consumer has of the account; `None` if that is not known.
    pub(super) base: Option<Base>,
}

/// All records of some collections as of a commit.
#[derive(Clone, Debug)]
pub(super) struct Base {
    pub(super) collections: Collections,
    commit: Cid,
}

impl ResyncPart {
    /// The request for it: what adds to a base has the commit of the base.
    pub(super) fn wanted(&self) -> WantedPart<'_> {
        let commit = self.base.as_ref().map(|base| base.commit);
        WantedPart { collections: &self.collections, commit }
    }

    /// Whether a proof of this state is a proof of the part.
    pub(super) fn is_of(&self, head: Head) -> bool {
        self.base.as_ref().is_none_or(|base| base.commit == head.commit)
    }
}

impl ResyncCollections {
    /// Replaces the collections; `None` for whole repositories.
    pub fn replace(&self, collections: Option<impl IntoIterator<Item = CollectionPatternBuf>>) {
        self.write().all = collections.map(Collections::from_iter);
    }

    /// Replaces the collections that the consumer has of [widened](Self::widen) accounts.
    pub fn replace_base(&self, collections: impl IntoIterator<Item = CollectionPatternBuf>) {
        self.write().base = collections.into_iter().collect();
    }

    /// Says that the consumer has all records of an account in the base collections, as of its known commit: if the host still has
    /// that commit, and the account has missed no event, only the other collections are fetched.
    pub fn widen(&self, did: &str) {
        self.write().widened.insert(did.into());
    }

    /// Says that nothing is known of an account any more.
    pub fn forget(&self, did: &str) {
        self.write().widened.remove(did);
    }

    /// The parts to ask for in the place of the whole repository, the smallest first. What adds to a base has the known commit, so that
    /// the account must not have missed an event since.
    pub(super) fn parts(&self, did: &str, known: AccountState) -> Vec<ResyncPart> {
        let wanted = self.read();
        let Some(all) = &wanted.all else { return Vec::new() };
        let head = known.head.filter(|_| known.sync == SyncState::Synchronized);
        let added = head.and_then(|head| wanted.added(did, head.commit));
        added.into_iter().chain([ResyncPart { collections: all.clone(), base: None }]).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, WantedCollections> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, WantedCollections> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WantedCollections {
    /// The collections that a widened account lacks; `None` if there are others than these.
    fn added(&self, did: &str, commit: Cid) -> Option<ResyncPart> {
        let all = self.all.as_ref().filter(|_| self.widened.contains(did))?;
        let is_added =
            |name: &&CollectionPatternBuf| !self.base.iter().any(|outer| outer.includes(name));
        let collections: Collections = all.iter().filter(is_added).cloned().collect();
        let base = Some(Base { collections: self.base.clone(), commit });
        (!collections.is_empty()).then_some(ResyncPart { collections, base })
    }
}

impl ResyncOptions {
    /// Default options with this client and resolver.
    pub fn new(client: xrpc::Client, resolver: Resolver) -> Self {
        Self {
            client,
            resolver,
            folder: std::env::temp_dir(),
            limits: Limits::REPOSITORY,
            max_bytes_in_use: 1 << 30,
            repository: repository::Options::default(),
            max_fetches: 16,
            max_fetches_per_domain: 8,
            max_fetches_per_host: 2,
            max_queued: 4096,
            attempts: 3,
            retries: 0,
            on_first_seen: false,
            desynchronized: Vec::new(),
            accounts: None,
            collections: ResyncCollections::default(),
            requests: ResyncRequests::default(),
            is_paced: false,
        }
    }
}
