//! An account that writes, commit by commit, with any keys and any records.

use codec::Cid;

use super::archive::{Archive, Section};
use super::commit;
use super::event::{Draft, Op};
use super::tree::Leaf;
use crate::account::Account;
use crate::tid::{Tid, datetime};
use crate::tree::{Entry, Tree};

/// An account with a tree, whose next commit is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Author<'s> {
    account: &'s Account,
    tree: Tree,
    /// The newest revision; none before the first commit.
    rev: Option<Tid>,
    seq: i64,
    micros: u64,
}

/// What to do to a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Write<'l> {
    Create(&'l Leaf),
    Update(&'l Leaf),
    Delete(&'l Leaf),
}

impl<'s> Author<'s> {
    /// An account that has nothing yet, and no commit either.
    pub(crate) fn new(account: &'s Account, micros: u64) -> Self {
        Self { account, tree: Tree::new(Vec::new()), rev: None, seq: FIRST_SEQ, micros }
    }

    /// An account that has committed these records, of which nobody was told.
    pub(crate) fn with_records(account: &'s Account, micros: u64, leaves: &[Leaf]) -> Self {
        let entry = |leaf: &Leaf| Entry { key: leaf.key.as_str().into(), value: leaf.cid() };
        let tree = Tree::new(leaves.iter().map(entry).collect());
        let rev = Some(account.tid(micros));
        Self { account, tree, rev, seq: FIRST_SEQ, micros }
    }

    /// Does `writes` and commits them, a second after the last commit.
    pub(crate) fn commit(&mut self, writes: &[Write<'_>]) -> Draft {
        self.commit_at(self.micros + 1_000_000, writes)
    }

    /// Does `writes` and commits them at this time.
    pub(crate) fn commit_at(&mut self, micros: u64, writes: &[Write<'_>]) -> Draft {
        (self.micros, self.seq) = (micros, self.seq + 1);
        let prev_data = self.tree.root();
        let mut sections = Vec::new();
        let ops: Vec<Op> = writes.iter().map(|write| self.write(*write, &mut sections)).collect();
        let settled = self.tree.settle();
        let mut proof = self.tree.covering_proof(ops.iter().map(|op| op.path.as_str()));
        settled.new_nodes.iter().for_each(|node| drop(proof.remove(&node.cid)));
        let new_nodes: Vec<Cid> = settled.new_nodes.iter().map(|node| node.cid).collect();
        let nodes = settled.new_nodes.iter().chain(proof.values());
        sections.extend(nodes.map(|node| Section::of(node.data.clone())));
        let rev = self.account.tid(micros);
        let since = self.rev.replace(rev);
        let did = self.account.did();
        let object = commit::unsigned(did, &rev.to_string(), &settled.root);
        let signed = Section::of(commit::sign(object.clone(), self.account.key()).encode());
        Draft {
            seq: self.seq,
            repo: did.to_owned(),
            rev: rev.to_string(),
            since: since.map(|since| since.to_string()),
            time: datetime(micros),
            ops,
            commit: signed.name(),
            prev_data: Some(prev_data),
            archive: Archive::new([vec![signed], sections].concat()),
            rebase: false,
            too_big: false,
            object,
            new_nodes,
            proof_nodes: proof.into_keys().collect(),
        }
    }

    fn write(&mut self, write: Write<'_>, sections: &mut Vec<Section>) -> Op {
        let (action, leaf, cid) = match write {
            Write::Create(leaf) => ("create", leaf, Some(leaf.cid())),
            Write::Update(leaf) => ("update", leaf, Some(leaf.cid())),
            Write::Delete(leaf) => ("delete", leaf, None),
        };
        let prev = match cid {
            Some(cid) => {
                sections.push(leaf.section());
                self.tree.insert(&leaf.key, cid)
            }
            None => self.tree.remove(&leaf.key),
        };
        Op { action, path: leaf.key.clone(), cid, prev }
    }
}

/// The sequence number before the first.
const FIRST_SEQ: i64 = 26_650_000_000;
