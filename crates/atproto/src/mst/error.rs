//! Rules and limits of trees, and the error that names the broken one.

use codec::Cid;

use super::node::{NodeError, NodeFault};
use super::{MAX_KEY_BYTES, MAX_NODE_ENTRIES, MAX_RANGE_KEY_BYTES};

/// A broken rule of a tree, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeError {
    /// The node that breaks the rule, or that is missing; `None` if the fault is not in a node.
    pub cid: Option<Cid>,
    /// Bytes from the start of the node's block to the part that breaks the rule.
    pub offset: usize,
    /// The broken rule.
    pub fault: TreeFault,
}

/// A rule of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeFault {
    /// The block is not a node.
    #[error("{0}")]
    Node(NodeFault),
    /// A node that has to be read is missing.
    #[error("the node is missing")]
    Missing,
    /// A key does not lie between its neighbors in the tree, or was given out of order.
    #[error("a key is out of order")]
    Order,
    /// A key is not in the layer of its hash.
    #[error("a key is in another layer than that of its hash")]
    Layer,
    /// A node of layer 0 has a child.
    #[error("a link leads below layer 0, where no node is allowed")]
    BelowLeaves,
    /// A child belongs more than one layer below its parent.
    #[error("a child is more than one layer below its parent")]
    SkippedLayer,
    /// A node below the root has neither an entry nor a child.
    #[error("a node below the root is empty")]
    EmptyNode,
    /// The root has no entry, and a child.
    #[error("the root has a child and no entry: it must be trimmed")]
    Untrimmed,
    /// A node is reached twice.
    #[error("a node is reached a second time")]
    Repeated,
    /// A limit is exceeded.
    #[error("{0}")]
    Limit(Limit),
}

/// A limit of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// A key is longer than [`MAX_KEY_BYTES`].
    #[error("a key of more than {MAX_KEY_BYTES} bytes")]
    KeyBytes,
    /// A node has more than [`MAX_NODE_ENTRIES`] entries.
    #[error("a node of more than {MAX_NODE_ENTRIES} entries")]
    NodeEntries,
    /// The tree has more nodes than the caller allows.
    #[error("more nodes than allowed")]
    Nodes,
    /// The tree has more records than the caller allows.
    #[error("more records than allowed")]
    Records,
    /// The keys in the ranges of a walk, and around the nodes that it needs, take more than [`MAX_RANGE_KEY_BYTES`].
    #[error("keys of more than {MAX_RANGE_KEY_BYTES} bytes in the ranges")]
    RangeKeys,
    /// The keys and values of the tree take more than 4 GiB of memory.
    #[error("keys and values of more than 4 GiB")]
    Bytes,
}

/// Limits for reading a whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeLimits {
    /// Maximum number of nodes. Default: 50,000,000.
    pub max_nodes: u64,
    /// Maximum number of records. Default: 50,000,000.
    pub max_records: u64,
}

impl Default for TreeLimits {
    /// As many as an archive may have blocks.
    fn default() -> Self {
        Self { max_nodes: 50_000_000, max_records: 50_000_000 }
    }
}

impl TreeFault {
    /// The rule's stable code, such as `tree/order`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Node(fault) => fault.code(),
            Self::Missing => "tree/missing-node",
            Self::Order => "tree/order",
            Self::Layer | Self::BelowLeaves => "tree/layer",
            Self::SkippedLayer => "tree/skipped-layer",
            Self::EmptyNode => "tree/empty-node",
            Self::Untrimmed => "tree/untrimmed-root",
            Self::Repeated => "tree/repeated-node",
            Self::Limit(_) => "tree/limit",
        }
    }
}

impl std::error::Error for TreeError {}

impl std::fmt::Display for TreeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cid {
            Some(cid) if self.offset > 0 => {
                write!(f, "tree node {cid}, at byte {}: {}", self.offset, self.fault)
            }
            Some(cid) => write!(f, "tree node {cid}: {}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

impl TreeError {
    /// The fault of the node `cid`.
    #[cold]
    pub fn at(cid: Cid, offset: usize, fault: TreeFault) -> Self {
        Self { cid: Some(cid), offset, fault }
    }

    /// A fault that is not in a node.
    #[cold]
    pub fn of(fault: TreeFault) -> Self {
        Self { cid: None, offset: 0, fault }
    }

    /// The fault of a block that is not a node.
    #[cold]
    pub fn node(cid: Cid, error: NodeError) -> Self {
        let fault = match error.fault {
            NodeFault::Limit(limit) => TreeFault::Limit(limit),
            NodeFault::Order => TreeFault::Order,
            fault => TreeFault::Node(fault),
        };
        Self::at(cid, error.offset, fault)
    }
}
