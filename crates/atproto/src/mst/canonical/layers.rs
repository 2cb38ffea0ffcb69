//! The layers of nodes, and the check that keys are in the layers of their hashes, for many keys together.

use std::ops::Deref;

use codec::Cid;
use kernels::sha256::{self, Digest};

use crate::mst::height::height_of;
use crate::mst::node::{KeyBuffer, Node};
use crate::mst::{TreeError, TreeFault, key_height};

/// A link to follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    pub(super) cid: Cid,
    pub(super) layer: Layer,
}

/// The layer to which a node belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// No key has determined it yet: this is the root, or below an empty root.
    Unknown,
    At(u8),
    /// Below the leaves, where no node is allowed.
    Below,
}

/// The layer of a node: as given by its parent, or else by its first key.
pub(super) fn layer_of(layer: Layer, node: &Node<'_>) -> Layer {
    match (layer, node.entries().next()) {
        (Layer::Unknown, Some(first)) => Layer::At(key_height(first.suffix)),
        _ => layer,
    }
}

/// The fault of a node without entries that has this child.
pub(super) fn fault_of_empty(is_root: bool, left: Option<Cid>) -> Option<TreeFault> {
    match (is_root, left) {
        (true, Some(_)) => Some(TreeFault::Untrimmed),
        (false, None) => Some(TreeFault::EmptyNode),
        (true, None) | (false, Some(_)) => None,
    }
}

impl Layer {
    /// The layer of the children of a node of this layer.
    pub(super) fn below(self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::At(0) | Self::Below => Self::Below,
            Self::At(layer) => Self::At(layer - 1),
        }
    }

    /// About how many keys are in and below a node of this layer: of all keys, a quarter are in a layer above. None if it is unknown.
    pub(super) fn expected_keys(self) -> u64 {
        match self {
            Self::At(layer) => 4u64.saturating_pow(u32::from(layer) + 1),
            Self::Unknown | Self::Below => 0,
        }
    }

    /// Number of layers from this one down.
    pub(super) fn count_down(self) -> u64 {
        match self {
            Self::At(layer) => u64::from(layer) + 1,
            Self::Unknown | Self::Below => 0,
        }
    }
}

/// Keys to be hashed together, with the layers in which they were found.
#[derive(Clone, Debug)]
pub(super) struct LayerChecks<B> {
    /// The keys, concatenated.
    keys: Vec<u8>,
    /// The ends of the keys.
    ends: Vec<usize>,
    /// The nodes of the keys, in order.
    spans: Vec<Span<B>>,
    /// The faults found, in order.
    faults: Vec<LocatedFault<B>>,
}

/// A fault, and the block of its node if it was read.
#[derive(Clone, Debug)]
pub(super) struct LocatedFault<B> {
    pub(super) error: TreeError,
    pub(super) block: Option<B>,
}

/// Consecutive keys of one node.
#[derive(Clone, Debug)]
struct Span<B> {
    cid: Cid,
    block: B,
    layer: u8,
    /// Index of the first key in the node.
    first: usize,
    len: usize,
}

impl<B> Default for LayerChecks<B> {
    fn default() -> Self {
        Self { keys: Vec::new(), ends: Vec::new(), spans: Vec::new(), faults: Vec::new() }
    }
}

impl<B: Clone + Deref<Target = [u8]>> LayerChecks<B> {
    /// Begins the keys of the node `cid`, which is in `layer`.
    pub(super) fn begin(&mut self, cid: Cid, block: B, layer: u8) {
        self.spans.push(Span { cid, block, layer, first: 0, len: 0 });
    }

    /// Adds the next key of the node.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) {
        if self.ends.len() == BATCH {
            self.split();
        }
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.spans.last_mut().expect("a node was begun").len += 1;
    }

    /// Hashes a batch that ends inside a node.
    #[cold]
    fn split(&mut self) {
        let last = self.spans.last().expect("a node was begun").clone();
        self.check();
        self.spans.push(Span { first: last.first + last.len, len: 0, ..last });
    }

    /// Whether there are enough keys to hash them together.
    pub(super) fn is_ready(&self) -> bool {
        self.ends.len() >= BATCH / 2
    }

    /// Hashes the pending keys; returns the faults found since the last call, in order.
    pub(super) fn check(&mut self) -> &mut Vec<LocatedFault<B>> {
        let mut messages: [&[u8]; BATCH] = [&[]; BATCH];
        let mut digests: [Digest; BATCH] = [[0; 32]; BATCH];
        let mut start = 0;
        for (message, end) in messages.iter_mut().zip(&self.ends) {
            *message = &self.keys[start..*end];
            start = *end;
        }
        let count = self.ends.len();
        sha256::digest_many_into(&messages[..count], &mut digests[..count]);
        let mut rest = &digests[..count];
        for span in &self.spans {
            let (own, others) = rest.split_at(span.len);
            rest = others;
            if let Some(at) = own.iter().position(|digest| height_of(digest) != span.layer) {
                let block = Some(span.block.clone());
                self.faults.extend(span.fault(at, own).map(|error| LocatedFault { error, block }));
            }
        }
        self.keys.clear();
        self.ends.clear();
        self.spans.clear();
        &mut self.faults
    }
}

impl<B: Deref<Target = [u8]>> Span<B> {
    /// The fault of the key at index `at` of the span, given the hashes of its keys. `None` if the block
    /// is not a node, of which a part was read: that is its fault.
    #[cold]
    fn fault(&self, at: usize, digests: &[Digest]) -> Option<TreeError> {
        let index = self.first + at;
        let height = height_of(&digests[0]);
        let is_one_lower_layer =
            height < self.layer && digests.iter().all(|digest| height_of(digest) == height);
        let fault = if is_one_lower_layer { TreeFault::SkippedLayer } else { TreeFault::Layer };
        let entry = Node::parse(&self.block).ok()?.entries().nth(index)?;
        Some(TreeError::at(self.cid, key_offset(&self.block, entry.suffix), fault))
    }
}

/// Bytes from the start of a node's block to the field `k` that has `suffix`, a part of the block.
#[cold]
pub(super) fn key_offset(block: &[u8], suffix: &[u8]) -> usize {
    let head_len = 1 + usize::from(suffix.len() >= 24) + usize::from(suffix.len() > 255);
    offset_in(block, suffix) - head_len
}

/// Bytes from the start of `block` to `part`, a part of it.
#[inline]
pub(super) fn offset_in(block: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - block.as_ptr() as usize
}

/// The key of the entry whose field `k` is at `offset` of a node's block, if there is one.
pub(super) fn key_at(block: &[u8], offset: usize) -> Option<Vec<u8>> {
    let node = Node::parse(block).ok()?;
    let mut key = KeyBuffer::new();
    for entry in node.entries() {
        key.advance(&entry);
        if key_offset(block, entry.suffix) == offset {
            return Some(key.as_bytes().to_vec());
        }
    }
    None
}

/// Maximum number of keys that are hashed together.
const BATCH: usize = 256;
