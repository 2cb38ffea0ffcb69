//! Archives whole repositories, as their records in the order of the tree: the tree is built again from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use atproto::repo::Record;
use codec::Cid;
use codec::cid::Codec;
use crypto::PublicKey;
use verify::Verified;
use verify::repository::WholeRepository;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed};
use crate::error::{ArchiveError, ArchiveFault};
use crate::import::JUDGE;
use crate::rows::timestamps;
use crate::sealed::{Sealed, WorkId};
use crate::signed_commit::unusual_block;
use crate::stored_revisions::{NewHeads, StoredRevisions};
use crate::table::{Table, day_of};
use crate::table_file::TableFile;

/// A repository that was proved to be whole, and where it is from.
#[derive(Clone, Copy, Debug)]
pub struct ArchivedRepository<'a> {
    /// The repository.
    pub repository: &'a Verified<WholeRepository<'a>>,
    /// The key under which it was verified.
    pub key: &'a PublicKey,
    /// The host that served it.
    pub host: &'a str,
    /// The time at which it was fetched, in microseconds since 1970.
    pub fetched: i64,
}

impl Archive {
    /// Stores repositories in the tables `snapshots` and `records`; repositories of erased accounts are left out. The
    /// same `work` done again adds nothing; without `work`, every call stores them, and a duplicate revision
    /// counts once.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal_repositories(
        &self,
        repositories: Vec<ArchivedRepository<'_>>,
        work: Option<&WorkId>,
    ) -> Result<Sealed, ArchiveError> {
        if let Some(work) = work
            && self.has_committed(Table::Snapshots, work).await?
        {
            return Ok(Sealed::default());
        }
        let repositories = self.sorted(repositories).await?;
        let repositories: Vec<_> = repositories.iter().collect();
        let mut sealed = Sealed::default();
        for table in TABLES {
            if let Some(add) = self.write_repositories(table, &repositories).await? {
                self.commit_repositories(table, add, txns(work), &mut sealed).await?;
            }
        }
        Ok(sealed)
    }

    /// Stores repositories as [`seal_repositories`](Self::seal_repositories), but no revision that the archive has, whoever stores it
    /// meanwhile: a row of `snapshots` is committed only after all other rows were read. Only rows of `records` can then repeat.
    ///
    /// # Errors
    /// If the archive cannot be read or written.
    pub async fn seal_new_repositories(
        &self,
        repositories: Vec<ArchivedRepository<'_>>,
        work: &WorkId,
        stored: &StoredRevisions,
    ) -> Result<Sealed, ArchiveError> {
        if self.has_committed(Table::Snapshots, work).await? {
            return Ok(Sealed::default());
        }
        let repositories = self.sorted(repositories).await?;
        let mut new: Vec<_> = repositories.iter().collect();
        stored.retain_new(self, Table::Snapshots, &mut new, |archived| archived.place()).await?;
        let mut sealed = Sealed::default();
        if let Some(add) = self.write_repositories(Table::Records, &new).await? {
            self.commit_repositories(Table::Records, add, txns(Some(work)), &mut sealed).await?;
        }
        let heads = NewHeads { table: Table::Snapshots, work, stored };
        let write = async |new: &[&ArchivedRepository<'_>]| {
            self.write_repositories(Table::Snapshots, new).await
        };
        self.commit_new(heads, new, |archived| archived.place(), write, &mut sealed).await?;
        Ok(sealed)
    }

    /// Stores repositories that are works of their own in files that they share. For a repository that was stored
    /// before, as a whole or only its records, the missing rows are added.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn import_repositories(
        &self,
        repositories: Vec<(ArchivedRepository<'_>, WorkId)>,
    ) -> Result<Sealed, ArchiveError> {
        let works: BTreeMap<(&str, &str), Vec<&WorkId>> =
            repositories.iter().fold(BTreeMap::new(), |mut works, (archived, work)| {
                works.entry(archived.place()).or_insert_with(Vec::new).push(work);
                works
            });
        let archived = repositories.iter().map(|(archived, _)| *archived).collect();
        let repositories = self.sorted(archived).await?;
        let mut sealed = Sealed::default();
        for table in TABLES {
            for attempt in 0.. {
                let mut missing = Vec::new();
                let mut txns = Vec::new();
                let snapshot = self.snapshot(table).await?;
                let is_done = |work: &WorkId| {
                    snapshot.txns.get(&work.writer).is_some_and(|last| *last >= work.number)
                };
                for archived in &repositories {
                    let works = works.get(&archived.place()).into_iter().flatten();
                    let new: Vec<_> = works.clone().filter(|work| !is_done(work)).collect();
                    if new.len() == works.count() {
                        missing.push(archived);
                    }
                    txns.extend(new.iter().map(|work| (work.writer.clone(), work.number)));
                }
                let Some(add) = self.write_repositories(table, &missing).await? else { break };
                if self.commit_repositories(table, add, txns, &mut sealed).await? {
                    break;
                }
                // Another process stores one of them.
                if attempt == MAX_ATTEMPTS {
                    let fault = ArchiveFault::Contention(attempt);
                    return Err(ArchiveError::new(table.name(), fault));
                }
            }
        }
        Ok(sealed)
    }

    /// The repositories of accounts that are not erased, in table order, without duplicate revisions.
    async fn sorted<'a>(
        &self,
        mut repositories: Vec<ArchivedRepository<'a>>,
    ) -> Result<Vec<ArchivedRepository<'a>>, ArchiveError> {
        let list = self.hide_list().await?;
        list.check_erasure_keys()?;
        repositories.retain(|archived| !list.is_erased(archived.place().0));
        repositories.sort_by(|a, b| a.place().cmp(&b.place()));
        repositories.dedup_by(|a, b| a.place() == b.place());
        Ok(repositories)
    }

    /// Writes a file of one of the two tables; `None` without a repository. The file of records can have no row.
    async fn write_repositories(
        &self,
        table: Table,
        repositories: &[&ArchivedRepository<'_>],
    ) -> Result<Option<Vec<Add>>, ArchiveError> {
        let Some(fetched) = repositories.iter().map(|archived| archived.fetched).min() else {
            return Ok(None);
        };
        let mut file = TableFile::create(self.storage(), table, day_of(fetched))?;
        for archived in repositories {
            match table {
                Table::Records => write_records(archived, &mut file)?,
                _ => file.write(&snapshot_row(archived))?,
            }
        }
        Ok(Some(file.finish(self.storage()).await?.into_iter().collect()))
    }

    /// Commits a file; `false` if one of the works was committed before.
    pub(crate) async fn commit_repositories(
        &self,
        table: Table,
        add: Vec<Add>,
        txns: Vec<(String, i64)>,
        sealed: &mut Sealed,
    ) -> Result<bool, ArchiveError> {
        let change = Change { operation: "WRITE", add, txns, ..Change::default() };
        let is_new = self.commit(table, &change).await? != Committed::Before;
        if is_new {
            sealed.add_files(&change.add);
        }
        Ok(is_new)
    }
}

/// The transactions of a commit that does this work.
pub(crate) fn txns(work: Option<&WorkId>) -> Vec<(String, i64)> {
    work.map(|work| (work.writer.clone(), work.number)).into_iter().collect()
}

impl ArchivedRepository<'_> {
    fn place(&self) -> (&str, &str) {
        let commit = self.repository.commit();
        (commit.did, commit.rev)
    }
}

fn snapshot_row(archived: &ArchivedRepository<'_>) -> RecordBatch {
    let repository = archived.repository;
    let commit = archived.repository.commit();
    let unusual = unusual_block(commit, repository.commit_block());
    let columns: Vec<ArrayRef> = vec![
        texts(commit.did),
        texts(archived.host),
        Arc::new(timestamps(archived.fetched)),
        texts(commit.rev),
        blobs(Some(commit.sig)),
        blobs(Some(commit.data.as_bytes())),
        blobs(unusual),
        Arc::new(arrow_array::Int64Array::from(vec![repository.tree().records as i64])),
        texts("verified"),
        texts(&archived.key.to_did_key()),
        blobs(None),
        texts(JUDGE),
    ];
    RecordBatch::try_new(Table::Snapshots.schema(), columns).expect("the columns of the table")
}

fn texts(text: &str) -> ArrayRef {
    Arc::new(arrow_array::StringArray::from(vec![text]))
}

fn blobs(bytes: Option<&[u8]>) -> ArrayRef {
    Arc::new(arrow_array::BinaryArray::from(vec![bytes]))
}

fn write_records(
    archived: &ArchivedRepository<'_>,
    file: &mut TableFile,
) -> Result<(), ArchiveError> {
    let (did, rev) = archived.place();
    let mut columns = RecordColumnBuilders::default();
    for record in archived.repository.records() {
        let record = record.map_err(|_| {
            let reason = "a record of a repository that was whole cannot be read";
            ArchiveError::new(did, ArchiveFault::Row { row: columns.rows, reason })
        })?;
        columns.push(did, rev, &record);
        if columns.bytes >= GROUP_BYTES {
            file.write(&columns.finish())?;
        }
    }
    file.write(&columns.finish())
}

#[derive(Default)]
struct RecordColumnBuilders {
    did: StringBuilder,
    rev: StringBuilder,
    collection: StringBuilder,
    rkey: StringBuilder,
    cid: BinaryBuilder,
    record: BinaryBuilder,
    rows: u64,
    bytes: usize,
}

impl RecordColumnBuilders {
    fn push(&mut self, did: &str, rev: &str, record: &Record<'_>) {
        let (collection, rkey) = record.path.split_once('/').unwrap_or((&record.path, ""));
        self.did.append_value(did);
        self.rev.append_value(rev);
        self.collection.append_value(collection);
        self.rkey.append_value(rkey);
        let is_usual = Cid::of(Codec::DagCbor, record.block) == record.cid;
        self.cid.append_option((!is_usual).then(|| record.cid.as_bytes()));
        self.record.append_value(record.block);
        self.rows += 1;
        // Short records have the cost of their other columns.
        self.bytes += record.block.len() + 64;
    }

    /// The rows so far; later rows start a new batch.
    fn finish(&mut self) -> RecordBatch {
        self.bytes = 0;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.did.finish()),
            Arc::new(self.rev.finish()),
            Arc::new(self.collection.finish()),
            Arc::new(self.rkey.finish()),
            Arc::new(self.cid.finish()),
            Arc::new(self.record.finish()),
        ];
        RecordBatch::try_new(Table::Records.schema(), columns).expect("the columns of the table")
    }
}

/// Records first: a snapshot that a reader sees has its records.
const TABLES: [Table; 2] = [Table::Records, Table::Snapshots];

/// Attempts while other processes store the same repositories.
const MAX_ATTEMPTS: u32 = 100;

/// Bytes of records whose rows are built at once.
const GROUP_BYTES: usize = 1 << 20;
