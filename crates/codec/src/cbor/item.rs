//! Reading one head or one scalar under the canonical rules: the ground that the scanner and the
//! typed decoders share.
//!
//! Every function takes what is left of the input and answers what it read and what is left behind
//! it. The place in the input travels by value, in registers: kept in a struct behind a reference it
//! would go through memory at each step, and scanning takes 1.4 times as long. For the same reason
//! what comes back from a function that is not inlined is taken apart and put together again: handed
//! on whole, it would pull the usual path into memory too.
//!
//! | first byte | |
//! |---|---|
//! | top 3 bits | kind: unsigned, negative, bytes, text, array, map, tag, simple |
//! | low 5 bits, 0–23 | the number itself |
//! | 24, 25, 26, 27 | the number follows in 1, 2, 4, 8 bytes, and must need them |

use std::cmp::Ordering;

use kernels::utf8;

use super::error::{DecodeError, Reason};
use crate::cid::{Cid, CidRef};

/// A broken rule, with the place counted from the end: how much of the input was left.
///
/// In eight bytes, so that a slice or a refusal together fit the two registers of a return value:
/// through memory, a scan takes 1.08 times as long. Places in inputs beyond 2⁴⁸ bytes, more
/// than a machine holds, would be told wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    left_low: u32,
    left_high: u16,
    reason: Reason,
}

const _: () = assert!(size_of::<Result<&[u8], Refusal>>() == 16);

impl Refusal {
    fn new(left: usize, reason: Reason) -> Self {
        Self { left_low: left as u32, left_high: (left as u64 >> 32) as u16, reason }
    }

    /// The refusal as seen from the start of an input of `len` bytes.
    #[cold]
    pub(super) fn within(self, len: usize) -> DecodeError {
        let left = u64::from(self.left_high) << 32 | u64::from(self.left_low);
        DecodeError { offset: len - left as usize, reason: self.reason }
    }
}

/// The refusal of the item at the start of `rest`.
#[cold]
#[inline(never)]
pub(super) fn refuse<T>(rest: &[u8], reason: Reason) -> Result<T, Refusal> {
    Err(Refusal::new(rest.len(), reason))
}

/// What was read, and what is left.
pub(super) type Read<'a, T> = Result<(T, &'a [u8]), Refusal>;

/// Reads one head: the number in it. The kind is in the first byte, which the caller has seen.
#[inline(always)]
pub(super) fn number(rest: &[u8]) -> Read<'_, u64> {
    match rest {
        [byte, behind @ ..] if byte & 0x1f < 24 => Ok((u64::from(byte & 0x1f), behind)),
        [byte, number, behind @ ..] if byte & 0x1f == 24 && *number >= 24 => {
            Ok((u64::from(*number), behind))
        }
        _ => {
            let (number, behind) = wide_number(rest)?;
            Ok((number, behind))
        }
    }
}

#[inline(never)]
fn wide_number(rest: &[u8]) -> Read<'_, u64> {
    let Some((byte, behind)) = rest.split_first() else { return refuse(rest, Reason::Truncated) };
    let (read, least) = match byte & 0x1f {
        24 => (behind.split_first_chunk().map(|(n, b)| (u8::from_be_bytes(*n).into(), b)), 24),
        25 => (behind.split_first_chunk().map(|(n, b)| (u16::from_be_bytes(*n).into(), b)), 1 << 8),
        26 => {
            (behind.split_first_chunk().map(|(n, b)| (u32::from_be_bytes(*n).into(), b)), 1 << 16)
        }
        27 => (behind.split_first_chunk().map(|(n, b)| (u64::from_be_bytes(*n), b)), 1 << 32),
        31 => return refuse(rest, Reason::IndefiniteLength),
        _ => return refuse(rest, Reason::ReservedHead),
    };
    match read {
        None => refuse(rest, Reason::Truncated),
        Some((number, _)) if number < least => refuse(rest, Reason::NotMinimal),
        Some(read) => Ok(read),
    }
}

/// The kind of the item at the start of `rest`: the top three bits of its first byte.
#[inline(always)]
pub(super) fn kind(rest: &[u8]) -> Option<u8> {
    rest.first().map(|byte| byte >> 5)
}

/// Reads a byte string, where its kind was seen.
#[inline(always)]
pub(super) fn bytes(rest: &[u8]) -> Read<'_, &[u8]> {
    let (len, behind) = number(rest)?;
    match usize::try_from(len).ok().and_then(|len| behind.split_at_checked(len)) {
        Some(read) => Ok(read),
        None => refuse(rest, Reason::LengthBeyondInput),
    }
}

/// Reads text, where its kind was seen.
#[inline(always)]
pub(super) fn text(rest: &[u8]) -> Read<'_, &str> {
    let (bytes, behind) = bytes(rest)?;
    match utf8::from_utf8(bytes) {
        Some(text) => Ok((text, behind)),
        None => refuse(rest, Reason::NotUtf8),
    }
}

/// Reads a CID link, where its kind was seen.
#[inline(always)]
pub(super) fn link(rest: &[u8]) -> Read<'_, CidRef<'_>> {
    // Tag 42, a string of 37 bytes, zero, and the start of a blessed CID: eight bytes in one compare.
    const DAG_CBOR: u64 = u64::from_be_bytes(*b"\xd8\x2a\x58\x25\x00\x01\x71\x12");
    const RAW: u64 = u64::from_be_bytes(*b"\xd8\x2a\x58\x25\x00\x01\x55\x12");
    if let Some((item, behind)) = rest.split_first_chunk::<{ 5 + Cid::LEN }>()
        && let Some(word) = item.first_chunk()
        && let Some(cid) = item.last_chunk()
        && matches!(u64::from_be_bytes(*word), DAG_CBOR | RAW)
        && item[8] == 0x20
    {
        return Ok((CidRef::blessed_unchecked(cid), behind));
    }
    let (cid, behind) = any_link(rest)?;
    Ok((cid, behind))
}

#[inline(never)]
fn any_link(rest: &[u8]) -> Read<'_, CidRef<'_>> {
    let (tag, content) = number(rest)?;
    if tag != 42 {
        return refuse(rest, Reason::Tag);
    }
    if kind(content) != Some(BYTES) {
        return refuse(rest, Reason::Link);
    }
    let (bytes, behind) = bytes(content)?;
    match bytes.split_first() {
        Some((0, cid)) => match CidRef::from_bytes(cid) {
            Some(cid) => Ok((cid, behind)),
            None => refuse(rest, Reason::Link),
        },
        _ => refuse(rest, Reason::Link),
    }
}

/// What major type 7 may say.
#[derive(Clone, Copy, Debug)]
pub(super) enum Simple {
    Null,
    Boolean(bool),
    Float(f64),
}

/// Reads a simple value or a float, where its kind was seen.
#[inline(always)]
pub(super) fn simple(rest: &[u8]) -> Read<'_, Simple> {
    match rest {
        [FALSE, behind @ ..] => Ok((Simple::Boolean(false), behind)),
        [TRUE, behind @ ..] => Ok((Simple::Boolean(true), behind)),
        [NULL, behind @ ..] => Ok((Simple::Null, behind)),
        _ => {
            let (float, behind) = float(rest)?;
            Ok((Simple::Float(float), behind))
        }
    }
}

#[inline(never)]
fn float(rest: &[u8]) -> Read<'_, f64> {
    let Some((byte, behind)) = rest.split_first() else { return refuse(rest, Reason::Truncated) };
    match byte {
        0xfb => {}
        0xf9 | 0xfa => return refuse(rest, Reason::FloatWidth),
        0xff => return refuse(rest, Reason::IndefiniteLength),
        0xfc..=0xfe => return refuse(rest, Reason::ReservedHead),
        _ => return refuse(rest, Reason::Simple),
    }
    let Some((bits, behind)) = behind.split_first_chunk() else {
        return refuse(rest, Reason::Truncated);
    };
    let float = f64::from_be_bytes(*bits);
    if !float.is_finite() || float.to_bits() == (-0.0f64).to_bits() {
        return refuse(rest, Reason::FloatValue);
    }
    Ok((float, behind))
}

/// Reads the head of a container whose items take `bytes_each` or more: its count, if that many can
/// stand in what is left after the `owed` bytes that enclosing containers still need.
#[inline(always)]
pub(super) fn count(rest: &[u8], bytes_each: usize, owed: usize) -> Read<'_, usize> {
    let (count, behind) = number(rest)?;
    if count <= (behind.len().saturating_sub(owed) / bytes_each) as u64 {
        return Ok((count as usize, behind));
    }
    refuse(rest, Reason::LengthBeyondInput)
}

/// The keys of one map so far, to hold the next one against.
#[derive(Clone, Copy, Debug)]
pub struct KeyOrder<'a> {
    /// The encoded key's first eight bytes (head, then text, then zeros) as a big-endian number:
    /// canonical order is the order of these numbers until they are equal. Zero before the first.
    word: u64,
    /// The key, if it is longer than the word tells; else of no meaning.
    long: &'a str,
}

impl KeyOrder<'_> {
    /// No key yet.
    #[inline]
    pub fn new() -> Self {
        Self { word: 0, long: "" }
    }
}

impl Default for KeyOrder<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads a map key and holds it against the keys before it.
#[inline(always)]
pub(super) fn key<'a>(rest: &'a [u8], keys: &mut KeyOrder<'a>) -> Read<'a, &'a str> {
    // A single character, as all keys of a tree node are: 1.06 times as fast as the general word.
    if let [0x61, character, behind @ ..] = rest
        && let Some(key) = utf8::from_utf8(&rest[1..2])
        && let word = 0x61 << 56 | u64::from(*character) << 48
        && word > keys.word
    {
        keys.word = word;
        return Ok((key, behind));
    }
    // Seven bytes of text or fewer: the whole encoded key is one word, and order is one compare.
    if let Some(window) = rest.first_chunk::<8>()
        && let Some((key, word)) = utf8::short_text(window)
        && word > keys.word
    {
        keys.word = word;
        return Ok((key, &rest[1 + key.len()..]));
    }
    let (next, behind) = any_key(rest, *keys)?;
    *keys = next;
    Ok((next.long, behind))
}

#[inline(never)]
fn any_key<'a>(rest: &'a [u8], keys: KeyOrder<'a>) -> Read<'a, KeyOrder<'a>> {
    match kind(rest) {
        Some(TEXT) => {}
        Some(SIMPLE) => return refuse(rest, Reason::KeyNotText),
        // Its head may break a rule of its own, which is then the one to name.
        Some(_) => {
            let _ = number(rest)?;
            return refuse(rest, Reason::KeyNotText);
        }
        None => return refuse(rest, Reason::Truncated),
    }
    let (key, behind) = text(rest)?;
    let word = key_word(&rest[..rest.len() - behind.len()]);
    let order = match keys.word.cmp(&word) {
        Ordering::Equal if key.len() > 7 => keys.long.cmp(key),
        order => order,
    };
    match order {
        Ordering::Less => Ok((KeyOrder { word, long: key }, behind)),
        Ordering::Equal => refuse(rest, Reason::DuplicateKey),
        Ordering::Greater => refuse(rest, Reason::KeyOrder),
    }
}

/// [`KeyOrder::word`] of an encoded key.
fn key_word(encoded: &[u8]) -> u64 {
    let mut word = [0; 8];
    let len = encoded.len().min(8);
    word[..len].copy_from_slice(&encoded[..len]);
    u64::from_be_bytes(word)
}

pub(super) const UNSIGNED: u8 = 0;
pub(super) const NEGATIVE: u8 = 1;
pub(super) const BYTES: u8 = 2;
pub(super) const TEXT: u8 = 3;
pub(super) const ARRAY: u8 = 4;
pub(super) const MAP: u8 = 5;
pub(super) const TAG: u8 = 6;
pub(super) const SIMPLE: u8 = 7;

pub(super) const FALSE: u8 = 0xf4;
pub(super) const TRUE: u8 = 0xf5;
pub(super) const NULL: u8 = 0xf6;
