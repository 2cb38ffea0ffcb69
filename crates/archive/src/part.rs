//! Archives collections whose repositories were not fetched whole: the commit and the tree nodes that prove them, and their records.
//!
//! A part is no repository: it has tables of its own, so that no reader takes it for one.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use codec::car;
use codec::cid::Codec;
use crypto::PublicKey;
use verify::Verified;
use verify::collections::{CollectionsProof, ProvedRecord};

use crate::archive::Archive;
use crate::collections::Collections;
use crate::delta::Add;
use crate::error::ArchiveError;
use crate::import::JUDGE;
use crate::part_rows::{PartPlace, part_key};
use crate::repository::txns;
use crate::rows::timestamps;
use crate::sealed::{Sealed, WorkId};
use crate::stored_revisions::{NewHeads, StoredRevisions};
use crate::table::{Table, day_of};
use crate::table_file::TableFile;
use crate::table_rows::Key;

/// All records of some collections of a repository, as they were proved, and where they are from.
#[derive(Clone, Copy, Debug)]
pub struct ArchivedPart<'a> {
    /// The proof.
    pub proof: &'a Verified<CollectionsProof<'a>>,
    /// The collections.
    pub collections: &'a Collections,
    /// The key under which it was verified.
    pub key: &'a PublicKey,
    /// The host that served it.
    pub host: &'a str,
    /// The time at which it was fetched, in microseconds since 1970.
    pub fetched: i64,
}

impl Archive {
    /// Stores parts of repositories, each of at most [`MAX_PART_BYTES`](crate::MAX_PART_BYTES), in the tables `parts` and `part_records`;
    /// parts of erased accounts are left out. The same `work`
    /// done again adds nothing; without `work`, every call stores them, and a duplicate revision of the same collections counts once.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal_parts(
        &self,
        parts: Vec<ArchivedPart<'_>>,
        work: Option<&WorkId>,
    ) -> Result<Sealed, ArchiveError> {
        if let Some(work) = work
            && self.has_committed(Table::Parts, work).await?
        {
            return Ok(Sealed::default());
        }
        let parts = self.parts_to_store(parts).await?;
        let parts: Vec<_> = parts.iter().collect();
        let mut sealed = Sealed::default();
        for table in TABLES {
            if let Some(add) = self.write_parts(table, &parts).await? {
                self.commit_repositories(table, add, txns(work), &mut sealed).await?;
            }
        }
        Ok(sealed)
    }

    /// Stores parts as [`seal_parts`](Self::seal_parts), but no revision of which `stored` knows the wanted collections, whoever stores
    /// it meanwhile, as [`seal_new_repositories`](Self::seal_new_repositories).
    ///
    /// # Errors
    /// If the archive cannot be read or written.
    pub async fn seal_new_parts(
        &self,
        parts: Vec<ArchivedPart<'_>>,
        work: &WorkId,
        stored: &StoredRevisions,
    ) -> Result<Sealed, ArchiveError> {
        if self.has_committed(Table::Parts, work).await? {
            return Ok(Sealed::default());
        }
        let parts = self.parts_to_store(parts).await?;
        let mut new: Vec<_> = parts.iter().collect();
        stored.retain_new(self, Table::Parts, &mut new, |part| part.revision()).await?;
        let mut sealed = Sealed::default();
        if let Some(add) = self.write_parts(Table::PartRecords, &new).await? {
            self.commit_repositories(Table::PartRecords, add, txns(Some(work)), &mut sealed)
                .await?;
        }
        let heads = NewHeads { table: Table::Parts, work, stored };
        let write = async |new: &[&ArchivedPart<'_>]| self.write_parts(Table::Parts, new).await;
        self.commit_new(heads, new, |part| part.revision(), write, &mut sealed).await?;
        Ok(sealed)
    }

    /// Writes a file of one of the two tables; `None` without a part.
    async fn write_parts(
        &self,
        table: Table,
        parts: &[&ArchivedPart<'_>],
    ) -> Result<Option<Vec<Add>>, ArchiveError> {
        let Some(fetched) = parts.iter().map(|part| part.fetched).min() else { return Ok(None) };
        let mut file = TableFile::create(self.storage(), table, day_of(fetched))?;
        for part in parts {
            match table {
                Table::PartRecords => write_records(part, &mut file)?,
                _ => file.write(&part_row(part))?,
            }
        }
        Ok(Some(file.finish(self.storage()).await?.into_iter().collect()))
    }

    /// The parts of accounts that are not erased, in table order, each once.
    async fn parts_to_store<'a>(
        &self,
        mut parts: Vec<ArchivedPart<'a>>,
    ) -> Result<Vec<ArchivedPart<'a>>, ArchiveError> {
        let list = self.hide_list().await?;
        list.check_erasure_keys()?;
        parts.retain(|part| !list.is_erased(part.proof.commit().did));
        parts.sort_by_cached_key(ArchivedPart::key);
        parts.dedup_by_key(|part| part.key());
        Ok(parts)
    }
}

impl ArchivedPart<'_> {
    fn revision(&self) -> (&str, &str) {
        let commit = self.proof.commit();
        (commit.did, commit.rev)
    }

    /// The place in the order of the tables.
    fn key(&self) -> Key {
        let commit = self.proof.commit();
        part_key([commit.did, commit.rev, &self.collections.to_string()])
    }

    /// The commit and the nodes, as a CAR.
    fn proof_archive(&self) -> Vec<u8> {
        let written = || -> io::Result<Vec<u8>> {
            let root = self.proof.root();
            let mut writer = car::Writer::new(Vec::new(), &[root])?;
            writer.block(&root, self.proof.commit_block())?;
            for (cid, node) in self.proof.nodes() {
                writer.block(cid, node)?;
            }
            Ok(writer.into_inner())
        };
        written().expect("memory takes all")
    }
}

fn part_row(part: &ArchivedPart<'_>) -> RecordBatch {
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let commit = part.proof.commit();
    let proof = part.proof_archive();
    let records = part.proof.records().len() as i64;
    let columns: Vec<ArrayRef> = vec![
        text(commit.did),
        text(commit.rev),
        text(&part.collections.to_string()),
        text(part.host),
        Arc::new(timestamps(part.fetched)),
        Arc::new(BinaryArray::from(vec![&*proof])),
        Arc::new(Int64Array::from(vec![records])),
        text(&part.key.to_did_key()),
        text(JUDGE),
    ];
    RecordBatch::try_new(Table::Parts.schema(), columns).expect("the columns of the table")
}

fn write_records(part: &ArchivedPart<'_>, file: &mut TableFile) -> Result<(), ArchiveError> {
    let mut columns = PartRecordBuilders::default();
    let (commit, collections) = (part.proof.commit(), part.collections.to_string());
    for record in part.proof.records() {
        columns.push([commit.did, commit.rev, &collections], record);
        if columns.bytes >= GROUP_BYTES {
            file.write(&columns.finish())?;
        }
    }
    file.write(&columns.finish())
}

#[derive(Default)]
struct PartRecordBuilders {
    did: StringBuilder,
    rev: StringBuilder,
    collections: StringBuilder,
    collection: StringBuilder,
    rkey: StringBuilder,
    cid: BinaryBuilder,
    record: BinaryBuilder,
    bytes: usize,
}

impl PartRecordBuilders {
    fn push(&mut self, [did, rev, collections]: PartPlace<'_>, record: &ProvedRecord<'_>) {
        let (collection, rkey) = record.path.split_once('/').unwrap_or((&record.path, ""));
        self.did.append_value(did);
        self.rev.append_value(rev);
        self.collections.append_value(collections);
        self.collection.append_value(collection);
        self.rkey.append_value(rkey);
        let is_usual = record.cid.codec() == Codec::DagCbor;
        self.cid.append_option((!is_usual).then(|| record.cid.as_bytes()));
        self.record.append_value(record.bytes);
        // Short records have the cost of their other columns.
        self.bytes += record.bytes.len() + 64;
    }

    /// The rows so far; later rows start a new batch.
    fn finish(&mut self) -> RecordBatch {
        self.bytes = 0;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.did.finish()),
            Arc::new(self.rev.finish()),
            Arc::new(self.collections.finish()),
            Arc::new(self.collection.finish()),
            Arc::new(self.rkey.finish()),
            Arc::new(self.cid.finish()),
            Arc::new(self.record.finish()),
        ];
        RecordBatch::try_new(Table::PartRecords.schema(), columns)
            .expect("the columns of the table")
    }
}

/// Records first: a part that a reader sees has its records.
const TABLES: [Table; 2] = [Table::PartRecords, Table::Parts];

/// Bytes of records whose rows are built at once.
const GROUP_BYTES: usize = 1 << 20;
