//! Tree nodes built by hand from leaves.

use codec::Cid;
use codec::cid::Codec;

use super::archive::{Item, Section, map};
use crate::tree::shared_prefix_len;

/// A record and its key.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) key: String,
    pub(crate) record: Vec<u8>,
    /// The codec in the record's CID.
    pub(crate) codec: Codec,
}

impl Leaf {
    pub(crate) fn cid(&self) -> Cid {
        Cid::of(self.codec, &self.record)
    }

    /// The record's block.
    pub(crate) fn section(&self) -> Section {
        Section { cid: self.cid().as_bytes().to_vec(), data: self.record.clone() }
    }
}

/// A key of a node and the child to its right.
pub(crate) type NodeEntry<'l> = (&'l Leaf, Option<Cid>);

/// A valid node.
pub(crate) fn node(left: Option<Cid>, entries: &[NodeEntry<'_>]) -> Item {
    let mut previous = "";
    let mut items = Vec::new();
    for (leaf, right) in entries {
        let prefix = shared_prefix_len(previous, &leaf.key);
        items.push(map([
            ("k", Item::Bytes(leaf.key.as_bytes()[prefix..].to_vec())),
            ("p", Item::Int(prefix as i64)),
            ("t", Item::link_or_null(right.as_ref())),
            ("v", Item::link(&leaf.cid())),
        ]));
        previous = &leaf.key;
    }
    map([("e", Item::Array(items)), ("l", Item::link_or_null(left.as_ref()))])
}
