//! The front door: resolves, remembers, and asks as rarely as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use atproto::did_document::{self, DidDocument};
use atproto::syntax::{Did, DidBuf, Handle, HandleBuf};
use tokio::time::Instant;

use super::handle::{self, Way};
use super::location::Location;
use super::memory::{Known, Memory, Slot};
use super::{Account, Identity, IdentityError, IdentityFault, Options};
use crate::concurrency::ConcurrencyLimit;
use crate::dns::DnsResolver;
use crate::egress::EgressPolicy;
use crate::http::{Client, HttpError, Limits, Response};
use crate::rate_limit::RateLimiter;

/// Resolves DIDs and handles, and remembers the answers. Clones share what they know.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use wireproof::atproto::syntax::Handle;
/// use wireproof::net::{http::Client, identity, dns::SystemDns, egress::EgressPolicy};
///
/// let names = Arc::new(SystemDns::new()?);
/// let http = Client::new(EgressPolicy::Public, names.clone())?;
/// let resolver = identity::Resolver::new(http, names, identity::Options::default());
/// let identity = resolver.identity_of_handle(Handle::parse("atproto.com")?).await?;
/// println!("{} {}", identity.did(), identity.display_handle());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

/// What a resolver has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverStats {
    /// Answers from memory.
    pub hits: u64,
    /// Questions asked of directories, hosts and the DNS.
    pub lookups: u64,
    /// Old answers given because there was no new one.
    pub stale: u64,
    /// Lookups that ended with an error.
    pub errors: u64,
    /// Forced lookups that were not made, because the last one was a short time ago.
    pub refreshes_refused: u64,
    /// Purges that were put off, because there were many a short time ago.
    pub purges_deferred: u64,
}

struct Inner {
    http: Client,
    names: Arc<dyn DnsResolver>,
    options: Options,
    gate: RateLimiter,
    turns: ConcurrencyLimit,
    accounts: Memory<Arc<Account>>,
    handles: Memory<DidBuf>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    hits: AtomicU64,
    lookups: AtomicU64,
    stale: AtomicU64,
    errors: AtomicU64,
    refreshes_refused: AtomicU64,
    purges_deferred: AtomicU64,
}

impl Resolver {
    /// A resolver that asks `names` for texts, and everything else by `http`.
    pub fn new(http: Client, names: Arc<dyn DnsResolver>, options: Options) -> Self {
        let (accounts, handles) = (Memory::new(options.capacity), Memory::new(options.capacity));
        let (gate, counters) = (RateLimiter::default(), Counters::default());
        let turns =
            ConcurrencyLimit::new(options.max_concurrent_per_domain, options.max_concurrent);
        Self(Arc::new(Inner { http, names, options, gate, turns, accounts, handles, counters }))
    }

    /// What is known of `did` and fresh, without asking anybody. That there is no such account is not
    /// told apart from that nobody has asked yet.
    pub fn cached(&self, did: Did<'_>) -> Option<Arc<Account>> {
        let known = self.0.accounts.recalled(did.as_str())?.fresh()?.ok();
        known.inspect(|_| count(&self.0.counters.hits))
    }

    /// What the document of `did` says. Its handle is not looked at.
    ///
    /// # Errors
    /// If there is no such account, or nobody knows whether there is.
    pub async fn account(&self, did: Did<'_>) -> Result<Arc<Account>, IdentityError> {
        let inner = &*self.0;
        let slot = inner.accounts.slot(did.as_str());
        inner.know(&slot, || inner.ask_account(did)).await
    }

    /// The DID that `handle` leads to, whether or not its account claims the handle.
    ///
    /// # Errors
    /// If it leads nowhere, or nobody knows whether it does.
    pub async fn resolve_handle(&self, handle: Handle<'_>) -> Result<DidBuf, IdentityError> {
        let inner = &*self.0;
        let handle = handle.to_normalized();
        let slot = inner.handles.slot(handle.as_str());
        inner.know(&slot, || inner.ask_did(handle.as_handle())).await
    }

    /// The account of `did`, and whether its handle leads back to it.
    ///
    /// # Errors
    /// As [`account`](Self::account). That the handle is not verified is told in the answer.
    pub async fn identity(&self, did: Did<'_>) -> Result<Identity, IdentityError> {
        let account = self.account(did).await?;
        let handle = self.verified_handle(&account).await;
        Ok(Identity { account, handle })
    }

    /// The account that `handle` leads to, and whether it claims the handle.
    ///
    /// # Errors
    /// If the handle leads nowhere, or the account cannot be resolved. That the account claims another
    /// handle is told in the answer.
    pub async fn identity_of_handle(&self, handle: Handle<'_>) -> Result<Identity, IdentityError> {
        let did = self.resolve_handle(handle).await?;
        let account = self.account(did.as_did()).await?;
        let claimed = account.document.handle().map(Handle::to_normalized);
        let handle = handle.to_normalized();
        let handle = match claimed.as_ref() == Some(&handle) {
            true => Ok(handle),
            false => Err(IdentityError::new(handle, IdentityFault::OtherHandle)),
        };
        Ok(Identity { account, handle })
    }

    /// Asks again for `did`, as one does when a signature fails; but if that was done within
    /// [`Options::min_refresh_interval`], the answer is that of [`account`](Self::account).
    ///
    /// # Errors
    /// As [`account`](Self::account).
    pub async fn refresh(&self, did: Did<'_>) -> Result<Arc<Account>, IdentityError> {
        let slot = self.0.accounts.slot(did.as_str());
        match slot.may_force(self.0.options.min_refresh_interval) {
            true => slot.purge(),
            false => count(&self.0.counters.refreshes_refused),
        }
        self.account(did).await
    }

    /// What is known of `did` and its handle is no longer true, as `#identity` says: the next one who
    /// wants to know it asks. What was known is kept for the time that a directory is down.
    ///
    /// Anybody can say so as often as they like: beyond [`Options::purges`] it counts a little later.
    pub fn purge(&self, did: Did<'_>) {
        let Some(slot) = self.0.accounts.existing(did.as_str()) else { return };
        self.0.purge(&slot);
        let account = slot.last();
        let handle = account.as_ref().and_then(|account| account.document.handle());
        let handle = handle.map(Handle::to_normalized);
        if let Some(slot) = handle.and_then(|handle| self.0.handles.existing(handle.as_str())) {
            self.0.purge(&slot);
        }
    }

    /// What was done so far.
    pub fn stats(&self) -> ResolverStats {
        let counters = &self.0.counters;
        ResolverStats {
            hits: counters.hits.load(Relaxed),
            lookups: counters.lookups.load(Relaxed),
            stale: counters.stale.load(Relaxed),
            errors: counters.errors.load(Relaxed),
            refreshes_refused: counters.refreshes_refused.load(Relaxed),
            purges_deferred: counters.purges_deferred.load(Relaxed),
        }
    }

    /// How many DIDs and handles are remembered.
    pub fn cached_entries(&self) -> usize {
        self.0.accounts.len() + self.0.handles.len()
    }

    async fn verified_handle(&self, account: &Account) -> Result<HandleBuf, IdentityError> {
        let did = account.did();
        let claimed = account.document.handle().map(Handle::to_normalized);
        let handle = claimed.ok_or_else(|| IdentityError::new(did, IdentityFault::NoHandle))?;
        let found = self.resolve_handle(handle.as_handle()).await?;
        match found.as_did() == did {
            true => Ok(handle),
            false => Err(IdentityError::new(handle, IdentityFault::OtherDid(found))),
        }
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver")
            .field("options", &self.0.options)
            .field("counts", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn purge<V: Clone>(&self, slot: &Slot<V>) {
        if !slot.purge_at_most(self.options.max_purges, self.options.purge_window) {
            count(&self.counters.purges_deferred);
        }
    }

    /// The answer that `slot` knows, or that `ask` finds when it is our turn.
    async fn know<V, A>(&self, slot: &Slot<V>, ask: impl FnOnce() -> A) -> Result<V, IdentityError>
    where
        V: Clone,
        A: Future<Output = Result<V, IdentityError>>,
    {
        if let Some(answer) = slot.fresh() {
            count(&self.counters.hits);
            return answer;
        }
        let _turn = slot.turn.lock().await;
        if let Some(answer) = slot.fresh() {
            count(&self.counters.hits);
            return answer;
        }
        let purges = slot.begin();
        count(&self.counters.lookups);
        let (answer, fresh) = self.settle(slot, ask().await);
        let fresh_until = Instant::now() + fresh;
        slot.learn(Known { answer: answer.clone(), fresh_until, purges });
        answer
    }

    /// What to answer after a lookup, and for how long: in an outage, what was known before.
    fn settle<V: Clone>(
        &self,
        slot: &Slot<V>,
        found: Result<V, IdentityError>,
    ) -> (Result<V, IdentityError>, Duration) {
        let Err(error) = found else { return (found, self.options.ttl) };
        count(&self.counters.errors);
        if !error.is_outage() {
            let fresh = self.fresh(&error);
            return (Err(error), fresh);
        }
        match slot.last() {
            Some(known) => {
                count(&self.counters.stale);
                (Ok(known), self.options.error_ttl)
            }
            None => (Err(error), self.options.error_ttl),
        }
    }

    fn fresh(&self, error: &IdentityError) -> Duration {
        match error.subject.starts_with("did:") {
            true => self.options.error_ttl,
            false => self.options.invalid_handle_ttl,
        }
    }

    async fn ask_did(&self, handle: Handle<'_>) -> Result<DidBuf, IdentityError> {
        let Self { http, options, gate, turns, .. } = self;
        handle::resolve_handle(&Way { http, names: &*self.names, options, gate, turns }, handle)
            .await
    }

    async fn ask_account(&self, did: Did<'_>) -> Result<Arc<Account>, IdentityError> {
        let location = Location::of(did, self.http.reach(), &self.options)?;
        let (Location::Directory(url) | Location::Host(url)) = &location;
        let host = url.host_str().unwrap_or_default();
        let _turn = match &location {
            Location::Directory(_) => None,
            Location::Host(_) => Some(self.turns.acquire(host).await),
        };
        let entered = self.gate.until_ready(host).await;
        entered.map_err(|early| IdentityError::at(did, host, IdentityFault::RateLimited(early)))?;
        let answer = self.get(&location).await;
        let answer = answer.map_err(|error| IdentityError::http(did, error))?;
        self.gate.record_response(host, answer.status, &answer.headers);
        let account = self.read(did, &answer);
        account.map_err(|fault| IdentityError::at(did, host, fault))
    }

    async fn get(&self, location: &Location) -> Result<Response, HttpError> {
        match location {
            Location::Directory(url) => self.http.get(url, &Limits::DOCUMENT).await,
            Location::Host(url) => self.http.get_direct(url, &Limits::DOCUMENT).await,
        }
    }

    fn read(&self, did: Did<'_>, answer: &Response) -> Result<Arc<Account>, IdentityFault> {
        match answer.status {
            200 => {}
            410 => return Err(IdentityFault::Deleted),
            404 if is_tombstone(&answer.body) => return Err(IdentityFault::Deleted),
            404 => return Err(IdentityFault::NotFound),
            status @ 300..=399 => return Err(IdentityFault::Redirect(status)),
            status => return Err(IdentityFault::Status(status)),
        }
        let mut options = did_document::Options::default();
        options.allow_development_hosts = self.http.reach() == EgressPolicy::Loopback;
        let document = DidDocument::parse_for(did, &answer.body, &options);
        document.map(Account::new).map(Arc::new).map_err(IdentityFault::Document)
    }
}

/// The directory's server answers for a tombstone as for what it does not know, but in other words.
fn is_tombstone(body: &[u8]) -> bool {
    body.windows(TOMBSTONE.len()).any(|text| text == TOMBSTONE)
}

const TOMBSTONE: &[u8] = b"DID not available";

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
