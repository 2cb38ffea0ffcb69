//! Checking that a whole tree is the one that its records must have: one walk in key order, with every rule
//! of canonical trees checked.
//!
//! | rule | fault |
//! |---|---|
//! | every key in the layer of its hash, a child one layer below its parent | [`Layer`](TreeFault::Layer), [`SkippedLayer`](TreeFault::SkippedLayer), [`BelowLeaves`](TreeFault::BelowLeaves) |
//! | no empty node except the root of an empty tree | [`EmptyNode`](TreeFault::EmptyNode) |
//! | no root without an entry above a child | [`Untrimmed`](TreeFault::Untrimmed) |
//! | keys increase over the whole walk | [`Order`](TreeFault::Order) |
//! | prefixes whole, no key empty, links of the right kind, the bytes canonical | [`Node`](TreeFault::Node) |
//! | every node present, and reached once | [`Missing`](TreeFault::Missing), [`Repeated`](TreeFault::Repeated) |
//! | limits | [`Limit`](TreeFault::Limit) |
//!
//! A [`Walk`] is a lending iterator: its items are provisional until its end, and the tree is proved when
//! the walk has ended without a fault. It may be continued after a fault: it skips the subtree at fault and
//! continues after it, so that a walk to the end finds all faults. Its nodes come from a [`BlockSource`], whose
//! blocks stay in memory, or as a [`Walker`] from any [`NodeSource`], which may drop a node when the walk has left it.
//!
//! A node is read when it is first reached and rejected when it is reached again, so the cost is linear in
//! the bytes of the blocks, whatever graph they form. There is no recursion; the stack has at most
//! [`MAX_HEIGHT`] + 1 frames.
//!
//! ```
//! use std::collections::BTreeMap;
//! use wireproof::codec::cid::{Cid, Codec};
//! use wireproof::atproto::mst::{TreeLimits, canonical};
//!
//! let empty = b"\xa2\x61e\x80\x61l\xf6";
//! let root = Cid::of(Codec::DagCbor, empty);
//! let blocks = BTreeMap::from([(root, empty.as_slice())]);
//! let summary = canonical::check(root, &blocks, &TreeLimits::default())?;
//! assert_eq!((summary.nodes, summary.records), (1, 0));
//! # Ok::<(), wireproof::atproto::mst::TreeError>(())
//! ```

mod layers;
mod ranges;
mod search;
mod source;
#[cfg(test)]
mod tests;

use std::ops::Range;

use codec::{Cid, CidRef};

pub use ranges::{KeyRanges, RangeOutlook, RangeResult, RangeWalk, search_ranges};
pub use search::{SearchResult, search};
pub use source::{BlockNodes, BlockSet, NodeSource};

use super::node::{Entry, KeyBuffer, Node, reread, scan};
use super::{BlockSource, Limit, MAX_HEIGHT, TreeError, TreeFault, TreeLimits};
use layers::{
    Child, Layer, LayerChecks, LocatedFault, fault_of_empty, key_at, key_offset, layer_of,
    offset_in,
};

/// The size of a walked tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Nodes.
    pub nodes: u64,
    /// Records.
    pub records: u64,
    /// The layer of the root; `None` of a tree without records.
    pub height: Option<u8>,
}

/// Walks a whole tree, to the end or to its first fault.
///
/// # Errors
/// At the first fault, in the order of the walk.
pub fn check<'a>(
    root: Cid,
    source: impl BlockSource<'a>,
    options: &TreeLimits,
) -> Result<Summary, TreeError> {
    let mut walk = Walk::new(root, source, options);
    while let Some(step) = walk.next() {
        step?;
    }
    Ok(walk.summary())
}

/// Walks a whole tree past its faults; returns at most `max_faults` of them, in the order of the walk.
pub fn faults<'a>(
    root: Cid,
    source: impl BlockSource<'a>,
    options: &TreeLimits,
    max_faults: usize,
) -> Vec<TreeError> {
    let mut walk = Walk::new(root, source, options);
    let mut faults = Vec::new();
    while faults.len() < max_faults
        && let Some(step) = walk.next()
    {
        faults.extend(step.err());
    }
    faults
}

/// The key at which a [`TreeError`] points: the key of the entry at `offset` of a node's block.
#[cold]
pub fn key_of(block: &[u8], offset: usize) -> Option<Vec<u8>> {
    key_at(block, offset)
}

/// An item of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'w, B> {
    /// A node, before everything below it.
    Node {
        /// The CID of the node.
        cid: Cid,
        /// The block of the node.
        block: B,
    },
    /// A record, in key order.
    Record {
        /// The key: the record's path.
        key: &'w [u8],
        /// The record's CID.
        value: CidRef<'w>,
    },
}

/// A walk over a whole tree whose blocks are in memory.
pub type Walk<'a, S> = Walker<BlockNodes<'a, S>>;

/// A walk over a whole tree.
#[derive(Clone, Debug)]
pub struct Walker<N: NodeSource> {
    source: N,
    options: TreeLimits,
    /// The nodes from the root to the current one.
    frames: Vec<Frame<N::Block>>,
    /// The keys of the frames' last entries. Buffers of former frames are kept for reuse.
    // frames.len() <= keys.len()
    keys: Vec<KeyBuffer>,
    /// The child to enter next.
    next: Option<Child>,
    /// The last key where the walk left one node for another.
    last_key: Vec<u8>,
    layer_checks: LayerChecks<N::Block>,
    /// Faults that are not yet returned, the last one first.
    faults: Vec<LocatedFault<N::Block>>,
    /// The block of the node of the fault that was returned last.
    faulty: Option<N::Block>,
    summary: Summary,
}

/// A node on the path from the root.
#[derive(Clone, Debug)]
struct Frame<B> {
    cid: Cid,
    block: B,
    layer: Layer,
    /// Bytes from the start of the block to the next entry.
    at: usize,
    /// Number of entries from the next one on.
    entries: usize,
    /// Whether the walk comes from another node, so that the next key must be compared with the last key of
    /// that node. Within a node the scanner has compared them.
    is_edge: bool,
}

impl<'a, S: BlockSource<'a>> Walk<'a, S> {
    /// A walk over the tree of `root`. The blocks may be anywhere in memory.
    pub fn new(root: Cid, source: S, options: &TreeLimits) -> Self {
        Self::in_archive(root, source, &[], options)
    }

    /// A walk over the tree of `root`, whose blocks are in `archive`, a CAR: a visited block then takes one bit.
    pub fn in_archive(root: Cid, source: S, archive: &[u8], options: &TreeLimits) -> Self {
        Self::over(root, BlockNodes::new(source, archive), options)
    }

    /// The blocks, in which a caller finds the records of the walk.
    pub fn blocks(&self) -> &S {
        self.source.blocks()
    }
}

impl<N: NodeSource> Walker<N> {
    /// A walk over the tree of `root`.
    pub fn over(root: Cid, source: N, options: &TreeLimits) -> Self {
        Self {
            source,
            options: *options,
            frames: Vec::new(),
            keys: Vec::new(),
            next: Some(Child { cid: root, layer: Layer::Unknown }),
            last_key: Vec::new(),
            layer_checks: LayerChecks::default(),
            faults: Vec::new(),
            faulty: None,
            summary: Summary::default(),
        }
    }

    /// The size of the tree so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// The block of the node of the fault that was returned last, if it is a node.
    pub fn faulty_node(&self) -> Option<&N::Block> {
        self.faulty.as_ref()
    }

    /// The node that the next step asks the source for, if it asks for one: a step asks for one at most. For a source whose
    /// blocks have to be fetched before.
    pub fn next_node(&self) -> Option<&Cid> {
        let child = self.next.as_ref().filter(|_| self.faults.is_empty())?;
        let is_asked_for = child.layer != Layer::Below
            && self.frames.len() <= MAX_HEIGHT as usize
            && self.summary.nodes < self.options.max_nodes;
        is_asked_for.then_some(&child.cid)
    }

    /// Advances to the next node, record or fault. `None` is the end: if there was no fault, the tree is
    /// canonical and complete.
    #[expect(clippy::should_implement_trait, reason = "an `Iterator` cannot lend")]
    pub fn next(&mut self) -> Option<Result<Step<'_, N::Block>, TreeError>> {
        loop {
            if !self.faults.is_empty() {
                return self.next_fault().map(Err);
            }
            if let Some(child) = self.next.take() {
                match self.enter(child) {
                    Ok(block) => return Some(Ok(Step::Node { cid: child.cid, block })),
                    Err(error) => self.queue(Some(LocatedFault { error, block: None })),
                }
                continue;
            }
            if self.frames.is_empty() {
                self.queue(None);
                return self.next_fault().map(Err);
            }
            match self.advance() {
                None => self.leave(),
                Some(Ok(value)) => return Some(Ok(self.record(value))),
                Some(Err(fault)) => self.queue(Some(fault)),
            }
        }
    }

    #[cold]
    fn next_fault(&mut self) -> Option<TreeError> {
        let LocatedFault { error, block } = self.faults.pop()?;
        self.faulty = block;
        Some(error)
    }

    /// The current record, whose CID is at `value` of the current node.
    #[inline]
    fn record(&self, value: Range<usize>) -> Step<'_, N::Block> {
        let depth = self.frames.len() - 1;
        let key = self.keys[depth].as_bytes();
        let value = CidRef::from_bytes(&self.frames[depth].block[value]);
        Step::Record { key, value: value.expect("checked when the node was read") }
    }

    /// Queues the faults of the pending keys, and then `fault`, which comes after them.
    fn queue(&mut self, fault: Option<LocatedFault<N::Block>>) {
        self.faults.extend(fault);
        self.faults.extend(self.layer_checks.check().drain(..).rev());
    }

    /// Reads the next node.
    fn enter(&mut self, child: Child) -> Result<N::Block, TreeError> {
        if self.layer_checks.is_ready() {
            self.queue(None);
        }
        let reject = |fault| Err(TreeError::at(child.cid, 0, fault));
        if child.layer == Layer::Below {
            return reject(TreeFault::BelowLeaves);
        }
        if self.frames.len() > MAX_HEIGHT as usize {
            return reject(TreeFault::Layer);
        }
        if self.summary.nodes == self.options.max_nodes {
            self.frames.clear();
            return reject(TreeFault::Limit(Limit::Nodes));
        }
        let Some(block) = self.source.node(&child.cid) else {
            return reject(TreeFault::Missing);
        };
        if !self.source.reach(&child.cid, &block) {
            return reject(TreeFault::Repeated);
        }
        let layer = self.layer_of(child, &block)?;
        if let Layer::At(layer) = layer {
            self.layer_checks.begin(child.cid, block.clone(), layer);
        }
        if self.keys.len() == self.frames.len() {
            self.keys.push(KeyBuffer::new());
        }
        let key = &mut self.keys[self.frames.len()];
        let mut children = 0;
        let visit = |key: &KeyBuffer, entry: &Entry<'_>| {
            children += usize::from(entry.right.is_some());
            self.layer_checks.push(key.as_bytes());
        };
        // In a block that is not a node, the layers of the keys that were read do not count.
        let node = scan(&block, key, visit).map_err(|error| TreeError::node(child.cid, error))?;
        key.clear();
        if children > 1 {
            self.source.prefetch(&mut node.entries().filter_map(|entry| entry.right));
        }
        self.next = node.left().map(|cid| Child { cid, layer: layer.below() });
        if node.is_empty()
            && let Some(fault) = fault_of_empty(self.frames.is_empty(), node.left())
        {
            let error = TreeError::at(child.cid, 0, fault);
            self.faults.push(LocatedFault { error, block: None });
        }
        let (at, entries) = (offset_in(&block, node.entry_bytes()), node.len());
        let (cid, frame) = (child.cid, block.clone());
        self.frames.push(Frame { cid, block: frame, layer, at, entries, is_edge: true });
        self.summary.nodes += 1;
        Ok(block)
    }

    /// The layer of the node of `block`.
    #[inline]
    fn layer_of(&mut self, child: Child, block: &[u8]) -> Result<Layer, TreeError> {
        if child.layer != Layer::Unknown {
            return Ok(child.layer);
        }
        let node = Node::parse(block).map_err(|error| TreeError::node(child.cid, error))?;
        let layer = layer_of(child.layer, &node);
        if let Layer::At(height) = layer {
            self.summary.height = Some(height);
        }
        Ok(layer)
    }

    /// Advances to the next entry of the current node; returns the place of its value. `None` after the last.
    #[inline]
    fn advance(&mut self) -> Option<Result<Range<usize>, LocatedFault<N::Block>>> {
        let depth = self.frames.len() - 1;
        let Frame { cid, block, layer, at, entries, is_edge } = &mut self.frames[depth];
        *entries = entries.checked_sub(1)?;
        let (entry, rest) = reread(&block[*at..]);
        *at = block.len() - rest.len();
        let key = self.keys[depth].advance(&entry);
        let is_in_order = !*is_edge || key > self.last_key.as_slice();
        *is_edge = false;
        if let Some(cid) = entry.right {
            self.next = Some(Child { cid, layer: layer.below() });
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        if is_in_order && self.summary.records < self.options.max_records {
            self.summary.records += 1;
            let value = entry.value.as_bytes();
            let start = offset_in(block, value);
            return Some(Ok(start..start + value.len()));
        }
        let fault = if is_in_order { TreeFault::Limit(Limit::Records) } else { TreeFault::Order };
        let error = TreeError::at(*cid, key_offset(block, entry.suffix), fault);
        let block = Some(block.clone());
        if is_in_order {
            self.frames.clear();
            self.next = None;
        }
        Some(Err(LocatedFault { error, block }))
    }

    /// Returns to the parent of a node whose entries are exhausted.
    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        // Otherwise the walk comes from a child, whose last key is greater.
        if !frame.is_edge {
            self.last_key.clear();
            self.last_key.extend_from_slice(self.keys[self.frames.len()].as_bytes());
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.is_edge = true;
        }
    }
}
