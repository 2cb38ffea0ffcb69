//! Which Merkle search tree do these records have?
//!
//! A tree is a function of its records: a key's height comes from its hash, every key stands in the
//! layer of its height, a child stands one layer below its parent, and what lies between two
//! neighbouring keys of a node, or before its first, is the child there.
//!
//! ```text
//! layer 2             [ m ]
//!                    /     \
//! layer 1      [ d   h ]   [ ]            an empty node leads on to a deeper key
//!             /    |    \     \
//! layer 0  [a b] [e g] [k l]  [q]
//! ```
//!
//! [`mod@reference`] is that definition as plain code, which faster trees are compared with.
//! [`Tree`] gives the same nodes and keeps them between edits.
//!
//! Source: the repository specification, "MST Structure".

mod height;
mod memo;
mod node;
#[cfg(test)]
mod tests;

pub use atproto::mst::reference;
pub use height::{Layer, key_height, key_heights};
pub use memo::{Entry, Settled, Tree, Visit};
pub(crate) use node::shared_prefix_len;
