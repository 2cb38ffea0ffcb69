//! A repository that a resync has fetched and verified, or why there is none.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use atproto::mst::canonical::KeyRanges;
use atproto::repo::{Record, Records, RecordsInRanges, RepoError, Repository};
use atproto::syntax::{SyntaxError, Tid};
use crypto::PublicKey;
use verify::repository::RepositoryRejection;
use verify::sync::{FutureWindow, Head};

use super::resync_options::Collections;
use crate::DurationText;
use crate::archive_space::ArchiveFile;
#[cfg(test)]
use crate::archive_space::{ArchiveSpace, ArchiveWriter};
use crate::http::HttpFault;
use crate::identity::IdentityError;
use crate::xrpc::{FetchError, SliceError, XrpcFault};

/// A fetched and verified repository. Its archive counts among [those in use](super::ResyncOptions::max_bytes_in_use) until this value is
/// dropped: a program that keeps many leaves no space for other resyncs.
#[derive(Debug)]
pub struct ResyncedRepo {
    /// The account.
    pub did: Box<str>,
    /// Its commit, from which later events continue.
    pub head: Head,
    /// The key under which it was verified.
    pub key: PublicKey,
    /// The wanted collections, if the archive has only their records; `None` for all records of the account.
    pub collections: Option<Collections>,
    /// The other collections, of which the consumer [has all records](super::ResyncCollections::widen) as of this commit.
    pub base: Option<Collections>,
    /// Why the archive has all records although collections were wanted, if the host's answers were refused.
    pub part_refusal: Option<PartRefusal>,
    /// Number of records in the archive.
    pub records: u64,
    /// Number of [invalid](verify::InvalidRecord) records among them.
    pub invalid_records: u64,
    /// Size of the archive in bytes.
    pub bytes: u64,
    /// The host that served it.
    pub host: Box<str>,
    /// When its fetch began: it has at least the content that the host had then.
    pub began: std::time::Instant,
    pub(super) file: Arc<ArchiveFile>,
}

impl ResyncedRepo {
    /// Checks that the revision is in the window: after one ahead of it, all events would be stale.
    pub(super) fn check_window(&self, window: FutureWindow) -> Result<(), ResyncError> {
        let rev = self.head.rev;
        if window.admits(rev) {
            return Ok(());
        }
        Err(ResyncError::FutureRev { host: self.host.clone(), rev })
    }

    /// A repository without verification.
    #[cfg(test)]
    pub(super) fn new(did: &str, head: Head) -> io::Result<Self> {
        let space = futures_util::FutureExt::now_or_never(
            ArchiveSpace::new(0, 0).acquire("pds.test", None),
        );
        let writer = ArchiveWriter::new(tempfile::tempfile()?, space.ok_or(io::ErrorKind::Other)?);
        let key =
            PublicKey::from_did_key("did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme");
        Ok(Self {
            did: did.into(),
            head,
            key: key.map_err(io::Error::other)?,
            collections: None,
            base: None,
            part_refusal: None,
            records: 0,
            invalid_records: 0,
            bytes: 0,
            host: "pds.test".into(),
            began: std::time::Instant::now(),
            file: writer.finish()?.into(),
        })
    }

    /// The records of the archive, in the order of their paths: they replace the records that a consumer has of the account, or of its
    /// [collections](Self::collections). `repository` is read from [the file](Self::file).
    ///
    /// # Errors
    /// If a node is missing or breaks a rule: never in an archive that a resync has verified.
    pub fn records<'r, 'a>(
        &self,
        repository: &'r Repository<'a>,
    ) -> Result<ResyncedRecords<'r, 'a>, RepoError> {
        Ok(match &self.collections {
            None => ResyncedRecords::Whole(repository.records().into()),
            Some(collections) => {
                let ranges = KeyRanges::of_collections(collections.iter());
                ResyncedRecords::Part(repository.records_in(ranges)?)
            }
        })
    }

    /// The file of the archive. A record can be [invalid](verify::InvalidRecord), unless the options are strict about records.
    ///
    /// The file has no name: nothing is left of it when this value is dropped or the process is killed. Rewind it
    /// before you read it.
    ///
    /// ```no_run
    /// # fn store(_: &str, _: wireproof::codec::Cid, _: &[u8]) {}
    /// # fn replace(
    /// #     resynced: &wireproof::net::firehose::ResyncedRepo,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::{Read, Seek};
    ///
    /// use wireproof::atproto::repo::Repository;
    /// use wireproof::codec::car;
    ///
    /// let (mut file, mut archive) = (resynced.file(), Vec::new());
    /// file.rewind()?;
    /// file.read_to_end(&mut archive)?;
    /// let repository = Repository::read(&archive, &car::Options::default())?;
    /// for record in resynced.records(&repository)? {
    ///     let record = record?;
    ///     store(&record.path, record.cid, record.block);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn file(&self) -> &File {
        self.file.file()
    }
}

/// The records of a resynced repository: [`ResyncedRepo::records`].
#[derive(Debug)]
pub enum ResyncedRecords<'r, 'a> {
    /// All records.
    Whole(Box<Records<'r, 'a>>),
    /// The records of its collections.
    Part(RecordsInRanges<'r, 'a>),
}

impl<'a> Iterator for ResyncedRecords<'_, 'a> {
    type Item = Result<Record<'a>, RepoError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Whole(records) => records.next(),
            Self::Part(records) => records.next(),
        }
    }
}

/// Why a host's answers to the requests for some collections were refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartRefusal {
    /// A request was refused, or an answer breaks a rule.
    #[error(transparent)]
    Fetch(SliceError),
    /// The answers do not prove the collections.
    #[error(transparent)]
    Proof(Box<RepositoryRejection>),
}

impl PartRefusal {
    /// The stable code of the broken rule; `None` if a request was refused.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Fetch(error) => error.code(),
            Self::Proof(rejection) => Some(rejection.code()),
        }
    }
}

/// The result of resyncing an account.
pub(super) type ResyncResult = Result<Arc<ResyncedRepo>, ResyncError>;

/// Why a repository was not fetched, or was rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResyncError {
    /// The account is not a valid DID.
    #[error("not a DID: {0}")]
    InvalidDid(SyntaxError),
    /// The DID document could not be resolved.
    #[error(transparent)]
    Identity(Box<IdentityError>),
    /// The DID document names no host.
    #[error("the account's DID document names no host")]
    NoHost,
    /// The DID document has no usable key.
    #[error("the account's DID document has no usable key")]
    NoKey,
    /// The host did not serve the repository.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The repository was rejected.
    #[error("{host}: {rejection}")]
    Rejected {
        /// The host.
        host: Box<str>,
        /// The reason.
        rejection: Box<RepositoryRejection>,
    },
    /// The repository is older than the known state.
    #[error("{host}: the repository is at {rev}, but {known} is known")]
    Outdated {
        /// The host.
        host: Box<str>,
        /// The revision of the repository.
        rev: Tid,
        /// The known revision.
        known: Tid,
    },
    /// The revision of the repository is further ahead of the clock than the policy allows.
    #[error("{host}: the repository is at {rev}, which is ahead of the clock")]
    FutureRev {
        /// The host.
        host: Box<str>,
        /// The revision of the repository.
        rev: Tid,
    },
    /// The account backs off after earlier attempts.
    #[error("resynced a short time ago: retry in {text}", text = DurationText(*.0))]
    TooSoon(Duration),
    /// The queue of accounts is full.
    #[error("too many accounts are desynchronized")]
    QueueFull,
    /// The archive could not be written.
    #[error("cannot write the archive: {0}")]
    File(#[from] io::Error),
    /// The verification panicked: a bug of this crate.
    #[error("the verification of the repository panicked")]
    Panicked,
}

impl ResyncError {
    /// Whether it says that there is nothing to fetch.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            Self::InvalidDid(_) => true,
            Self::Fetch(FetchError::Remote(error)) => match &error.fault {
                XrpcFault::Named(named) => named.name.account_status().is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether another attempt may succeed.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Identity(error) => error.is_outage(),
            // A slow host is asked again after the backoff of the account.
            Self::Fetch(FetchError::Remote(error)) => match &error.fault {
                XrpcFault::Http(
                    HttpFault::TooSlow(_) | HttpFault::Idle(_) | HttpFault::Timeout(_),
                ) => false,
                _ => error.is_retryable(),
            },
            // A host may lag behind its own stream, or have been cut off.
            Self::Rejected { .. } | Self::Outdated { .. } => true,
            _ => false,
        }
    }
}
