//! Do the keys stand in the layers of their hashes? Asked for many keys together, in the lanes.

use codec::Cid;
use kernels::sha256::{self, Digest};

use crate::mst::height::height_of;
use crate::mst::node::{KeyBuffer, Node};
use crate::mst::{TreeError, TreeFault};

/// Keys that wait to be hashed, each with the layer in which it was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Heights<'a> {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// Whose they are: the nodes in order.
    spans: Vec<Span<'a>>,
    /// What was found wrong, in order.
    faults: Vec<TreeError>,
}

/// Keys of one node that follow one another.
#[derive(Clone, Copy, Debug)]
struct Span<'a> {
    cid: Cid,
    block: &'a [u8],
    layer: u8,
    /// The first key's index in the node.
    first: usize,
    len: usize,
}

impl<'a> Heights<'a> {
    /// Begins with the keys of the node `cid`, which stands in `layer`.
    pub(super) fn begin(&mut self, cid: Cid, block: &'a [u8], layer: u8) {
        self.spans.push(Span { cid, block, layer, first: 0, len: 0 });
    }

    /// Takes the next key of the node.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) {
        if self.ends.len() == BATCH {
            self.split();
        }
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.spans.last_mut().expect("a node was begun").len += 1;
    }

    /// Hashes a batch that ends inside a node.
    #[cold]
    fn split(&mut self) {
        let last = *self.spans.last().expect("a node was begun");
        self.check();
        self.spans.push(Span { first: last.first + last.len, len: 0, ..last });
    }

    /// Forgets the keys of the node that was begun last: it is none.
    pub(super) fn drop_last(&mut self) {
        if let Some(span) = self.spans.pop() {
            self.ends.truncate(self.ends.len() - span.len);
            self.keys.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }

    /// Whether so many keys wait that hashing them is worth it.
    pub(super) fn is_ready(&self) -> bool {
        self.ends.len() >= BATCH / 2
    }

    /// Hashes what waits, and answers what was found wrong since the last call, in order.
    pub(super) fn check(&mut self) -> &mut Vec<TreeError> {
        let mut messages: [&[u8]; BATCH] = [&[]; BATCH];
        let mut digests: [Digest; BATCH] = [[0; 32]; BATCH];
        let mut start = 0;
        for (message, end) in messages.iter_mut().zip(&self.ends) {
            *message = &self.keys[start..*end];
            start = *end;
        }
        let count = self.ends.len();
        sha256::digest_many_into(&messages[..count], &mut digests[..count]);
        let mut rest = &digests[..count];
        for span in &self.spans {
            let (own, behind) = rest.split_at(span.len);
            rest = behind;
            if let Some(at) = own.iter().position(|digest| height_of(digest) != span.layer) {
                self.faults.push(span.fault(at, own));
            }
        }
        self.keys.clear();
        self.ends.clear();
        self.spans.clear();
        &mut self.faults
    }
}

impl Span<'_> {
    /// The fault of the key at index `at` of the span, whose keys have these hashes.
    #[cold]
    fn fault(&self, at: usize, digests: &[Digest]) -> TreeError {
        let index = self.first + at;
        let height = height_of(&digests[0]);
        let is_one_lower_layer =
            height < self.layer && digests.iter().all(|digest| height_of(digest) == height);
        let fault = if is_one_lower_layer { TreeFault::SkippedLayer } else { TreeFault::Layer };
        let node = Node::parse(self.block).expect("a node that was read before");
        let entry = node.entries().nth(index).expect("an entry that was read before");
        TreeError::at(self.cid, key_offset(self.block, entry.suffix), fault)
    }
}

/// Bytes from the start of a node's block to the field `k` that holds `suffix`, a part of it.
#[cold]
pub(super) fn key_offset(block: &[u8], suffix: &[u8]) -> usize {
    let head_len = 1 + usize::from(suffix.len() >= 24) + usize::from(suffix.len() > 255);
    suffix.as_ptr() as usize - block.as_ptr() as usize - head_len
}

/// The key of the entry whose field `k` stands at `offset` of a node's block, if there is one.
pub(super) fn key_at(block: &[u8], offset: usize) -> Option<Vec<u8>> {
    let node = Node::parse(block).ok()?;
    let mut key = KeyBuffer::new();
    for entry in node.entries() {
        key.advance(&entry);
        if key_offset(block, entry.suffix) == offset {
            return Some(key.as_bytes().to_vec());
        }
    }
    None
}

/// Keys that are hashed together.
const BATCH: usize = 256;
