//! Searching a key in a tree with a check of every node on its path: a proof by as few nodes as possible.

use codec::{Cid, CidRef};

use super::layers::{Child, Layer, LayerChecks, fault_of_empty, key_offset, layer_of};
use crate::mst::node::{Entry, KeyBuffer, Node};
use crate::mst::{BlockSource, TreeError, TreeFault};

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResult<'a> {
    /// The record under the key; `None` proves that there is none.
    pub value: Option<CidRef<'a>>,
    /// The nodes on the path, from the root to the one that has the key, or whose slot for it is empty.
    pub nodes: Vec<(Cid, &'a [u8])>,
}

/// Searches a key, and checks every node on the path by all rules of canonical trees that it and its parents
/// can show.
///
/// # Errors
/// If a node on the path is missing or breaks a rule.
pub fn search<'a>(
    root: Cid,
    source: impl BlockSource<'a>,
    key: &[u8],
) -> Result<SearchResult<'a>, TreeError> {
    let mut nodes = Vec::new();
    let mut bounds = KeyRange { prev: Vec::new(), next: None };
    let mut child = Child { cid: root, layer: Layer::Unknown };
    loop {
        let reject = |fault| Err(TreeError::at(child.cid, 0, fault));
        if child.layer == Layer::Below {
            return reject(TreeFault::BelowLeaves);
        }
        let Some(block) = source.block(&child.cid) else { return reject(TreeFault::Missing) };
        let node = Node::parse(block).map_err(|error| TreeError::node(child.cid, error))?;
        let layer = layer_of(child.layer, &node);
        if node.is_empty()
            && let Some(fault) = fault_of_empty(nodes.is_empty(), node.left())
        {
            return reject(fault);
        }
        nodes.push((child.cid, block));
        let position = find(child.cid, block, &node, layer, key, &mut bounds)?;
        child = match position {
            Position::Here(value) => return Ok(SearchResult { value: Some(value), nodes }),
            Position::Below(None) => return Ok(SearchResult { value: None, nodes }),
            Position::Below(Some(cid)) => Child { cid, layer: layer.below() },
        };
    }
}

/// The keys between which the keys of a node must lie.
struct KeyRange {
    /// Empty at the left edge of the tree.
    prev: Vec<u8>,
    /// `None` at the right edge.
    next: Option<Vec<u8>>,
}

/// The position of a key relative to a node.
enum Position<'a> {
    Here(CidRef<'a>),
    Below(Option<Cid>),
}

/// Finds the position of a key, checking all entries of the node, and narrows the bounds to it.
fn find<'a>(
    cid: Cid,
    block: &'a [u8],
    node: &Node<'a>,
    layer: Layer,
    target: &[u8],
    bounds: &mut KeyRange,
) -> Result<Position<'a>, TreeError> {
    let mut layer_checks = LayerChecks::default();
    if let Layer::At(layer) = layer {
        layer_checks.begin(cid, block, layer);
    }
    let mut position = Position::Below(node.left());
    let mut key = KeyBuffer::new();
    let outer = KeyRange { prev: bounds.prev.clone(), next: bounds.next.clone() };
    let mut is_passed = false;
    for entry in node.entries() {
        let key = key.advance(&entry);
        layer_checks.push(key);
        outer.check(key, cid, block, &entry)?;
        if key <= target {
            let is_here = key == target;
            position =
                if is_here { Position::Here(entry.value) } else { Position::Below(entry.right) };
            bounds.prev = key.to_vec();
        } else if !is_passed {
            bounds.next = Some(key.to_vec());
            is_passed = true;
        }
    }
    match layer_checks.check().first() {
        Some(fault) => Err(fault.error),
        None => Ok(position),
    }
}

impl KeyRange {
    fn check(
        &self,
        key: &[u8],
        cid: Cid,
        block: &[u8],
        entry: &Entry<'_>,
    ) -> Result<(), TreeError> {
        let is_beyond = self.next.as_ref().is_some_and(|next| key >= next.as_slice());
        if key > self.prev.as_slice() && !is_beyond {
            return Ok(());
        }
        Err(TreeError::at(cid, key_offset(block, entry.suffix), TreeFault::Order))
    }
}
