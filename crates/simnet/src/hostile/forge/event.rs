//! Events as their sender pleases.

use codec::Cid;

use super::archive::{Archive, Section};
use super::commit;
use super::item::{Item, map};
use crate::keys::SigningKey;

/// A `#commit` that can be changed before it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
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
    /// The nodes that this commit made, and those that only prove it.
    pub(crate) new_nodes: Vec<Cid>,
    pub(crate) proof_nodes: Vec<Cid>,
}

/// An operation of a [`Draft`].
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) action: &'static str,
    pub(crate) path: String,
    pub(crate) cid: Option<Cid>,
    pub(crate) prev: Option<Cid>,
}

impl Draft {
    /// Signs the commit object anew when `change` has been at it, and carries it through.
    pub(crate) fn resign(&mut self, key: &SigningKey, change: impl FnOnce(&mut Item)) {
        change(&mut self.object);
        self.replace_commit(commit::sign(self.object.clone(), key));
    }

    /// Changes the signed object, so that the signature is over something else.
    pub(crate) fn tamper(&mut self, key: &SigningKey, change: impl FnOnce(&mut Item)) {
        let mut signed = commit::sign(self.object.clone(), key);
        change(&mut signed);
        self.replace_commit(signed);
    }

    /// Puts these blocks in the place of the nodes, the first of them for the root, and signs that:
    /// hashes and signature are right.
    pub(crate) fn replace_tree(&mut self, key: &SigningKey, nodes: Vec<Section>) {
        for node in self.new_nodes.drain(..).chain(self.proof_nodes.drain(..)) {
            self.archive.remove(&node);
        }
        self.new_nodes = nodes.iter().map(Section::name).collect();
        self.archive.sections.extend(nodes);
        let data = self.new_nodes[0];
        self.resign(key, |object| object.set("data", Item::link(&data)));
    }

    fn replace_commit(&mut self, signed: Item) {
        let section = Section::of(signed.encode());
        let old = std::mem::replace(&mut self.commit, section.name());
        *self.archive.section(&old) = section;
        self.archive.set_root(&self.commit);
    }

    /// The event as one item.
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

    /// The `#sync` that tells of the same commit.
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
