//! Parts of repositories and events that are valid until they are changed.
//!
//! [`archive`] encodes CBOR and packs archives, [`tree`] builds nodes, [`commit`] signs commits and wraps
//! them in events. A change before hashing or signing is covered by hash and signature; a change after it
//! is not.

pub(super) mod archive;
pub(super) mod commit;
pub(super) mod tree;
