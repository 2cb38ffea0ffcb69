//! Which nodes prove what was done to a record, or that it is there, or that it is not?

use std::collections::{BTreeMap, BTreeSet};

use codec::Cid;

use super::arena::{Between, NodeId};
use super::{BlockSource, Tree, TreeError};

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// The names of the nodes that prove what was done to `keys`, each created, updated or deleted,
    /// where this is the tree after: those met looking for each key, for the greatest key below it,
    /// and for the least above it. With these nodes alone what was done can be undone, see
    /// [`inversion`](super::inversion).
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule.
    pub fn covering_proof<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<BTreeSet<Cid>, TreeError> {
        Ok(self.covering_nodes(keys)?.into_keys().collect())
    }

    /// As [`covering_proof`](Self::covering_proof), with the block of each node.
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
            // A key that is absent has its neighbours on its path, and one that is there may have
            // them at the ends of the subtrees beside it.
            if let Some(index) = found {
                self.add_edge(index, Edge::Last, &mut proof)?;
                self.add_edge(index + 1, Edge::First, &mut proof)?;
            }
        }
        Ok(proof)
    }

    /// The nodes on the way to `key`, from the root, with their blocks: who knows the root can see in
    /// them which record stands at `key`, or that none does.
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule.
    pub fn record_proof(&mut self, key: &[u8]) -> Result<Vec<(Cid, Vec<u8>)>, TreeError> {
        self.root();
        self.search(key)?;
        Ok(self.path.nodes().map(|node| (self.arena.cid(node), self.arena.block(node))).collect())
    }

    /// Looks for `key`, leaving the path; answers the index of its entry.
    fn search(&mut self, key: &[u8]) -> Result<Option<usize>, TreeError> {
        self.load_root()?;
        let Self { arena, root, source, path, .. } = self;
        let place = arena.descend(*root, key, 0, source, path);
        arena.prove()?;
        Ok(place?.ok())
    }

    /// Adds the nodes at one edge of the subtree in a slot at the end of the path.
    fn add_edge(
        &mut self,
        slot: usize,
        edge: Edge,
        proof: &mut BTreeMap<Cid, NodeId>,
    ) -> Result<(), TreeError> {
        let (mut child, mut between) = self.path.below(&self.arena, slot);
        while let Some(id) = child {
            let loaded = self.arena.load(id, between, &self.source);
            self.arena.prove()?;
            loaded?;
            proof.insert(self.arena.cid(id), id);
            (child, between) = self.below(id, between, edge);
        }
        Ok(())
    }

    fn below(&self, id: NodeId, between: Between, edge: Edge) -> (Option<NodeId>, Between) {
        let node = self.arena.node(id);
        let slot = match edge {
            Edge::First => 0,
            Edge::Last => node.entries.len(),
        };
        (self.arena.child(id, slot), between.narrowed(node, slot))
    }
}

#[derive(Clone, Copy)]
enum Edge {
    First,
    Last,
}
