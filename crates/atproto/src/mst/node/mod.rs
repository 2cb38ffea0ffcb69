//! What does this block say, if it is a node of a tree?
//!
//! ```text
//! node  := {"e": [entry, …], "l": link or null}
//! entry := {"k": rest of the key, "p": bytes shared with the key before, "t": link or null, "v": link}
//! ```
//!
//! `l` is the child before the first key, `t` the child behind a key, `v` the record. All fields must
//! be there, and no others. Here are the rules that one block can break: canonical DAG-CBOR, whole
//! prefixes, increasing keys, links of the right kind. In which layer the keys belong, and whether
//! they lie between those of the parent, is asked by who knows the parent.
//!
//! ```
//! use wireproof_atproto::mst::node::{KeyBuffer, Node};
//! # use codec::cid::{Cid, Codec};
//! # use wireproof_atproto::mst::node::Writer;
//! # let value = Cid::of(Codec::DagCbor, b"");
//! # let mut block = Vec::new();
//! # let mut writer = Writer::new(&mut block, 2);
//! # writer.entry(0, b"a/1", value.as_cid_ref(), None).entry(2, b"2", value.as_cid_ref(), None);
//! # writer.finish(None);
//! let node = Node::parse(&block)?;
//! let mut key = KeyBuffer::new();
//! let mut keys = Vec::new();
//! for entry in node.entries() {
//!     keys.push(key.advance(&entry).to_vec());
//! }
//! assert_eq!(keys, [b"a/1", b"a/2"]);
//! # Ok::<(), wireproof_atproto::mst::node::NodeError>(())
//! ```

mod error;
mod key;
mod scan;
#[cfg(test)]
mod tests;
mod write;

use codec::{Cid, CidRef};

pub use error::{NodeError, NodeFault};
pub use key::KeyBuffer;
pub(super) use scan::{first_key, scan};
pub use write::Writer;

/// A node as it stands in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// `len` entries that were read before.
    entries: &'a [u8],
    len: usize,
    left: Option<Cid>,
}

/// A key of a node, with its record and the child behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// How many bytes the key shares with the one before it in the node.
    pub prefix_len: usize,
    /// The rest of the key, which is not empty.
    pub suffix: &'a [u8],
    /// The record.
    pub value: CidRef<'a>,
    /// The child behind the key.
    pub right: Option<Cid>,
}

impl<'a> Node<'a> {
    /// Reads the block of a node.
    ///
    /// # Errors
    /// If the bytes are not canonical DAG-CBOR, or not a node by the rules that one block can break.
    pub fn parse(block: &'a [u8]) -> Result<Self, NodeError> {
        scan(block, &mut KeyBuffer::new(), |_, _| ())
    }

    /// The child before the first key.
    #[inline]
    pub fn left(&self) -> Option<Cid> {
        self.left
    }

    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entries in the order of their keys.
    #[inline]
    pub fn entries(&self) -> Entries<'a> {
        Entries { rest: self.entries, len: self.len }
    }
}

/// The entries of a node in the order of their keys.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    /// `len` entries that were read before.
    rest: &'a [u8],
    len: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        self.len = self.len.checked_sub(1)?;
        let (entry, rest) = scan::read_again(self.rest);
        self.rest = rest;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Entries<'_> {}
