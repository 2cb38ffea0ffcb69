//! The task `mst`: a unit is a record that goes into a tree, or a key that is looked up in one.

mod corpus;
mod work;

use std::fmt::Display;

use crate::{Refusal, Task, Variant};

/// A library that has Merkle search trees.
pub trait Peer: Sized + 'static {
    /// A CID as the library holds it; as text it is the CID's.
    type Cid: Clone + Display;
    type Tree;

    const VARIANTS: &'static [Variant];

    fn start() -> Self;

    /// Reads the bytes of a CID.
    ///
    /// # Errors
    ///
    /// When there is no such CID.
    fn cid(bytes: &[u8; 36]) -> Result<Self::Cid, Refusal>;

    /// The digest inside a CID.
    fn digest(cid: &Self::Cid) -> &[u8];

    /// Inserts records one by one, in the order given, into an empty tree.
    ///
    /// # Errors
    ///
    /// When the library has one.
    fn insert(&self, records: &[(String, Self::Cid)]) -> Result<Self::Tree, Refusal>;

    /// The root of a tree whose blocks nobody has asked for yet.
    ///
    /// # Errors
    ///
    /// When the library has one.
    fn root(&self, tree: &mut Self::Tree) -> Result<Self::Cid, Refusal>;

    /// What stands at a key.
    ///
    /// # Errors
    ///
    /// When the library has one.
    fn get(&self, tree: &mut Self::Tree, key: &str) -> Result<Option<Self::Cid>, Refusal>;
}

/// The variants for a peer that has no call for many records at once.
pub const VARIANTS: [Variant; 3] = [
    Variant { name: "insert-root/ascending", checks: &[] },
    Variant { name: "insert-root/shuffled", checks: &[] },
    Variant { name: "lookup", checks: &[] },
];

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "mst", variants: P::VARIANTS, load: work::load::<P> }
}
