//! One account of a page: skipped, or looked up and fetched from the host that its DID document names.

use std::io;
use std::sync::Arc;

use archive::FailedAccount;
use atproto::syntax::{Did, DidBuf, Tid};
use crypto::PublicKey;
use mapping::MappedFile;
use net::archive_space::{ArchiveFile, Space};
use net::http::{HttpFault, Url};
use net::identity::IdentityError;
use net::xrpc::{ErrorName, FetchError, FetchedRepo, PacedPart, SliceError, XrpcError, XrpcFault};

use crate::backfill_run::BackfillRun;
use crate::identities::Identity;
use crate::lists::{AccountList, ListedAccount};
use program::clock::now_micros;
use program::network;

/// The result of an account.
pub(crate) enum Outcome {
    /// Not selected, excluded, or erased from the archive.
    Excluded,
    /// The archive has the listed revision.
    Present,
    /// Another server hosts it than the one that lists it.
    Elsewhere,
    /// Its server does not serve it; the archive may have an earlier state of it.
    Inactive { did: DidBuf, status: Box<str> },
    /// It could not be fetched.
    Failed(FailedAccount),
    /// Its repository, or its part, which is not verified.
    Fetched(Box<FetchedAccount>),
}

/// The answer of a host: an archive, or answers that were refused.
enum Served {
    Archive {
        fetched: FetchedRepo,
        archive: ArchiveFile,
        is_part: bool,
    },
    /// Its answers about a part were refused.
    Refused(SliceError),
}

/// A repository that was fetched, or its part.
pub(crate) struct FetchedAccount {
    pub(crate) did: DidBuf,
    /// Whether the archive has the collections of the run alone.
    pub(crate) is_part: bool,
    pub(crate) key: PublicKey,
    /// The origin of the host that served it.
    pub(crate) host: Box<str>,
    pub(crate) archive: MappedFile,
    /// Held until the archive is stored or refused.
    pub(crate) space: Space,
    /// Size of the archive in bytes.
    pub(crate) bytes: u64,
    /// Size of the archive in bytes as it was received.
    pub(crate) wire_bytes: u64,
    /// When it was fetched, in microseconds since 1970.
    pub(crate) fetched: i64,
}

impl BackfillRun {
    /// Processes an account of a list. In later sweeps its identity is looked up again.
    ///
    /// # Errors
    /// If the archive cannot be stored on this machine.
    pub(crate) async fn process(
        self: Arc<Self>,
        list: Arc<AccountList>,
        account: ListedAccount,
        is_first_sweep: bool,
    ) -> io::Result<Outcome> {
        if let Some(outcome) = self.without_lookup(&account) {
            return Ok(outcome);
        }
        let did = account.did.as_did();
        let identity = if is_first_sweep && account.inactive.is_none() {
            self.identities.get(did).await
        } else {
            self.identities.get_fresh(did).await
        };
        let (key, host) = match self.current(&list, did, identity).await {
            Ok(Identity::Known { key, host: Some(host) }) => (key, host),
            Ok(Identity::Known { host: None, .. }) => {
                return Ok(failed(did, None, NO_HOST, "its DID document names no host"));
            }
            Ok(Identity::Deleted) => return Ok(inactive(did, "deleted")),
            Err(error) => return Ok(unidentified(did, &error)),
        };
        match (&account.inactive, key) {
            (Some(status), _) if list.has_host(&host) => Ok(inactive(did, status)),
            // It has moved, and the list is its old host's.
            (Some(_), _) => Ok(Outcome::Present),
            _ if !self.selection.has_host(&host) => Ok(Outcome::Excluded),
            _ if !list.has_host(&host) => Ok(Outcome::Elsewhere),
            (None, Some(key)) => self.fetch(&list, did, account.is_whole, key, host).await,
            (None, None) => {
                Ok(failed(did, Some(&host), NO_KEY, "its DID document has no usable key"))
            }
        }
    }

    /// The outcome of an account that is not selected, not served, or in the archive.
    fn without_lookup(&self, account: &ListedAccount) -> Option<Outcome> {
        let did = account.did.as_did();
        if !self.selection.has_account(did.as_str()) || self.hidden.is_erased(did.as_str()) {
            return Some(Outcome::Excluded);
        }
        let is_listed = |stored: Tid| account.rev.is_none_or(|rev| stored >= rev);
        match (self.stored.get(did.as_str()), &account.inactive) {
            (Some(stored), None) => is_listed(stored).then_some(Outcome::Present),
            (None, Some(status)) if !self.stored.has(did.as_str()) => Some(inactive(did, status)),
            _ => None,
        }
    }

    /// The identity, looked up again if it does not name the server that lists the account: it may have moved there.
    async fn current(
        &self,
        list: &AccountList,
        did: Did<'_>,
        identity: Result<Identity, IdentityError>,
    ) -> Result<Identity, IdentityError> {
        match &identity {
            Ok(Identity::Known { host, .. })
                if !host.as_ref().is_some_and(|host| list.has_host(host)) =>
            {
                self.identities.get_fresh(did).await
            }
            _ => identity,
        }
    }

    /// Fetches a repository, or its part. If the host does not know the account, it is asked for at the host that the account has now.
    async fn fetch(
        &self,
        list: &AccountList,
        did: Did<'_>,
        is_whole: bool,
        key: PublicKey,
        host: Url,
    ) -> io::Result<Outcome> {
        let error = match self.download(&host, did, is_whole).await {
            Ok(served) => return fetched_account(did, key, &host, served),
            Err(FetchError::Local(error)) => return Err(error),
            Err(FetchError::Remote(error)) => error,
        };
        if error.name() != Some(&ErrorName::RepoNotFound) {
            return Ok(refused(did, &host, &error));
        }
        let (key, moved) = match self.identities.get_fresh(did).await {
            Ok(Identity::Deleted) => return Ok(inactive(did, "deleted")),
            Ok(Identity::Known { key: Some(key), host: Some(moved) }) => (key, moved),
            _ => return Ok(refused(did, &host, &error)),
        };
        if moved.origin() == host.origin() {
            return Ok(refused(did, &host, &error));
        }
        if !list.has_host(&moved) {
            return Ok(Outcome::Elsewhere);
        }
        match self.download(&moved, did, is_whole).await {
            Ok(served) => fetched_account(did, key, &moved, served),
            Err(FetchError::Local(error)) => Err(error),
            Err(FetchError::Remote(error)) => Ok(refused(did, &moved, &error)),
        }
    }

    /// Downloads the part of a repository with the collections of the run, or the whole repository.
    async fn download(
        &self,
        host: &Url,
        did: Did<'_>,
        is_whole: bool,
    ) -> Result<Served, FetchError> {
        if let Some(parts) = self.parts.as_ref().filter(|_| !is_whole) {
            match self.client.fetch_part(host, did, parts.patterns(), &self.limits).await? {
                PacedPart::Part(fetched, archive) => {
                    return Ok(Served::Archive { fetched, archive, is_part: true });
                }
                PacedPart::Refused(error) => return Ok(Served::Refused(error)),
                PacedPart::Whole => {}
            }
        }
        let (fetched, archive) = self.client.fetch_repo(host, did, &self.limits).await?;
        Ok(Served::Archive { fetched, archive, is_part: false })
    }
}

fn fetched_account(
    did: Did<'_>,
    key: PublicKey,
    host: &Url,
    served: Served,
) -> io::Result<Outcome> {
    let (fetched, archive, is_part) = match served {
        Served::Archive { fetched, archive, is_part } => (fetched, archive, is_part),
        Served::Refused(error) => return Ok(refused_part(did, host, &error)),
    };
    let (file, space) = archive.into_parts();
    Ok(Outcome::Fetched(Box::new(FetchedAccount {
        did: did.to_buf(),
        is_part,
        key,
        host: fetched.host,
        archive: MappedFile::of(&file)?,
        space,
        bytes: fetched.bytes,
        wire_bytes: fetched.wire_bytes,
        fetched: now_micros(),
    })))
}

fn inactive(did: Did<'_>, status: &str) -> Outcome {
    // A host can state any text.
    let is_known = STATUSES.contains(&status);
    Outcome::Inactive {
        did: did.to_buf(),
        status: if is_known { status } else { "inactive" }.into(),
    }
}

/// The outcome of answers that are no part of a repository. The next sweep fetches the whole repository.
fn refused_part(did: Did<'_>, host: &Url, error: &SliceError) -> Outcome {
    Outcome::Failed(FailedAccount {
        did: did.to_string(),
        host: Some(network::origin(host)),
        class: error.code().unwrap_or(REFUSED_PART).to_owned(),
        message: error.to_string(),
        is_temporary: true,
    })
}

/// The outcome of an answer without a repository.
fn refused(did: Did<'_>, host: &Url, error: &XrpcError) -> Outcome {
    let status = error.name().and_then(|name| name.account_status());
    match status {
        Some(status) => inactive(did, status),
        None => {
            let (class, is_temporary) = class_of(error);
            Outcome::Failed(FailedAccount {
                did: did.to_string(),
                host: Some(network::origin(host)),
                class: class.to_owned(),
                message: error.to_string(),
                is_temporary,
            })
        }
    }
}

fn unidentified(did: Did<'_>, error: &IdentityError) -> Outcome {
    Outcome::Failed(FailedAccount {
        did: did.to_string(),
        host: None,
        class: NO_IDENTITY.to_owned(),
        message: error.to_string(),
        is_temporary: error.is_outage(),
    })
}

fn failed(did: Did<'_>, host: Option<&Url>, class: &str, message: &str) -> Outcome {
    Outcome::Failed(FailedAccount {
        did: did.to_string(),
        host: host.map(network::origin),
        class: class.to_owned(),
        message: message.to_owned(),
        is_temporary: false,
    })
}

/// The class of a failed request, and whether it may succeed later.
pub fn class_of(error: &XrpcError) -> (&'static str, bool) {
    match &error.fault {
        XrpcFault::RateLimited(_) => ("limited", true),
        XrpcFault::Http(HttpFault::TooLarge(_)) => ("too-large", false),
        XrpcFault::Http(HttpFault::Egress(_)) => ("not-allowed", false),
        XrpcFault::Http(HttpFault::DamagedGzip(_)) => ("answer", true),
        XrpcFault::Http(HttpFault::Idle(_) | HttpFault::Timeout(_) | HttpFault::TooSlow(_)) => {
            ("slow", true)
        }
        XrpcFault::Http(_) => ("unreachable", error.is_retryable()),
        XrpcFault::Named(named) if named.name == ErrorName::RepoNotFound => ("not-found", true),
        _ if error.is_retryable() => ("overloaded", true),
        _ => ("answer", false),
    }
}

/// The statuses of the protocol.
const STATUSES: [&str; 7] =
    ["takendown", "suspended", "deactivated", "deleted", "desynchronized", "throttled", "inactive"];

/// A part that the server does not serve.
const REFUSED_PART: &str = "part/refused";
const NO_IDENTITY: &str = "identity";
const NO_HOST: &str = "no-host";
const NO_KEY: &str = "no-key";
