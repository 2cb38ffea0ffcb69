//! Archives whole repositories, as their records in the order of the tree: the tree is built again from them.

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
use crate::delta::Change;
use crate::error::{ArchiveError, ArchiveFault};
use crate::import::JUDGE;
use crate::rows::timestamps;
use crate::seal::{Sealed, WorkId, day_of};
use crate::signed_commit::unusual_block;
use crate::table::Table;
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
    /// Stores repositories in the tables `snapshots` and `records`; those of erased accounts are left out. The same work, done
    /// again, adds nothing; without one they are stored each time, and a revision that is there twice counts once.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal_repositories(
        &self,
        mut repositories: Vec<ArchivedRepository<'_>>,
        work: Option<&WorkId>,
    ) -> Result<Sealed, ArchiveError> {
        if let Some(work) = work
            && self.has_committed(Table::Snapshots, work).await?
        {
            return Ok(Sealed::default());
        }
        let list = self.hide_list().await?;
        list.check_erasure_keys()?;
        repositories.retain(|archived| !list.is_erased(archived.place().0));
        let Some(fetched) = repositories.iter().map(|repository| repository.fetched).min() else {
            return Ok(Sealed::default());
        };
        repositories.sort_by(|a, b| a.place().cmp(&b.place()));
        let create = |table| TableFile::create(self.storage(), table, day_of(fetched));
        let (mut snapshots, mut records) = (create(Table::Snapshots)?, create(Table::Records)?);
        let mut sealed = Sealed::default();
        for repository in &repositories {
            snapshots.write(&snapshot_row(repository))?;
            write_records(repository, &mut records)?;
        }
        // Records first: a snapshot that a reader sees has its records.
        for (table, file) in [(Table::Records, records), (Table::Snapshots, snapshots)] {
            let add = file.finish(self.storage()).await?;
            sealed.files += u64::from(add.is_some());
            sealed.bytes += add.as_ref().map_or(0, |add| add.size);
            let txn = work.map(|work| (work.writer.clone(), work.number));
            let change = Change {
                operation: "WRITE",
                add: add.into_iter().collect(),
                txn,
                ..Change::default()
            };
            self.commit(table, &change).await?;
        }
        Ok(sealed)
    }
}

impl ArchivedRepository<'_> {
    fn place(&self) -> (&str, &str) {
        let commit = self.repository.commit();
        (commit.did, commit.rev)
    }
}

fn snapshot_row(archived: &ArchivedRepository<'_>) -> RecordBatch {
    let (repository, commit) = (archived.repository, archived.repository.commit());
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

    /// The rows so far; those that follow begin anew.
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

/// Bytes of records whose rows are built at once.
const GROUP_BYTES: usize = 1 << 20;
