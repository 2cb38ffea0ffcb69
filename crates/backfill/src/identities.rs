//! The key and the host of an account: from a mirror of the directory, else looked up.

use std::path::Path;
use std::sync::Arc;

use atproto::plc::AccountData;
use atproto::syntax::Did;
use crypto::PublicKey;
use net::egress::EgressPolicy;
use net::http::Url;
use net::identity::{Account, IdentityError, IdentityFault, Resolver};
use tokio::sync::Semaphore;

use program::failure::Failure;
use program::mirrored_accounts::MirroredAccounts;
use program::network::Network;

/// Looks up accounts.
pub struct Identities {
    mirror: Option<MirroredAccounts>,
    resolver: Resolver,
    policy: EgressPolicy,
    /// Permits for lookups in the directory.
    lookups: Semaphore,
}

/// The known facts about an account.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one is made for each lookup, and none is kept")]
pub enum Identity {
    /// The key of its repository and its host, as far as its document names them.
    Known {
        /// The key.
        key: Option<PublicKey>,
        /// The host.
        host: Option<Url>,
    },
    /// It was deleted permanently.
    Deleted,
}

impl Identities {
    /// Looks up accounts in a mirror of the directory, if there is one, and in the network.
    ///
    /// # Errors
    /// If the mirror cannot be opened.
    pub fn new(mirror: Option<&Path>, network: &Network) -> Result<Self, Failure> {
        let mirror = mirror.map(MirroredAccounts::open).transpose()?;
        let (resolver, policy) = (network.resolver.clone(), network.http.egress_policy());
        Ok(Self { mirror, resolver, policy, lookups: Semaphore::new(MAX_LOOKUPS) })
    }

    /// Where connections may go.
    pub(crate) fn policy(&self) -> EgressPolicy {
        self.policy
    }

    /// The account as the mirror has it, or as it was looked up some time ago.
    ///
    /// # Errors
    /// If the lookup fails.
    pub async fn get(&self, did: Did<'_>) -> Result<Identity, IdentityError> {
        match self.mirrored(did) {
            Some(identity) => Ok(identity),
            None => self.look_up(did, false).await,
        }
    }

    /// The account as it is now.
    ///
    /// # Errors
    /// If the lookup fails.
    pub async fn get_fresh(&self, did: Did<'_>) -> Result<Identity, IdentityError> {
        self.look_up(did, true).await
    }

    async fn look_up(&self, did: Did<'_>, is_fresh: bool) -> Result<Identity, IdentityError> {
        let _permit = self.lookups.acquire().await;
        let account = if is_fresh {
            self.resolver.refresh(did).await
        } else {
            self.resolver.account(did).await
        };
        match account {
            Ok(account) => Ok(known(&account)),
            Err(error) if error.fault == IdentityFault::Deleted => Ok(Identity::Deleted),
            Err(error) => Err(error),
        }
    }

    /// The account in the mirror. One that cannot be read there is looked up.
    fn mirrored(&self, did: Did<'_>) -> Option<Identity> {
        let history = self.mirror.as_ref()?.history(did).ok()??;
        Some(match history.data() {
            None => Identity::Deleted,
            Some(data) => Identity::Known { key: history.signing_key(), host: self.host(data) },
        })
    }

    fn host(&self, data: &AccountData) -> Option<Url> {
        let development = || {
            let service = data.services.get("atproto_pds")?;
            (self.policy == EgressPolicy::Loopback).then_some(&*service.endpoint)
        };
        data.host().or_else(development)?.parse().ok()
    }
}

fn known(account: &Arc<Account>) -> Identity {
    Identity::Known { key: account.key.clone(), host: account.host.clone() }
}

/// Concurrent lookups in the directory.
const MAX_LOOKUPS: usize = 16;
