//! Negentropy, version 1: two sides find the ids that either of them lacks, without sending all of them (NIP-77).
//!
//! Both sides have ids in the order of creation times and ids. A message covers the whole order with ranges up to bounds, and
//! describes its sender's ids in every range:
//!
//! ```text
//! message:  0x61, then ranges: bound, mode, payload
//! bound:    time (0 for infinity, else 1 + the difference to the bound before), length of a prefix of an id, the prefix
//! mode 0:   nothing to say
//! mode 1:   16 bytes: SHA-256 of the sum of the ids modulo 2^256 (little endian) and their number, truncated
//! mode 2:   the number of ids, the ids
//! ```
//!
//! Numbers are varints of 7 bits a byte, the most significant first. A receiver splits ranges with another fingerprint, into 16
//! or, if it has few ids in one, into the ids themselves. Whoever opened the exchange compares lists of ids and answers nothing
//! to them, so that ranges become fewer and an exchange ends when the answer is empty.
//!
//! ```
//! use wireproof::nostr::negentropy::{self, Item, Items};
//!
//! let item = |created_at, byte| Item { created_at, id: [byte; 32] };
//! let ours = Items::from_iter([item(10, 1), item(20, 2)]);
//! let theirs = Items::from_iter([item(10, 1), item(20, 2), item(20, 3)]);
//!
//! let mut missing = Vec::new();
//! let mut message = negentropy::open(&ours);
//! loop {
//!     let reply = negentropy::answer(&theirs, &message, negentropy::MIN_MESSAGE_BYTES)?;
//!     let round = negentropy::compare(&ours, &reply, negentropy::MIN_MESSAGE_BYTES)?;
//!     missing.extend(round.missing);
//!     let Some(next) = round.reply else { break };
//!     message = next;
//! }
//! assert_eq!(missing, [[3; 32]]);
//! # Ok::<(), wireproof::nostr::DecodeError>(())
//! ```
//!
//! The work on a message is linear in its length and the number of items.

mod message;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use kernels::sha256;

use crate::DecodeError;
use message::{Bound, Fingerprint, Range, RangeReader, RangeWriter, write_varint};

/// An id and its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Creation time of the event in seconds since 1970.
    pub created_at: u64,
    /// Id of the event.
    pub id: [u8; 32],
}

/// Different items in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items(Vec<Item>);

impl FromIterator<Item> for Items {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        let mut items: Vec<Item> = items.into_iter().collect();
        items.sort_unstable();
        items.dedup();
        Self(items)
    }
}

impl Items {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the item is one of them.
    pub fn contains(&self, item: &Item) -> bool {
        self.0.binary_search(item).is_ok()
    }

    /// The index of the first item from `start` on that is not before the bound.
    fn end_of(&self, start: usize, bound: &Bound) -> usize {
        start + self.0[start..].partition_point(|item| bound.is_after(item))
    }

    fn fingerprint(&self, start: usize, end: usize) -> Fingerprint {
        let mut sum = Sum::default();
        self.0[start..end].iter().for_each(|item| sum.add(&item.id));
        sum.fingerprint(end - start)
    }
}

/// The answer of a message to the side that opened the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Ids of the other side that are not among ours; another round can name one again.
    pub missing: Vec<[u8; 32]>,
    /// The next message to send; `None` at the end of the exchange.
    pub reply: Option<Vec<u8>>,
}

/// The first message of an exchange about `items`. It has less than [`MIN_MESSAGE_BYTES`].
pub fn open(items: &Items) -> Vec<u8> {
    let mut writer = RangeWriter::new();
    split(items, 0, items.len(), Bound::INFINITE, &mut writer);
    writer.into_bytes()
}

/// Compares `message`, the answer to ours, with `items`. The reply has at most `max_bytes`.
///
/// # Errors
/// If the message breaks a rule of the protocol.
///
/// # Panics
/// If `max_bytes` is less than [`MIN_MESSAGE_BYTES`].
pub fn compare(items: &Items, message: &[u8], max_bytes: usize) -> Result<Round, DecodeError> {
    let mut missing = Vec::new();
    let bytes = respond(items, message, max_bytes, |start, end, ids, _| {
        let mut theirs: HashSet<&[u8; 32]> = ids.iter().collect();
        for item in &items.0[start..end] {
            theirs.remove(&item.id);
        }
        // In their order, so that the result follows from the message.
        missing.extend(ids.iter().filter(|id| theirs.remove(id)));
        Listed::Done
    })?;
    // Nothing but the version: all ranges are equal or compared.
    Ok(Round { missing, reply: (bytes.len() > 1).then_some(bytes) })
}

/// Answers `message`, of the side that opened the exchange, from `items`. The answer has at most `max_bytes`.
///
/// # Errors
/// If the message breaks a rule of the protocol.
///
/// # Panics
/// If `max_bytes` is less than [`MIN_MESSAGE_BYTES`].
pub fn answer(items: &Items, message: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecodeError> {
    respond(items, message, max_bytes, |start, end, _, room| {
        let count = (end - start).min(room / size_of::<[u8; 32]>());
        Listed::Answer(start + count)
    })
}

/// The next step after a list of ids.
enum Listed {
    /// Nothing.
    Done,
    /// The answer lists our ids up to this index.
    Answer(usize),
}

/// The answer to a message. `list` is called with a range of items, the ids that the other side has there, and the bytes that
/// a list may have.
fn respond(
    items: &Items,
    message: &[u8],
    max_bytes: usize,
    mut list: impl FnMut(usize, usize, &[[u8; 32]], usize) -> Listed,
) -> Result<Vec<u8>, DecodeError> {
    assert!(max_bytes >= MIN_MESSAGE_BYTES, "{max_bytes} bytes are too few for a message");
    let mut ranges = RangeReader::new(message)?;
    let (mut writer, mut start) = (RangeWriter::new(), 0);
    while let Some((bound, range)) = ranges.next_range()? {
        let mut end = items.end_of(start, &bound);
        match range {
            Range::Skip => writer.skip(bound),
            Range::Fingerprint(theirs) if theirs == items.fingerprint(start, end) => {
                writer.skip(bound);
            }
            Range::Fingerprint(_) => split(items, start, end, bound, &mut writer),
            Range::Ids(ids) => {
                let room = (max_bytes - RESERVED_BYTES).saturating_sub(writer.len());
                match list(start, end, ids, room) {
                    Listed::Done => writer.skip(bound),
                    Listed::Answer(to) => {
                        let is_whole = to == end;
                        let bound = if is_whole { bound } else { Bound::of(&items.0[to]) };
                        writer.ids(bound, items.0[start..to].iter().map(|item| &item.id));
                        end = to;
                        if !is_whole {
                            writer.rest(items.fingerprint(end, items.len()));
                            break;
                        }
                    }
                }
            }
        }
        if writer.len() > max_bytes - RESERVED_BYTES {
            // Unanswered ranges are compared again in the next round.
            writer.rest(items.fingerprint(end, items.len()));
            break;
        }
        start = end;
    }
    Ok(writer.into_bytes())
}

/// Writes ranges up to `bound` for these items: 16 with fingerprints, or one with few ids.
fn split(items: &Items, start: usize, end: usize, bound: Bound, writer: &mut RangeWriter) {
    let count = end - start;
    if count < 2 * BUCKETS {
        return writer.ids(bound, items.0[start..end].iter().map(|item| &item.id));
    }
    let mut from = start;
    for bucket in 0..BUCKETS {
        let to = from + count / BUCKETS + usize::from(bucket < count % BUCKETS);
        let bound = if to == end { bound } else { Bound::between(&items.0[to - 1], &items.0[to]) };
        writer.fingerprint(bound, items.fingerprint(from, to));
        from = to;
    }
}

/// A sum of ids, little-endian numbers of 256 bits, modulo 2^256.
#[derive(Default)]
struct Sum([u64; 4]);

impl Sum {
    fn add(&mut self, id: &[u8; 32]) {
        let mut carry = false;
        for (limb, bytes) in self.0.iter_mut().zip(id.as_chunks::<8>().0) {
            let (sum, first) = limb.overflowing_add(u64::from_le_bytes(*bytes));
            let (sum, second) = sum.overflowing_add(carry.into());
            (*limb, carry) = (sum, first || second);
        }
    }

    fn fingerprint(&self, count: usize) -> Fingerprint {
        let mut input: Vec<u8> = self.0.iter().flat_map(|limb| limb.to_le_bytes()).collect();
        write_varint(count as u64, &mut input);
        let digest = sha256::digest(&input);
        *digest.first_chunk().expect("half of a digest")
    }
}

/// Least maximum size of a message in bytes.
pub const MIN_MESSAGE_BYTES: usize = 4096;

/// Bytes that a message is long after its limit is noticed: the ranges of one split, and the one of the rest.
const RESERVED_BYTES: usize = 2 * BUCKETS * 32 + 256;

/// Ranges into which one is split.
const BUCKETS: usize = 16;
