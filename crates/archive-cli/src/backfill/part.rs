//! Parts of a page: fetched repositories are verified and stored together.

use std::fmt;

use archive::{ArchivedRepository, FailedAccount, Subject, WorkId};
use atproto::syntax::Tid;
use codec::cid::{Cid, Codec};
use crypto::PublicKey;
use tokio::runtime::Handle;
use verify::Verified;
use verify::repository::{self, Options, RepositoryFault, RepositoryRejection, WholeRepository};
use verify::sync::{FutureWindow, Policy};

use super::account::FetchedAccount;
use super::identities::Identity;
use super::run::Run;
use crate::archive::now_micros;
use crate::failure::Failure;

/// Fetched repositories that wait to be stored.
#[derive(Default)]
pub(super) struct Part {
    accounts: Vec<FetchedAccount>,
    bytes: u64,
}

/// What was stored of a part.
#[derive(Debug, Default)]
pub(super) struct StoredPart {
    pub(super) stored: u64,
    pub(super) records: u64,
    /// The repositories that were refused.
    pub(super) failures: Vec<FailedAccount>,
}

/// A repository that is proved, with the account whose it is.
struct Proved<'p> {
    account: &'p FetchedAccount,
    key: PublicKey,
    repository: Verified<WholeRepository<'p>>,
    rev: Tid,
}

impl Part {
    pub(super) fn push(&mut self, account: FetchedAccount) {
        self.bytes += account.bytes;
        self.accounts.push(account);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Its archives, which lie on the disk until they are stored.
    pub(super) fn accounts(&self) -> &[FetchedAccount] {
        &self.accounts
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Run {
    /// Verifies the repositories of a part, and stores those that are proved. The same repositories are stored once, also
    /// if the process has ended between the two tables.
    pub(super) fn store(&self, part: &Part, runtime: &Handle) -> Result<StoredPart, Failure> {
        let (mut proved, mut stored) = (Vec::new(), StoredPart::default());
        for account in &part.accounts {
            match self.prove(account, runtime) {
                Ok(repository) => proved.push(repository),
                Err(failure) => stored.failures.push(failure),
            }
        }
        let (archived, work) = (proved.iter().map(Proved::archived).collect(), work(&proved));
        runtime.block_on(self.archive.seal_repositories(archived, Some(&work)))?;
        for Proved { account, repository, rev, .. } in &proved {
            stored.stored += 1;
            stored.records += repository.tree().records;
            self.stored.add(account.did.as_str(), *rev);
        }
        Ok(stored)
    }

    /// Proves a repository, under the key that the account has now if the known one does not fit.
    fn prove<'p>(
        &self,
        account: &'p FetchedAccount,
        runtime: &Handle,
    ) -> Result<Proved<'p>, FailedAccount> {
        let mut proved = verify(account, account.key.clone());
        if let Err(Refusal::Repository(rejection)) = &proved
            && matches!(rejection.fault, RepositoryFault::Signature(_))
            && let Some(key) = self.fresh_key(account, runtime)
        {
            proved = verify(account, key);
        }
        proved.map_err(|refusal| FailedAccount {
            did: account.did.to_string(),
            host: Some(account.host.to_string()),
            class: refusal.code().to_owned(),
            message: refusal.to_string(),
            // A host may have been cut off, or lag behind itself.
            is_temporary: true,
        })
    }

    /// The key of the account, if it has another one by now.
    fn fresh_key(&self, account: &FetchedAccount, runtime: &Handle) -> Option<PublicKey> {
        let identity = runtime.block_on(self.identities.get_fresh(account.did.as_did()));
        match identity {
            Ok(Identity::Known { key: Some(key), .. }) if key != account.key => Some(key),
            _ => None,
        }
    }

    /// Hides an account that its server no longer serves.
    pub(super) fn hide(&self, did: &str, status: &str, runtime: &Handle) -> Result<(), Failure> {
        let subject = Subject::Account(did.to_owned());
        runtime.block_on(self.archive.hide(&subject, status, now_micros()))?;
        self.stored.remove(did);
        Ok(())
    }
}

impl Proved<'_> {
    fn archived(&self) -> ArchivedRepository<'_> {
        ArchivedRepository {
            repository: &self.repository,
            key: &self.key,
            host: &self.account.host,
            fetched: self.account.fetched,
        }
    }
}

/// The name of the work of storing these repositories at these revisions.
fn work(proved: &[Proved<'_>]) -> WorkId {
    let mut lines: Vec<String> =
        proved.iter().map(|proved| format!("{} {}\n", proved.account.did, proved.rev)).collect();
    lines.sort();
    let name = Cid::of(Codec::Raw, lines.concat().as_bytes());
    WorkId { writer: format!("backfill-{name}"), number: 0 }
}

/// Why a repository is not stored.
enum Refusal {
    Repository(RepositoryRejection),
    /// The revision is ahead of the clock.
    FutureRev(Tid),
}

impl Refusal {
    fn code(&self) -> &'static str {
        match self {
            Self::Repository(rejection) => rejection.code(),
            Self::FutureRev(_) => "event/future-rev",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository(rejection) => rejection.fmt(f),
            Self::FutureRev(rev) => {
                write!(f, "the repository is at {rev}, which is ahead of the clock")
            }
        }
    }
}

fn verify(account: &FetchedAccount, key: PublicKey) -> Result<Proved<'_>, Refusal> {
    let options = Options::default();
    let repository =
        repository::verify(&account.archive, Some(account.did.as_str()), &key, &options)
            .map_err(Refusal::Repository)?;
    let rev =
        Tid::parse(repository.commit().rev).expect("a repository with another rev is rejected");
    let now = u64::try_from(now_micros()).unwrap_or_default();
    match FutureWindow::new(now, &Policy::default()).admits(rev) {
        true => Ok(Proved { account, key, repository, rev }),
        false => Err(Refusal::FutureRev(rev)),
    }
}

/// Bytes of archives that are stored together: the parts of all lists have room in the pool of the space for archives.
pub(super) fn part_bytes(pool_bytes: u64, lists: usize) -> u64 {
    (pool_bytes / lists.max(1) as u64).clamp(MIN_PART_BYTES, MAX_PART_BYTES)
}

const MIN_PART_BYTES: u64 = 4 << 20;
const MAX_PART_BYTES: u64 = 128 << 20;
