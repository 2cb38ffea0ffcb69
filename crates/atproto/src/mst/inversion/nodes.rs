//! Nodes that are edited in their bytes: a node is a copy of its block, and a table of its entries' places.
//!
//! ```text
//! block   a2 61 65 80+n   entry …   61 6c link
//! entry   a4 61 6b head suffix   61 70 prefix   61 74 link   61 76 d8 2a 58 25 00 value
//! link    f6, or d8 2a 58 25 00 01 71 12 20 digest
//! ```
//!
//! An edit appends a new copy, made of parts of the last one. Values, and digests of children, are overwritten
//! in place. Only nodes of the usual shape are read, and no node gets more than [`MAX_USUAL_ENTRIES`].

use std::ops::Range;

use codec::Cid;
use codec::cid::Codec;
use kernels::sha256::Digest;

use crate::mst::arena::shared_len;
use crate::mst::{key_heights, node};
use crate::node_shape::{self, MAX_USUAL_ENTRIES};

/// The nodes of many trees, their blocks and their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    entries: Vec<Entry>,
    /// Copies of blocks; copies of earlier versions are unused.
    bytes: Vec<u8>,
    keys: Keys,
}

/// The index of a node.
pub(super) type NodeId = usize;

/// The node between two neighboring keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    None,
    /// A node that was not read.
    Stub,
    Node(NodeId),
}

#[derive(Clone, Debug)]
struct Node {
    /// Its block, in the bytes of all nodes.
    block: Range<usize>,
    /// Its entries, in the entries of all nodes.
    entries: Range<usize>,
    left: Child,
    layer: u8,
    parent: Option<NodeId>,
    bounds: Bounds,
    is_changed: bool,
    /// The digest of a changed node, once it is hashed.
    digest: Digest,
}

/// A key of a node, with the child after it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Bytes from the start of the block.
    at: usize,
    key: KeyId,
    prefix_len: usize,
    right: Child,
}

/// The keys between which the keys of a node must lie; `None` at the edge of the tree.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    prev: Option<KeyId>,
    next: Option<KeyId>,
}

/// The lengths of all tables, to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) nodes: usize,
    pub(super) keys: usize,
    entries: usize,
    bytes: usize,
}

impl Nodes {
    /// Removes all nodes and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.truncate(Mark { nodes: 0, keys: 0, entries: 0, bytes: 0 });
    }

    /// The present lengths.
    pub(super) fn mark(&self) -> Mark {
        let (nodes, keys) = (self.nodes.len(), self.keys.ends.len());
        Mark { nodes, keys, entries: self.entries.len(), bytes: self.bytes.len() }
    }

    /// Removes everything added since `mark`.
    pub(super) fn truncate(&mut self, mark: Mark) {
        self.nodes.truncate(mark.nodes);
        self.entries.truncate(mark.entries);
        self.bytes.truncate(mark.bytes);
        self.keys.truncate(mark.keys);
    }

    /// The size of blocks and keys in bytes.
    pub(super) fn bytes_len(&self) -> usize {
        self.bytes.len() + self.keys.bytes.len()
    }

    /// Whether the keys are in the layers of their hashes. All keys are hashed together.
    pub(super) fn keys_in_layer(&self) -> Vec<bool> {
        let keys: Vec<&[u8]> = (0..self.keys.ends.len()).map(|key| self.keys.get(key)).collect();
        let heights = key_heights(&keys);
        heights.iter().zip(&self.keys.layers).map(|(height, layer)| height == layer).collect()
    }

    /// Reads a root, or the node in a slot of `parent`. `None` if it has an unusual shape, breaks a rule, or is
    /// not allowed there.
    pub(super) fn read(
        &mut self,
        block: &[u8],
        layer: u8,
        place: Option<(NodeId, usize)>,
    ) -> Option<NodeId> {
        let bounds = place.map_or_else(Bounds::default, |(parent, slot)| self.bounds(parent, slot));
        let first = self.entries.len();
        let left = self.read_entries(block, layer)?;
        let entries = first..self.entries.len();
        let is_allowed = match &self.entries[entries.clone()] {
            [] => place.is_some() && layer > 0 && left != Child::None,
            own => {
                let is_leaf = left == Child::None && own.iter().all(|e| e.right == Child::None);
                (layer > 0 || is_leaf) && self.are_between(own, bounds)
            }
        };
        if !is_allowed {
            return None;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(block);
        self.nodes.push(Node {
            block: start..self.bytes.len(),
            entries,
            left,
            layer,
            parent: place.map(|(parent, _)| parent),
            bounds,
            is_changed: false,
            digest: [0; 32],
        });
        let id = self.nodes.len() - 1;
        place.into_iter().for_each(|(parent, slot)| self.set_child(parent, slot, Child::Node(id)));
        Some(id)
    }

    /// Reads the entries of a block; returns the child before them.
    fn read_entries(&mut self, block: &[u8], layer: u8) -> Option<Child> {
        let (len, mut rest) = node_shape::usual_head(block)?;
        let mut prev = 0..0;
        for _ in 0..len {
            let (entry, others) = node_shape::usual_entry(rest)?;
            let at = block.len() - rest.len();
            let right = if entry.right.is_some() { Child::Stub } else { Child::None };
            let key = self.keys.push_after(prev, entry.prefix_len, entry.suffix, layer)?;
            prev = self.keys.range(key);
            self.entries.push(Entry { at, key, prefix_len: entry.prefix_len, right });
            rest = others;
        }
        let left = node_shape::usual_tail(rest)?;
        Some(if left.is_some() { Child::Stub } else { Child::None })
    }

    /// Whether the keys of these entries, which ascend, lie between the bounds.
    fn are_between(&self, entries: &[Entry], bounds: Bounds) -> bool {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return true };
        let key = |id| self.keys.get(id);
        bounds.prev.is_none_or(|prev| key(prev) < key(first.key))
            && bounds.next.is_none_or(|next| key(last.key) < key(next))
    }

    /// The bounds of the child in a slot. A removed key may still be a bound: it is narrower.
    fn bounds(&self, id: NodeId, slot: usize) -> Bounds {
        let (entries, own) = (self.entries(id), self.nodes[id].bounds);
        let prev = slot.checked_sub(1).map(|index| entries[index].key);
        let next = entries.get(slot).map(|entry| entry.key);
        Bounds { prev: prev.or(own.prev), next: next.or(own.next) }
    }

    fn entries(&self, id: NodeId) -> &[Entry] {
        &self.entries[self.nodes[id].entries.clone()]
    }

    /// The number of entries.
    pub(super) fn len(&self, id: NodeId) -> usize {
        self.nodes[id].entries.len()
    }

    pub(super) fn layer(&self, id: NodeId) -> u8 {
        self.nodes[id].layer
    }

    pub(super) fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.nodes[id].parent
    }

    pub(super) fn is_changed(&self, id: NodeId) -> bool {
        self.nodes[id].is_changed
    }

    /// The index of the entry that has a key, or else the slot that the key belongs to.
    pub(super) fn find(&self, id: NodeId, key: &[u8]) -> Result<usize, usize> {
        self.entries(id).binary_search_by(|entry| self.keys.get(entry.key).cmp(key))
    }

    /// The child in a slot: slot 0 is before the first key, slot `i` after key `i - 1`.
    pub(super) fn child(&self, id: NodeId, slot: usize) -> Child {
        match slot.checked_sub(1) {
            Some(index) => self.entries(id)[index].right,
            None => self.nodes[id].left,
        }
    }

    fn set_child(&mut self, id: NodeId, slot: usize, child: Child) {
        let node = &mut self.nodes[id];
        match slot.checked_sub(1) {
            Some(index) => self.entries[node.entries.start + index].right = child,
            None => node.left = child,
        }
    }

    /// The slot of a child that was read.
    pub(super) fn slot_of(&self, id: NodeId, child: NodeId) -> Option<usize> {
        (0..=self.len(id)).find(|slot| self.child(id, *slot) == Child::Node(child))
    }

    /// The block.
    pub(super) fn block(&self, id: NodeId) -> &[u8] {
        &self.bytes[self.nodes[id].block.clone()]
    }

    /// The CID in the link of a slot that has a child.
    pub(super) fn link_cid(&self, id: NodeId, slot: usize) -> Option<Cid> {
        let link = &self.block(id)[self.link_at(id, slot)..];
        link.get(LINK_HEAD_LEN..)?.first_chunk().map(|d| Cid::from_digest(Codec::DagCbor, d))
    }

    /// The link in a slot, as it is in the block.
    pub(super) fn link(&self, id: NodeId, slot: usize) -> Link {
        let at = self.link_at(id, slot);
        let mut link = NO_LINK;
        link.len = link_len(self.child(id, slot));
        link.bytes[..link.len].copy_from_slice(&self.block(id)[at..at + link.len]);
        link
    }

    /// The value of an entry: the CID of its record.
    pub(super) fn value(&self, id: NodeId, index: usize) -> &[u8] {
        let at = self.value_at(&self.entries(id)[index]);
        &self.block(id)[at..at + Cid::LEN]
    }

    /// Replaces the value of an entry.
    pub(super) fn set_value(&mut self, id: NodeId, index: usize, value: &[u8; Cid::LEN]) {
        let at = self.nodes[id].block.start + self.value_at(&self.entries(id)[index]);
        self.bytes[at..at + Cid::LEN].copy_from_slice(value);
    }

    /// Sets the digest of a changed node.
    pub(super) fn set_digest(&mut self, id: NodeId, digest: &Digest) {
        self.nodes[id].digest = *digest;
    }

    /// The CID of a changed node that is hashed.
    pub(super) fn cid(&self, id: NodeId) -> Cid {
        Cid::from_digest(Codec::DagCbor, &self.nodes[id].digest)
    }

    /// Writes the digests of changed children into the block.
    pub(super) fn update_links(&mut self, id: NodeId) {
        for slot in 0..=self.len(id) {
            if let Child::Node(child) = self.child(id, slot)
                && self.is_changed(child)
            {
                let at = self.nodes[id].block.start + self.link_at(id, slot) + LINK_HEAD_LEN;
                self.bytes[at..at + 32].copy_from_slice(&self.nodes[child].digest);
            }
        }
    }

    /// Marks a node as changed, and all nodes above it.
    pub(super) fn mark_changed(&mut self, id: NodeId) {
        let mut next = Some(id);
        while let Some(id) = next.filter(|id| !self.nodes[*id].is_changed) {
            self.nodes[id].is_changed = true;
            next = self.nodes[id].parent;
        }
    }

    /// Marks a node as one that is in no tree any more.
    pub(super) fn drop_node(&mut self, id: NodeId) {
        self.nodes[id].is_changed = false;
    }

    /// Removes an entry and the child after it.
    pub(super) fn remove_entry(&mut self, id: NodeId, index: usize) {
        let (entries, all) = (self.entries(id), self.nodes[id].entries.clone());
        let removed = entries[index];
        // The next key shares with the one before the prefix that both share with the removed one.
        let (end, longer) = match entries.get(index + 1) {
            Some(next) if next.prefix_len > removed.prefix_len => {
                (self.key_end(next), Some((next.key, removed.prefix_len)))
            }
            Some(next) => (next.at, None),
            None => (self.entries_end(id), None),
        };
        self.splice(id, removed.at..end, |out, keys| {
            if let Some((key, prefix_len)) = longer {
                node::write_key(out, prefix_len, &keys.get(key)[prefix_len..]);
            }
        });
        if let Some((_, prefix_len)) = longer {
            let next = &mut self.entries[all.start + index + 1];
            (next.at, next.prefix_len) = (removed.at, prefix_len);
        }
        self.entries.copy_within(all.start + index + 1..all.end, all.start + index);
        self.nodes[id].entries.end -= 1;
        self.write_len(id);
    }

    /// Inserts an entry without a child in a slot without one. `None` if there is no room.
    pub(super) fn insert_entry(
        &mut self,
        id: NodeId,
        slot: usize,
        key: &[u8],
        value: &[u8; Cid::LEN],
    ) -> Option<()> {
        if self.len(id) == MAX_USUAL_ENTRIES {
            return None;
        }
        let key = self.keys.push_after(0..0, 0, key, self.nodes[id].layer)?;
        let entries = self.entries(id);
        let shared_with = |other: &Entry| shared_len(self.keys.get(other.key), self.keys.get(key));
        let prev = slot.checked_sub(1).map(|index| &entries[index]);
        let prefix_len = prev.map_or(0, shared_with);
        let next = entries.get(slot).map(|next| (*next, shared_with(next)));
        let at = next.map_or_else(|| self.entries_end(id), |(next, _)| next.at);
        let end = next.map_or(at, |(next, _)| self.key_end(&next));
        self.splice(id, at..end, |out, keys| {
            node::write_key(out, prefix_len, &keys.get(key)[prefix_len..]);
            node::write_null_and_value(out, value);
            if let Some((next, prefix_len)) = next {
                node::write_key(out, prefix_len, &keys.get(next.key)[prefix_len..]);
            }
        });
        let entry = Entry { at, key, prefix_len, right: Child::None };
        let next =
            next.map(|(next, prefix_len)| Entry { at: self.end(&entry), prefix_len, ..next });
        self.replace_entries(
            id,
            slot..slot + usize::from(next.is_some()),
            Some(entry).into_iter().chain(next),
        );
        Some(())
    }

    /// Moves the entries of `right` to the end of `left`, whose last child becomes the one between them. `None` if
    /// there is no room.
    pub(super) fn append(&mut self, left: NodeId, right: NodeId) -> Option<()> {
        let len = self.len(left);
        let Some(first) = self.entries(right).first().copied() else { return Some(()) };
        if len + self.len(right) > MAX_USUAL_ENTRIES {
            return None;
        }
        let last = self.entries(left).last().map(|last| self.keys.get(last.key));
        let prefix_len = last.map_or(0, |last| shared_len(last, self.keys.get(first.key)));
        let (at, from) = (self.entries_end(left), self.key_end(&first));
        let start = self.nodes[right].block.start;
        let rest = start + from..start + self.entries_end(right);
        self.splice(left, at..at, |out, keys| {
            node::write_key(out, prefix_len, &keys.get(first.key)[prefix_len..]);
            out.extend_from_within(rest);
        });
        let first = Entry { at, prefix_len, ..first };
        let to = self.key_end(&first);
        let others: Vec<Entry> = self.entries(right)[1..].to_vec();
        let moved = others.into_iter().map(|entry| Entry { at: entry.at - from + to, ..entry });
        let entries = Some(first).into_iter().chain(moved);
        self.replace_entries(left, len..len, entries);
        self.adopt(left, len);
        self.nodes[left].bounds.next = self.nodes[right].bounds.next;
        Some(())
    }

    /// Makes a node the parent of its children from a slot on.
    fn adopt(&mut self, id: NodeId, from: usize) {
        for slot in from..=self.len(id) {
            if let Child::Node(child) = self.child(id, slot) {
                self.nodes[child].parent = Some(id);
            }
        }
    }

    /// Replaces the link in a slot, and its child.
    pub(super) fn set_link(&mut self, id: NodeId, slot: usize, link: &Link, child: Child) {
        let at = self.link_at(id, slot);
        let old = link_len(self.child(id, slot));
        self.splice(id, at..at + old, |out, _| out.extend_from_slice(&link.bytes[..link.len]));
        self.set_child(id, slot, child);
        if let Child::Node(child) = child {
            self.nodes[child].parent = Some(id);
        }
    }

    /// Replaces a part of the block with the bytes that `write` appends, and moves the entries after it.
    fn splice(&mut self, id: NodeId, cut: Range<usize>, write: impl FnOnce(&mut Vec<u8>, &Keys)) {
        let Self { nodes, entries, bytes, keys } = self;
        let node = &mut nodes[id];
        let (old, start) = (node.block.clone(), bytes.len());
        bytes.extend_from_within(old.start..old.start + cut.start);
        write(bytes, keys);
        let end = bytes.len() - start;
        bytes.extend_from_within(old.start + cut.end..old.end);
        node.block = start..bytes.len();
        let after = entries[node.entries.clone()].iter_mut().filter(|entry| entry.at >= cut.end);
        after.for_each(|entry| entry.at = entry.at - cut.end + end);
    }

    /// Replaces entries of a node in its table, and writes their number into its block.
    fn replace_entries(
        &mut self,
        id: NodeId,
        replaced: Range<usize>,
        with: impl Iterator<Item = Entry>,
    ) {
        let (old, start) = (self.nodes[id].entries.clone(), self.entries.len());
        self.entries.extend_from_within(old.start..old.start + replaced.start);
        self.entries.extend(with);
        self.entries.extend_from_within(old.start + replaced.end..old.end);
        self.nodes[id].entries = start..self.entries.len();
        self.write_len(id);
    }

    fn write_len(&mut self, id: NodeId) {
        let at = self.nodes[id].block.start + LEN_AT;
        self.bytes[at] = ARRAY | self.len(id) as u8;
    }

    /// The end of an entry's key and prefix, where the field of its child begins.
    fn key_end(&self, entry: &Entry) -> usize {
        let suffix_len = self.keys.range(entry.key).len() - entry.prefix_len;
        entry.at + 3 + head_len(suffix_len) + suffix_len + 2 + head_len(entry.prefix_len)
    }

    fn value_at(&self, entry: &Entry) -> usize {
        self.key_end(entry) + 2 + link_len(entry.right) + VALUE_HEAD_LEN
    }

    fn end(&self, entry: &Entry) -> usize {
        self.value_at(entry) + Cid::LEN
    }

    fn entries_end(&self, id: NodeId) -> usize {
        self.link_at(id, 0) - 2
    }

    fn link_at(&self, id: NodeId, slot: usize) -> usize {
        let node = &self.nodes[id];
        match slot.checked_sub(1) {
            Some(index) => self.key_end(&self.entries(id)[index]) + 2,
            None => node.block.len() - link_len(node.left),
        }
    }
}

/// A link to a child, or null, as it is in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    bytes: [u8; LINK_LEN],
    len: usize,
}

/// Null.
pub(super) const NO_LINK: Link = Link { bytes: [0xf6; LINK_LEN], len: 1 };

/// The length of the link to a child.
fn link_len(child: Child) -> usize {
    if child == Child::None { NO_LINK.len } else { LINK_LEN }
}

/// The length of the head of a byte string with this length, or of this integer.
fn head_len(number: usize) -> usize {
    1 + usize::from(number >= 24) + usize::from(number > 255)
}

/// Keys, with the layers that they must have.
#[derive(Clone, Debug, Default)]
struct Keys {
    bytes: Vec<u8>,
    /// Where the keys end.
    ends: Vec<usize>,
    layers: Vec<u8>,
}

/// The index of a key.
type KeyId = usize;

impl Keys {
    fn range(&self, key: KeyId) -> Range<usize> {
        key.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[key]
    }

    fn get(&self, key: KeyId) -> &[u8] {
        &self.bytes[self.range(key)]
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.layers.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Adds the key of the entry after `prev`. `None` if it breaks a rule of nodes. Its length does not: both parts
    /// together are shorter than the longest key.
    #[inline]
    fn push_after(
        &mut self,
        prev: Range<usize>,
        prefix_len: usize,
        suffix: &[u8],
        layer: u8,
    ) -> Option<KeyId> {
        let first = suffix.first()?;
        // The previous key either ends with the prefix, or continues with a lesser byte.
        let is_greater = match self.bytes[prev.clone()].get(prefix_len) {
            Some(other) => other < first,
            None => prefix_len == prev.len(),
        };
        if !is_greater {
            return None;
        }
        self.bytes.extend_from_within(prev.start..prev.start + prefix_len);
        self.bytes.extend_from_slice(suffix);
        self.ends.push(self.bytes.len());
        self.layers.push(layer);
        Some(self.ends.len() - 1)
    }
}

/// Where a block has the number of its entries.
const LEN_AT: usize = 3;

/// The head of an array, without its length.
const ARRAY: u8 = 0x80;

/// `d8 2a 58 25 00 01 71 12 20`, before the digest of a child.
const LINK_HEAD_LEN: usize = 9;

/// The length of a link that is not null.
const LINK_LEN: usize = LINK_HEAD_LEN + 32;

/// `61 76 d8 2a 58 25 00`, before the CID of a record.
const VALUE_HEAD_LEN: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_one_byte_up_to_23_two_up_to_255_and_then_three() {
        assert_eq!([0, 23, 24, 255, 256, 1024].map(head_len), [1, 1, 2, 2, 3, 3]);
    }
}
