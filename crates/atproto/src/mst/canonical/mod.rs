//! Is this tree, all of it, the one that its records must have? Walked once, in key order, with
//! every rule of canonical trees checked on the way.
//!
//! | rule | fault |
//! |---|---|
//! | every key in the layer of its hash, a child one layer below its parent | [`Layer`], [`SkippedLayer`] |
//! | no empty node but the root of an empty tree | [`EmptyNode`] |
//! | no root without an entry above a child | [`Untrimmed`] |
//! | keys increase over the whole walk | [`Order`] |
//! | prefixes whole, no key empty, links of the right kind, the bytes canonical | [`Node`](TreeFault::Node) |
//! | every node at hand, and reached once | [`Missing`], [`Repeated`] |
//! | bounds | [`Limit`] |
//!
//! A [`Walk`] is an iterator that lends: what it hands over before its end is provisional, and the
//! tree is proved when the walk has ended without a fault. It may be asked on after a fault. It
//! then leaves out what hangs below the fault and goes on beside it, so that asking to the end finds
//! them all.
//!
//! A node is read when it is first reached and refused when it is reached again, so the cost is
//! linear in the bytes of the blocks, whatever graph they make. Nothing recurses; the stack has at
//! most [`MAX_HEIGHT`] + 1 frames.
//!
//! ```
//! use std::collections::BTreeMap;
//! use codec::cid::{Cid, Codec};
//! use wireproof_atproto::mst::{TreeLimits, canonical};
//!
//! let empty = b"\xa2\x61e\x80\x61l\xf6";
//! let root = Cid::of(Codec::DagCbor, empty);
//! let blocks = BTreeMap::from([(root, empty.as_slice())]);
//! let summary = canonical::check(root, &blocks, &TreeLimits::default())?;
//! assert_eq!((summary.nodes, summary.records), (1, 0));
//! # Ok::<(), wireproof_atproto::mst::TreeError>(())
//! ```
//!
//! [`Layer`]: TreeFault::Layer
//! [`SkippedLayer`]: TreeFault::SkippedLayer
//! [`EmptyNode`]: TreeFault::EmptyNode
//! [`Untrimmed`]: TreeFault::Untrimmed
//! [`Order`]: TreeFault::Order
//! [`Missing`]: TreeFault::Missing
//! [`Repeated`]: TreeFault::Repeated
//! [`Limit`]: TreeFault::Limit

mod heights;
mod marks;
mod search;
#[cfg(test)]
mod tests;

use codec::{Cid, CidRef};

pub use marks::BlockSet;
pub use search::{SearchResult, search};

use super::node::{Entries, Entry, KeyBuffer, Node, scan};
use super::{BlockSource, Limit, MAX_HEIGHT, TreeError, TreeFault, TreeLimits, key_height};
use heights::{Heights, key_at, key_offset};

/// What a walk has met.
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

/// Walks a whole tree past its faults, and answers them in the order of the walk, at most
/// `max_faults`.
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

/// The key that a [`TreeError`] is about: that of the entry at `offset` of a node's block.
#[cold]
pub fn key_of(block: &[u8], offset: usize) -> Option<Vec<u8>> {
    key_at(block, offset)
}

/// What a walk comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'w, 'a> {
    /// A node, before everything that is below it.
    Node {
        /// Its name.
        cid: Cid,
        /// Its bytes.
        block: &'a [u8],
    },
    /// A record, in key order.
    Record {
        /// The key: the record's path.
        key: &'w [u8],
        /// The record's name.
        value: CidRef<'a>,
    },
}

/// A walk over a whole tree.
#[derive(Clone, Debug)]
pub struct Walk<'a, S> {
    source: S,
    options: TreeLimits,
    met: BlockSet,
    /// The nodes from the root to where the walk is.
    frames: Vec<Frame<'a>>,
    /// The key of each frame's entry that came last. Buffers of frames that were left stay here, to
    /// be used again.
    // frames.len() <= keys.len()
    keys: Vec<KeyBuffer>,
    /// The child to enter next.
    next: Option<Child>,
    /// The last key where the walk left one node for another.
    last_key: Vec<u8>,
    heights: Heights<'a>,
    /// Found and not yet handed over, the last one first.
    faults: Vec<TreeError>,
    summary: Summary,
}

/// A link that is to be followed.
#[derive(Clone, Copy, Debug)]
struct Child {
    cid: Cid,
    layer: Layer,
}

/// In which layer a node belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// No key was met yet that would tell: this is the root, or hangs below an empty one.
    Unknown,
    At(u8),
    /// Below the leaves, where nothing may be.
    Below,
}

/// A node on the way from the root.
#[derive(Clone, Debug)]
struct Frame<'a> {
    cid: Cid,
    block: &'a [u8],
    layer: Layer,
    entries: Entries<'a>,
    /// Whether the walk comes from another node, so that the next key has to be held against the last
    /// one of that. Inside a node its scanner has done so.
    is_edge: bool,
}

impl<'a, S: BlockSource<'a>> Walk<'a, S> {
    /// A walk over the tree of `root`. The blocks may lie anywhere.
    pub fn new(root: Cid, source: S, options: &TreeLimits) -> Self {
        Self::in_archive(root, source, &[], options)
    }

    /// A walk over the tree of `root`, whose blocks lie in `archive`, a CAR: they are then told apart
    /// by a bit each.
    pub fn in_archive(root: Cid, source: S, archive: &[u8], options: &TreeLimits) -> Self {
        Self {
            source,
            options: *options,
            met: BlockSet::for_archive(archive),
            frames: Vec::new(),
            keys: Vec::new(),
            next: Some(Child { cid: root, layer: Layer::Unknown }),
            last_key: Vec::new(),
            heights: Heights::default(),
            faults: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// What was met so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Goes on to the next node, record or fault. `None` is the end: if no fault came before it, the
    /// tree is canonical and every node of it at hand.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    pub fn next(&mut self) -> Option<Result<Step<'_, 'a>, TreeError>> {
        loop {
            if let Some(fault) = self.faults.pop() {
                return Some(Err(fault));
            }
            if let Some(child) = self.next.take() {
                match self.enter(child) {
                    Ok(block) => return Some(Ok(Step::Node { cid: child.cid, block })),
                    Err(fault) => self.queue(Some(fault)),
                }
                continue;
            }
            let Some(frame) = self.frames.last_mut() else {
                self.queue(None);
                return self.faults.pop().map(Err);
            };
            let Some(entry) = frame.entries.next() else {
                self.leave();
                continue;
            };
            match self.follow(&entry) {
                Ok(()) => {
                    let key = self.keys[self.frames.len() - 1].as_bytes();
                    return Some(Ok(Step::Record { key, value: entry.value }));
                }
                Err(fault) => self.queue(Some(fault)),
            }
        }
    }

    /// Hands over what the keys that wait are found to be, and then `fault`: the keys came before.
    fn queue(&mut self, fault: Option<TreeError>) {
        self.faults.extend(fault);
        self.faults.extend(self.heights.check().drain(..).rev());
    }

    /// Reads the node that is next.
    fn enter(&mut self, child: Child) -> Result<&'a [u8], TreeError> {
        if self.heights.is_ready() {
            self.queue(None);
        }
        let refuse = |fault| Err(TreeError::at(child.cid, 0, fault));
        if child.layer == Layer::Below || self.frames.len() > MAX_HEIGHT as usize {
            return refuse(TreeFault::Layer);
        }
        if self.summary.nodes == self.options.max_nodes {
            self.frames.clear();
            return refuse(TreeFault::Limit(Limit::Nodes));
        }
        let Some(block) = self.source.block(&child.cid) else {
            return refuse(TreeFault::Missing);
        };
        if !self.met.insert(block) {
            return refuse(TreeFault::Repeated);
        }
        let layer = self.layer_of(child, block)?;
        if let Layer::At(layer) = layer {
            self.heights.begin(child.cid, block, layer);
        }
        if self.keys.len() == self.frames.len() {
            self.keys.push(KeyBuffer::new());
        }
        let key = &mut self.keys[self.frames.len()];
        let mut children = 0;
        let visit = |key: &KeyBuffer, entry: &Entry<'_>| {
            children += usize::from(entry.right.is_some());
            self.heights.push(key.as_bytes());
        };
        let node = match scan(block, key, visit) {
            Ok(node) => node,
            Err(error) => {
                self.heights.drop_last();
                return Err(TreeError::node(child.cid, error));
            }
        };
        key.clear();
        if children > 1 {
            self.source.prefetch(&mut node.entries().filter_map(|entry| entry.right));
        }
        self.next = node.left().map(|cid| Child { cid, layer: layer.below() });
        if node.is_empty()
            && let Some(fault) = fault_of_empty(self.frames.is_empty(), node.left())
        {
            self.faults.push(TreeError::at(child.cid, 0, fault));
        }
        let (cid, entries) = (child.cid, node.entries());
        self.frames.push(Frame { cid, block, layer, entries, is_edge: true });
        self.summary.nodes += 1;
        Ok(block)
    }

    /// The layer in which the node of `block` stands.
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

    /// Goes on to an entry of the node where the walk is.
    #[inline]
    fn follow(&mut self, entry: &Entry<'a>) -> Result<(), TreeError> {
        let depth = self.frames.len() - 1;
        let frame = &mut self.frames[depth];
        let key = self.keys[depth].advance(entry);
        let is_in_order = !frame.is_edge || key > self.last_key.as_slice();
        frame.is_edge = false;
        if let Some(cid) = entry.right {
            self.next = Some(Child { cid, layer: frame.layer.below() });
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        if !is_in_order {
            let offset = key_offset(frame.block, entry.suffix);
            return Err(TreeError::at(frame.cid, offset, TreeFault::Order));
        }
        if self.summary.records == self.options.max_records {
            let offset = key_offset(frame.block, entry.suffix);
            let fault = TreeError::at(frame.cid, offset, TreeFault::Limit(Limit::Records));
            self.frames.clear();
            self.next = None;
            return Err(fault);
        }
        self.summary.records += 1;
        Ok(())
    }

    /// Goes back to the parent of a node whose entries are used up.
    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        // Else the walk comes from a child, whose last key is the later one.
        if !frame.is_edge {
            self.last_key.clear();
            self.last_key.extend_from_slice(self.keys[self.frames.len()].as_bytes());
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.is_edge = true;
        }
    }
}

/// The layer in which a node stands: as its parent says, or else as its first key does.
fn layer_of(layer: Layer, node: &Node<'_>) -> Layer {
    match (layer, node.entries().next()) {
        (Layer::Unknown, Some(first)) => Layer::At(key_height(first.suffix)),
        _ => layer,
    }
}

/// What is wrong with a node without entries that has this child.
fn fault_of_empty(is_root: bool, left: Option<Cid>) -> Option<TreeFault> {
    match (is_root, left) {
        (true, Some(_)) => Some(TreeFault::Untrimmed),
        (false, None) => Some(TreeFault::EmptyNode),
        (true, None) | (false, Some(_)) => None,
    }
}

impl Layer {
    /// The layer of a child of a node that stands here.
    fn below(self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::At(0) | Self::Below => Self::Below,
            Self::At(layer) => Self::At(layer - 1),
        }
    }
}
