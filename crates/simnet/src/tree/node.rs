//! The bytes of one node.
//!
//! ```text
//! node  := {"e": [entry, …], "l": link or null}
//! entry := {"k": rest of the key, "p": bytes shared with the key before, "t": link or null, "v": link}
//! ```

use codec::Cid;

use crate::block::{Block, BlockWriter};

/// A key of a node, with its record and the child to the right of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeEntry<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a Cid,
    pub(super) right: Option<Cid>,
}

/// Writes the node with this child before its first key.
pub(super) fn encode(left: Option<Cid>, entries: &[NodeEntry<'_>]) -> Block {
    let mut out = BlockWriter::new();
    out.map(2).text("e").array(entries.len());
    let mut previous = "";
    for entry in entries {
        let shared = shared_prefix_len(previous, entry.key);
        out.map(4).text("k").bytes(&entry.key.as_bytes()[shared..]);
        out.text("p").integer(shared as i64);
        out.text("t").link_or_null(entry.right.as_ref());
        out.text("v").link(entry.value.as_cid_ref());
        previous = entry.key;
    }
    out.text("l").link_or_null(left.as_ref());
    out.into_block()
}

/// How many bytes two keys start with in common.
pub(crate) fn shared_prefix_len(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
