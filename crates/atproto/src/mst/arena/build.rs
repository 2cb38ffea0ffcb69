//! Building a tree from increasing keys: each node is written once, when it is complete, and named soon
//! after ([`Arena::seal_closed`]), while its keys are in the cache.
//!
//! ```text
//! open nodes by layer   2  [ m          what comes next goes to the right of all this:
//!                       1      [ p      a key of layer 1 closes the node of layer 0 and makes it
//!                       0        [ q r  the child before itself
//! ```

use super::load::Between;
use super::{Arena, Entries, Entry, NodeId, RecordRef};

/// A tree that grows to the right.
#[derive(Debug, Default)]
pub(in crate::mst) struct Growth {
    /// By layer, up to the highest key.
    layers: Vec<Layer>,
    last: Option<RecordRef>,
}

/// The node of a layer that is not yet complete, if there is one.
#[derive(Debug)]
struct Layer {
    height: u8,
    is_open: bool,
    entries: Entries,
    /// The key before all in the node and below it.
    before: Option<RecordRef>,
}

/// A complete node that waits for its parent.
#[derive(Clone, Copy)]
struct Closed {
    id: NodeId,
    /// The key before all in the node and below it.
    before: Option<RecordRef>,
}

impl Growth {
    #[cold]
    fn raise(&mut self, height: usize) {
        for height in self.layers.len()..=height {
            let height = height as u8;
            let layer = Layer { height, is_open: false, entries: Entries::new(), before: None };
            self.layers.push(layer);
        }
    }
}

impl Arena {
    /// Adds an entry of a key that is greater than all so far.
    #[inline]
    pub(in crate::mst) fn grow(&mut self, growth: &mut Growth, entry: Entry, height: u8) {
        let height = usize::from(height);
        if growth.layers.len() <= height {
            growth.raise(height);
        }
        let mut below = None;
        for layer in &mut growth.layers[..height] {
            below = self.close(layer, below, Some(entry.record));
        }
        let layer = &mut growth.layers[height];
        match below {
            Some(below) => layer.attach(below),
            None if !layer.is_open => layer.open(growth.last),
            None => {}
        }
        layer.entries.push(entry);
        growth.last = Some(entry.record);
    }

    /// Completes the tree; answers its root.
    pub(in crate::mst) fn finish(&mut self, mut growth: Growth) -> NodeId {
        let mut below = None;
        for layer in &mut growth.layers {
            below = self.close(layer, below, None);
        }
        self.seal_closed(1);
        below.map_or_else(|| self.empty_node(0, None), |root| root.id)
    }

    /// Completes the open node of a layer, with the node below as its last child. If none is open,
    /// the node below gets an empty one above it.
    #[inline]
    fn close(
        &mut self,
        layer: &mut Layer,
        below: Option<Closed>,
        behind: Option<RecordRef>,
    ) -> Option<Closed> {
        if let Some(below) = below {
            layer.attach(below);
        }
        if !layer.is_open {
            return None;
        }
        layer.is_open = false;
        let id = self.empty_node(layer.height, None);
        std::mem::swap(&mut self.node_mut(id).entries, &mut layer.entries);
        self.skip_shared(id, Between { before: layer.before, behind });
        self.is_closed(id, layer.height);
        Some(Closed { id, before: layer.before })
    }
}

impl Layer {
    #[inline]
    fn open(&mut self, before: Option<RecordRef>) {
        self.is_open = true;
        self.before = before;
    }

    /// Puts a child behind the last key.
    #[inline]
    fn attach(&mut self, child: Closed) {
        if !self.is_open {
            self.open(child.before);
        }
        self.entries.set_child(self.entries.len(), Some(child.id));
    }
}
