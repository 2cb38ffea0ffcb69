//! The trees of the repositories in the table `records`, in its order.

use arrow_array::Array;
use atproto::mst::{Builder, Tree};
use codec::{AnyCid, Cid};
use kernels::sha256;

use crate::archive::Archive;
use crate::chain::{ChainCommit, ChainFault, Chains, record_cid};
use crate::error::ArchiveError;
use crate::repository_rows::RecordColumns;
use crate::scan::Scan;
use crate::table_rows::{RowRange, place};
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
    /// The first records of the next repository.
    next: Option<RowRange<RecordColumns>>,
}

impl RecordTrees {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        Ok(Self { records: archive.scan(selection).await?, next: None })
    }

    /// The tree of a revision; `None` if it is not there, before one that was asked for, or without a tree.
    pub(crate) async fn tree_at(
        &mut self,
        did: &str,
        rev: &str,
    ) -> Result<Option<Tree>, ArchiveError> {
        Ok(self.at(did, rev).await?.and_then(|built| built.tree.ok()))
    }

    /// The root of the tree that a commit leaves.
    pub(crate) async fn apply(
        &mut self,
        chains: &mut Chains,
        commit: ChainCommit<'_>,
    ) -> Result<Result<Cid, ChainFault>, ArchiveError> {
        let base = match chains.base_of(&commit) {
            Some(rev) => self.tree_at(commit.did, rev).await?,
            None => None,
        };
        Ok(chains.apply(commit, base))
    }

    /// The records of a revision; `None` if it is not there, or before one that was asked for.
    pub(crate) async fn at(
        &mut self,
        did: &str,
        rev: &str,
    ) -> Result<Option<RecordTree>, ArchiveError> {
        let is_before = |rows: &RowRange<_>| rows.revision().is_none_or(|next| next < (did, rev));
        if self.next.as_ref().is_none_or(is_before) {
            self.records.skip_to(&place(did, rev)).await?;
            self.next = self.records.next_of_place().await?;
        }
        let is_here = |rows: &mut RowRange<_>| rows.revision() == Some((did, rev));
        match self.next.take_if(is_here) {
            Some(first) => Ok(Some(self.build((did, rev), first).await?)),
            None => Ok(None),
        }
    }

    /// Builds the tree of a revision with these first records. The same revision in two files is one: its records follow in two
    /// runs, of which the second one is left out.
    async fn build(
        &mut self,
        (did, rev): (&str, &str),
        first: RowRange<RecordColumns>,
    ) -> Result<RecordTree, ArchiveError> {
        let mut tree = GrowingTree::new();
        tree.add(first);
        while let Some(rows) = self.records.next_of_place().await? {
            if rows.revision() != Some((did, rev)) {
                self.next = Some(rows);
                break;
            }
            tree.add(rows);
        }
        tree.insert_waiting();
        let records = tree.records;
        Ok(RecordTree { did: did.into(), rev: rev.into(), records, tree: tree.finish() })
    }
}

/// A tree that grows by records in order.
struct GrowingTree {
    builder: Builder,
    records: i64,
    fault: Option<String>,
    /// The file of the first record.
    file: Option<String>,
    /// Records that are to be hashed together, and their number.
    waiting: Vec<RowRange<RecordColumns>>,
    waiting_records: usize,
}

impl GrowingTree {
    fn new() -> Self {
        Self {
            builder: Builder::new(),
            records: 0,
            fault: None,
            file: None,
            waiting: Vec::new(),
            waiting_records: 0,
        }
    }

    fn add(&mut self, rows: RowRange<RecordColumns>) {
        self.waiting_records += rows.range().len();
        self.waiting.push(rows);
        if self.waiting_records >= CHUNK_RECORDS {
            self.insert_waiting();
        }
    }

    fn insert_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_records = 0;
        let records = waiting
            .iter()
            .flat_map(|rows| rows.range().map(|index| rows.columns().record.value(index)));
        let records: Vec<&[u8]> = records.collect();
        let rows = waiting.iter().flat_map(|rows| rows.range().map(move |index| (rows, index)));
        let mut key = String::new();
        for ((rows, index), digest) in rows.zip(sha256::digest_many(&records)) {
            let file = self.file.get_or_insert_with(|| rows.file(index).to_owned());
            if rows.file(index) != file {
                continue;
            }
            let columns = rows.columns();
            key.clear();
            key.push_str(columns.collection.value(index));
            key.push('/');
            key.push_str(columns.rkey.value(index));
            let stored = columns.cid.is_valid(index).then(|| columns.cid.value(index));
            self.records += 1;
            if let Err(fault) = self.insert(&key, stored, &digest) {
                self.fault.get_or_insert_with(|| format!("{key}: {fault}"));
            }
        }
    }

    fn insert(
        &mut self,
        key: &str,
        stored: Option<&[u8]>,
        digest: &sha256::Digest,
    ) -> Result<(), String> {
        let value = record_cid(stored, digest).ok_or("the record does not match its CID")?;
        match self.builder.insert(key.as_bytes(), AnyCid::from(value)) {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err("the path is there twice".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn finish(self) -> Result<Tree, String> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.builder.finish()),
        }
    }
}

/// Records that are hashed together.
const CHUNK_RECORDS: usize = 256;
