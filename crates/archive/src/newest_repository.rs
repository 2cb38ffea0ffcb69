//! The newest repository of an account as a whole: the last one in `snapshots`, or the empty one, and the commits after it.

use std::collections::{BTreeMap, HashMap};

use atproto::commit::Commit;
use atproto::event::{self, Decoder, Event};
use atproto::mst::{BlockSource, Tree, canonical};
use bytes::Bytes;
use codec::cid::Codec;
use codec::{Cid, car};
use crypto::PublicKey;
use kernels::sha256;

use crate::archive::Archive;
use crate::chain::{ChainCommit, ChainFault, ChainOp, Chains, ops_of_frame, ops_of_rows};
use crate::error::ArchiveError;
use crate::event::is_verified;
use crate::event_rows::{EventColumns, EventRow};
use crate::prove_compact::OpsOfCommits;
use crate::record_trees::RecordTrees;
use crate::repository_blocks::RepositoryBlocks;
use crate::repository_rows::SnapshotColumns;
use crate::rows::{COMPACT, FULL};
use crate::scan::Scan;
use crate::table_rows::{Key, Row};
use crate::table_scan::Selection;

/// A verified event that may not be in the archive yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaterEvent {
    /// The frame.
    pub frame: Bytes,
    /// The key of the account, as a `did:key`.
    pub key: Option<String>,
}

/// A whole repository: its commit, its tree, and where its records are.
#[derive(Debug)]
pub struct NewestRepository {
    pub(crate) archive: Archive,
    pub(crate) did: String,
    pub(crate) rev: String,
    pub(crate) commit: Cid,
    pub(crate) commit_block: Vec<u8>,
    /// The root of the tree.
    pub(crate) data: Cid,
    pub(crate) nodes: HashMap<Cid, Vec<u8>>,
    /// The revision of the stored repository that has the other records, if there is one.
    pub(crate) base: Option<String>,
    /// The records of later commits, by path.
    pub(crate) records: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// The newest repository of an account; `None` if the archive does not have all of it, or some of it is hidden.
    ///
    /// `later` are verified events of the account that may not be in the archive yet, in order of arrival. Events that the archive
    /// has change nothing. The signature of the newest commit is verified with its key.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn newest_repository(
        &self,
        did: &str,
        later: impl IntoIterator<Item = LaterEvent>,
    ) -> Result<Option<NewestRepository>, ArchiveError> {
        let hidden = self.hide_list().await?;
        if hidden.has_account(did) || hidden.has_records_of(did) {
            return Ok(None);
        }
        let mut growing = GrowingRepository::open(self, did).await?;
        growing.add_stored().await?;
        for event in later {
            growing.add_frame(&event.frame, event.key.as_deref()).await?;
        }
        growing.finish().await
    }

    /// The last repository of an account in `snapshots`.
    pub(crate) async fn last_snapshot(
        &self,
        did: &str,
    ) -> Result<Option<Row<SnapshotColumns>>, ArchiveError> {
        let selection = Selection { did: Some(did.to_owned()), ..Selection::default() };
        let mut snapshots: Scan<SnapshotColumns> = self.scan(&selection).await?;
        let mut last = None;
        while let Some(row) = snapshots.next().await? {
            if row.commit().did == did {
                last = Some(row);
            }
        }
        Ok(last)
    }
}

impl NewestRepository {
    /// The revision.
    pub fn rev(&self) -> &str {
        &self.rev
    }

    /// The CID of the commit.
    pub fn commit(&self) -> &Cid {
        &self.commit
    }

    /// Size in bytes of what is in memory.
    pub fn memory(&self) -> usize {
        let nodes: usize = self.nodes.values().map(|node| node.len() + NODE_OVERHEAD).sum();
        let records: usize =
            self.records.iter().map(|(path, record)| path.len() + record.len()).sum();
        nodes + records
    }

    /// All blocks, a node before what is below it, and records in the order of their paths.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn blocks(&self) -> Result<RepositoryBlocks<'_>, ArchiveError> {
        RepositoryBlocks::open(self).await
    }

    /// A CAR slice, as `com.atproto.sync.getRecord` gives it, that proves that a record is there, or that it is not.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn prove_record(&self, path: &str) -> Result<Vec<u8>, ArchiveError> {
        let found = canonical::search(self.data, self.tree(), path.as_bytes());
        let found = found.map_err(|error| self.damaged(&error))?;
        let mut slice = header(&self.commit);
        push_block(&mut slice, &self.commit, &self.commit_block);
        for (cid, node) in &found.nodes {
            push_block(&mut slice, cid, node);
        }
        if let Some(cid) = found.value.and_then(|value| value.to_cid()) {
            let mut records = self.blocks().await?;
            let record = records.record(path.as_bytes(), &cid).await?;
            push_block(&mut slice, &cid, &record);
        }
        Ok(slice)
    }

    pub(crate) fn tree(&self) -> Nodes<'_> {
        Nodes(&self.nodes)
    }
}

/// The nodes of a tree by CID.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes<'a>(&'a HashMap<Cid, Vec<u8>>);

impl<'a> BlockSource<'a> for Nodes<'a> {
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.0.get(cid).map(Vec::as_slice)
    }
}

/// The header of a CAR with this root.
pub(crate) fn header(root: &Cid) -> Vec<u8> {
    let writer = car::Writer::new(Vec::new(), std::slice::from_ref(root));
    writer.expect("a vector takes every write").into_inner()
}

/// Adds a block to a CAR.
pub(crate) fn push_block(car: &mut Vec<u8>, cid: &Cid, block: &[u8]) {
    car::Writer::append_to(car).block(cid, block).expect("a vector takes every write");
}

/// A repository to which commits are added, as far as they continue it.
struct GrowingRepository<'a> {
    archive: &'a Archive,
    did: &'a str,
    snapshot: Option<Row<SnapshotColumns>>,
    trees: RecordTrees,
    chains: Chains,
    head: Head,
}

/// The newest commit so far.
enum Head {
    /// The stored repository, if there is one.
    Snapshot,
    Commit(LastCommit),
    /// A commit of this revision or an earlier one is missing.
    Gap(String),
}

/// A commit whose tree is that of the chain.
struct LastCommit {
    rev: String,
    block: Vec<u8>,
    data: Cid,
    /// The key of the account.
    key: Option<String>,
    /// The revision from which the chain begins.
    base: Option<String>,
    records: BTreeMap<String, Vec<u8>>,
    /// Size of these records.
    bytes: usize,
}

/// A commit that is to be added.
struct NewCommit<'c> {
    rev: &'c str,
    since: Option<&'c str>,
    key: Option<&'c str>,
    ops: Result<Vec<ChainOp>, ChainFault>,
    /// The paths of the operations, with the records.
    records: Vec<(String, Option<&'c [u8]>)>,
}

impl<'a> GrowingRepository<'a> {
    async fn open(archive: &'a Archive, did: &'a str) -> Result<Self, ArchiveError> {
        let selection = Selection { did: Some(did.to_owned()), ..Selection::default() };
        Ok(Self {
            archive,
            did,
            snapshot: archive.last_snapshot(did).await?,
            trees: RecordTrees::open(archive, &selection).await?,
            chains: Chains::default(),
            head: Head::Snapshot,
        })
    }

    /// Whether a revision is newer than the newest so far.
    fn is_newer(&self, rev: &str) -> bool {
        let snapshot = self.snapshot.as_ref().map(|row| row.commit().rev);
        let head = match &self.head {
            Head::Snapshot => None,
            Head::Commit(LastCommit { rev, .. }) | Head::Gap(rev) => Some(rev.as_str()),
        };
        snapshot.max(head) < Some(rev)
    }

    /// Adds the events in the archive.
    async fn add_stored(&mut self) -> Result<(), ArchiveError> {
        let selection = Selection { did: Some(self.did.to_owned()), ..Selection::default() };
        let mut rows: Scan<EventColumns> = self.archive.scan(&selection).await?;
        let mut ops = OpsOfCommits::open(self.archive, &selection).await?;
        let place = |number| Key { did: Some(self.did.into()), number, text: None };
        rows.skip_to(&place(i64::MIN)).await?;
        let end = place(i64::MAX);
        while let Some(row) = rows.next_before(&end).await? {
            let row = EventRow(row);
            let event = row.event();
            let is_new =
                is_verified(event.verdict) && row.rev().is_some_and(|rev| self.is_newer(rev));
            if !is_new {
                continue;
            }
            match row.form() {
                FULL => self.add_frame(event.frame, event.key).await?,
                COMPACT => self.add_row(&row, &mut ops).await?,
                _ => self.head = Head::Gap(row.rev().unwrap_or_default().to_owned()),
            }
        }
        Ok(())
    }

    async fn add_row(
        &mut self,
        row: &EventRow,
        ops: &mut OpsOfCommits,
    ) -> Result<(), ArchiveError> {
        let Some(commit) = row.commit() else { return Ok(()) };
        let rows = ops.at(commit.did, row.event().arrival).await?;
        let records = rows.iter().map(|op| {
            let (collection, rkey) = op.path();
            (format!("{collection}/{rkey}"), op.record().1)
        });
        let new = NewCommit {
            rev: commit.rev,
            since: row.since(),
            key: row.event().key,
            ops: ops_of_rows(&rows),
            records: records.collect(),
        };
        self.add(new, |data| commit.to_block(data)).await
    }

    /// Adds the event of a frame, if it is a commit that continues the repository.
    async fn add_frame(&mut self, frame: &[u8], key: Option<&str>) -> Result<(), ArchiveError> {
        match Decoder::new(event::Options::default()).decode(frame) {
            Ok(Event::Commit(commit)) if commit.repo == self.did && self.is_newer(commit.rev) => {
                let block =
                    commit.blocks.iter().find(|block| block.cid == commit.commit.as_cid_ref());
                let block = block.map(|block| block.data.to_vec());
                let records = commit
                    .ops
                    .iter()
                    .map(|op| (op.path.to_owned(), op.record.map(|block| block.data)));
                let new = NewCommit {
                    rev: commit.rev,
                    since: commit.since,
                    key,
                    ops: ops_of_frame(&commit),
                    records: records.collect(),
                };
                self.add(new, |_| block).await
            }
            // A repository that was replaced, whose records came with no event.
            Ok(Event::Sync(sync)) if sync.did == self.did && self.is_newer(sync.rev) => {
                self.head = Head::Gap(sync.rev.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds a commit, whose block is asked for with the root of the tree.
    async fn add(
        &mut self,
        new: NewCommit<'_>,
        block: impl FnOnce(Cid) -> Option<Vec<u8>>,
    ) -> Result<(), ArchiveError> {
        let rev = new.rev.to_owned();
        let added = self.try_add(new, block).await?;
        self.head = added.map_or(Head::Gap(rev), Head::Commit);
        Ok(())
    }

    async fn try_add(
        &mut self,
        new: NewCommit<'_>,
        block: impl FnOnce(Cid) -> Option<Vec<u8>>,
    ) -> Result<Option<LastCommit>, ArchiveError> {
        let NewCommit { rev, since, key, ops, records } = new;
        let Ok(ops) = ops else { return Ok(None) };
        let chained = ChainCommit { did: self.did, rev, since, ops };
        let base = match self.chains.base_of(&chained) {
            Some(base) => self.stored_tree(base).await?,
            None => None,
        };
        let Ok(data) = self.chains.apply(chained, base) else { return Ok(None) };
        let Some(block) = block(data) else { return Ok(None) };
        if Commit::parse(&block).map(|commit| commit.data) != Ok(data) {
            return Ok(None);
        }
        let (base, mut changed, mut bytes) = match std::mem::replace(&mut self.head, Head::Snapshot)
        {
            Head::Commit(last) if Some(&*last.rev) == since => {
                (last.base, last.records, last.bytes)
            }
            _ => (since.map(str::to_owned), BTreeMap::new(), 0),
        };
        for (path, record) in records {
            let before = match record {
                Some(record) => {
                    bytes += record.len();
                    changed.insert(path, record.to_vec())
                }
                None => changed.remove(&path),
            };
            bytes -= before.map_or(0, |record| record.len());
        }
        let is_small = bytes <= MAX_CHANGED_BYTES;
        let (rev, key, records) = (rev.to_owned(), key.map(str::to_owned), changed);
        Ok(is_small.then_some(LastCommit { rev, block, data, key, base, records, bytes }))
    }

    /// The tree of a revision in the archive.
    async fn stored_tree(&mut self, rev: &str) -> Result<Option<Tree>, ArchiveError> {
        let stored = self.trees.tree_at(self.did, rev).await?;
        let is_empty = |row: &Row<SnapshotColumns>| row.commit().rev == rev && row.records() == 0;
        let is_empty = self.snapshot.as_ref().is_some_and(is_empty);
        Ok(stored.or_else(|| is_empty.then(Tree::empty)))
    }

    async fn finish(mut self) -> Result<Option<NewestRepository>, ArchiveError> {
        match std::mem::replace(&mut self.head, Head::Snapshot) {
            Head::Gap(_) => Ok(None),
            Head::Commit(last) => {
                let mut chains = std::mem::take(&mut self.chains);
                Ok(chains.tree().and_then(|tree| self.repository(last, tree)))
            }
            Head::Snapshot => self.finish_stored().await,
        }
    }

    /// The repository of the snapshot, to which no commit was added.
    async fn finish_stored(mut self) -> Result<Option<NewestRepository>, ArchiveError> {
        let Some(row) = self.snapshot.clone() else { return Ok(None) };
        let commit = row.commit();
        let Some(mut tree) = self.stored_tree(commit.rev).await? else { return Ok(None) };
        let data = tree.root();
        let Some(block) = commit.to_block(data) else { return Ok(None) };
        let (rev, key) = (commit.rev.to_owned(), Some(row.key().to_owned()));
        let (base, records) = (Some(rev.clone()), BTreeMap::new());
        let last = LastCommit { rev, block, data, key, base, records, bytes: 0 };
        Ok(self.repository(last, &mut tree))
    }

    /// The repository with this commit, if the account has signed it.
    fn repository(&self, last: LastCommit, tree: &mut Tree) -> Option<NewestRepository> {
        let is_signed = last.is_signed(self.did);
        let LastCommit { rev, block, data, base, records, .. } = last;
        is_signed.then(|| NewestRepository {
            archive: self.archive.clone(),
            did: self.did.to_owned(),
            rev,
            commit: Cid::from_digest(Codec::DagCbor, &sha256::digest(&block)),
            commit_block: block,
            data,
            nodes: tree.collect_blocks().into_iter().collect(),
            base,
            records,
        })
    }
}

impl LastCommit {
    /// Whether the block is a commit of this account, revision and tree, with its signature.
    fn is_signed(&self, did: &str) -> bool {
        let key = self.key.as_deref().and_then(|key| PublicKey::from_did_key(key).ok());
        let (Some(key), Ok(commit)) = (key, Commit::parse(&self.block)) else { return false };
        let verdict = key.verify_digest(&commit.signing_bytes().digest(), commit.sig);
        (commit.did, commit.rev, commit.data) == (did, &*self.rev, self.data) && verdict.is_ok()
    }
}

/// The most bytes of records of commits after the stored repository, which are held in memory.
const MAX_CHANGED_BYTES: usize = 256 << 20;

/// Bytes of memory of a node without its block.
const NODE_OVERHEAD: usize = 96;
