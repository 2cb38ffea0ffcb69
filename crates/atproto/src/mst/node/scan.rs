//! Parsing a node and checking all its rules in one pass.
//!
//! Nearly every entry has one of a few shapes, which [`node_shape`] parses. All others go to [`any_entry`],
//! which parses field by field and reports faults.

use codec::Cid;
use codec::cbor::{self, KeyOrder, Reader};

use super::{Entry, KeyBuffer, Node, NodeError, NodeFault, fail};
use crate::mst::{Limit, MAX_NODE_ENTRIES};
use crate::node_shape::{self, usual_entry};

/// A parsed item, and the rest of the input.
type Parsed<'a, T> = Result<(T, &'a [u8]), NodeError>;

/// Parses a node and calls `visit` with its entries and their keys.
#[inline]
pub(in crate::mst) fn scan<'a>(
    block: &'a [u8],
    key: &mut KeyBuffer,
    visit: impl FnMut(&KeyBuffer, &Entry<'a>),
) -> Result<Node<'a>, NodeError> {
    scan_in_order(block, key, visit).map_err(|error| canonical_first(block, error))
}

/// Replaces the error of a block that is not canonical: that fault takes precedence.
#[cold]
fn canonical_first(block: &[u8], error: NodeError) -> NodeError {
    match cbor::validate(block) {
        Ok(()) => error,
        Err(not_canonical) => not_canonical.into(),
    }
}

#[inline]
fn scan_in_order<'a>(
    block: &'a [u8],
    key: &mut KeyBuffer,
    mut visit: impl FnMut(&KeyBuffer, &Entry<'a>),
) -> Result<Node<'a>, NodeError> {
    let (len, entries) = head(block)?;
    let mut rest = entries;
    key.clear();
    for _ in 0..len {
        let (entry, others) = match usual_entry(rest) {
            Some(read) => read,
            None => any_entry(block.len(), rest)?,
        };
        if let Err(fault) = key.try_advance(entry.prefix_len, entry.suffix) {
            return fail_entry(block.len(), rest, &entry, fault);
        }
        visit(key, &entry);
        rest = others;
    }
    let entries = &entries[..entries.len() - rest.len()];
    Ok(Node { entries, len, left: tail(block.len(), rest)? })
}

/// The first key of a block that is a node; unspecified for other blocks.
pub(in crate::mst) fn first_key(block: &[u8]) -> Option<&[u8]> {
    let (len, rest) = head(block).ok()?;
    let (entry, _) = match usual_entry(rest) {
        _ if len == 0 => None,
        Some(read) => Some(read),
        None => any_entry(block.len(), rest).ok(),
    }?;
    Some(entry.suffix)
}

/// The error of an entry that does not follow the one before it, at the field that shows it.
#[cold]
fn fail_entry<T>(
    len: usize,
    rest: &[u8],
    entry: &Entry<'_>,
    fault: NodeFault,
) -> Result<T, NodeError> {
    let suffix_at = 3;
    let head_len =
        1 + usize::from(entry.suffix.len() >= 24) + usize::from(entry.suffix.len() > 255);
    let prefix_at = suffix_at + head_len + entry.suffix.len() + 2;
    let at = if fault == NodeFault::Prefix { prefix_at } else { suffix_at };
    fail(len, &rest[at..], fault)
}

/// Parses up to the first entry; returns the number of entries.
#[inline]
fn head(block: &[u8]) -> Parsed<'_, usize> {
    match node_shape::usual_head(block) {
        Some(read) => Ok(read),
        None => any_head(block),
    }
}

#[cold]
fn any_head(block: &[u8]) -> Parsed<'_, usize> {
    let mut reader = Reader::new(block);
    let fields = reader.map()?;
    if fields != 2 {
        return fail(block.len(), block, NodeFault::Shape);
    }
    field(&mut reader, &mut KeyOrder::new(), "e")?;
    let at = reader.rest();
    let count = reader.array()?;
    if count > MAX_NODE_ENTRIES {
        return fail(block.len(), at, NodeFault::Limit(Limit::NodeEntries));
    }
    Ok((count, reader.rest()))
}

/// Parses the part after the entries: the child before the first.
#[inline]
fn tail(len: usize, rest: &[u8]) -> Result<Option<Cid>, NodeError> {
    match node_shape::usual_tail(rest) {
        Some(left) => Ok(left),
        None => any_tail(len, rest),
    }
}

#[cold]
fn any_tail(len: usize, rest: &[u8]) -> Result<Option<Cid>, NodeError> {
    let mut reader = Reader::new(rest);
    let mut read = || {
        field(&mut reader, &mut KeyOrder::new(), "l")?;
        let left = child(&mut reader)?;
        reader.clone().finish()?;
        Ok(left)
    };
    read().map_err(|error: NodeError| shifted(len - rest.len(), error))
}

/// Parses an entry of any allowed shape.
#[cold]
#[inline(never)]
pub(super) fn any_entry(len: usize, rest: &[u8]) -> Parsed<'_, Entry<'_>> {
    let mut reader = Reader::new(rest);
    match fields_of_entry(&mut reader) {
        Ok(entry) => Ok((entry, reader.rest())),
        Err(error) => Err(shifted(len - rest.len(), error)),
    }
}

fn fields_of_entry<'a>(reader: &mut Reader<'a>) -> Result<Entry<'a>, NodeError> {
    let start = reader.offset();
    if reader.map()? != 4 {
        return Err(NodeError { offset: start, fault: NodeFault::Shape });
    }
    let mut keys = KeyOrder::new();
    field(reader, &mut keys, "k")?;
    let suffix = reader.bytes()?;
    field(reader, &mut keys, "p")?;
    let prefix_len = prefix_len(reader)?;
    field(reader, &mut keys, "t")?;
    let right = child(reader)?;
    field(reader, &mut keys, "v")?;
    let value = reader.link()?;
    Ok(Entry { prefix_len, suffix, value, right })
}

/// Skips a field's name, which must be this one.
fn field<'a>(
    reader: &mut Reader<'a>,
    keys: &mut KeyOrder<'a>,
    name: &'static str,
) -> Result<(), NodeError> {
    let offset = reader.offset();
    if reader.key(keys)? != name {
        return Err(NodeError { offset, fault: NodeFault::Shape });
    }
    Ok(())
}

fn prefix_len(reader: &mut Reader<'_>) -> Result<usize, NodeError> {
    let offset = reader.offset();
    let len = reader.integer()?;
    let fault = if len < 0 { NodeFault::NegativePrefix } else { NodeFault::Prefix };
    usize::try_from(len).map_err(|_| NodeError { offset, fault })
}

fn child(reader: &mut Reader<'_>) -> Result<Option<Cid>, NodeError> {
    if reader.take_null() {
        return Ok(None);
    }
    let offset = reader.offset();
    let link = reader.link()?;
    match link.to_cid().filter(|_| link.is_dag_cbor()) {
        Some(cid) => Ok(Some(cid)),
        None => Err(NodeError { offset, fault: NodeFault::Link }),
    }
}

/// The error with its offset moved by `by` bytes.
fn shifted(by: usize, error: NodeError) -> NodeError {
    NodeError { offset: by + error.offset, ..error }
}

/// Parses the entry at the start of `rest`, which is already checked.
#[inline]
pub(in crate::mst) fn reread(rest: &[u8]) -> (Entry<'_>, &[u8]) {
    match usual_entry(rest) {
        Some(read) => read,
        None => any_entry(rest.len(), rest).expect("a checked entry"),
    }
}
