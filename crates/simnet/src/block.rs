//! DAG-CBOR blocks together with counts of the items written into them.
//!
//! The counts come from the calls that write, not from reading the bytes back, so that they can be the
//! expected result of a decoder.

use codec::car;
use codec::cbor::{Encoder, ItemCounts};
use codec::cid::{Cid, CidRef, Codec};

/// A DAG-CBOR block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The CID.
    pub cid: Cid,
    /// The data.
    pub data: Vec<u8>,
    /// Counts of the items written into the data.
    pub counts: ItemCounts,
}

/// A DAG-CBOR block whose CID is not computed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnhashedBlock {
    /// The data.
    pub data: Vec<u8>,
    /// Counts of the items written into the data.
    pub counts: ItemCounts,
}

impl UnhashedBlock {
    /// Computes the CID.
    pub fn into_block(self) -> Block {
        let cid = Cid::of(Codec::DagCbor, &self.data);
        Block { cid, data: self.data, counts: self.counts }
    }
}

/// An [`Encoder`] that counts the items it writes.
#[derive(Debug, Default)]
pub struct BlockWriter {
    encoder: Encoder,
    counts: ItemCounts,
}

impl BlockWriter {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The data.
    pub fn into_unhashed(self) -> UnhashedBlock {
        UnhashedBlock { data: self.encoder.into_bytes(), counts: self.counts }
    }

    /// The data and its CID.
    pub fn into_block(self) -> Block {
        self.into_unhashed().into_block()
    }

    /// Appends an integer.
    pub fn integer(&mut self, integer: i64) -> &mut Self {
        self.counts.integers += 1;
        self.encoder.integer(integer);
        self
    }

    /// Appends text, or the key of an entry.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.counts.text_bytes += text.len() as u64;
        self.encoder.text(text);
        self
    }

    /// Appends a byte string.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.counts.byte_string_bytes += bytes.len() as u64;
        self.encoder.bytes(bytes);
        self
    }

    /// Appends a link.
    pub fn link(&mut self, cid: CidRef<'_>) -> &mut Self {
        self.counts.links += 1;
        self.encoder.link(cid);
        self
    }

    /// Appends a link, or null for none.
    pub fn link_or_null(&mut self, cid: Option<&Cid>) -> &mut Self {
        match cid {
            Some(cid) => self.link(cid.as_cid_ref()),
            None => self.null(),
        }
    }

    /// Appends null.
    pub fn null(&mut self) -> &mut Self {
        self.counts.nulls += 1;
        self.encoder.null();
        self
    }

    /// Appends false or true.
    pub fn boolean(&mut self, boolean: bool) -> &mut Self {
        self.counts.booleans += 1;
        self.encoder.boolean(boolean);
        self
    }

    /// Appends the head of an array; `count` items must follow.
    pub fn array(&mut self, count: usize) -> &mut Self {
        self.counts.arrays += 1;
        self.counts.array_items += count as u64;
        self.encoder.array(count);
        self
    }

    /// Appends the head of a map; `count` keys in canonical order must follow, with their values.
    pub fn map(&mut self, count: usize) -> &mut Self {
        self.counts.maps += 1;
        self.counts.map_entries += count as u64;
        self.encoder.map(count);
        self
    }
}

/// A CAR archive of these blocks.
pub(crate) fn archive<'b>(
    roots: &[Cid],
    blocks: impl IntoIterator<Item = (&'b Cid, &'b [u8])>,
) -> Vec<u8> {
    let mut car = car::Writer::new(Vec::new(), roots).expect(IN_MEMORY);
    blocks.into_iter().for_each(|(cid, data)| car.block(cid, data).expect(IN_MEMORY));
    car.into_inner()
}

/// The reason that writing an archive to a `Vec` cannot fail.
pub(crate) const IN_MEMORY: &str = "writing to memory does not fail";
