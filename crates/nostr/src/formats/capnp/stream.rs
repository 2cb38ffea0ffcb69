//! How do messages become bytes, packed or not, and bytes messages?

use bumpalo::Bump;
use capnp::message::{Builder, HeapAllocator, Reader, ReaderOptions, ReaderSegments};
use capnp::serialize::{self, NoAllocSliceSegments};
use capnp::serialize_packed;

use super::{MAX_WORDS, refused};
use crate::formats::or_undo;
use crate::{DecodeError, EncodeError, Reason};

/// A message that is read where it stands.
pub(super) type Message<'a> = Reader<NoAllocSliceSegments<'a>>;

/// Appends the message that `build` makes, of `words` at most; `build` may use the end of the vector that
/// it is given as its scratch.
pub(super) fn write(
    is_packed: bool,
    words: usize,
    out: &mut Vec<u8>,
    build: impl FnOnce(&mut Builder<HeapAllocator>, &mut Vec<u8>),
) -> Result<(), EncodeError> {
    EncodeError::at_most("words of a message", words, MAX_WORDS)?;
    let mut message = Builder::new(HeapAllocator::new().first_segment_words(words as u32));
    build(&mut message, out);
    let told = "a vector takes every byte";
    if !is_packed {
        serialize::write_message(&mut *out, &message).expect(told);
        return Ok(());
    }
    or_undo(out, |out| {
        let start = out.len();
        serialize_packed::write_message(&mut *out, &message).expect(told);
        let most = most_unpacked(out.len() - start);
        EncodeError::at_most("bytes to unpack", 8 * serialized_words(&message), most)
    })
}

fn serialized_words(message: &Builder<HeapAllocator>) -> usize {
    serialize::compute_serialized_size_in_words(message)
}

/// The message that all of `bytes` are, unpacked into the arena if it is packed.
pub(super) fn read<'a>(
    is_packed: bool,
    bytes: &'a [u8],
    arena: &'a Bump,
) -> Result<&'a Message<'a>, DecodeError> {
    let message = if is_packed { unpack(bytes, arena)? } else { open(bytes, once(bytes.len()))? };
    Ok(arena.alloc(message))
}

/// As [`read`], for who follows single pointers as often as he likes.
pub(super) fn open_for_fields(bytes: &[u8]) -> Result<Message<'_>, DecodeError> {
    open(bytes, *ReaderOptions::new().traversal_limit_in_words(None).nesting_limit(MAX_DEPTH))
}

fn open(bytes: &[u8], options: ReaderOptions) -> Result<Message<'_>, DecodeError> {
    let mut rest = bytes;
    let message = serialize::read_message_from_flat_slice_no_alloc(&mut rest, options);
    let message = message.map_err(refused)?;
    if !rest.is_empty() {
        return Err(DecodeError::new(bytes.len() - rest.len(), Reason::TrailingBytes));
    }
    of_few_segments(message, options)
}

fn unpack<'a>(bytes: &'a [u8], arena: &'a Bump) -> Result<Message<'a>, DecodeError> {
    let len = unpacked_len(bytes)?;
    if len > most_unpacked(bytes.len()) {
        return Err(DecodeError::new(0, Reason::Expected("a message that unpacks to less")));
    }
    let unpacked = arena.alloc_slice_fill_copy(len, 0);
    let mut rest = bytes;
    let message = serialize_packed::read_message_no_alloc(&mut rest, unpacked, once(len));
    let message = message.map_err(refused)?;
    if !rest.is_empty() {
        return Err(DecodeError::new(bytes.len() - rest.len(), Reason::TrailingBytes));
    }
    of_few_segments(message, once(len))
}

/// How many bytes packed ones stand for.
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

/// What bytes may unpack to, and nobody can make us take more memory than that.
fn most_unpacked(packed_len: usize) -> usize {
    16 * packed_len + 4096
}

/// Each look at a segment walks the table, so it must not be long.
fn of_few_segments(
    message: Message<'_>,
    options: ReaderOptions,
) -> Result<Message<'_>, DecodeError> {
    let segments = message.into_segments();
    if segments.len() > MAX_SEGMENTS {
        return Err(DecodeError::new(0, Reason::Expected("32 segments at most")));
    }
    Ok(Reader::new(segments, options))
}

/// What is in the message of `len` bytes is followed once.
fn once(len: usize) -> ReaderOptions {
    *ReaderOptions::new().traversal_limit_in_words(Some(len / 8)).nesting_limit(MAX_DEPTH)
}

/// A builder that doubles its segments needs no more for the longest message.
const MAX_SEGMENTS: usize = 32;

/// Levels of a batch by the schema: structs of lists of lists of structs of text.
const MAX_DEPTH: i32 = 8;
