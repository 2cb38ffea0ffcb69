//! Merkle search trees: which records does a repository hold, under one hash?
//!
//! A tree is a function of its records. A key's height comes from its hash ([`key_height`]); every
//! key stands in the layer of its height, a child stands one layer below its parent, and what lies
//! between two neighbouring keys of a node, or before its first, is the child there:
//!
//! ```text
//! layer 2             [ m ]
//!                    /     \
//! layer 1      [ d   h ]   [ ]            an empty node leads on to a deeper key
//!             /    |    \     \
//! layer 0  [a b] [e g] [k l]  [q]
//! ```
//!
//! | module | question it answers |
//! |---|---|
//! | [`Tree`] | which record is at this path, which are in this range, what is the root after this edit? |
//! | [`diff`](fn@diff) | what must be done to one tree to have the other? |
//! | [`inversion`] | does undoing what a commit says it did lead back to the tree before? |
//! | [`node`] | what does this block say, if it is a node? |
//! | [`canonical`] | is this whole tree the one that its records must have? |
//!
//! Blocks come from a [`BlockSource`], which answers for their hashes. A broken rule is a
//! [`TreeError`]: the node, the place and the [`TreeFault`].
//!
//! Source: the repository specification, "MST Structure".

mod arena;
mod bulk;
pub mod canonical;
mod diff;
mod error;
mod height;
pub mod inversion;
pub mod node;
mod proof;
mod range;
#[cfg(test)]
mod reference;
mod source;
mod tail;
#[cfg(test)]
mod tests;
mod tree;

pub use bulk::TreeLimits;
pub use diff::{Change, Diff, diff};
pub use error::{Limit, TreeError, TreeFault};
pub use height::{key_height, key_heights};
pub use range::Range;
pub use source::BlockSource;
pub use tree::Tree;

/// The longest key, in bytes. The longest path of a record that the protocol allows has 830.
pub const MAX_KEY_BYTES: usize = 1024;

/// The most entries of a node. Honest trees have four on average.
pub const MAX_NODE_ENTRIES: usize = 10_000;

/// The height of a key whose hash is all zeros.
pub const MAX_HEIGHT: u32 = 128;
