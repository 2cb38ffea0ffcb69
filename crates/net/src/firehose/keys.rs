//! Providers of account keys: cached keys without waiting, and lookups that block only the account's own
//! events.

use std::pin::Pin;
use std::sync::Arc;

use atproto::syntax::{Did, SyntaxError};
use verify::sync::{AccountKey, KeySource};

use crate::http::Url;
use crate::identity::{Account, IdentityError, Resolver};

/// Provides the signing keys of accounts.
pub trait KeyProvider: Send + Sync + 'static {
    /// The cached key. Called on worker threads, once per batch and account: it must not block.
    fn cached(&self, did: &str) -> AccountKey;

    /// Looks up the key. With `refresh`, the cached key did not verify a signature, and the source should be
    /// asked again; the provider limits how often.
    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a>;

    /// Invalidates the cached key, after an `#identity` event.
    fn invalidate(&self, did: &str);

    /// Whether keys are [`AccountKey::OtherHost`] for accounts of other hosts. Then `#account` and `#identity`,
    /// which are not signed, are rejected too unless the account's key is known. The default is no.
    fn checks_host(&self) -> bool {
        false
    }
}

/// The future of a key lookup.
pub type KeyLookup<'a> = Pin<Box<dyn Future<Output = Result<AccountKey, KeyError>> + Send + 'a>>;

/// Why the key of an account is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The account is not a valid DID.
    #[error("not a DID: {0}")]
    InvalidDid(SyntaxError),
    /// The DID document could not be resolved.
    #[error(transparent)]
    Identity(Box<IdentityError>),
    /// The DID document has no usable key.
    #[error("the account's DID document has no usable key")]
    NoKey,
    /// The provider does not know the account.
    #[error("the account's key is not among the known keys")]
    UnknownAccount,
    /// Too many events of the account were received during the lookup.
    #[error("too many events of the account were waiting for its key")]
    TooManyEvents,
}

/// Keys from DID documents, resolved and cached by a [`Resolver`].
#[derive(Clone, Debug)]
pub struct ResolverKeys(Resolver);

impl ResolverKeys {
    /// Keys of this resolver.
    pub fn new(resolver: Resolver) -> Self {
        Self(resolver)
    }

    fn account(&self, did: &str) -> Option<Arc<Account>> {
        Did::parse(did).ok().and_then(|did| self.0.cached(did))
    }

    async fn look_up_account(&self, did: &str, refresh: bool) -> Result<Arc<Account>, KeyError> {
        let did = Did::parse(did).map_err(KeyError::InvalidDid)?;
        let account = match refresh {
            true => self.0.refresh(did).await,
            false => self.0.account(did).await,
        };
        account.map_err(|error| KeyError::Identity(Box::new(error)))
    }
}

impl KeyProvider for ResolverKeys {
    fn cached(&self, did: &str) -> AccountKey {
        self.account(did).and_then(|account| key(&account)).into()
    }

    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a> {
        Box::pin(async move { known_key(&*self.look_up_account(did, refresh).await?) })
    }

    fn invalidate(&self, did: &str) {
        if let Ok(did) = Did::parse(did) {
            self.0.purge(did);
        }
    }
}

/// Like [`ResolverKeys`], for a run that follows a single PDS: events of an account whose DID document names
/// another host are rejected. The document is looked up again before that, as the account may have moved
/// here. A relay is not the host of any account.
#[derive(Clone, Debug)]
pub struct ServerKeys {
    keys: ResolverKeys,
    server: Url,
}

impl ServerKeys {
    /// Keys of the accounts that `server` hosts.
    pub fn new(resolver: Resolver, server: Url) -> Self {
        Self { keys: ResolverKeys::new(resolver), server }
    }

    fn is_elsewhere(&self, account: &Account) -> bool {
        account.host.as_ref().is_none_or(|host| !is_same_server(host, &self.server))
    }
}

impl KeyProvider for ServerKeys {
    fn cached(&self, did: &str) -> AccountKey {
        match self.keys.account(did) {
            Some(account) if self.is_elsewhere(&account) => AccountKey::OtherHost,
            account => account.and_then(|account| key(&account)).into(),
        }
    }

    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a> {
        Box::pin(async move {
            let account = self.keys.look_up_account(did, refresh).await?;
            if self.is_elsewhere(&account) {
                Ok(AccountKey::OtherHost)
            } else {
                known_key(&account)
            }
        })
    }

    fn invalidate(&self, did: &str) {
        self.keys.invalidate(did);
    }

    fn checks_host(&self) -> bool {
        true
    }
}

/// Whether two URLs have the same host and port, whatever their scheme.
fn is_same_server(a: &Url, b: &Url) -> bool {
    let authority = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
    authority(a) == authority(b)
}

fn known_key(account: &Account) -> Result<AccountKey, KeyError> {
    key(account).map(AccountKey::Known).ok_or(KeyError::NoKey)
}

fn key(account: &Account) -> Option<crypto::CompressedKey> {
    account.key.as_ref().map(|key| *key.as_compressed())
}

/// A fixed set of keys, which `#identity` events do not change.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedKeys<K>(pub K);

impl<K: KeySource + Send + Sync + 'static> KeyProvider for FixedKeys<K> {
    fn cached(&self, did: &str) -> AccountKey {
        self.0.key(did)
    }

    fn look_up<'a>(&'a self, did: &'a str, _: bool) -> KeyLookup<'a> {
        let key = match self.0.key(did) {
            AccountKey::Unknown => Err(KeyError::UnknownAccount),
            known => Ok(known),
        };
        Box::pin(async move { key })
    }

    fn invalidate(&self, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_compared_by_host_and_port_and_not_by_scheme() {
        let is_same = |a: &str, b: &str| is_same_server(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(is_same("https://pds.example.com", "wss://PDS.example.com:443/xrpc"));
        assert!(is_same("http://localhost:4481/", "ws://localhost:4481"));
        assert!(!is_same("https://pds.example.com", "https://pds.example.com:8443"));
        assert!(!is_same("https://pds.example.com", "https://example.com"));
    }
}
