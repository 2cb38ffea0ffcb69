//! The resolver: cached identity lookups, with limits on requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use atproto::did_document::{self, DidDocument};
use atproto::syntax::{Did, DidBuf, Handle, HandleBuf};
use tokio::time::Instant;

use super::cache::{Cache, CachedAnswer, Slot};
use super::lookup::{self, HandleLookup, Location};
use super::{Account, Identity, IdentityError, IdentityFault, Options};
use crate::concurrency::{ConcurrencyLimit, registrable_domain};
use crate::dns::DnsResolver;
use crate::egress::EgressPolicy;
use crate::http::{Client, HttpError, Limits, Response};
use crate::rate_limit::RateLimiter;

/// Resolves DIDs and handles, and caches the answers. Clones share the cache.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use wireproof::atproto::syntax::Handle;
/// use wireproof::net::{http::Client, identity, dns::SystemDns, egress::EgressPolicy};
///
/// let dns = Arc::new(SystemDns::new()?);
/// let http = Client::new(EgressPolicy::Public, dns.clone())?;
/// let resolver = identity::Resolver::new(http, dns, identity::Options::default());
/// let identity = resolver.identity_of_handle(Handle::parse("atproto.com")?).await?;
/// println!("{} {}", identity.did(), identity.display_handle());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

/// Counters of a resolver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverStats {
    /// Answers from the cache.
    pub hits: u64,
    /// Lookups at the directory, hosts and DNS.
    pub lookups: u64,
    /// Stale answers used during an outage.
    pub stale: u64,
    /// Failed lookups.
    pub errors: u64,
    /// Forced lookups that were skipped, as the last one was recent.
    pub refreshes_refused: u64,
    /// Deferred purges, after many recent ones.
    pub purges_deferred: u64,
    /// Answers of the PLC directory: documents, and that it has none.
    pub directory_answers: u64,
}

struct Inner {
    http: Client,
    dns: Arc<dyn DnsResolver>,
    options: Options,
    rate_limiter: RateLimiter,
    limit: ConcurrencyLimit,
    accounts: Cache<Arc<Account>>,
    handles: Cache<DidBuf>,
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
    directory_answers: AtomicU64,
}

impl Resolver {
    /// A resolver that queries TXT records through `dns`, and everything else through `http`.
    pub fn new(http: Client, dns: Arc<dyn DnsResolver>, options: Options) -> Self {
        let (accounts, handles) = (Cache::new(options.capacity), Cache::new(options.capacity));
        let (rate_limiter, counters) = (RateLimiter::default(), Counters::default());
        let limit =
            ConcurrencyLimit::new(options.max_concurrent_per_domain, options.max_concurrent);
        Self(Arc::new(Inner {
            http,
            dns,
            options,
            rate_limiter,
            limit,
            accounts,
            handles,
            counters,
        }))
    }

    /// The cached account of `did` if it is fresh, without a lookup. A cached failure is also `None`.
    pub fn cached(&self, did: Did<'_>) -> Option<Arc<Account>> {
        let account = self.0.accounts.get(did.as_str())?.fresh()?.ok();
        account.inspect(|_| count(&self.0.counters.hits))
    }

    /// The account of `did`. Its handle is not verified.
    ///
    /// # Errors
    /// If there is no such account, or the source is unavailable.
    pub async fn account(&self, did: Did<'_>) -> Result<Arc<Account>, IdentityError> {
        let inner = &*self.0;
        let slot = inner.accounts.slot(did.as_str());
        inner.answer(&slot, || inner.look_up_account(did)).await
    }

    /// The DID that `handle` resolves to, whether or not its account claims the handle.
    ///
    /// # Errors
    /// If it has no DID, or the sources are unavailable.
    pub async fn resolve_handle(&self, handle: Handle<'_>) -> Result<DidBuf, IdentityError> {
        let inner = &*self.0;
        let handle = handle.to_normalized();
        let slot = inner.handles.slot(handle.as_str());
        inner.answer(&slot, || inner.look_up_did(handle.as_handle())).await
    }

    /// The account of `did`, with its handle verified.
    ///
    /// # Errors
    /// As [`account`](Self::account). A failed handle is part of the answer.
    pub async fn identity(&self, did: Did<'_>) -> Result<Identity, IdentityError> {
        let account = self.account(did).await?;
        let handle = self.verified_handle(&account).await;
        Ok(Identity { account, handle })
    }

    /// The verified handle of an account, in lower case; `None` also if `did` is no DID, or cannot be resolved.
    pub async fn handle_of(&self, did: &str) -> Option<HandleBuf> {
        self.identity(Did::parse(did).ok()?).await.ok()?.handle.ok()
    }

    /// The account that `handle` resolves to, and whether it claims the handle.
    ///
    /// # Errors
    /// If the handle or the account cannot be resolved. That the account claims another handle is part of
    /// the answer.
    pub async fn identity_of_handle(&self, handle: Handle<'_>) -> Result<Identity, IdentityError> {
        let did = self.resolve_handle(handle).await?;
        let account = self.account(did.as_did()).await?;
        let claimed = account.document.handle().map(Handle::to_normalized);
        let handle = handle.to_normalized();
        let handle = if claimed.as_ref() == Some(&handle) {
            Ok(handle)
        } else {
            Err(IdentityError::new(handle, IdentityFault::OtherHandle))
        };
        Ok(Identity { account, handle })
    }

    /// Looks up `did` again, as when a signature fails; within [`Options::min_refresh_interval`] of the last time, the
    /// answer is the same as for [`account`](Self::account).
    ///
    /// # Errors
    /// As [`account`](Self::account). In an outage the earlier answer is not used.
    pub async fn refresh(&self, did: Did<'_>) -> Result<Arc<Account>, IdentityError> {
        let slot = self.0.accounts.slot(did.as_str());
        if slot.may_force(self.0.options.min_refresh_interval) {
            slot.purge()
        } else {
            count(&self.0.counters.refreshes_refused)
        }
        self.account(did).await
    }

    /// Makes the cached answers of `did` and its handle stale, as after an `#identity` event. They are no longer
    /// used, not even while a directory is down.
    ///
    /// Anyone can cause such events: purges beyond [`Options::max_purges`] take effect later.
    pub fn purge(&self, did: Did<'_>) {
        let Some(slot) = self.0.accounts.peek(did.as_str()) else { return };
        self.0.purge(&slot);
        let account = slot.last();
        let handle = account.as_ref().and_then(|account| account.document.handle());
        let handle = handle.map(Handle::to_normalized);
        if let Some(slot) = handle.and_then(|handle| self.0.handles.peek(handle.as_str())) {
            self.0.purge(&slot);
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> ResolverStats {
        let counters = &self.0.counters;
        ResolverStats {
            hits: counters.hits.load(Relaxed),
            lookups: counters.lookups.load(Relaxed),
            stale: counters.stale.load(Relaxed),
            errors: counters.errors.load(Relaxed),
            refreshes_refused: counters.refreshes_refused.load(Relaxed),
            purges_deferred: counters.purges_deferred.load(Relaxed),
            directory_answers: counters.directory_answers.load(Relaxed),
        }
    }

    /// The number of cached DIDs and handles.
    pub fn cached_entries(&self) -> usize {
        self.0.accounts.len() + self.0.handles.len()
    }

    async fn verified_handle(&self, account: &Account) -> Result<HandleBuf, IdentityError> {
        let did = account.did();
        let claimed = account.document.handle().map(Handle::to_normalized);
        let handle = claimed.ok_or_else(|| IdentityError::new(did, IdentityFault::NoHandle))?;
        let resolved = self.resolve_handle(handle.as_handle()).await?;
        if resolved.as_did() == did {
            Ok(handle)
        } else {
            Err(IdentityError::new(handle, IdentityFault::OtherDid(resolved)))
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

    /// The fresh answer of `slot`, or the result of `look_up`, which runs once for concurrent callers.
    async fn answer<V, A>(
        &self,
        slot: &Slot<V>,
        look_up: impl FnOnce() -> A,
    ) -> Result<V, IdentityError>
    where
        V: Clone,
        A: Future<Output = Result<V, IdentityError>>,
    {
        if let Some(answer) = slot.fresh() {
            count(&self.counters.hits);
            return answer;
        }
        let _guard = slot.lookup.lock().await;
        if let Some(answer) = slot.fresh() {
            count(&self.counters.hits);
            return answer;
        }
        let purges = slot.start_lookup();
        count(&self.counters.lookups);
        let (answer, ttl) = self.resolve_outage(slot, look_up().await);
        let fresh_until = Instant::now() + ttl;
        slot.store(CachedAnswer { answer: answer.clone(), fresh_until, purges });
        answer
    }

    /// The answer after a lookup, and how long it is fresh: in an outage, the last answer.
    fn resolve_outage<V: Clone>(
        &self,
        slot: &Slot<V>,
        result: Result<V, IdentityError>,
    ) -> (Result<V, IdentityError>, Duration) {
        let Err(error) = result else { return (result, self.options.ttl) };
        count(&self.counters.errors);
        if !error.is_outage() {
            let ttl = self.error_ttl(&error);
            return (Err(error), ttl);
        }
        match slot.usable_in_outage() {
            Some(known) => {
                count(&self.counters.stale);
                (Ok(known), self.options.error_ttl)
            }
            None => (Err(error), self.options.outage_ttl),
        }
    }

    fn error_ttl(&self, error: &IdentityError) -> Duration {
        if error.subject.starts_with("did:") {
            self.options.error_ttl
        } else {
            self.options.invalid_handle_ttl
        }
    }

    async fn look_up_did(&self, handle: Handle<'_>) -> Result<DidBuf, IdentityError> {
        let Self { http, options, rate_limiter, limit, .. } = self;
        let lookup = HandleLookup { http, dns: &*self.dns, options, rate_limiter, limit };
        lookup::resolve_handle(&lookup, handle).await
    }

    async fn look_up_account(&self, did: Did<'_>) -> Result<Arc<Account>, IdentityError> {
        let location = Location::of(did, self.http.egress_policy(), &self.options)?;
        let (Location::Directory(url) | Location::Host(url)) = &location;
        let host = url.host_str().unwrap_or_default();
        let _permit = match &location {
            Location::Directory(_) => None,
            Location::Host(_) => Some(self.limit.acquire(registrable_domain(host)).await),
        };
        let ready = self.rate_limiter.until_ready(host).await;
        ready
            .map_err(|limited| IdentityError::at(did, host, IdentityFault::RateLimited(limited)))?;
        let response = self.get(&location).await;
        let response = response.map_err(|error| IdentityError::http(did, error))?;
        self.rate_limiter.record_response(host, response.status, &response.headers);
        let account = self.parse(did, &response);
        let account = account.map_err(|fault| IdentityError::at(did, host, fault));
        let is_answer = account.as_ref().err().is_none_or(|error| !error.is_outage());
        if is_answer && matches!(location, Location::Directory(_)) {
            count(&self.counters.directory_answers);
        }
        account
    }

    async fn get(&self, location: &Location) -> Result<Response, HttpError> {
        match location {
            Location::Directory(url) => self.http.get(url, &Limits::DOCUMENT).await,
            Location::Host(url) => self.http.get_direct(url, &Limits::DOCUMENT).await,
        }
    }

    fn parse(&self, did: Did<'_>, response: &Response) -> Result<Arc<Account>, IdentityFault> {
        match response.status {
            200 => {}
            410 => return Err(IdentityFault::Deleted),
            404 if is_tombstone(&response.body) => return Err(IdentityFault::Deleted),
            404 => return Err(IdentityFault::NotFound),
            status @ 300..=399 => return Err(IdentityFault::Redirect(status)),
            status => return Err(IdentityFault::Status(status)),
        }
        let mut options = did_document::Options::default();
        options.allow_development_hosts = self.http.egress_policy() == EgressPolicy::Loopback;
        let document = DidDocument::parse_for(did, &response.body, &options);
        document.map(Account::new).map(Arc::new).map_err(IdentityFault::Document)
    }
}

/// Whether a 404 of the PLC directory is for a deleted account: only its text differs.
fn is_tombstone(body: &[u8]) -> bool {
    body.windows(TOMBSTONE.len()).any(|text| text == TOMBSTONE)
}

const TOMBSTONE: &[u8] = b"DID not available";

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
