//! Reading items one by one under the canonical rules: the ground that the scanner and the typed
//! decoders share.
//!
//! Every method reads one head or one scalar at the current offset and steps behind it. Heads:
//!
//! | first byte | |
//! |---|---|
//! | top 3 bits | kind: unsigned, negative, bytes, text, array, map, tag, simple |
//! | low 5 bits, 0–23 | the number itself |
//! | 24, 25, 26, 27 | the number follows in 1, 2, 4, 8 bytes, and must need them |

use kernels::utf8;

use super::error::{DecodeError, Kind, Reason};
use super::scan;
use crate::cid::{Cid, CidRef};

/// Reads canonical items in turn.
///
/// ```
/// use wireproof_codec::cbor::{Keys, Reader};
/// let mut reader = Reader::new(b"\xa2\x62op\x01\x64kind\x61x");
/// let mut keys = Keys::new();
/// for _ in 0..reader.map()? {
///     match reader.key(&mut keys)? {
///         "op" => assert_eq!(reader.integer()?, 1),
///         _ => reader.skip()?,
///     }
/// }
/// reader.finish()?;
/// # Ok::<(), wireproof_codec::cbor::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    input: &'a [u8],
    // offset <= input.len()
    offset: usize,
}

/// The keys of one map so far, to hold the next one against.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// The encoded key's first eight bytes (head, then text, then zeros) as a big-endian number:
    /// canonical order is the order of these numbers until they are equal.
    word: u64,
    key: &'a str,
}

impl Keys<'_> {
    /// No key yet.
    #[inline]
    pub fn new() -> Self {
        Self { word: 0, key: "" }
    }
}

impl Default for Keys<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `input`.
    #[inline]
    pub fn new(input: &'a [u8]) -> Self {
        Self { input, offset: 0 }
    }

    /// Bytes read so far.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes not yet read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.input[self.offset..]
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// If bytes are left.
    #[inline]
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.offset == self.input.len() {
            Ok(())
        } else {
            fail(self.offset, Reason::TrailingBytes)
        }
    }

    /// Reads an integer that fits 64 bits with a sign.
    ///
    /// # Errors
    /// If the item is no integer, not canonical, or beyond ±2⁶³.
    #[inline]
    pub fn integer(&mut self) -> Result<i64, DecodeError> {
        let start = self.offset;
        let (kind, number) = self.head()?;
        match (kind, i64::try_from(number)) {
            (UNSIGNED, Ok(number)) => Ok(number),
            (NEGATIVE, Ok(number)) => Ok(-1 - number),
            _ => fail(start, Reason::Expected(Kind::Integer)),
        }
    }

    /// Reads text.
    ///
    /// # Errors
    /// If the item is not text, or not canonical.
    #[inline]
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        match self.head()? {
            (TEXT, len) => self.text_of(start, len),
            _ => fail(start, Reason::Expected(Kind::Text)),
        }
    }

    /// Reads a byte string.
    ///
    /// # Errors
    /// If the item is no byte string, or not canonical.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let start = self.offset;
        match self.head()? {
            (BYTES, len) => self.take(start, len),
            _ => fail(start, Reason::Expected(Kind::Bytes)),
        }
    }

    /// Reads a CID link (tag 42).
    ///
    /// # Errors
    /// If the item is no link, or not canonical.
    #[inline]
    pub fn link(&mut self) -> Result<CidRef<'a>, DecodeError> {
        let start = self.offset;
        if self.peek() == Some(LINK_HEAD) {
            return self.link_of(start);
        }
        self.skip()?;
        fail(start, Reason::Expected(Kind::Link))
    }

    /// Reads false or true.
    ///
    /// # Errors
    /// If the item is neither.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool, DecodeError> {
        match self.peek() {
            Some(byte @ (FALSE | TRUE)) => {
                self.offset += 1;
                Ok(byte == TRUE)
            }
            _ => fail(self.offset, Reason::Expected(Kind::Boolean)),
        }
    }

    /// Steps over a null if there is one.
    #[inline]
    pub fn take_null(&mut self) -> bool {
        let is_null = self.peek() == Some(NULL);
        self.offset += usize::from(is_null);
        is_null
    }

    /// Reads the head of an array: how many items follow, at most as many as bytes are left.
    ///
    /// # Errors
    /// If the item is no array, or states more items than can follow.
    #[inline]
    pub fn array(&mut self) -> Result<usize, DecodeError> {
        self.container(ARRAY, 1, Kind::Array)
    }

    /// Reads the head of a map: how many entries follow, at most half as many as bytes are left.
    ///
    /// # Errors
    /// If the item is no map, or states more entries than can follow.
    #[inline]
    pub fn map(&mut self) -> Result<usize, DecodeError> {
        self.container(MAP, 2, Kind::Map)
    }

    fn container(
        &mut self,
        wanted: u8,
        bytes_each: usize,
        asked: Kind,
    ) -> Result<usize, DecodeError> {
        let start = self.offset;
        match self.head()? {
            (kind, count) if kind == wanted => self.claim(start, count, bytes_each, 0),
            _ => fail(start, Reason::Expected(asked)),
        }
    }

    /// Reads a map key and holds it against the keys before it.
    ///
    /// # Errors
    /// If the key is not text, or not greater than the one before in canonical order.
    #[inline]
    pub fn key(&mut self, keys: &mut Keys<'a>) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let window = self.input[start..].first_chunk::<8>();
        // Seven bytes of text or fewer: the whole encoded key is one word, and order is one compare.
        if let Some(window) = window
            && let Some(key) = utf8::short_text(window)
        {
            let bits = 8 * (key.len() as u32 + 1);
            let word = u64::from_be_bytes(*window) & (u64::MAX << (64 - bits));
            if word > keys.word {
                *keys = Keys { word, key };
                self.offset = start + 1 + key.len();
                return Ok(key);
            }
        }
        self.any_key(keys)
    }

    #[inline(never)]
    fn any_key(&mut self, keys: &mut Keys<'a>) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let (kind, len) = self.head()?;
        if kind != TEXT {
            return fail(start, Reason::KeyNotText);
        }
        let key = self.text_of(start, len)?;
        let before =
            std::mem::replace(keys, Keys { word: key_word(&self.input[start..self.offset]), key });
        let order = (before.key.len(), before.key).cmp(&(key.len(), key));
        // An empty key is greater than no key: only the word tells them apart.
        if order.is_lt() || before.word == 0 {
            return Ok(key);
        }
        fail(start, if order.is_eq() { Reason::DuplicateKey } else { Reason::KeyOrder })
    }

    /// Steps over one item of any kind, checking it whole.
    ///
    /// # Errors
    /// If the item is not canonical.
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        scan::skip(self)
    }

    /// The first byte of the next item.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.input.get(self.offset).copied()
    }

    /// Reads one head: the kind and the number behind it.
    #[inline]
    pub(super) fn head(&mut self) -> Result<(u8, u64), DecodeError> {
        match self.peek() {
            None => fail(self.offset, Reason::Truncated),
            Some(byte) if byte & 0x1f < 24 => {
                self.offset += 1;
                Ok((byte >> 5, u64::from(byte & 0x1f)))
            }
            Some(byte @ (0x38 | 0x58 | 0x78 | 0x98 | 0xb8 | 0x18 | 0xd8)) => {
                let Some(number) = self.input.get(self.offset + 1) else {
                    return fail(self.offset, Reason::Truncated);
                };
                if *number < 24 {
                    return fail(self.offset, Reason::NotMinimal);
                }
                self.offset += 2;
                Ok((byte >> 5, u64::from(*number)))
            }
            Some(byte) => self.wide_head(byte),
        }
    }

    #[inline(never)]
    fn wide_head(&mut self, byte: u8) -> Result<(u8, u64), DecodeError> {
        let start = self.offset;
        let behind = &self.input[start + 1..];
        let (number, width, least) = match byte & 0x1f {
            24 => (behind.first_chunk().map(|b| u64::from(u8::from_be_bytes(*b))), 1, 24),
            25 => (behind.first_chunk().map(|b| u64::from(u16::from_be_bytes(*b))), 2, 1 << 8),
            26 => (behind.first_chunk().map(|b| u64::from(u32::from_be_bytes(*b))), 4, 1 << 16),
            27 => (behind.first_chunk().map(|b| u64::from_be_bytes(*b)), 8, 1 << 32),
            31 => return fail(start, Reason::IndefiniteLength),
            _ => return fail(start, Reason::ReservedHead),
        };
        let Some(number) = number else { return fail(start, Reason::Truncated) };
        // Behind a simple head stands a value, not a number that has a shortest form.
        if number < least && byte >> 5 != SIMPLE {
            return fail(start, Reason::NotMinimal);
        }
        self.offset = start + 1 + width;
        Ok((byte >> 5, number))
    }

    /// Accepts a stated count of items, `bytes_each` bytes or more each, if they can all stand in
    /// what is left after the `owed` bytes that enclosing containers still need.
    #[inline]
    pub(super) fn claim(
        &self,
        start: usize,
        count: u64,
        bytes_each: usize,
        owed: usize,
    ) -> Result<usize, DecodeError> {
        let left = self.input.len() - self.offset;
        if count <= (left.saturating_sub(owed) / bytes_each) as u64 {
            return Ok(count as usize);
        }
        fail(start, Reason::LengthBeyondInput)
    }

    /// The `len` bytes here, of the item that began at `start`.
    #[inline]
    pub(super) fn take(&mut self, start: usize, len: u64) -> Result<&'a [u8], DecodeError> {
        let rest = self.rest();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let Some(taken) = taken else { return fail(start, Reason::LengthBeyondInput) };
        self.offset += taken.len();
        Ok(taken)
    }

    /// The `len` bytes here as text, of the item that began at `start`.
    #[inline]
    pub(super) fn text_of(&mut self, start: usize, len: u64) -> Result<&'a str, DecodeError> {
        let bytes = self.take(start, len)?;
        match utf8::text(bytes) {
            Some(text) => Ok(text),
            None => fail(start, Reason::NotUtf8),
        }
    }

    /// The link that begins at `start`, where a [`LINK_HEAD`] was seen.
    #[inline]
    pub(super) fn link_of(&mut self, start: usize) -> Result<CidRef<'a>, DecodeError> {
        const USUAL: usize = 5 + Cid::LEN;
        if let Some(item) = self.input[start..].first_chunk::<USUAL>()
            && let ([0xd8, 0x2a, 0x58, 0x25, 0x00], cid) = item.split_first_chunk().expect("41 > 5")
            && let Some((cid, [])) = CidRef::from_prefix(cid)
        {
            self.offset = start + USUAL;
            return Ok(cid);
        }
        self.any_link(start)
    }

    #[inline(never)]
    fn any_link(&mut self, start: usize) -> Result<CidRef<'a>, DecodeError> {
        if self.head()?.1 != 42 {
            return fail(start, Reason::Tag);
        }
        let (kind, len) = self.head()?;
        if kind != BYTES {
            return fail(start, Reason::Link);
        }
        let bytes = self.take(start, len)?;
        match bytes.split_first() {
            Some((0, cid)) => CidRef::from_bytes(cid).map_or_else(|| fail(start, Reason::Link), Ok),
            _ => fail(start, Reason::Link),
        }
    }

    /// The simple value or float whose head byte was seen at the current offset.
    #[inline]
    pub(super) fn simple(&mut self) -> Result<Simple, DecodeError> {
        let start = self.offset;
        match self.peek() {
            Some(FALSE) => self.step(Simple::Boolean(false)),
            Some(TRUE) => self.step(Simple::Boolean(true)),
            Some(NULL) => self.step(Simple::Null),
            Some(0xfb) => {
                let (_, bits) = self.wide_head(0xfb)?;
                let float = f64::from_bits(bits);
                if float.is_finite() && bits != (-0.0f64).to_bits() {
                    return Ok(Simple::Float(float));
                }
                fail(start, Reason::FloatValue)
            }
            Some(0xf9 | 0xfa) => fail(start, Reason::FloatWidth),
            Some(0xff) => fail(start, Reason::IndefiniteLength),
            Some(0xfc..=0xfe) => fail(start, Reason::ReservedHead),
            _ => fail(start, Reason::Simple),
        }
    }

    #[inline]
    fn step(&mut self, simple: Simple) -> Result<Simple, DecodeError> {
        self.offset += 1;
        Ok(simple)
    }
}

/// What major type 7 may say.
#[derive(Clone, Copy, Debug)]
pub(super) enum Simple {
    Null,
    Boolean(bool),
    Float(f64),
}

/// [`Keys::word`] of an encoded key.
fn key_word(encoded: &[u8]) -> u64 {
    let mut word = [0; 8];
    let len = encoded.len().min(8);
    word[..len].copy_from_slice(&encoded[..len]);
    u64::from_be_bytes(word)
}

/// The refusal of the item at `offset`.
#[cold]
#[inline(never)]
pub(super) fn fail<T>(offset: usize, reason: Reason) -> Result<T, DecodeError> {
    Err(DecodeError { offset, reason })
}

pub(super) const UNSIGNED: u8 = 0;
pub(super) const NEGATIVE: u8 = 1;
pub(super) const BYTES: u8 = 2;
pub(super) const TEXT: u8 = 3;
pub(super) const ARRAY: u8 = 4;
pub(super) const MAP: u8 = 5;
pub(super) const TAG: u8 = 6;
pub(super) const SIMPLE: u8 = 7;

pub(super) const LINK_HEAD: u8 = 0xd8;
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
