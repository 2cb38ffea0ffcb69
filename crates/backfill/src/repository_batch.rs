//! Batches of a page: fetched repositories, and parts, are verified and stored together.

use std::fmt;

use archive::{ArchivedPart, ArchivedRepository, Collections, FailedAccount, Subject, WorkId};
use atproto::commit::Commit;
use atproto::syntax::Tid;
use codec::cid::{Cid, Codec};
use crypto::PublicKey;
use tokio::runtime::Handle;
use verify::collections::CollectionsProof;
use verify::repository::{self, Options, RepositoryFault, RepositoryRejection, WholeRepository};
use verify::sync::{FutureWindow, Policy};
use verify::{Verified, collections, record};

use crate::account::FetchedAccount;
use crate::backfill_run::BackfillRun;
use crate::identities::Identity;
use program::clock::now_micros;
use program::failure::Failure;

/// Fetched repositories that wait to be stored.
#[derive(Default)]
pub(crate) struct RepositoryBatch {
    accounts: Vec<FetchedAccount>,
    bytes: u64,
}

/// The stored repositories of a batch.
#[derive(Debug, Default)]
pub(crate) struct StoredBatch {
    pub(crate) stored: u64,
    pub(crate) records: u64,
    /// The repositories that were refused.
    pub(crate) failures: Vec<FailedAccount>,
}

/// A repository that is proved, with the account whose it is.
struct Proved<'p> {
    account: &'p FetchedAccount,
    key: PublicKey,
    content: Content<'p>,
    rev: Tid,
}

/// The proved records of an account: all, or some collections.
enum Content<'p> {
    Whole(Box<Verified<WholeRepository<'p>>>),
    Part(Box<Verified<CollectionsProof<'p>>>, &'p Collections),
}

impl RepositoryBatch {
    pub(crate) fn push(&mut self, account: FetchedAccount) {
        self.bytes += account.bytes;
        self.accounts.push(account);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Its archives, which lie on the disk until they are stored.
    pub(crate) fn accounts(&self) -> &[FetchedAccount] {
        &self.accounts
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl BackfillRun {
    /// Verifies the repositories of a batch, and stores the proved ones. A repository is stored once, even if the process ended
    /// between the two tables, or another process stores it at the same time.
    pub(crate) fn store(
        &self,
        batch: &RepositoryBatch,
        runtime: &Handle,
    ) -> Result<StoredBatch, Failure> {
        let mut proved = Vec::new();
        let mut stored = StoredBatch::default();
        for account in &batch.accounts {
            match self.prove(account, runtime) {
                Ok(repository) => proved.push(repository),
                Err(failure) => stored.failures.push(failure),
            }
        }
        let work = work(&proved);
        runtime.block_on(async {
            let repositories = proved.iter().filter_map(Proved::archived).collect();
            self.archive.seal_new_repositories(repositories, &work, &self.stored).await?;
            let parts = proved.iter().filter_map(Proved::archived_part).collect();
            self.archive.seal_new_parts(parts, &work, &self.stored).await
        })?;
        for Proved { account, content, rev, .. } in &proved {
            stored.stored += 1;
            stored.records += content.records();
            self.stored.add(account.did.as_str(), Some(*rev));
        }
        Ok(stored)
    }

    /// Proves a repository, under the key that the account has now if the known one does not fit.
    fn prove<'p>(
        &'p self,
        account: &'p FetchedAccount,
        runtime: &Handle,
    ) -> Result<Proved<'p>, FailedAccount> {
        let parts = self.parts.as_ref().filter(|_| account.is_part);
        let mut proved = verify(account, parts, account.key.clone());
        if let Err(RefusedRepository::Repository(rejection)) = &proved
            && matches!(rejection.fault, RepositoryFault::Signature(_))
            && let Some(key) = self.fresh_key(account, runtime)
        {
            proved = verify(account, parts, key);
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
    pub(crate) fn hide(&self, did: &str, status: &str, runtime: &Handle) -> Result<(), Failure> {
        let subject = Subject::Account(did.to_owned());
        runtime.block_on(self.archive.hide(&subject, status, now_micros()))?;
        self.stored.remove(did);
        Ok(())
    }
}

impl Proved<'_> {
    fn archived(&self) -> Option<ArchivedRepository<'_>> {
        let Content::Whole(repository) = &self.content else { return None };
        let (key, host, fetched) = (&self.key, &*self.account.host, self.account.fetched);
        Some(ArchivedRepository { repository, key, host, fetched })
    }

    fn archived_part(&self) -> Option<ArchivedPart<'_>> {
        let Content::Part(proof, collections) = &self.content else { return None };
        let (key, host, fetched) = (&self.key, &*self.account.host, self.account.fetched);
        Some(ArchivedPart { proof, collections, key, host, fetched })
    }
}

impl<'p> Content<'p> {
    fn commit(&self) -> &Commit<'p> {
        match self {
            Self::Whole(repository) => repository.commit(),
            Self::Part(proof, _) => proof.commit(),
        }
    }

    /// Number of records.
    fn records(&self) -> u64 {
        match self {
            Self::Whole(repository) => repository.tree().records,
            Self::Part(proof, _) => proof.records().len() as u64,
        }
    }

    /// The collections, if these are not all.
    fn collections(&self) -> String {
        match self {
            Self::Whole(_) => String::new(),
            Self::Part(_, collections) => format!(" {collections}"),
        }
    }
}

/// The name of the work of storing these repositories at these revisions.
fn work(proved: &[Proved<'_>]) -> WorkId {
    let line = |Proved { account, content, rev, .. }: &Proved<'_>| {
        format!("{} {rev}{}\n", account.did, content.collections())
    };
    let mut lines: Vec<String> = proved.iter().map(line).collect();
    lines.sort();
    let name = Cid::of(Codec::Raw, lines.concat().as_bytes());
    WorkId { writer: format!("backfill-{name}"), number: 0 }
}

/// Why a repository is not stored.
enum RefusedRepository {
    Repository(RepositoryRejection),
    /// The revision is ahead of the clock.
    FutureRev(Tid),
}

impl RefusedRepository {
    fn code(&self) -> &'static str {
        match self {
            Self::Repository(rejection) => rejection.code(),
            Self::FutureRev(_) => "event/future-rev",
        }
    }
}

impl fmt::Display for RefusedRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository(rejection) => rejection.fmt(f),
            Self::FutureRev(rev) => {
                write!(f, "the repository is at {rev}, which is ahead of the clock")
            }
        }
    }
}

/// Verifies the archive of an account: a part with these collections, or the whole repository.
fn verify<'p>(
    account: &'p FetchedAccount,
    parts: Option<&'p Collections>,
    key: PublicKey,
) -> Result<Proved<'p>, RefusedRepository> {
    let (bytes, did) = (&*account.archive, Some(account.did.as_str()));
    let content = match parts {
        Some(parts) => {
            let options = record::Options::default();
            collections::verify(bytes, parts.patterns(), did, &key, &options)
                .map(|proof| Content::Part(Box::new(proof), parts))
        }
        None => repository::verify(bytes, did, &key, &Options::default())
            .map(|whole| Content::Whole(Box::new(whole))),
    };
    let content = content.map_err(RefusedRepository::Repository)?;
    let rev = Tid::parse(content.commit().rev).expect("a commit with another rev is rejected");
    let now = u64::try_from(now_micros()).unwrap_or_default();
    if FutureWindow::new(now, &Policy::default()).admits(rev) {
        return Ok(Proved { account, key, content, rev });
    }
    Err(RefusedRepository::FutureRev(rev))
}
