//! Merkle search trees: the records of a repository under one hash.
//!
//! A tree is a function of its records. A key's height comes from its hash ([`key_height`]); every
//! key is in the layer of its height, a child is one layer below its parent, and the keys between two
//! neighboring keys of a node, or before its first, are in the child there:
//!
//! ```text
//! layer 2             [ m ]
//!                    /     \
//! layer 1      [ d   h ]   [ ]            an empty node leads on to a deeper key
//!             /    |    \     \
//! layer 0  [a b] [e g] [k l]  [q]
//! ```
//!
//! | item | purpose |
//! |---|---|
//! | [`Tree`] | records by path and by range, edits and their root, proofs |
//! | [`Builder`] | a tree from many records in ascending order |
//! | [`IndexedTree`] | many lookups, even while the tree changes |
//! | [`diff`](fn@diff) | the records and nodes that differ between two trees |
//! | [`inversion`] | the tree before a commit, by undoing its operations |
//! | [`node`] | the block of a node, read and written |
//! | [`canonical`] | a check that a whole tree is the one that its records have |
//!
//! Blocks come from a [`BlockSource`], which vouches for their hashes. A broken rule is a
//! [`TreeError`]: the node, the offset and the [`TreeFault`].
//!
//! Source: the repository specification, "MST Structure".

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use codec::Cid;

mod arena;
mod builder;
pub mod canonical;
mod diff;
mod error;
mod height;
mod index;
mod indexed;
pub mod inversion;
pub mod node;
mod proof;
mod range;
#[doc(hidden)]
pub mod reference;
#[cfg(test)]
mod tests;
mod tree;

pub use builder::Builder;
pub use diff::{Change, Diff, diff};
pub use error::{Limit, TreeError, TreeFault, TreeLimits};
pub use height::{key_height, key_heights};
pub use indexed::IndexedTree;
pub use range::Range;
pub use tree::Tree;

/// Blocks by CID. An implementation vouches that the blocks have the hashes in their CIDs: trees do not
/// hash blocks that they read.
pub trait BlockSource<'a> {
    /// The block named `cid`, if the source has it.
    fn block(&self, cid: &Cid) -> Option<&'a [u8]>;

    /// Announces that these blocks will be read soon, so that a source that waits for memory can wait for
    /// all of them together. Does nothing by default.
    #[inline]
    fn prefetch(&self, _cids: &mut dyn Iterator<Item = Cid>) {}
}

impl<'a, S: BlockSource<'a> + ?Sized> BlockSource<'a> for &S {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        (**self).block(cid)
    }

    #[inline]
    fn prefetch(&self, cids: &mut dyn Iterator<Item = Cid>) {
        (**self).prefetch(cids);
    }
}

/// No blocks: the source of a tree that was built and not loaded.
impl BlockSource<'static> for () {
    #[inline]
    fn block(&self, _cid: &Cid) -> Option<&'static [u8]> {
        None
    }
}

impl<'a, H: BuildHasher> BlockSource<'a> for HashMap<Cid, &'a [u8], H> {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.get(cid).copied()
    }
}

impl<'a> BlockSource<'a> for BTreeMap<Cid, &'a [u8]> {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.get(cid).copied()
    }
}

/// The maximum length of a key in bytes. The longest record path that the protocol allows has 830.
pub const MAX_KEY_BYTES: usize = 1024;

/// The maximum number of entries of a node. A node of an honest tree has four on average.
pub const MAX_NODE_ENTRIES: usize = 10_000;

/// The most bytes of keys that a walk over [ranges](canonical::RangeWalk) keeps. In a node a key takes some 45 bytes, because keys share
/// prefixes; kept, it takes up to [`MAX_KEY_BYTES`].
pub const MAX_RANGE_KEY_BYTES: usize = 256 << 20;

/// The height of a key whose hash is all zeros.
pub const MAX_HEIGHT: u32 = 128;
