//! Reading item by item, for typed decoders.

use super::error::{DecodeError, ItemKind, Reason};
use super::item::{self, ItemError, KeyOrder, Read, fail};
use super::scan;
use crate::cid::CidRef;

/// Reads canonical items one after the other.
///
/// ```
/// use wireproof::codec::cbor::{KeyOrder, Reader};
/// let mut reader = Reader::new(b"\xa2\x62op\x01\x64kind\x61x");
/// let mut keys = KeyOrder::new();
/// for _ in 0..reader.map()? {
///     match reader.key(&mut keys)? {
///         "op" => assert_eq!(reader.integer()?, 1),
///         _ => reader.skip()?,
///     }
/// }
/// reader.finish()?;
/// # Ok::<(), wireproof::codec::cbor::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    /// The length of the whole input: offsets are counted from its start.
    // rest.len() <= len
    len: usize,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `input`.
    #[inline]
    pub fn new(input: &'a [u8]) -> Self {
        Self { len: input.len(), rest: input }
    }

    /// Starts at `offset` bytes into `input`, or at its end; offsets are counted from the start of `input`.
    #[inline]
    pub fn starting_at(input: &'a [u8], offset: usize) -> Self {
        Self { len: input.len(), rest: input.get(offset..).unwrap_or_default() }
    }

    /// Bytes read so far.
    #[inline]
    pub fn offset(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Bytes not yet read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// If bytes are left.
    #[inline]
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { self.fail(Reason::TrailingBytes) }
    }

    /// Reads an integer that fits 64 bits with a sign.
    ///
    /// # Errors
    /// If the item is not an integer, not canonical, or beyond ±2⁶³.
    #[inline]
    pub fn integer(&mut self) -> Result<i64, DecodeError> {
        let before = self.rest;
        let kind = item::kind(before);
        let number = match kind {
            Some(item::UNSIGNED | item::NEGATIVE) => self.take(item::number(before))?,
            _ => return self.unexpected(ItemKind::Integer),
        };
        match i64::try_from(number) {
            Ok(number) if kind == Some(item::UNSIGNED) => Ok(number),
            Ok(number) => Ok(-1 - number),
            Err(_) => {
                self.rest = before;
                self.fail(Reason::Expected(ItemKind::Integer))
            }
        }
    }

    /// Reads text.
    ///
    /// # Errors
    /// If the item is not text, or not canonical.
    #[inline]
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        match item::kind(self.rest) {
            Some(item::TEXT) => self.take(item::text(self.rest)),
            _ => self.unexpected(ItemKind::Text),
        }
    }

    /// Reads a byte string.
    ///
    /// # Errors
    /// If the item is not a byte string, or not canonical.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        match item::kind(self.rest) {
            Some(item::BYTES) => self.take(item::bytes(self.rest)),
            _ => self.unexpected(ItemKind::Bytes),
        }
    }

    /// Reads a CID link (tag 42).
    ///
    /// # Errors
    /// If the item is not a link, or not canonical.
    #[inline]
    pub fn link(&mut self) -> Result<CidRef<'a>, DecodeError> {
        match item::kind(self.rest) {
            Some(item::TAG) => self.take(item::link(self.rest)),
            _ => self.unexpected(ItemKind::Link),
        }
    }

    /// Reads false or true.
    ///
    /// # Errors
    /// If the item is neither.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool, DecodeError> {
        match self.rest {
            [byte @ (item::FALSE | item::TRUE), tail @ ..] => {
                self.rest = tail;
                Ok(*byte == item::TRUE)
            }
            _ => self.unexpected(ItemKind::Boolean),
        }
    }

    /// Skips a null. Returns whether there was one.
    #[inline]
    pub fn take_null(&mut self) -> bool {
        match self.rest {
            [item::NULL, tail @ ..] => {
                self.rest = tail;
                true
            }
            _ => false,
        }
    }

    /// Reads the head of an array: the number of items that follow, at most the number of bytes left.
    ///
    /// # Errors
    /// If the item is not an array, or states more items than can follow.
    #[inline]
    pub fn array(&mut self) -> Result<usize, DecodeError> {
        match item::kind(self.rest) {
            Some(item::ARRAY) => self.take(item::count(self.rest, 1, 0)),
            _ => self.unexpected(ItemKind::Array),
        }
    }

    /// Reads the head of a map: the number of entries that follow, at most half the number of bytes left.
    ///
    /// # Errors
    /// If the item is not a map, or states more entries than can follow.
    #[inline]
    pub fn map(&mut self) -> Result<usize, DecodeError> {
        match item::kind(self.rest) {
            Some(item::MAP) => self.take(item::count(self.rest, 2, 0)),
            _ => self.unexpected(ItemKind::Map),
        }
    }

    /// Reads a map key and checks that it follows the last one in canonical order.
    ///
    /// # Errors
    /// If the key is not text, or does not follow the last one.
    #[inline]
    pub fn key(&mut self, keys: &mut KeyOrder<'a>) -> Result<&'a str, DecodeError> {
        self.take(item::key(self.rest, keys))
    }

    /// Skips one item of any kind, after checking all of it.
    ///
    /// # Errors
    /// If the item is not canonical.
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        self.take(scan::skip(self.rest, 0).map(|rest| ((), rest)))
    }

    #[inline(always)]
    fn take<T>(&mut self, read: Read<'a, T>) -> Result<T, DecodeError> {
        match read {
            Ok((item, rest)) => {
                self.rest = rest;
                Ok(item)
            }
            Err(error) => Err(error.within(self.len)),
        }
    }

    /// Rejects an item of another kind than expected; if the item breaks a rule itself, that is reported.
    #[cold]
    #[inline(never)]
    fn unexpected<T>(&self, expected: ItemKind) -> Result<T, DecodeError> {
        scan::skip(self.rest, 0).map_err(|error| error.within(self.len))?;
        self.fail(Reason::Expected(expected))
    }

    #[cold]
    fn fail<T>(&self, reason: Reason) -> Result<T, DecodeError> {
        fail(self.rest, reason).map_err(|error: ItemError| error.within(self.len))
    }
}
