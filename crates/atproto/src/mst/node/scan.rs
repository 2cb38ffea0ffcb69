//! Reading a node under all rules, in one pass.
//!
//! Nearly every entry has one of a few shapes, and [`usual_entry`] knows them. Whatever it does not
//! know goes to [`any_entry`], which reads by the fields and says what is allowed and what is wrong.

use codec::cbor::{self, KeyOrder, Reader};
use codec::{Cid, CidRef};

use super::error::{NodeError, NodeFault, fail};
use super::key::KeyBuffer;
use super::{Entry, Node};
use crate::mst::{Limit, MAX_NODE_ENTRIES};

/// What was read, and what is left.
type Read<'a, T> = Result<(T, &'a [u8]), NodeError>;

/// Reads a node, and shows each entry together with its key.
#[inline]
pub(in crate::mst) fn scan<'a>(
    block: &'a [u8],
    key: &mut KeyBuffer,
    visit: impl FnMut(&KeyBuffer, &Entry<'a>),
) -> Result<Node<'a>, NodeError> {
    scan_in_order(block, key, visit).map_err(|error| canonical_first(block, error))
}

/// A block that is not canonical has that fault, whatever else is amiss.
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
        let (entry, behind) = match usual_entry(rest) {
            Some(read) => read,
            None => any_entry(block.len(), rest)?,
        };
        if let Err(fault) = key.try_advance(entry.prefix_len, entry.suffix) {
            return misfit(block.len(), rest, &entry, fault);
        }
        visit(key, &entry);
        rest = behind;
    }
    let entries = &entries[..entries.len() - rest.len()];
    Ok(Node { entries, len, left: tail(block.len(), rest)? })
}

/// The first key of a block that is a node; of others something, or nothing.
pub(in crate::mst) fn first_key(block: &[u8]) -> Option<&[u8]> {
    let (len, rest) = head(block).ok()?;
    let (entry, _) = match usual_entry(rest) {
        _ if len == 0 => None,
        Some(read) => Some(read),
        None => any_entry(block.len(), rest).ok(),
    }?;
    Some(entry.suffix)
}

/// An entry that does not follow the one before it, at the field that shows it.
#[cold]
fn misfit<T>(len: usize, rest: &[u8], entry: &Entry<'_>, fault: NodeFault) -> Result<T, NodeError> {
    let suffix_at = 3;
    let head_len =
        1 + usize::from(entry.suffix.len() >= 24) + usize::from(entry.suffix.len() > 255);
    let prefix_at = suffix_at + head_len + entry.suffix.len() + 2;
    let at = if fault == NodeFault::Prefix { prefix_at } else { suffix_at };
    fail(len, &rest[at..], fault)
}

/// Reads up to the first entry: how many there are.
#[inline]
fn head(block: &[u8]) -> Read<'_, usize> {
    match block {
        [0xa2, 0x61, b'e', count @ 0x80..=0x97, rest @ ..] => Ok((usize::from(count & 0x1f), rest)),
        _ => any_head(block),
    }
}

#[cold]
fn any_head(block: &[u8]) -> Read<'_, usize> {
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

/// Reads what follows the entries: the child before the first.
#[inline]
fn tail(len: usize, rest: &[u8]) -> Result<Option<Cid>, NodeError> {
    match rest {
        [0x61, b'l', 0xf6] => Ok(None),
        [0x61, b'l', child @ ..] if let Some((cid, [])) = usual_child(child) => Ok(Some(cid)),
        _ => any_tail(len, rest),
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
    read().map_err(|error: NodeError| behind(len - rest.len(), error))
}

/// Reads an entry of the usual shape: lengths below 256, links of 36 bytes. `None` of any other.
#[inline(always)]
pub(super) fn usual_entry(rest: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (suffix, rest) = match rest {
        [0xa4, 0x61, b'k', head @ 0x40..=0x57, rest @ ..] => {
            rest.split_at_checked(usize::from(head & 0x1f))?
        }
        [0xa4, 0x61, b'k', 0x58, len @ 24..=255, rest @ ..] => {
            rest.split_at_checked(usize::from(*len))?
        }
        _ => return None,
    };
    let (prefix_len, rest) = match rest {
        [0x61, b'p', len @ 0..=23, 0x61, b't', rest @ ..] => (usize::from(*len), rest),
        [0x61, b'p', 0x18, len @ 24..=255, 0x61, b't', rest @ ..] => (usize::from(*len), rest),
        _ => return None,
    };
    let (right, rest) = match rest {
        [0xf6, rest @ ..] => (None, rest),
        _ => {
            let (child, rest) = usual_child(rest)?;
            (Some(child), rest)
        }
    };
    let rest = rest.strip_prefix(b"\x61v\xd8\x2a\x58\x25\x00")?;
    let (value, rest) = rest.split_first_chunk::<{ Cid::LEN }>()?;
    let value = CidRef::from_bytes(value)?;
    Some((Entry { prefix_len, suffix, value, right }, rest))
}

/// Reads a link to a child.
#[inline(always)]
fn usual_child(rest: &[u8]) -> Option<(Cid, &[u8])> {
    let rest = rest.strip_prefix(b"\xd8\x2a\x58\x25\x00\x01\x71\x12\x20")?;
    let (digest, rest) = rest.split_first_chunk()?;
    Some((Cid::from_digest(codec::cid::Codec::DagCbor, digest), rest))
}

/// Reads an entry of any shape that is allowed.
#[cold]
#[inline(never)]
pub(super) fn any_entry(len: usize, rest: &[u8]) -> Read<'_, Entry<'_>> {
    let mut reader = Reader::new(rest);
    match fields_of_entry(&mut reader) {
        Ok(entry) => Ok((entry, reader.rest())),
        Err(error) => Err(behind(len - rest.len(), error)),
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

/// Steps over a field's name, which must be this one.
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
    usize::try_from(len).map_err(|_| NodeError { offset, fault: NodeFault::Prefix })
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

/// An error of what starts `before` bytes into the block.
fn behind(before: usize, error: NodeError) -> NodeError {
    NodeError { offset: before + error.offset, ..error }
}

/// Reads the entry at the start of `rest`, which was read before.
#[inline]
pub(super) fn read_again(rest: &[u8]) -> (Entry<'_>, &[u8]) {
    match usual_entry(rest) {
        Some(read) => read,
        None => any_entry(rest.len(), rest).expect("an entry that was read before"),
    }
}
