//! What does this write make of that repository, and what proves it?
//!
//! A commit signs the root of the tree. Beside it go the blocks that let somebody who has only the
//! root before check the writes: the nodes that are new, and those that undoing the writes would
//! meet (the covering proof).

use std::collections::BTreeMap;
use std::sync::Arc;

use atproto::event::{Action, Commit, Event, RepoOp};
use codec::car;
use codec::cid::{Cid, Codec};
use kernels::sha256;

use crate::account::Account;
use crate::block::{Block, BlockWriter, Draft};
use crate::keys::SigningKey;
use crate::record::RecordPath;
use crate::tid::{Tid, datetime};
use crate::tree::{Entry, Tree, Visit};

/// An account's repository at some moment.
#[derive(Clone, Debug)]
pub struct Repository {
    account: Account,
    tree: Tree,
    /// The path behind each key of the tree.
    paths: BTreeMap<Arc<str>, RecordPath>,
    /// How often records were updated, for those that were.
    versions: BTreeMap<RecordPath, u64>,
    head: Block,
    rev: Tid,
}

/// What to do to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordWrite {
    /// What to do.
    pub action: Action,
    /// To which record.
    pub path: RecordPath,
}

/// What a commit did to a record.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What was done.
    pub action: Action,
    /// The record's path in the tree.
    pub key: String,
    /// The record now.
    pub cid: Option<Cid>,
    /// The record before.
    pub prev: Option<Cid>,
}

/// A commit, with all that its event needs.
#[derive(Clone, Debug)]
pub struct NewCommit {
    /// The account's DID.
    pub did: String,
    /// The revision.
    pub rev: Tid,
    /// The revision before.
    pub since: Tid,
    /// The tree's root before.
    pub prev_data: Cid,
    /// What was done.
    pub ops: Vec<Operation>,
    /// The commit's name.
    pub commit: Cid,
    /// The blocks in the order in which they go out: new nodes, records, the commit, and what else
    /// the proof needs.
    pub blocks: Vec<Arc<Block>>,
}

impl Repository {
    /// The repository of `account` when it joins.
    pub(crate) fn new(account: Account) -> Self {
        let old = account.old_records();
        let mut entries = Vec::with_capacity(old.len());
        for batch in old.chunks(RECORD_BATCH_LEN) {
            let drafts: Vec<Draft> =
                batch.iter().map(|record| account.write_record(record.path, 0)).collect();
            let data: Vec<&[u8]> = drafts.iter().map(|draft| draft.data.as_slice()).collect();
            let cids = sha256::digest_many(&data);
            entries.extend(batch.iter().zip(&cids).map(|(record, digest)| Entry {
                key: record.key.clone(),
                value: Cid::from_digest(Codec::DagCbor, digest),
            }));
        }
        let tree = Tree::new(entries);
        let rev = account.tid(account.joined_micros());
        let head = sign(&account, rev, tree.root());
        let paths = old.into_iter().map(|record| (record.key, record.path)).collect();
        Self { account, tree, paths, versions: BTreeMap::new(), head, rev }
    }

    /// Whose it is.
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

    /// What stands behind a key of the tree.
    pub fn path(&self, key: &str) -> Option<RecordPath> {
        self.paths.get(key).copied()
    }

    /// Signs with `key` from the next commit on.
    pub fn change_key(&mut self, key: SigningKey) {
        self.account = self.account.clone().with_key(key);
    }

    /// Does `writes` and commits them as of `rev`.
    ///
    /// # Panics
    /// If `rev` is not newer than the last, or a write does not fit: a create where there is a
    /// record, an update or a delete where there is none.
    pub fn commit(&mut self, writes: &[RecordWrite], rev: Tid) -> NewCommit {
        assert!(rev > self.rev, "revisions increase");
        let (since, prev_data) = (self.rev, self.tree.root());
        let mut records = Vec::new();
        let ops: Vec<Operation> =
            writes.iter().map(|write| self.write(*write, &mut records)).collect();
        let settled = self.tree.settle();
        self.head = sign(&self.account, rev, settled.root);
        self.rev = rev;
        // Undoing an update meets no node but those that the update made, if it changed anything.
        let moved = ops.iter().filter(|op| op.action != Action::Update || op.prev == op.cid);
        let mut proof = self.tree.covering_proof(moved.map(|op| op.key.as_str()));
        settled.new_nodes.iter().for_each(|node| drop(proof.remove(&node.cid)));
        let commit = Arc::new(self.head.clone());
        let did = self.account.did().to_owned();
        let mut blocks = settled.new_nodes;
        blocks.extend(records);
        blocks.extend([commit]);
        blocks.extend(proof.into_values());
        NewCommit { did, rev, since, prev_data, ops, commit: self.head.cid, blocks }
    }

    fn write(&mut self, write: RecordWrite, records: &mut Vec<Arc<Block>>) -> Operation {
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
        Operation { action, key, cid, prev }
    }

    /// The whole repository as an archive in streamable order.
    pub fn export_car(&self) -> Vec<u8> {
        let mut car = car::Writer::new(Vec::new(), &[self.head.cid]).expect(MEMORY);
        self.for_each_block(&mut |cid, data| car.block(cid, data).expect(MEMORY));
        car.into_inner()
    }

    /// Calls `visit` for every block in streamable order: the commit, then the tree, each node before
    /// its records and children, which stand in the order of their keys.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(&Cid, &[u8])) {
        visit(&self.head.cid, &self.head.data);
        self.tree.walk(&mut |met| match met {
            Visit::Node(node) => visit(&node.cid, &node.data),
            Visit::Record(entry) => visit(&entry.value, &self.record(&entry.key)),
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
}

impl NewCommit {
    /// The frame of the `#commit` event with this place in the stream.
    pub fn to_frame(&self, seq: i64, time_micros: u64) -> Vec<u8> {
        let ops: Vec<RepoOp<'_>> = self.ops.iter().map(Operation::as_event_op).collect();
        let (rev, since) = (self.rev.to_string(), self.since.to_string());
        let car = self.to_car();
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

    fn to_car(&self) -> Vec<u8> {
        let mut car = car::Writer::new(Vec::new(), &[self.commit]).expect(MEMORY);
        self.blocks.iter().for_each(|block| car.block(&block.cid, &block.data).expect(MEMORY));
        car.into_inner()
    }
}

impl Operation {
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

/// The signed commit object: what is signed is the same map without `sig`.
fn sign(account: &Account, rev: Tid, data: Cid) -> Block {
    let unsigned = commit_object(account.did(), rev, None, data).into_draft();
    let signature = account.key().sign(&unsigned.data);
    commit_object(account.did(), rev, Some(&signature), data).into_block()
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

/// Old records hashed together.
const RECORD_BATCH_LEN: usize = 256;

/// Why writing an archive cannot fail here.
const MEMORY: &str = "writing to memory does not fail";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountHistory;
    use crate::random::Seed;

    #[test]
    fn an_update_that_changes_nothing_is_proved_too() {
        let account =
            Account::new(Seed::new(7, "account"), AccountHistory::Full(300), 1_782_864_000_000_000);
        let mut repository = account.open_repository();
        let mut gates = repository.tree().entries().iter();
        let gate = gates.find(|entry| entry.key.starts_with("app.bsky.feed.threadgate/")).unwrap();
        let path = repository.path(&gate.key).unwrap();
        let rev = repository.account().tid(1_782_864_001_000_000);
        let committed = repository.commit(&[RecordWrite { action: Action::Update, path }], rev);
        assert_eq!(
            (committed.ops[0].cid, committed.prev_data),
            (committed.ops[0].prev, repository.tree().root(),)
        );
        let root = repository.tree().root();
        assert!(committed.blocks.iter().any(|block| block.cid == root));
    }
}
