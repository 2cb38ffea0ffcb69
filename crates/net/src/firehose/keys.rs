//! Which key has an account? What is known is told at once; what is not is found out, and for that
//! nobody waits but the account's own events.

use std::pin::Pin;
use std::sync::Arc;

use atproto::syntax::{Did, SyntaxError};
use verify::sync::{AccountKey, KeySource};

use crate::http::Url;
use crate::identity::{Account, IdentityError, Resolver};

/// Knows the keys of accounts, and how to find them out.
pub trait KeyProvider: Send + Sync + 'static {
    /// What is known. Asked on workers, once a batch for each account: it must not wait.
    fn cached(&self, did: &str) -> AccountKey;

    /// Finds it out. With `is_doubted`, a signature was refused under what is known, so that the source
    /// should be asked again; how often that is done is up to who finds out.
    fn look_up<'a>(&'a self, did: &'a str, is_doubted: bool) -> KeyLookup<'a>;

    /// What is known may no longer be true, as `#identity` says.
    fn invalidate(&self, did: &str);
}

/// A key on its way.
pub type KeyLookup<'a> = Pin<Box<dyn Future<Output = Result<AccountKey, KeyError>> + Send + 'a>>;

/// Why an account's key is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Its DID is none.
    #[error("not a DID: {0}")]
    NotADid(SyntaxError),
    /// Its DID document is not to be had.
    #[error(transparent)]
    Identity(Box<IdentityError>),
    /// Its DID document has no key that is one.
    #[error("the account's DID document has no key that can be used")]
    NoneNamed,
    /// Who was asked does not know it, and nobody else is asked.
    #[error("the account's key is not among those that are known")]
    NotAmongKnown,
    /// More of its events came while it was being found out than may wait.
    #[error("too many of the account's events were waiting for its key")]
    Crowded,
}

/// KeyProvider by DID documents, which a [`Resolver`] finds and remembers.
#[derive(Clone, Debug)]
pub struct ResolverKeys(Resolver);

impl ResolverKeys {
    /// What `resolver` knows and finds.
    pub fn new(resolver: Resolver) -> Self {
        Self(resolver)
    }

    fn account(&self, did: &str) -> Option<Arc<Account>> {
        Did::parse(did).ok().and_then(|did| self.0.cached(did))
    }

    async fn find_account(&self, did: &str, is_doubted: bool) -> Result<Arc<Account>, KeyError> {
        let did = Did::parse(did).map_err(KeyError::NotADid)?;
        let account = match is_doubted {
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

    fn look_up<'a>(&'a self, did: &'a str, is_doubted: bool) -> KeyLookup<'a> {
        Box::pin(async move { found(&*self.find_account(did, is_doubted).await?) })
    }

    fn invalidate(&self, did: &str) {
        if let Ok(did) = Did::parse(did) {
            self.0.purge(did);
        }
    }
}

/// As [`ResolverKeys`], for a run that listens to one server (PDS) and to nobody else: an account whose
/// DID document names another server is that one's, whatever this one tells of it. It is asked for again
/// before that counts, for it may have come here meanwhile. A relay is nobody's server.
#[derive(Clone, Debug)]
pub struct ServerKeys {
    keys: ResolverKeys,
    server: Url,
}

impl ServerKeys {
    /// What `resolver` knows and finds of the accounts of `server`.
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

    fn look_up<'a>(&'a self, did: &'a str, is_doubted: bool) -> KeyLookup<'a> {
        Box::pin(async move {
            let account = self.keys.find_account(did, is_doubted).await?;
            if self.is_elsewhere(&account) { Ok(AccountKey::OtherHost) } else { found(&account) }
        })
    }

    fn invalidate(&self, did: &str) {
        self.keys.invalidate(did);
    }
}

/// Whether both name one host and port: whichever protocol is spoken there.
fn is_same_server(a: &Url, b: &Url) -> bool {
    let place = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
    place(a) == place(b)
}

fn found(account: &Account) -> Result<AccountKey, KeyError> {
    key(account).map(AccountKey::Known).ok_or(KeyError::NoneNamed)
}

fn key(account: &Account) -> Option<crypto::CompressedKey> {
    account.key.as_ref().map(|key| *key.as_compressed())
}

/// KeyProvider that the caller has, and no others; what `#identity` says changes none of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedKeys<K>(pub K);

impl<K: KeySource + Send + Sync + 'static> KeyProvider for FixedKeys<K> {
    fn cached(&self, did: &str) -> AccountKey {
        self.0.key(did)
    }

    fn look_up<'a>(&'a self, did: &'a str, _: bool) -> KeyLookup<'a> {
        let found = match self.0.key(did) {
            AccountKey::Unknown => Err(KeyError::NotAmongKnown),
            known => Ok(known),
        };
        Box::pin(async move { found })
    }

    fn invalidate(&self, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port_whatever_is_spoken_there() {
        let is_same = |a: &str, b: &str| is_same_server(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(is_same("https://pds.example.com", "wss://PDS.example.com:443/xrpc"));
        assert!(is_same("http://localhost:4481/", "ws://localhost:4481"));
        assert!(!is_same("https://pds.example.com", "https://pds.example.com:8443"));
        assert!(!is_same("https://pds.example.com", "https://example.com"));
    }
}
