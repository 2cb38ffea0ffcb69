//! The keys and servers of accounts, from the directory: the current key, and the earlier ones where a signature needs
//! them.

use std::collections::HashMap;
use std::time::Duration;

use atproto::syntax::Did;
use crypto::{CompressedKey, PublicKey};
use net::http::{Client, Limits, Url};
use net::identity::{Account, Resolver};
use tokio::time::{Instant, timeout};
use verify::plc;

/// Looks accounts up, a bounded number of them.
pub(crate) struct Identities {
    resolver: Resolver,
    http: Client,
    directory: Url,
    known: HashMap<String, Identity>,
    max_accounts: usize,
    /// Lookups that failed because a source did not answer.
    pub(crate) outages: u64,
}

/// The identity of an account.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// Its keys, the current one first.
    pub(crate) keys: Vec<PublicKey>,
    /// Its server.
    pub(crate) server: Option<Url>,
    /// The time since which the log names that server, in microseconds since 1970; `None` before the log was read.
    pub(crate) served_since: Option<u64>,
    /// When the log was read.
    log_read: Option<Instant>,
}

impl Identity {
    fn of(account: &Account) -> Self {
        let keys = account.key.iter().cloned().collect();
        Self { keys, server: account.host.clone(), ..Self::default() }
    }

    /// The keys in the form in which events are judged.
    pub(crate) fn compressed(&self) -> Vec<CompressedKey> {
        let compressed = |key: &PublicKey| CompressedKey::from_did_key(&key.to_did_key()).ok();
        self.keys.iter().filter_map(compressed).collect()
    }
}

impl Identities {
    pub(crate) fn new(
        resolver: Resolver,
        http: Client,
        directory: Url,
        max_accounts: usize,
    ) -> Self {
        Self { resolver, http, directory, known: HashMap::new(), max_accounts, outages: 0 }
    }

    /// The identity of an account, looked up once. `None` if it has none that can be used, or too many were looked up.
    pub(crate) async fn get(&mut self, did: &str) -> Option<Identity> {
        if let Some(identity) = self.known.get(did) {
            return Some(identity.clone());
        }
        if self.known.len() >= self.max_accounts {
            return None;
        }
        let identity = match timeout(MAX_LOOKUP, self.resolver.account(Did::parse(did).ok()?)).await
        {
            Ok(Ok(account)) => Identity::of(&account),
            Ok(Err(error)) if !error.is_outage() => Identity::default(),
            _ => {
                self.outages += 1;
                Identity::default()
            }
        };
        self.known.insert(did.to_owned(), identity.clone());
        Some(identity)
    }

    /// The identity with the keys that the account has ever had: a key may have been replaced since it signed. `None` if
    /// the sources do not answer, so that nothing is decided.
    pub(crate) async fn with_history(&mut self, did: &str) -> Option<Identity> {
        let mut identity = self.get(did).await?;
        if identity.log_read.is_some_and(|read| read.elapsed() < LOG_AGE) {
            return Some(identity);
        }
        let parsed = Did::parse(did).ok()?;
        let fresh = timeout(MAX_LOOKUP, self.resolver.refresh(parsed)).await;
        let fresh = fresh.ok().and_then(Result::ok);
        if let Some(account) = &fresh {
            identity.server.clone_from(&account.host);
            add_new(&mut identity.keys, account.key.clone());
        }
        match self.log(parsed).await {
            Some(log) => {
                identity.server = log.server.as_ref().and_then(|server| server.parse().ok());
                identity.served_since = log.served_since;
                log.keys.into_iter().for_each(|key| add_new(&mut identity.keys, Some(key)));
            }
            // A did:web has no log.
            None if parsed.is_plc() || fresh.is_none() => return None,
            None => {}
        }
        identity.log_read = Some(Instant::now());
        self.known.insert(did.to_owned(), identity.clone());
        Some(identity)
    }

    /// The verified log of a did:plc.
    async fn log(&self, did: Did<'_>) -> Option<LogSummary> {
        if !did.is_plc() {
            return None;
        }
        let url = format!("{}/{did}/log/audit", self.directory.as_str().trim_end_matches('/'));
        let url = url.parse().ok()?;
        let mut options = plc::Options::default();
        options.did = Some(did.to_buf());
        let response = timeout(MAX_LOOKUP, self.http.get(&url, &Limits::LIST)).await.ok()?.ok()?;
        let history = plc::verify(&response.body, &options).ok()?;
        Some(LogSummary::of(&history))
    }
}

/// The keys of a log, the newest first, and since when it names the current server.
#[derive(Default)]
struct LogSummary {
    keys: Vec<PublicKey>,
    server: Option<String>,
    served_since: Option<u64>,
}

impl LogSummary {
    fn of(history: &plc::History) -> Self {
        let mut summary = Self::default();
        for operation in history.operations().iter().filter(|operation| !operation.nullified) {
            let Some(data) = operation.operation.unsigned().to_data() else { continue };
            let key = data.signing_key().and_then(|key| PublicKey::from_did_key(key).ok());
            summary.keys.extend(key);
            let next = data.services.get("atproto_pds").map(|service| service.endpoint.clone());
            if next != summary.server {
                summary.server = next;
                let created = operation.created_at_micros;
                summary.served_since = created.and_then(|micros| u64::try_from(micros).ok());
            }
        }
        summary.keys.reverse();
        summary.keys.truncate(MAX_KEYS);
        summary
    }
}

fn add_new(keys: &mut Vec<PublicKey>, key: Option<PublicKey>) {
    if let Some(key) = key
        && !keys.iter().any(|known| known.to_did_key() == key.to_did_key())
    {
        keys.push(key);
    }
}

const MAX_LOOKUP: Duration = Duration::from_secs(20);
/// Time for which a log is not read again: the key may be replaced meanwhile.
const LOG_AGE: Duration = Duration::from_secs(2);
/// Keys of one account that are tried.
const MAX_KEYS: usize = 8;
