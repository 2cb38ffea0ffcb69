//! Messages as bytes, packed or not, and the checks that keep decoding in bounds.

use ::capnp::message::{Builder, HeapAllocator, Reader, ReaderOptions, ReaderSegments};
use ::capnp::serialize::{self, NoAllocSliceSegments};
use ::capnp::serialize_packed;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use crate::codec::or_truncate;
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Reason};

/// A message that is read in place.
pub(super) type Message<'a> = Reader<NoAllocSliceSegments<'a>>;

/// Appends the message that `build` creates, of at most `words` words; `build` may use the end of the vector that
/// it receives as scratch memory.
pub(super) fn write(
    is_packed: bool,
    words: usize,
    out: &mut Vec<u8>,
    build: impl FnOnce(&mut Builder<HeapAllocator>, &mut Vec<u8>),
) -> Result<(), EncodeError> {
    EncodeError::at_most("words of a message", words, MAX_WORDS)?;
    let mut message = Builder::new(HeapAllocator::new().first_segment_words(words as u32));
    build(&mut message, out);
    if !is_packed {
        serialize::write_message(&mut *out, &message).expect(INFALLIBLE);
        return Ok(());
    }
    or_truncate(out, |out| {
        let start = out.len();
        serialize_packed::write_message(&mut *out, &message).expect(INFALLIBLE);
        let max = max_unpacked(out.len() - start);
        EncodeError::at_most("unpacked bytes", 8 * serialized_words(&message), max)
    })
}

fn serialized_words(message: &Builder<HeapAllocator>) -> usize {
    serialize::compute_serialized_size_in_words(message)
}

/// Reads `bytes`, which must be exactly one message; a packed one is unpacked into the arena.
pub(super) fn read<'a>(
    is_packed: bool,
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a Message<'a>, DecodeError> {
    let message = if is_packed {
        unpack(bytes, arena, limits)?
    } else {
        open(bytes, visit_once(bytes.len()))?
    };
    Ok(arena.alloc(message))
}

/// Length of the segments of a message in bytes.
pub(super) fn len(message: &Message<'_>) -> usize {
    8 * message.size_in_words()
}

/// Reads a message for access to single fields, any number of times.
pub(super) fn open_for_fields(bytes: &[u8]) -> Result<Message<'_>, DecodeError> {
    open(bytes, *ReaderOptions::new().traversal_limit_in_words(None).nesting_limit(MAX_DEPTH))
}

fn open(bytes: &[u8], options: ReaderOptions) -> Result<Message<'_>, DecodeError> {
    let mut rest = bytes;
    let message = serialize::read_message_from_flat_slice_no_alloc(&mut rest, options);
    let message = message.map_err(convert_error)?;
    if !rest.is_empty() {
        return Err(DecodeError::new(bytes.len() - rest.len(), Reason::TrailingBytes));
    }
    check_segments(message, options)
}

fn unpack<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Message<'a>, DecodeError> {
    let len = unpacked_len(bytes)?;
    if len > max_unpacked(bytes.len()) {
        return Err(DecodeError::new(
            0,
            Reason::Expected("a message that unpacks to at most 16 times its length and 4 KiB"),
        ));
    }
    limits.take(len, 0)?;
    let unpacked = arena.alloc_slice_fill_copy(len, 0);
    let mut rest = bytes;
    let message = serialize_packed::read_message_no_alloc(&mut rest, unpacked, visit_once(len));
    let message = message.map_err(convert_error)?;
    if !rest.is_empty() {
        return Err(DecodeError::new(bytes.len() - rest.len(), Reason::TrailingBytes));
    }
    check_segments(message, visit_once(len))
}

/// The unpacked bytes of a message that was decoded before, so that it is whole and their number is bounded.
pub(super) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let (mut rest, mut words) = (packed.iter().copied(), Vec::new());
    while let Some(tag) = rest.next() {
        let byte = |bit: u8| if tag >> bit & 1 == 1u8 { rest.next().unwrap_or(0) } else { 0 };
        words.extend((0..8).map(byte));
        if matches!(tag, 0 | 0xff) {
            let run = 8 * usize::from(rest.next().unwrap_or(0));
            match tag {
                0 => words.resize(words.len() + run, 0),
                _ => words.extend(rest.by_ref().take(run)),
            }
        }
    }
    words
}

/// Length of `packed` when unpacked, in bytes.
fn unpacked_len(packed: &[u8]) -> Result<usize, DecodeError> {
    let (mut at, mut words) = (0, 0);
    while let Some(tag) = packed.get(at) {
        at += 1 + tag.count_ones() as usize;
        words += 1;
        if matches!(tag, 0 | 0xff) {
            let run = packed.get(at).copied().map_or(0, usize::from);
            at += 1 + if *tag == 0 { 0 } else { 8 * run };
            words += run;
        }
    }
    if at > packed.len() {
        return Err(DecodeError::new(packed.len(), Reason::Truncated));
    }
    Ok(8 * words)
}

/// Maximum unpacked length in bytes, which bounds the memory that a sender can make the decoder allocate.
fn max_unpacked(packed_len: usize) -> usize {
    16 * packed_len + 4096
}

/// Rejects a long table of segments: every access to a segment walks the table.
fn check_segments(
    message: Message<'_>,
    options: ReaderOptions,
) -> Result<Message<'_>, DecodeError> {
    let segments = message.into_segments();
    if segments.len() > MAX_SEGMENTS {
        return Err(DecodeError::new(0, Reason::Expected("at most 32 segments")));
    }
    Ok(Reader::new(segments, options))
}

/// Reader options for a message of `len` bytes whose objects are visited once.
fn visit_once(len: usize) -> ReaderOptions {
    *ReaderOptions::new().traversal_limit_in_words(Some(len / 8)).nesting_limit(MAX_DEPTH)
}

/// Collects the items of a list in the arena, at most `max` of which can be valid: memory is reserved for no more.
pub(super) fn collect<L, T, E>(
    list: L,
    max: usize,
    arena: &Bump,
    mut read: impl FnMut(T) -> Result<E, DecodeError>,
) -> Result<&[E], DecodeError>
where
    L: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
{
    let list = list.into_iter();
    let mut items = BumpVec::with_capacity_in(list.len().min(max), arena);
    for item in list {
        items.push(read(item)?);
    }
    Ok(items.into_bump_slice())
}

/// The bytes that a message was read from, for the offsets of errors.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a>(pub(super) &'a [u8]);

impl Origin<'_> {
    /// The offset of `part`; 0 if it is not in these bytes.
    pub(super) fn offset(self, part: &[u8]) -> usize {
        let offset = part.as_ptr().addr().wrapping_sub(self.0.as_ptr().addr());
        if offset <= self.0.len() { offset } else { 0 }
    }

    /// The error `reason` at `part`.
    #[cold]
    pub(super) fn error(self, part: &[u8], reason: Reason) -> DecodeError {
        DecodeError::new(self.offset(part), reason)
    }
}

#[cold]
pub(super) fn convert_error(error: ::capnp::Error) -> DecodeError {
    use ::capnp::ErrorKind as Kind;
    let reason = match error.kind {
        Kind::MessageEndsPrematurely(..)
        | Kind::PrematureEndOfFile
        | Kind::PrematureEndOfPackedInput
        | Kind::FailedToFillTheWholeBuffer => Reason::Truncated,
        Kind::MessageContainsOutOfBoundsPointer => Reason::Expected("a pointer into the message"),
        Kind::ReadLimitExceeded => Reason::Expected("a message without shared objects"),
        _ => Reason::Expected("a Cap'n Proto message"),
    };
    DecodeError::new(0, reason)
}

/// Maximum size of a message in words, so that every length fits its field.
pub(super) const MAX_WORDS: usize = 1 << 28;

const INFALLIBLE: &str = "writing to a vector cannot fail";

/// Maximum number of segments: enough for a builder that doubles them, up to the longest message.
const MAX_SEGMENTS: usize = 32;

/// Maximum nesting depth; a batch by the schema has structs of lists of lists of structs of text.
const MAX_DEPTH: i32 = 8;
