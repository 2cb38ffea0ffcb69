//! The trees of the repositories in the table `records`, in its order.

use arrow_array::Array;
use atproto::mst::{Builder, Tree};
use codec::cid::Codec;
use codec::{AnyCid, Cid};
use kernels::sha256;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::repository_rows::RecordColumns;
use crate::scan::Scan;
use crate::table_rows::{Row, place};
use crate::table_scan::Selection;

/// The records of a revision, as a tree.
pub(crate) struct RecordTree {
    pub(crate) did: Box<str>,
    pub(crate) rev: Box<str>,
    /// Number of rows.
    pub(crate) records: i64,
    /// The tree, or why there is none.
    pub(crate) tree: Result<Tree, String>,
}

impl RecordTree {
    pub(crate) fn place(&self) -> (&str, &str) {
        (&self.did, &self.rev)
    }
}

/// The repositories of the table `records`, one after the other.
pub(crate) struct RecordTrees {
    records: Scan<RecordColumns>,
    /// The first record of the next repository.
    next: Option<Row<RecordColumns>>,
}

impl RecordTrees {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        Ok(Self { records: archive.scan(selection).await?, next: None })
    }

    /// The tree of a revision; `None` if it is not there, or before one that was asked for.
    pub(crate) async fn at(&mut self, did: &str, rev: &str) -> Result<Option<Tree>, ArchiveError> {
        if self.next.as_ref().is_some_and(|row| row.revision() < (did, rev)) {
            self.next = None;
        }
        if self.next.is_none() {
            self.records.skip_to(&place(did, rev)).await?;
            self.next = self.records.next().await?;
        }
        match &self.next {
            Some(row) if row.revision() == (did, rev) => {}
            _ => return Ok(None),
        }
        Ok(self.build_next().await?.and_then(|built| built.tree.ok()))
    }

    /// Builds the tree of the next repository. The same revision in two files is one: its records follow in two runs, of
    /// which the second one is left out.
    pub(crate) async fn build_next(&mut self) -> Result<Option<RecordTree>, ArchiveError> {
        let first = match self.next.take() {
            Some(row) => row,
            None => match self.records.next().await? {
                Some(row) => row,
                None => return Ok(None),
            },
        };
        let mut tree = Growing::new();
        let mut chunk = vec![first.clone()];
        while let Some(row) = self.records.next().await? {
            if first.revision() != row.revision() {
                self.next = Some(row);
                break;
            }
            chunk.push(row);
            if chunk.len() == CHUNK_RECORDS {
                tree.add(&chunk);
                chunk.clear();
            }
        }
        tree.add(&chunk);
        let (did, rev) = first.revision();
        let did = did.into();
        let rev = rev.into();
        let records = tree.records;
        Ok(Some(RecordTree { did, rev, records, tree: tree.finish() }))
    }
}

/// A tree that grows by records in order.
struct Growing {
    builder: Builder,
    records: i64,
    fault: Option<String>,
    /// The file of the first record.
    file: Option<String>,
}

impl Growing {
    fn new() -> Self {
        Self { builder: Builder::new(), records: 0, fault: None, file: None }
    }

    fn add(&mut self, rows: &[Row<RecordColumns>]) {
        let blocks: Vec<&[u8]> =
            rows.iter().map(|row| row.columns().record.value(row.index())).collect();
        for (row, digest) in rows.iter().zip(sha256::digest_many(&blocks)) {
            let (columns, index) = (row.columns(), row.index());
            let file = self.file.get_or_insert_with(|| row.place().0.to_owned());
            if row.place().0 != file {
                continue;
            }
            let key = format!("{}/{}", columns.collection.value(index), columns.rkey.value(index));
            let stored = columns.cid.is_valid(index).then(|| columns.cid.value(index));
            self.records += 1;
            let inserted = match record_cid(stored, &digest) {
                None => Err("the record does not match its CID".to_owned()),
                Some(value) => match self.builder.insert(key.as_bytes(), AnyCid::from(value)) {
                    Ok(None) => Ok(()),
                    Ok(Some(_)) => Err("the path is there twice".to_owned()),
                    Err(error) => Err(error.to_string()),
                },
            };
            if let Err(fault) = inserted {
                self.fault.get_or_insert_with(|| format!("{key}: {fault}"));
            }
        }
    }

    fn finish(self) -> Result<Tree, String> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.builder.finish()),
        }
    }
}

/// The CID of a record with this hash. One that is stored has another codec; `None` if it has another hash.
pub(crate) fn record_cid(stored: Option<&[u8]>, digest: &sha256::Digest) -> Option<Cid> {
    match stored {
        None => Some(Cid::from_digest(Codec::DagCbor, digest)),
        Some(stored) => Cid::from_bytes(stored).filter(|cid| cid.digest() == digest),
    }
}

/// Records that are hashed together.
const CHUNK_RECORDS: usize = 256;
