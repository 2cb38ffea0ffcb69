//! Nodes of a tree: parsing, writing, and the rules that one block can break.
//!
//! ```text
//! node  := {"e": [entry, …], "l": link or null}
//! entry := {"k": rest of the key, "p": bytes shared with the key before, "t": link or null, "v": link}
//! ```
//!
//! `l` is the child before the first key, `t` the child after a key, `v` the record. All fields are
//! required, and no others are allowed. The rules checked here can be broken by one block: canonical
//! DAG-CBOR, whole prefixes, ascending keys, links of the right kind. The layer of the keys, and their place
//! between the parent's keys, are checked where the parent is known.
//!
//! ```
//! use wireproof::atproto::mst::node::{KeyBuffer, Node};
//! # use wireproof::codec::cid::{Cid, Codec};
//! # use wireproof::atproto::mst::node::Writer;
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
//! # Ok::<(), wireproof::atproto::mst::node::NodeError>(())
//! ```

mod scan;
#[cfg(test)]
mod tests;
mod write;

use codec::Cid;
use codec::cbor::{DecodeError, Reason};

use super::{Limit, MAX_KEY_BYTES};
pub use crate::node_shape::Entry;

pub(super) use scan::{first_key, reread, scan};
pub use write::Writer;
pub(super) use write::{write_key, write_null_and_value};

/// A node, borrowed from its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// `len` entries that are already checked.
    entries: &'a [u8],
    len: usize,
    left: Option<Cid>,
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

    /// The number of entries.
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

    /// The bytes of the entries.
    #[inline]
    pub(super) fn entry_bytes(&self) -> &'a [u8] {
        self.entries
    }
}

/// The entries of a node in the order of their keys.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    /// `len` entries that are already checked.
    rest: &'a [u8],
    len: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        self.len = self.len.checked_sub(1)?;
        let (entry, rest) = scan::reread(self.rest);
        self.rest = rest;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// The key of the last entry, from which the next entry takes its prefix.
#[derive(Clone, Debug)]
pub struct KeyBuffer {
    bytes: [u8; MAX_KEY_BYTES],
    // len <= MAX_KEY_BYTES
    len: usize,
}

impl KeyBuffer {
    /// A buffer before the first entry of a node.
    #[inline]
    pub fn new() -> Self {
        Self { bytes: [0; MAX_KEY_BYTES], len: 0 }
    }

    /// Resets the buffer to before the first entry, for another node.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The current key.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Advances to the next entry of a parsed node; returns its key.
    ///
    /// # Panics
    /// If the entry does not follow the one before: the first entry of a node needs a clear buffer.
    #[inline]
    pub fn advance(&mut self, entry: &Entry<'_>) -> &[u8] {
        assert!(entry.prefix_len <= self.len, "entries must be read in order from a clear buffer");
        self.set(entry.prefix_len, entry.suffix);
        self.as_bytes()
    }

    /// Advances to an entry, which must follow the one before by the rules of a node.
    #[inline(always)]
    fn try_advance(&mut self, prefix_len: usize, suffix: &[u8]) -> Result<(), NodeFault> {
        let Some(first) = suffix.first() else { return Err(NodeFault::EmptyKey) };
        // The previous key either ends with the prefix, or continues with a lesser byte.
        let is_greater = match self.as_bytes().get(prefix_len) {
            Some(prev) => prev < first,
            None => prefix_len == self.len,
        };
        let len = prefix_len.saturating_add(suffix.len());
        if !is_greater || len > MAX_KEY_BYTES {
            return Err(self.fault(prefix_len, *first));
        }
        self.set(prefix_len, suffix);
        Ok(())
    }

    #[inline(always)]
    fn set(&mut self, prefix_len: usize, suffix: &[u8]) {
        let len = prefix_len + suffix.len();
        self.bytes[prefix_len..len].copy_from_slice(suffix);
        self.len = len;
    }

    #[cold]
    fn fault(&self, prefix_len: usize, first: u8) -> NodeFault {
        match self.as_bytes().get(prefix_len) {
            Some(prev) if *prev > first => NodeFault::Order,
            Some(prev) if *prev == first => NodeFault::Prefix,
            None if prefix_len > self.len => NodeFault::Prefix,
            _ => NodeFault::Limit(Limit::KeyBytes),
        }
    }
}

impl Default for KeyBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// A broken rule of a node, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the node: {fault}")]
pub struct NodeError {
    /// Bytes from the start of the block to the part that breaks the rule.
    pub offset: usize,
    /// The broken rule.
    pub fault: NodeFault,
}

/// A rule of nodes, or of DAG-CBOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeFault {
    /// The block is not canonical DAG-CBOR.
    #[error("{0}")]
    Cbor(Reason),
    /// The maps are not exactly {e, l} and {k, p, t, v}, with fields of the right kinds.
    #[error("a node is a map of e and l, and an entry one of k, p, t and v")]
    Shape,
    /// A link to a child names something other than DAG-CBOR under SHA-256.
    #[error("a child must be DAG-CBOR under SHA-256")]
    Link,
    /// The stated prefix is shorter than the prefix that the key shares with the one before it.
    #[error("the prefix must be all that the key shares with the one before it")]
    Prefix,
    /// The stated length of the prefix is negative.
    #[error("the length of a prefix must not be negative")]
    NegativePrefix,
    /// Nothing follows the prefix.
    #[error("`k` is empty: an entry must add at least one byte to its prefix")]
    EmptyKey,
    /// A key is not greater than the one before it.
    #[error("a key is out of order")]
    Order,
    /// A limit is exceeded.
    #[error("{0}")]
    Limit(Limit),
}

impl NodeFault {
    /// The rule's stable code, such as `tree/prefix`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cbor(_) => "tree/cbor",
            Self::Shape => "tree/shape",
            Self::Link => "tree/link",
            Self::Prefix | Self::NegativePrefix => "tree/prefix",
            Self::EmptyKey => "tree/empty-key",
            Self::Order => "tree/order",
            Self::Limit(_) => "tree/limit",
        }
    }
}

/// The error of a fault at the start of `rest`, in a block of `len` bytes.
#[cold]
#[inline(never)]
fn fail<T>(len: usize, rest: &[u8], fault: NodeFault) -> Result<T, NodeError> {
    Err(NodeError { offset: len - rest.len(), fault })
}

impl From<DecodeError> for NodeError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        let fault = match error.reason {
            Reason::Expected(_) => NodeFault::Shape,
            reason => NodeFault::Cbor(reason),
        };
        Self { offset: error.offset, fault }
    }
}
