//! How does one make what nobody should make?
//!
//! Out of parts that are right until they are changed: [`item`] writes CBOR, [`tree`] puts nodes
//! together, [`commit`] signs, [`archive`] packs, [`event`] tells of it. A change before hashing or
//! signing is covered by hash and signature; a change after it is not.

pub(super) mod archive;
pub(super) mod author;
pub(super) mod commit;
pub(super) mod event;
pub(super) mod item;
pub(super) mod tree;
