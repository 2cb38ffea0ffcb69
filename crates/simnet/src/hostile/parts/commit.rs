//! Commit objects and events that can be changed before or after they are signed, and an author that
//! writes them.

use atproto::syntax::Tid;
use codec::Cid;

use super::archive::{Archive, Item, Section, map};
use super::tree::Leaf;
use crate::account::Account;
use crate::keys::SigningKey;
use crate::time::datetime;
use crate::tree::{Tree, TreeEntry};

/// A commit object without its signature.
pub(crate) fn unsigned(did: &str, rev: &str, data: &Cid) -> Item {
    map([
        ("did", Item::text(did)),
        ("rev", Item::text(rev)),
        ("data", Item::link(data)),
        ("prev", Item::Null),
        ("version", Item::Int(3)),
    ])
}

/// The commit object with its signature.
pub(crate) fn sign(mut object: Item, key: &SigningKey) -> Item {
    let signature = key.sign(&object.encode());
    object.set("sig", Item::Bytes(signature.to_vec()));
    object
}

/// Replaces the signature of a signed object by the result of `change`.
pub(crate) fn change_signature(object: &mut Item, change: impl FnOnce([u8; 64]) -> Vec<u8>) {
    let sig = object.get("sig");
    let Item::Bytes(bytes) = sig else { unreachable!("a signed object has its signature") };
    *sig = Item::Bytes(change(bytes.as_slice().try_into().expect("64 bytes")));
}

/// The ASN.1 DER form of a signature: SEQUENCE { INTEGER r, INTEGER s }.
pub(crate) fn der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(32);
    let body = [der_integer(r), der_integer(s)].concat();
    [&[0x30, body.len() as u8], &body[..]].concat()
}

fn der_integer(number: &[u8]) -> Vec<u8> {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(31);
    let sign: &[u8] = if number[start] < 0x80 { &[] } else { &[0] };
    let digits = [sign, &number[start..]].concat();
    [&[0x02, digits.len() as u8], &digits[..]].concat()
}

/// A `#commit` event that can be changed before it is encoded.
#[derive(Clone, Debug)]
pub(crate) struct CommitEvent {
    pub(crate) seq: i64,
    pub(crate) repo: String,
    pub(crate) rev: String,
    pub(crate) since: Option<String>,
    pub(crate) time: String,
    pub(crate) ops: Vec<Op>,
    pub(crate) commit: Cid,
    pub(crate) prev_data: Option<Cid>,
    pub(crate) archive: Archive,
    pub(crate) rebase: bool,
    pub(crate) too_big: bool,
    /// The commit object before it was signed.
    pub(crate) object: Item,
    /// The nodes that the commit created, and the other nodes of its covering proof.
    pub(crate) new_nodes: Vec<Cid>,
    pub(crate) proof_nodes: Vec<Cid>,
}

/// An operation of a [`CommitEvent`].
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) action: &'static str,
    pub(crate) path: String,
    pub(crate) cid: Option<Cid>,
    pub(crate) prev: Option<Cid>,
}

impl CommitEvent {
    /// Changes the commit object, signs it again and updates the event.
    pub(crate) fn re_sign(&mut self, key: &SigningKey, change: impl FnOnce(&mut Item)) {
        change(&mut self.object);
        self.replace_commit(sign(self.object.clone(), key));
    }

    /// Changes the signed object without signing it again.
    pub(crate) fn tamper(&mut self, key: &SigningKey, change: impl FnOnce(&mut Item)) {
        let mut signed = sign(self.object.clone(), key);
        change(&mut signed);
        self.replace_commit(signed);
    }

    /// Replaces the nodes by these blocks, the first of them as the root, and signs the result: hashes
    /// and signature are valid.
    pub(crate) fn replace_tree(&mut self, key: &SigningKey, nodes: Vec<Section>) {
        for node in self.new_nodes.drain(..).chain(self.proof_nodes.drain(..)) {
            self.archive.remove(&node);
        }
        self.new_nodes = nodes.iter().map(Section::cid).collect();
        self.archive.sections.extend(nodes);
        let data = self.new_nodes[0];
        self.re_sign(key, |object| object.set("data", Item::link(&data)));
    }

    fn replace_commit(&mut self, signed: Item) {
        let section = Section::of(signed.encode());
        let old = std::mem::replace(&mut self.commit, section.cid());
        *self.archive.section(&old) = section;
        self.archive.set_root(&self.commit);
    }

    /// The event as a CBOR item.
    pub(crate) fn to_item(&self) -> Item {
        let mut event = map([
            ("ops", Item::Array(self.ops.iter().map(Op::to_item).collect())),
            ("rev", Item::text(&self.rev)),
            ("seq", Item::Int(self.seq)),
            ("repo", Item::text(&self.repo)),
            ("time", Item::text(&self.time)),
            ("blobs", Item::Array(Vec::new())),
            ("since", self.since.as_deref().map_or(Item::Null, Item::text)),
            ("blocks", Item::Bytes(self.archive.to_bytes())),
            ("commit", Item::link(&self.commit)),
            ("rebase", Item::Bool(self.rebase)),
            ("tooBig", Item::Bool(self.too_big)),
        ]);
        if let Some(prev_data) = &self.prev_data {
            event.set("prevData", Item::link(prev_data));
        }
        event
    }

    pub(crate) fn to_frame(&self) -> Vec<u8> {
        frame("#commit", &self.to_item())
    }

    /// The `#sync` event of the same commit.
    pub(crate) fn to_sync(&self) -> Item {
        let mut archive = self.archive.clone();
        archive.sections.retain(|section| section.cid == self.commit.as_bytes());
        map([
            ("did", Item::text(&self.repo)),
            ("rev", Item::text(&self.rev)),
            ("seq", Item::Int(self.seq)),
            ("time", Item::text(&self.time)),
            ("blocks", Item::Bytes(archive.to_bytes())),
        ])
    }
}

impl Op {
    fn to_item(&self) -> Item {
        let mut op = map([
            ("cid", Item::link_or_null(self.cid.as_ref())),
            ("path", Item::text(&self.path)),
            ("action", Item::text(self.action)),
        ]);
        if let Some(prev) = &self.prev {
            op.set("prev", Item::link(prev));
        }
        op
    }
}

/// The frame of a message.
pub(crate) fn frame(kind: &str, payload: &Item) -> Vec<u8> {
    let header = map([("t", Item::text(kind)), ("op", Item::Int(1))]);
    [header.encode(), payload.encode()].concat()
}

/// An account that writes commit after commit, with any keys and any records.
#[derive(Clone, Debug)]
pub(crate) struct Author<'s> {
    account: &'s Account,
    tree: Tree,
    /// The newest revision; `None` before the first commit.
    rev: Option<Tid>,
    seq: i64,
    micros: u64,
}

/// One write of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Write<'l> {
    Create(&'l Leaf),
    Update(&'l Leaf),
    Delete(&'l Leaf),
}

impl<'s> Author<'s> {
    /// An account without records and commits.
    pub(crate) fn new(account: &'s Account, micros: u64) -> Self {
        Self { account, tree: Tree::new(Vec::new()), rev: None, seq: FIRST_SEQ, micros }
    }

    /// An account that has committed these records before the first event.
    pub(crate) fn with_records(account: &'s Account, micros: u64, leaves: &[Leaf]) -> Self {
        let entry = |leaf: &Leaf| TreeEntry { key: leaf.key.as_str().into(), value: leaf.cid() };
        let tree = Tree::new(leaves.iter().map(entry).collect());
        let rev = Some(account.tid(micros));
        Self { account, tree, rev, seq: FIRST_SEQ, micros }
    }

    /// Commits `writes` a second after the last commit.
    pub(crate) fn commit(&mut self, writes: &[Write<'_>]) -> CommitEvent {
        self.commit_at(self.micros + 1_000_000, writes)
    }

    /// Commits `writes` at this time.
    pub(crate) fn commit_at(&mut self, micros: u64, writes: &[Write<'_>]) -> CommitEvent {
        (self.micros, self.seq) = (micros, self.seq + 1);
        let prev_data = self.tree.root();
        let mut sections = Vec::new();
        let ops: Vec<Op> = writes.iter().map(|write| self.write(*write, &mut sections)).collect();
        let rehashed = self.tree.rehash();
        let mut proof = self.tree.covering_proof(ops.iter().map(|op| op.path.as_str()));
        rehashed.new_nodes.iter().for_each(|node| drop(proof.remove(&node.cid)));
        let new_nodes: Vec<Cid> = rehashed.new_nodes.iter().map(|node| node.cid).collect();
        let nodes = rehashed.new_nodes.iter().chain(proof.values());
        sections.extend(nodes.map(|node| Section::of(node.data.clone())));
        let rev = self.account.tid(micros);
        let since = self.rev.replace(rev);
        let did = self.account.did();
        let object = unsigned(did, &rev.to_string(), &rehashed.root);
        let signed = Section::of(sign(object.clone(), self.account.key()).encode());
        CommitEvent {
            seq: self.seq,
            repo: did.to_owned(),
            rev: rev.to_string(),
            since: since.map(|since| since.to_string()),
            time: datetime(micros),
            ops,
            commit: signed.cid(),
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
