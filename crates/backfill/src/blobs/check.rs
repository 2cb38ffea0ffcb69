//! Compares the blobs that records name with the stored ones.

use archive::{Archive, ArchiveError, BlobFault};
use atproto::syntax::DidBuf;
use codec::Cid;
use program::failure::Failure;

use super::named::named_blobs;
use super::report::{BlobFinding, BlobProblem, BlobSummary};

pub(super) async fn check(
    archive: &Archive,
    accounts: Vec<DidBuf>,
    hashes: bool,
    on_finding: impl FnMut(BlobFinding),
) -> Result<BlobSummary, Failure> {
    let mut check = Check { archive, hashes, summary: BlobSummary::default(), on_finding };
    if !accounts.is_empty() {
        for did in &accounts {
            check.account(did.as_str()).await?;
        }
        return Ok(check.summary);
    }
    let (mut accounts, hidden) = (archive.accounts().await?, archive.hide_list().await?);
    while let Some(did) = accounts.next().await? {
        if !hidden.has_account(&did) {
            check.account(&did).await?;
        }
    }
    Ok(check.summary)
}

struct Check<'a, F> {
    archive: &'a Archive,
    /// Whether stored blobs are hashed again.
    hashes: bool,
    summary: BlobSummary,
    on_finding: F,
}

impl<F: FnMut(BlobFinding)> Check<'_, F> {
    async fn account(&mut self, did: &str) -> Result<(), ArchiveError> {
        self.summary.account_count += 1;
        let Some(named) = named_blobs(self.archive, did).await? else {
            self.summary.unknown_account_count += 1;
            let message = "the archive does not have its whole repository".to_owned();
            (self.on_finding)(BlobFinding::of_account(did, message));
            return Ok(());
        };
        if named.has_more {
            self.summary.missing_count += 1;
            (self.on_finding)(BlobFinding::of_many(did));
        }
        let stored = self.archive.blobs_of(did).await?;
        for (cid, record) in named.records {
            self.summary.blob_count += 1;
            match self.problem(&cid, stored.get(&cid).copied()).await? {
                None => self.summary.present_count += 1,
                Some(problem) => {
                    let is_refusal = problem.is_refusal();
                    self.summary.refused_count += u64::from(is_refusal);
                    self.summary.missing_count += u64::from(!is_refusal);
                    (self.on_finding)(BlobFinding::of_blob(did, &record, &cid, &problem));
                }
            }
        }
        Ok(())
    }

    async fn problem(
        &self,
        cid: &Cid,
        stored: Option<u64>,
    ) -> Result<Option<BlobProblem>, ArchiveError> {
        let Some(stored) = stored else { return Ok(Some(BlobProblem::NotStored)) };
        let size = if self.hashes {
            self.archive.check_blob(cid).await?
        } else {
            self.archive.blob_size(cid).await?.ok_or(BlobFault::Missing)
        };
        Ok(match size {
            Ok(size) if size == stored => None,
            Ok(size) => Some(BlobProblem::OtherSize(size)),
            Err(BlobFault::Missing) => Some(BlobProblem::NotStored),
            Err(BlobFault::OtherBytes) => Some(BlobProblem::OtherBytesStored),
        })
    }
}
