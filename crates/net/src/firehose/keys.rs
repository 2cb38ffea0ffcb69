//! Providers of account keys: cached keys without waiting, and lookups that block only the account's own
//! events.

use std::pin::Pin;
use std::time::Duration;

use atproto::syntax::{Did, SyntaxError};
use crypto::CompressedKey;
use verify::sync::{AccountKey, KeySource};

use crate::concurrency::registrable_domain;
use crate::http::Url;
use crate::identity::{Account, IdentityError, IdentityFault, Resolver};

/// Provides the signing keys of accounts.
pub trait KeyProvider: Send + Sync + 'static {
    /// The cached key. Called on worker threads, once per batch and account: it must not block.
    fn cached(&self, did: &str) -> AccountKey;

    /// Looks up the key. With `refresh`, the cached key did not verify a signature, and the source should be
    /// asked again; the provider limits how often.
    ///
    /// A lookup that fails with a [temporary](KeyError::is_temporary) error is repeated. The future is dropped
    /// when its result is no longer needed.
    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a>;

    /// Invalidates the cached key, after an `#identity` event. A lookup that began before must not restore it.
    fn invalidate(&self, did: &str);

    /// Whether keys are [`AccountKey::OtherHost`] for accounts of other hosts. Then `#account` and `#identity`,
    /// which are not signed, are rejected too unless the account's key is known. The default is no.
    fn checks_host(&self) -> bool {
        false
    }

    /// Whether the document of an account, whose key is cached, names `server` as its server. Asked for `#account` and
    /// `#identity` events of a [`HostRole::Pds`](super::HostRole), which are rejected otherwise. The default is no.
    fn is_at(&self, _did: &str, _server: &Url) -> bool {
        false
    }

    /// The number of answers of the PLC directory so far. While it rises, the directory as a whole is available,
    /// and a lookup that fails nevertheless is given up after some attempts; otherwise it is repeated until the
    /// directory is back. The default is 0.
    fn directory_answers(&self) -> u64 {
        0
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
    /// Too many events of accounts under one registrable domain were waiting for their keys.
    #[error("too many events of accounts under {0} were waiting for their keys")]
    TooManyOfDomain(Box<str>),
    /// Too many events of `did:web` accounts were waiting for their keys.
    #[error("too many events of did:web accounts were waiting for their keys")]
    TooManyOfHosts,
    /// The lookup took too long.
    #[error("the key could not be looked up within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl KeyError {
    /// Whether the key may be found later: its source was unavailable, or a limit on waiting was reached. The
    /// account's events are then not judged, rather than judged to have no key.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Identity(error) => error.is_outage(),
            Self::TooManyEvents | Self::TooManyOfDomain(_) => true,
            Self::TooManyOfHosts | Self::TimedOut(_) => true,
            Self::InvalidDid(_) | Self::NoKey | Self::UnknownAccount => false,
        }
    }

    /// Whether the source asked for fewer requests.
    pub(super) fn is_rate_limit(&self) -> bool {
        let Self::Identity(error) = self else { return false };
        matches!(error.fault, IdentityFault::RateLimited(_) | IdentityFault::Status(429))
    }
}

/// The registrable domain of the host that has an account's DID document; `None` for `did:plc`, whose documents
/// are in the directory.
pub(super) fn host_domain(did: &str) -> Option<Box<str>> {
    if did.starts_with("did:plc:") {
        return None;
    }
    let host = did.strip_prefix("did:web:").unwrap_or(did).split(['%', ':']).next();
    let host = host.unwrap_or_default().to_ascii_lowercase();
    Some(registrable_domain(&host).into())
}

/// The key and the host of an account, as its DID document names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedKey {
    /// The signing key; `None` if the document has no usable one.
    pub key: Option<CompressedKey>,
    /// The URL of the PDS; `None` if the document names none.
    pub host: Option<Url>,
}

impl HostedKey {
    /// The account's key. With `server`, an account that this server does not host is
    /// [`AccountKey::OtherHost`].
    pub fn at(&self, server: Option<&Url>) -> AccountKey {
        key_at(self.key, self.host.as_ref(), server)
    }

    /// Like [`at`](Self::at).
    ///
    /// # Errors
    /// If the account has no usable key.
    pub fn try_at(&self, server: Option<&Url>) -> Result<AccountKey, KeyError> {
        match self.at(server) {
            AccountKey::Unknown => Err(KeyError::NoKey),
            key => Ok(key),
        }
    }
}

/// The key of an account at `host`, as [`HostedKey::at`].
fn key_at(key: Option<CompressedKey>, host: Option<&Url>, server: Option<&Url>) -> AccountKey {
    let is_at = |server| host.is_some_and(|host| is_same_server(host, server));
    if server.is_none_or(is_at) { key.into() } else { AccountKey::OtherHost }
}

impl From<&Account> for HostedKey {
    fn from(account: &Account) -> Self {
        let key = account.key.as_ref().map(|key| *key.as_compressed());
        Self { key, host: account.host.clone() }
    }
}

/// Keys from DID documents, resolved and cached by a [`Resolver`].
#[derive(Clone, Debug)]
pub struct ResolverKeys(Resolver);

impl ResolverKeys {
    /// Keys of this resolver.
    pub fn new(resolver: Resolver) -> Self {
        Self(resolver)
    }

    /// The cached key of an account, as [`HostedKey::at`]; `None` if nothing is cached.
    pub fn cached_at(&self, did: &str, server: Option<&Url>) -> Option<AccountKey> {
        let account = self.0.cached(Did::parse(did).ok()?)?;
        let key = account.key.as_ref().map(|key| *key.as_compressed());
        Some(key_at(key, account.host.as_ref(), server))
    }

    /// Whether the cached document of an account names this server; `None` if none is cached.
    pub fn cached_is_at(&self, did: &str, server: &Url) -> Option<bool> {
        let account = self.0.cached(Did::parse(did).ok()?)?;
        Some(account.host.as_ref().is_some_and(|host| is_same_server(host, server)))
    }

    /// Looks up the key and host of an account, as [`KeyProvider::look_up`].
    ///
    /// # Errors
    /// If the DID is invalid or cannot be resolved.
    pub async fn look_up_hosted(&self, did: &str, refresh: bool) -> Result<HostedKey, KeyError> {
        let did = Did::parse(did).map_err(KeyError::InvalidDid)?;
        let account = if refresh { self.0.refresh(did).await } else { self.0.account(did).await };
        let account = account.map_err(|error| KeyError::Identity(Box::new(error)))?;
        Ok(HostedKey::from(&*account))
    }
}

impl KeyProvider for ResolverKeys {
    fn cached(&self, did: &str) -> AccountKey {
        self.cached_at(did, None).unwrap_or(AccountKey::Unknown)
    }

    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a> {
        Box::pin(async move { self.look_up_hosted(did, refresh).await?.try_at(None) })
    }

    fn is_at(&self, did: &str, server: &Url) -> bool {
        self.cached_is_at(did, server).unwrap_or(false)
    }

    fn invalidate(&self, did: &str) {
        if let Ok(did) = Did::parse(did) {
            self.0.purge(did);
        }
    }

    fn directory_answers(&self) -> u64 {
        self.0.stats().directory_answers
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
}

impl KeyProvider for ServerKeys {
    fn cached(&self, did: &str) -> AccountKey {
        self.keys.cached_at(did, Some(&self.server)).unwrap_or(AccountKey::Unknown)
    }

    fn look_up<'a>(&'a self, did: &'a str, refresh: bool) -> KeyLookup<'a> {
        Box::pin(
            async move { self.keys.look_up_hosted(did, refresh).await?.try_at(Some(&self.server)) },
        )
    }

    fn is_at(&self, did: &str, server: &Url) -> bool {
        self.keys.is_at(did, server)
    }

    fn invalidate(&self, did: &str) {
        self.keys.invalidate(did);
    }

    fn checks_host(&self) -> bool {
        true
    }

    fn directory_answers(&self) -> u64 {
        self.keys.directory_answers()
    }
}

/// Whether two URLs have the same host and port, whatever their scheme.
fn is_same_server(a: &Url, b: &Url) -> bool {
    let authority = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
    authority(a) == authority(b)
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
    use std::sync::Arc;

    use super::*;
    use crate::dns::LoopbackDns;
    use crate::egress::EgressPolicy;
    use crate::http::Client;
    use crate::identity::Options;
    use crate::loopback_server::{response, serve};

    const DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
    const KEY: &str = "zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo";

    /// A resolver with a directory whose document names this host.
    async fn resolver(host: &str) -> Resolver {
        let body = format!(
            r##"{{"id": "{DID}", "alsoKnownAs": [], "verificationMethod": [{{ "id": "#atproto",
                "type": "Multikey", "controller": "{DID}", "publicKeyMultibase": "{KEY}" }}],
              "service": [{{ "id": "#atproto_pds", "type": "AtprotoPersonalDataServer",
                "serviceEndpoint": "{host}" }}] }}"##
        );
        let port = serve(move |_| response(200, "", &body)).await;
        let directory = format!("http://localhost:{port}").parse().unwrap();
        let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let options = Options { directory, ..Options::default() };
        Resolver::new(http, Arc::new(LoopbackDns), options)
    }

    #[tokio::test]
    async fn the_key_of_an_account_counts_at_its_own_server_alone() {
        let server: Url = "wss://pds.test/".parse().unwrap();
        for (host, is_here) in [("https://pds.test", true), ("https://other.test", false)] {
            let resolver = resolver(host).await;
            let keys = ServerKeys::new(resolver.clone(), server.clone());
            assert!(keys.checks_host() && !keys.is_at(DID, &server));
            assert_eq!((keys.cached(DID), keys.directory_answers()), (AccountKey::Unknown, 0));
            let found = keys.look_up(DID, false).await.unwrap();
            assert_eq!(matches!(found, AccountKey::Known(_)), is_here);
            assert_eq!(found == AccountKey::OtherHost, !is_here);
            assert_eq!((keys.cached(DID), keys.directory_answers()), (found, 1));
            assert_eq!(keys.is_at(DID, &server), is_here);
            // A relay accepts the accounts of any host.
            let anywhere = ResolverKeys::new(resolver);
            assert!(matches!(anywhere.cached(DID), AccountKey::Known(_)));
            assert_eq!((anywhere.checks_host(), anywhere.directory_answers()), (false, 1));
            keys.invalidate(DID);
            assert_eq!(keys.cached(DID), AccountKey::Unknown);
            keys.look_up(DID, false).await.unwrap();
            assert_eq!(keys.directory_answers(), 2);
        }
    }

    #[test]
    fn servers_are_compared_by_host_and_port_and_not_by_scheme() {
        let is_same = |a: &str, b: &str| is_same_server(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(is_same("https://pds.example.com", "wss://PDS.example.com:443/xrpc"));
        assert!(is_same("http://localhost:4481/", "ws://localhost:4481"));
        assert!(!is_same("https://pds.example.com", "https://pds.example.com:8443"));
        assert!(!is_same("https://pds.example.com", "https://example.com"));
    }
}
