//! The options of a verified stream, from the clients and the state that it works with.

use std::sync::Arc;

use atproto::event::Options as Decoding;
use net::firehose::{
    AccountSet, KeyProvider, Options, ResyncCollections, ResyncOptions, ServerStatuses,
    Verification,
};
use net::http::Url;
use net::identity::Resolver;
use net::xrpc;
use store::{Store, StoreError};
use verify::sync::Policy;

/// The parts of a verified stream.
pub struct VerifiedStream<'s> {
    /// The hosts; the next one is used when one fails.
    pub hosts: &'s [Url],
    /// Resolves accounts.
    pub resolver: &'s Resolver,
    /// Asks servers of accounts.
    pub xrpc: &'s xrpc::Client,
    /// The did:plc directory, whose clock is compared with this machine's.
    pub directory: &'s Url,
    /// The keys of accounts.
    pub keys: Arc<dyn KeyProvider>,
    /// The level of proof for events; `None` for decoding only.
    pub policy: Option<Policy>,
    /// Whether the repositories of accounts with a broken chain are fetched.
    pub resyncs: bool,
    /// The state, whose accounts wait for their repositories; `None` if none is kept.
    pub store: Option<&'s Store>,
    /// The selected accounts; `None` for all.
    pub accounts: Option<&'s AccountSet>,
    /// The collections of which resyncs fetch the records; whole repositories, if it is empty.
    pub collections: ResyncCollections,
}

impl VerifiedStream<'_> {
    /// The servers of accounts, which say whether one is active.
    pub fn statuses(&self) -> ServerStatuses {
        ServerStatuses::new(self.xrpc.clone(), self.resolver.clone())
    }

    /// The options of its run, which asks these servers.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn options(&self, statuses: &ServerStatuses) -> Result<Options, StoreError> {
        let mut options = Options::new(self.hosts.to_vec(), self.keys.clone());
        options.verify = match (self.policy, options.verify) {
            (Some(policy), Verification::On { keys, cache_bytes, .. }) => {
                Verification::On { policy, keys, cache_bytes }
            }
            _ => Verification::Off { decoding: Decoding::default() },
        };
        options.statuses = Some(Arc::new(statuses.clone()));
        options.clock_servers = vec![self.directory.clone()];
        options.resync = match self.policy.filter(|_| self.resyncs) {
            Some(policy) => Some(self.resync_options(policy)?),
            None => None,
        };
        Ok(options)
    }

    fn resync_options(&self, policy: Policy) -> Result<ResyncOptions, StoreError> {
        let mut resync = ResyncOptions::new(self.xrpc.clone(), self.resolver.clone());
        resync.repository.strict_records = policy.strict_records;
        resync.accounts = self.accounts.cloned();
        resync.collections = self.collections.clone();
        if let Some(store) = self.store {
            let waiting = store.desynchronized(resync.max_queued)?;
            resync.desynchronized = waiting.into_iter().map(Box::from).collect();
        }
        Ok(resync)
    }
}
