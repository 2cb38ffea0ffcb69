//! Repositories: signed commits over a tree of records, and the blocks that prove the commits.
//!
//! A commit signs the root of the tree. Its event contains the blocks with which a reader that has only
//! the previous root checks the operations: the new nodes, and the nodes on the paths that undoing the
//! operations visits (the covering proof).

use std::collections::BTreeMap;
use std::sync::Arc;

use atproto::event::{Action, Commit, Event, RepoOp};
use atproto::syntax::Tid;
use codec::car;
use codec::cid::{Cid, Codec};
use kernels::sha256;

use crate::account::Account;
use crate::block::{Block, BlockWriter, IN_MEMORY, UnhashedBlock, archive};
use crate::keys::SigningKey;
#[cfg(feature = "servers")]
use crate::record::Collection;
use crate::record::RecordPath;
use crate::time::datetime;
use crate::tree::{Tree, TreeEntry, TreeItem};

/// The repository of an account at one revision.
#[derive(Clone, Debug)]
pub struct Repository {
    account: Account,
    tree: Tree,
    /// The paths by key of the tree.
    paths: BTreeMap<Arc<str>, RecordPath>,
    /// The numbers of updates of the records that were updated.
    versions: BTreeMap<RecordPath, u64>,
    head: Block,
    rev: Tid,
}

/// One write of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordWrite {
    /// Create, update or delete.
    pub action: Action,
    /// The record.
    pub path: RecordPath,
}

/// One operation of a commit, as its event reports it.
#[derive(Clone, Debug)]
pub struct RecordOp {
    /// Create, update or delete.
    pub action: Action,
    /// The key of the record in the tree.
    pub key: String,
    /// The record after the commit; `None` for a delete.
    pub cid: Option<Cid>,
    /// The record before the commit; `None` for a create.
    pub prev: Option<Cid>,
}

/// A commit and everything that its event carries.
#[derive(Clone, Debug)]
pub struct NewCommit {
    /// The account's DID.
    pub did: String,
    /// The revision.
    pub rev: Tid,
    /// The previous revision.
    pub since: Tid,
    /// The previous root of the tree.
    pub prev_data: Cid,
    /// The root of the tree.
    pub data: Cid,
    /// The operations.
    pub ops: Vec<RecordOp>,
    /// The CID of the commit.
    pub commit: Cid,
    /// The blocks in the order of the event: new nodes, records, the commit, and the rest of the
    /// covering proof.
    pub blocks: Vec<Arc<Block>>,
}

impl Repository {
    /// The repository of `account` at the time it joins.
    pub(crate) fn new(account: Account) -> Self {
        let initial = account.initial_records();
        let mut entries = Vec::with_capacity(initial.len());
        for batch in initial.chunks(RECORD_BATCH_LEN) {
            let blocks: Vec<UnhashedBlock> =
                batch.iter().map(|record| account.write_record(record.path, 0)).collect();
            let data: Vec<&[u8]> = blocks.iter().map(|block| block.data.as_slice()).collect();
            let cids = sha256::digest_many(&data);
            entries.extend(batch.iter().zip(&cids).map(|(record, digest)| TreeEntry {
                key: record.key.clone(),
                value: Cid::from_digest(Codec::DagCbor, digest),
            }));
        }
        let tree = Tree::new(entries);
        let rev = account.tid(account.joined_micros());
        let head = sign(account.did(), account.key(), rev, tree.root());
        let paths = initial.into_iter().map(|record| (record.key, record.path)).collect();
        Self { account, tree, paths, versions: BTreeMap::new(), head, rev }
    }

    /// The account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The tree of its records.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The newest commit.
    pub fn head(&self) -> &Block {
        &self.head
    }

    /// The newest revision.
    pub fn rev(&self) -> Tid {
        self.rev
    }

    /// The path of a key of the tree.
    pub fn path(&self, key: &str) -> Option<RecordPath> {
        self.paths.get(key).copied()
    }

    /// Signs with `key` from the next commit on.
    pub fn change_key(&mut self, key: SigningKey) {
        self.account = self.account.clone().with_key(key);
    }

    /// Applies `writes` and signs the result as revision `rev`.
    ///
    /// # Panics
    /// If `rev` is not later than the last, a create is of an existing record, or an update or a delete
    /// is of a record that does not exist.
    pub fn commit(&mut self, writes: &[RecordWrite], rev: Tid) -> NewCommit {
        assert!(rev > self.rev, "a revision is later than the last");
        let (since, prev_data) = (self.rev, self.tree.root());
        let mut records = Vec::new();
        let ops: Vec<RecordOp> =
            writes.iter().map(|write| self.apply(*write, &mut records)).collect();
        let rehashed = self.tree.rehash();
        self.head = sign(self.account.did(), self.account.key(), rev, rehashed.root);
        self.rev = rev;
        // Undoing an update visits only nodes that the update created.
        let moved = ops.iter().filter(|op| op.action != Action::Update);
        let mut proof = self.tree.covering_proof(moved.map(|op| op.key.as_str()));
        rehashed.new_nodes.iter().for_each(|node| drop(proof.remove(&node.cid)));
        let commit = Arc::new(self.head.clone());
        let did = self.account.did().to_owned();
        let mut blocks = rehashed.new_nodes;
        blocks.extend(records);
        blocks.extend([commit]);
        blocks.extend(proof.into_values());
        let data = rehashed.root;
        NewCommit { did, rev, since, prev_data, data, ops, commit: self.head.cid, blocks }
    }

    /// Commits the creation of a like at this time.
    #[cfg(feature = "servers")]
    pub(crate) fn commit_like(&mut self, micros: u64) -> NewCommit {
        let tid = self.account.tid(micros);
        let path = RecordPath { collection: Collection::Like, tid };
        self.commit(&[RecordWrite { action: Action::Create, path }], tid)
    }

    fn apply(&mut self, write: RecordWrite, records: &mut Vec<Arc<Block>>) -> RecordOp {
        let RecordWrite { action, path } = write;
        let key = path.to_key();
        let (cid, prev) = match action {
            Action::Delete => {
                self.paths.remove(key.as_str());
                (None, self.tree.remove(&key))
            }
            Action::Create | Action::Update => {
                let version = self.versions.get(&path).copied().unwrap_or(0);
                let version = version + u64::from(action == Action::Update);
                let record = self.account.write_record(path, version).into_block();
                let cid = record.cid;
                records.push(Arc::new(record));
                if version > 0 {
                    self.versions.insert(path, version);
                }
                self.paths.insert(key.as_str().into(), path);
                (Some(cid), self.tree.insert(&key, cid))
            }
        };
        assert_eq!(prev.is_none(), action == Action::Create, "{} of {key}", action.as_str());
        assert_ne!(prev, cid, "{} of {key} changes the record", action.as_str());
        RecordOp { action, key, cid, prev }
    }

    /// The repository as a CAR archive in streamable order.
    pub fn export_car(&self) -> Vec<u8> {
        let mut car = car::Writer::new(Vec::new(), &[self.head.cid]).expect(IN_MEMORY);
        self.for_each_block(&mut |cid, data| car.block(cid, data).expect(IN_MEMORY));
        car.into_inner()
    }

    /// Calls `visit` for every block in streamable order: the commit, then the tree, every node before
    /// its records and children, which follow in key order.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(&Cid, &[u8])) {
        visit(&self.head.cid, &self.head.data);
        self.tree.walk(&mut |item| match item {
            TreeItem::Node(node) => visit(&node.cid, &node.data),
            TreeItem::Record(entry) => visit(&entry.value, &self.record(&entry.key)),
        });
    }

    /// The bytes of the record at a key of the tree.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn record(&self, key: &str) -> Vec<u8> {
        let path = self.paths[key];
        let version = self.versions.get(&path).copied().unwrap_or(0);
        self.account.write_record(path, version).data
    }

    /// The content of a blob that one of the records names, of an account that has blobs.
    pub fn blob(&self, cid: &Cid) -> Option<Vec<u8>> {
        self.blobs().find(|(of, _)| of == cid).map(|(_, content)| content)
    }

    /// The blobs that the records name, of an account that has blobs, with their contents.
    pub fn blobs(&self) -> impl Iterator<Item = (Cid, Vec<u8>)> {
        let contents = self.paths.values().flat_map(|path| {
            let version = self.versions.get(path).copied().unwrap_or(0);
            self.account.write_blobs(*path, version).1
        });
        contents.map(|content| (Cid::of(Codec::Raw, &content), content))
    }
}

impl NewCommit {
    /// The frame of the `#commit` event with this sequence number and time.
    pub fn to_frame(&self, seq: i64, time_micros: u64) -> Vec<u8> {
        let ops: Vec<RepoOp<'_>> = self.ops.iter().map(RecordOp::as_event_op).collect();
        let (rev, since) = (self.rev.to_string(), self.since.to_string());
        let blocks = self.blocks.iter().map(|block| (&block.cid, &block.data[..]));
        let car = archive(&[self.commit], blocks);
        let event = Event::Commit(Commit {
            seq,
            repo: &self.did,
            commit: self.commit,
            rev: &rev,
            since: Some(&since),
            car: &car,
            root: None,
            blocks: &[],
            ops: &ops,
            prev_data: Some(self.prev_data),
            time: &datetime(time_micros),
            blobs: Some(&[]),
            rebase: Some(false),
            too_big: Some(false),
        });
        event.to_frame()
    }
}

impl RecordOp {
    fn as_event_op(&self) -> RepoOp<'_> {
        RepoOp {
            action: self.action,
            path: &self.key,
            cid: self.cid.as_ref().map(Cid::as_cid_ref),
            prev: self.prev.as_ref().map(Cid::as_cid_ref),
            record: None,
        }
    }
}

/// The signed commit object; the signature is over the same map without `sig`.
pub(crate) fn sign(did: &str, key: &SigningKey, rev: Tid, data: Cid) -> Block {
    let unsigned = commit_object(did, rev, None, data).into_unhashed();
    let signature = key.sign(&unsigned.data);
    commit_object(did, rev, Some(&signature), data).into_block()
}

/// An archive that proves the record at `key`, or its absence.
pub(crate) fn record_proof(
    head: &Block,
    tree: &Tree,
    key: &str,
    record: Option<(Cid, Vec<u8>)>,
) -> Vec<u8> {
    let proof = tree.covering_proof([key]);
    let nodes = proof.iter().map(|(cid, node)| (cid, node.data.as_slice()));
    let record = record.iter().map(|(cid, data)| (cid, data.as_slice()));
    archive(&[head.cid], [(&head.cid, &head.data[..])].into_iter().chain(nodes).chain(record))
}

fn commit_object(did: &str, rev: Tid, signature: Option<&[u8; 64]>, data: Cid) -> BlockWriter {
    let mut out = BlockWriter::new();
    out.map(5 + usize::from(signature.is_some()));
    out.text("did").text(did).text("rev").text(&rev.to_string());
    if let Some(signature) = signature {
        out.text("sig").bytes(signature);
    }
    out.text("data").link(data.as_cid_ref()).text("prev").null().text("version").integer(3);
    out
}

/// Initial records hashed in one batch.
const RECORD_BATCH_LEN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountHistory;
    use crate::random::Seed;
    use crate::time::START_MICROS;

    #[test]
    fn every_update_changes_its_record_whatever_its_collection() {
        let account =
            Account::new(Seed::new(7, "account"), AccountHistory::Full(300), START_MICROS);
        let mut repository = account.open_repository();
        let mut paths: BTreeMap<Collection, RecordPath> = BTreeMap::new();
        for entry in repository.tree().entries() {
            let path = repository.path(&entry.key).unwrap();
            paths.insert(path.collection, path);
        }
        assert!(paths.contains_key(&Collection::Threadgate));
        for (at, path) in paths.values().chain(paths.values()).enumerate() {
            let rev = repository.account().tid(START_MICROS + 1_000_000 * (at as u64 + 1));
            let write = RecordWrite { action: Action::Update, path: *path };
            let committed = repository.commit(&[write], rev);
            assert_ne!(committed.ops[0].cid, committed.ops[0].prev, "{path:?}");
            assert_ne!(repository.tree().root(), committed.prev_data, "{path:?}");
        }
    }
}
