//! The nodes that prove a change of a record, its presence or its absence.

use std::collections::{BTreeMap, BTreeSet};

use codec::Cid;

use super::arena::{KeyBounds, NodeId};
use super::{BlockSource, Tree, TreeError};

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// The CIDs of the nodes that prove the creation, update or deletion of `keys`, where this is the tree
    /// afterwards: the nodes on the paths to every key, to the greatest key below it and to the least
    /// above it. With these nodes alone the changes can be undone, see [`inversion`](super::inversion).
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule.
    pub fn covering_proof<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<BTreeSet<Cid>, TreeError> {
        Ok(self.covering_nodes(keys)?.into_keys().collect())
    }

    /// As [`covering_proof`](Self::covering_proof), with the nodes' blocks.
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule.
    pub fn covering_blocks<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<BTreeMap<Cid, Vec<u8>>, TreeError> {
        let nodes = self.covering_nodes(keys)?;
        Ok(nodes.into_iter().map(|(cid, id)| (cid, self.arena.block(id))).collect())
    }

    fn covering_nodes<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<BTreeMap<Cid, NodeId>, TreeError> {
        self.root();
        let mut proof = BTreeMap::new();
        for key in keys {
            let found = self.search(key)?;
            proof.extend(self.path.nodes().map(|node| (self.arena.cid(node), node)));
            // A key that is absent has its neighbors on its path, and one that is there may have
            // them at the ends of the subtrees next to it.
            if let Some(index) = found {
                self.add_edge(index, Edge::Last, &mut proof)?;
                self.add_edge(index + 1, Edge::First, &mut proof)?;
            }
        }
        Ok(proof)
    }

    /// The nodes on the path to `key`, from the root, with their blocks: given the root's CID, they show
    /// which record is at `key`, or that there is none.
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule.
    pub fn record_proof(&mut self, key: &[u8]) -> Result<Vec<(Cid, Vec<u8>)>, TreeError> {
        self.root();
        self.search(key)?;
        Ok(self.path.nodes().map(|node| (self.arena.cid(node), self.arena.block(node))).collect())
    }

    /// Searches `key`, which sets the path; returns the index of its entry.
    fn search(&mut self, key: &[u8]) -> Result<Option<usize>, TreeError> {
        self.load_root()?;
        let Self { arena, root, source, path, .. } = self;
        let position = arena.descend(*root, key, 0, source, path);
        arena.check_heights()?;
        Ok(position?.ok())
    }

    /// Adds the nodes at one edge of the subtree in a slot at the end of the path.
    fn add_edge(
        &mut self,
        slot: usize,
        edge: Edge,
        proof: &mut BTreeMap<Cid, NodeId>,
    ) -> Result<(), TreeError> {
        let (mut child, mut bounds) = self.path.below(&self.arena, slot);
        while let Some(id) = child {
            let loaded = self.arena.load(id, bounds, &self.source);
            self.arena.check_heights()?;
            loaded?;
            proof.insert(self.arena.cid(id), id);
            (child, bounds) = self.below(id, bounds, edge);
        }
        Ok(())
    }

    fn below(&self, id: NodeId, bounds: KeyBounds, edge: Edge) -> (Option<NodeId>, KeyBounds) {
        let node = self.arena.node(id);
        let slot = match edge {
            Edge::First => 0,
            Edge::Last => node.entries.len(),
        };
        (self.arena.child(id, slot), bounds.narrowed(node, slot))
    }
}

#[derive(Clone, Copy)]
enum Edge {
    First,
    Last,
}
