//! Which record does a tree have under a key, shown by as few nodes as that takes?

use codec::{Cid, CidRef};

use super::heights::{Heights, key_offset};
use super::{Child, Layer, fault_of_empty, layer_of};
use crate::mst::node::{Entry, KeyBuffer, Node};
use crate::mst::{BlockSource, TreeError, TreeFault};

/// What looking for a key has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResult<'a> {
    /// The record under the key; `None` proves that there is none.
    pub value: Option<CidRef<'a>>,
    /// The nodes on the way, from the root to the one that has the key, or whose slot for it is empty.
    pub nodes: Vec<(Cid, &'a [u8])>,
}

/// Looks for a key, and checks every node on the way by all rules of canonical trees that it and its
/// parents can show.
///
/// # Errors
/// If a node on the way is missing or breaks a rule.
pub fn search<'a>(
    root: Cid,
    source: impl BlockSource<'a>,
    key: &[u8],
) -> Result<SearchResult<'a>, TreeError> {
    let mut nodes = Vec::new();
    let mut bounds = Bounds { before: Vec::new(), behind: None };
    let mut child = Child { cid: root, layer: Layer::Unknown };
    loop {
        let refuse = |fault| Err(TreeError::at(child.cid, 0, fault));
        if child.layer == Layer::Below {
            return refuse(TreeFault::Layer);
        }
        let Some(block) = source.block(&child.cid) else { return refuse(TreeFault::Missing) };
        let node = Node::parse(block).map_err(|error| TreeError::node(child.cid, error))?;
        let layer = layer_of(child.layer, &node);
        if node.is_empty()
            && let Some(fault) = fault_of_empty(nodes.is_empty(), node.left())
        {
            return refuse(fault);
        }
        nodes.push((child.cid, block));
        let place = find(child.cid, block, &node, layer, key, &mut bounds)?;
        child = match place {
            Place::Here(value) => return Ok(SearchResult { value: Some(value), nodes }),
            Place::Below(None) => return Ok(SearchResult { value: None, nodes }),
            Place::Below(Some(cid)) => Child { cid, layer: layer.below() },
        };
    }
}

/// The keys between which those of a node must lie.
struct Bounds {
    /// Empty at the left edge of the tree.
    before: Vec<u8>,
    /// `None` at the right edge.
    behind: Option<Vec<u8>>,
}

/// Where a key stands, as seen from a node.
enum Place<'a> {
    Here(CidRef<'a>),
    Below(Option<Cid>),
}

/// Finds the place of a key, checking all entries of the node, and narrows the bounds to that place.
fn find<'a>(
    cid: Cid,
    block: &'a [u8],
    node: &Node<'a>,
    layer: Layer,
    wanted: &[u8],
    bounds: &mut Bounds,
) -> Result<Place<'a>, TreeError> {
    let mut heights = Heights::default();
    if let Layer::At(layer) = layer {
        heights.begin(cid, block, layer);
    }
    let mut place = Place::Below(node.left());
    let mut key = KeyBuffer::new();
    let outer = Bounds { before: bounds.before.clone(), behind: bounds.behind.clone() };
    let mut is_passed = false;
    for entry in node.entries() {
        let key = key.advance(&entry);
        heights.push(key);
        outer.check(key, cid, block, &entry)?;
        if key <= wanted {
            let is_here = key == wanted;
            place = if is_here { Place::Here(entry.value) } else { Place::Below(entry.right) };
            bounds.before = key.to_vec();
        } else if !is_passed {
            bounds.behind = Some(key.to_vec());
            is_passed = true;
        }
    }
    match heights.check().first() {
        Some(fault) => Err(*fault),
        None => Ok(place),
    }
}

impl Bounds {
    fn check(
        &self,
        key: &[u8],
        cid: Cid,
        block: &[u8],
        entry: &Entry<'_>,
    ) -> Result<(), TreeError> {
        let is_behind = self.behind.as_ref().is_some_and(|behind| key >= behind.as_slice());
        if key > self.before.as_slice() && !is_behind {
            return Ok(());
        }
        Err(TreeError::at(cid, key_offset(block, entry.suffix), TreeFault::Order))
    }
}
