//! The blocks of a whole repository, in the order of its tree.

use std::collections::HashSet;

use atproto::mst::canonical::{Step, Walk};
use atproto::mst::{TreeError, TreeLimits};
use codec::Cid;
use kernels::sha256;

use crate::error::{ArchiveError, ArchiveFault};
use crate::newest_repository::{NewestRepository, Nodes, header, push_block};
use crate::repository_rows::RecordColumns;
use crate::scan::Scan;
use crate::table_rows::place;
use crate::table_scan::Selection;

/// The blocks of a [`NewestRepository`].
pub struct RepositoryBlocks<'r> {
    repository: &'r NewestRepository,
    walk: Walk<'r, Nodes<'r>>,
    stored: StoredRecords<'r>,
    /// The records that came already: equal records are one block.
    seen: HashSet<Cid>,
    is_begun: bool,
}

impl std::fmt::Debug for RepositoryBlocks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RepositoryBlocks")
            .field("did", &self.repository.did)
            .finish_non_exhaustive()
    }
}

impl<'r> RepositoryBlocks<'r> {
    pub(crate) async fn open(repository: &'r NewestRepository) -> Result<Self, ArchiveError> {
        Ok(Self {
            repository,
            walk: Walk::new(repository.data, repository.tree(), &TreeLimits::default()),
            stored: StoredRecords::open(repository).await?,
            seen: HashSet::new(),
            is_begun: false,
        })
    }

    /// The next part of a CAR, of some blocks; `None` at the end.
    ///
    /// # Errors
    /// If the archive cannot be read, or a record is not as it was stored.
    pub async fn next_part(&mut self) -> Result<Option<Vec<u8>>, ArchiveError> {
        let mut part = Vec::new();
        if !std::mem::replace(&mut self.is_begun, true) {
            part = header(&self.repository.commit);
            push_block(&mut part, &self.repository.commit, &self.repository.commit_block);
        }
        while part.len() < PART_BYTES {
            let Some((cid, block)) = self.next_block(None).await? else { break };
            push_block(&mut part, &cid, &block);
        }
        Ok((!part.is_empty()).then_some(part))
    }

    /// A CAR of these blocks, in the order of the tree; `None` if the repository lacks one.
    ///
    /// # Errors
    /// As [`next_part`](Self::next_part).
    pub async fn select(mut self, wanted: &HashSet<Cid>) -> Result<Option<Vec<u8>>, ArchiveError> {
        let mut car = header(&self.repository.commit);
        let mut left = wanted.len();
        if wanted.contains(&self.repository.commit) {
            push_block(&mut car, &self.repository.commit, &self.repository.commit_block);
            left -= 1;
        }
        while left > 0 {
            let Some((cid, block)) = self.next_block(Some(wanted)).await? else { return Ok(None) };
            push_block(&mut car, &cid, &block);
            left -= 1;
        }
        Ok(Some(car))
    }

    /// The path and the bytes of the next record; `None` at the end.
    ///
    /// # Errors
    /// As [`next_part`](Self::next_part).
    pub async fn next_record(&mut self) -> Result<Option<(String, Vec<u8>)>, ArchiveError> {
        loop {
            let Some(step) = self.walk.next() else { return Ok(None) };
            if let Step::Record { key, value } =
                step.map_err(|error| self.repository.damaged(&error))?
            {
                let cid = value.to_cid().ok_or_else(|| self.repository.damaged(&NO_CID))?;
                let path = String::from_utf8_lossy(key).into_owned();
                return Ok(Some((path, self.stored.record(key, &cid).await?)));
            }
        }
    }

    /// The next block, of the wanted ones if some are.
    async fn next_block(
        &mut self,
        wanted: Option<&HashSet<Cid>>,
    ) -> Result<Option<(Cid, Vec<u8>)>, ArchiveError> {
        let is_wanted = |cid: &Cid| wanted.is_none_or(|wanted| wanted.contains(cid));
        loop {
            let damaged = |error: TreeError| self.repository.damaged(&error);
            let Some(step) = self.walk.next() else { return Ok(None) };
            match step.map_err(damaged)? {
                Step::Node { cid, block } if is_wanted(&cid) => {
                    return Ok(Some((cid, block.to_vec())));
                }
                Step::Node { .. } => {}
                Step::Record { key, value } => {
                    let cid = value.to_cid().ok_or_else(|| self.repository.damaged(&NO_CID))?;
                    if is_wanted(&cid) && self.seen.insert(cid) {
                        let record = self.stored.record(key, &cid).await?;
                        return Ok(Some((cid, record)));
                    }
                }
            }
        }
    }

    /// The record at a path, which must not be before one that was asked for.
    pub(crate) async fn record(&mut self, key: &[u8], cid: &Cid) -> Result<Vec<u8>, ArchiveError> {
        self.stored.record(key, cid).await
    }
}

impl NewestRepository {
    pub(crate) fn damaged(&self, fault: &dyn std::fmt::Display) -> ArchiveError {
        ArchiveError::new(&self.did, ArchiveFault::Repository(fault.to_string()))
    }
}

/// The records of a repository in the order of their paths.
struct StoredRecords<'r> {
    repository: &'r NewestRepository,
    /// The rows of the stored repository, if there is one.
    rows: Option<Scan<RecordColumns>>,
}

impl<'r> StoredRecords<'r> {
    async fn open(repository: &'r NewestRepository) -> Result<Self, ArchiveError> {
        let rows = match &repository.base {
            None => None,
            Some(base) => {
                let did = Some(repository.did.clone());
                let selection = Selection { did, ..Selection::default() };
                let mut rows: Scan<RecordColumns> = repository.archive.scan(&selection).await?;
                rows.skip_to(&place(&repository.did, base)).await?;
                Some(rows)
            }
        };
        Ok(Self { repository, rows })
    }

    /// The record at a path, whose hash is compared.
    async fn record(&mut self, key: &[u8], cid: &Cid) -> Result<Vec<u8>, ArchiveError> {
        let path = str::from_utf8(key).unwrap_or_default();
        let record = match self.repository.records.get(path) {
            Some(record) => Some(record.clone()),
            None => self.stored(path).await?,
        };
        record
            .filter(|record| sha256::digest(record) == *cid.digest())
            .ok_or_else(|| self.repository.damaged(&format!("the record {path} is missing")))
    }

    async fn stored(&mut self, path: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let (Some(rows), Some(base)) = (&mut self.rows, &self.repository.base) else {
            return Ok(None);
        };
        while let Some(row) = rows.next().await? {
            if row.revision() != (&*self.repository.did, &**base) {
                return Ok(None);
            }
            let (collection, rkey) = row.path();
            if path.split_once('/') == Some((collection, rkey)) {
                return Ok(Some(row.bytes().to_vec()));
            }
        }
        Ok(None)
    }
}

const NO_CID: &str = "a record has no CID of the protocol";

/// Size in bytes from which a part is not longer.
const PART_BYTES: usize = 64 << 10;
