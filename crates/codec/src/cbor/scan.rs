//! The strict scanner: reads one item of any kind, checks every rule, and passes items to a [`Sink`],
//! which builds values, counts them, or does nothing.

use kernels::utf8;

use super::error::{DecodeError, Reason};
use super::item::{self, ItemError, KeyOrder, Simple, fail};
use super::known_key::KnownKey;
use super::{MAX_DEPTH, WideInteger};
use crate::cid::CidRef;

/// Checks that `input` is exactly one canonical item.
///
/// # Errors
/// If it is not: the rule, and the offset of the item that broke it.
///
/// ```
/// use wireproof::codec::cbor::{Reason, validate};
/// assert!(validate(b"\x82\x01\x02").is_ok());
/// let error = validate(b"\x82\x01\x18\x02").unwrap_err();
/// assert_eq!((error.offset, error.reason), (2, Reason::NotMinimal));
/// ```
pub fn validate(input: &[u8]) -> Result<(), DecodeError> {
    build(input, Discard, &mut ())
}

/// Checks that `input` begins with a canonical item, and returns its length in bytes.
///
/// # Errors
/// If it does not.
pub fn validate_prefix(input: &[u8]) -> Result<usize, DecodeError> {
    build_prefix(input, Discard, &mut ())
}

/// Checks one item inside `depth` containers, and returns the rest of the input.
pub(super) fn skip(rest: &[u8], depth: u32) -> Result<&[u8], ItemError> {
    read(rest, Discard, &mut (), Nesting { depth, reserved: 0 })
}

/// Reads an input that must be exactly one canonical item into `sink`.
///
/// # Errors
/// If it is not: the result of `sink` is then incomplete.
#[inline]
pub fn build<'a, S: Sink<'a>>(
    input: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
) -> Result<(), DecodeError> {
    let error = match read(input, sink, slot, Nesting::TOP) {
        Ok([]) => return Ok(()),
        Ok(tail) => fail(tail, Reason::TrailingBytes),
        Err(error) => Err(error),
    };
    error.map_err(|error| error.within(input.len()))
}

/// Reads the canonical item at the start of `input` into `sink`, and returns its length in bytes.
///
/// # Errors
/// If `input` does not begin with a canonical item: the result of `sink` is then incomplete.
pub fn build_prefix<'a, S: Sink<'a>>(
    input: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
) -> Result<usize, DecodeError> {
    match read(input, sink, slot, Nesting::TOP) {
        Ok(tail) => Ok(input.len() - tail.len()),
        Err(error) => Err(error.within(input.len())),
    }
}

/// The receiver of the items that the scanner reads: it builds the values of another language or library without a
/// [`Value`](super::Value) between. See [`build`].
///
/// Items are written to slots that exist already: an item returned by value would be built on the stack and copied,
/// and a scan that builds values takes 1.1 times as long.
pub trait Sink<'a>: Copy {
    /// The destination of an item.
    type Slot;
    /// An integer of 64 bits with a sign.
    fn integer(self, slot: &mut Self::Slot, integer: i64);
    /// An integer beyond that.
    fn wide_integer(self, slot: &mut Self::Slot, integer: WideInteger);
    /// A finite float other than −0.
    fn float(self, slot: &mut Self::Slot, float: f64);
    /// False or true.
    fn boolean(self, slot: &mut Self::Slot, boolean: bool);
    /// The null value.
    fn null(self, slot: &mut Self::Slot);
    /// UTF-8 text.
    fn text(self, slot: &mut Self::Slot, text: &'a str);
    /// The bytes of text: checks that they are UTF-8 and returns whether they are. Otherwise [`text`](Self::text) is called;
    /// a receiver that checks text itself, as an interpreter does, checks it only once so.
    #[inline(always)]
    fn text_bytes(self, slot: &mut Self::Slot, bytes: &'a [u8]) -> bool {
        let text = utf8::from_utf8(bytes);
        if let Some(text) = text {
            self.text(slot, text);
        }
        text.is_some()
    }
    /// A byte string.
    fn bytes(self, slot: &mut Self::Slot, bytes: &'a [u8]);
    /// A link to another block.
    fn link(self, slot: &mut Self::Slot, cid: CidRef<'a>);
    /// An array of `count` items: calls `read` once per item, in order, and returns its error.
    ///
    /// # Errors
    /// The first error of `read`.
    fn array(
        self,
        slot: &mut Self::Slot,
        count: usize,
        read: impl FnMut(usize, &mut Self::Slot) -> Result<(), ItemError>,
    ) -> Result<(), ItemError>;
    /// A map of `count` entries: calls [`Entries::next`] or another of its methods once per entry, and returns its error.
    ///
    /// # Errors
    /// The first error of `entries`.
    fn map(
        self,
        slot: &mut Self::Slot,
        count: usize,
        entries: &mut Entries<'a, Self>,
    ) -> Result<(), ItemError>;
}

/// The entries of a map that is being read.
#[derive(Debug)]
pub struct Entries<'a, S> {
    sink: S,
    rest: &'a [u8],
    keys: KeyOrder<'a>,
    /// Entries that follow.
    left: usize,
    nesting: Nesting,
}

impl<'a, S: Sink<'a>> Entries<'a, S> {
    /// Reads the next entry, its value into `slot`, and returns its key.
    ///
    /// # Errors
    /// If the entry is not canonical, the key does not follow the last one, or no entry is left.
    #[inline(always)]
    pub fn next(&mut self, slot: &mut S::Slot) -> Result<&'a str, ItemError> {
        self.next_with(slot, |_, _| {})
    }

    /// Like [`next`](Self::next), but calls `on_key` with the slot and the key before it reads the value.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline(always)]
    pub fn next_with(
        &mut self,
        slot: &mut S::Slot,
        on_key: impl FnOnce(&mut S::Slot, &'a str),
    ) -> Result<&'a str, ItemError> {
        self.take()?;
        let (key, value) = item::key(self.rest, &mut self.keys)?;
        on_key(slot, key);
        self.value(value, slot)?;
        Ok(key)
    }

    /// Like [`next`](Self::next). `propose` gets the first eight bytes of the encoded key as a big-endian
    /// number; if the key that it returns is the one in the input, no key is returned. Building Python objects, a read
    /// with the right proposal saves the validation of the key and the search for its string.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline(always)]
    pub fn next_proposed<'k>(
        &mut self,
        propose: impl FnOnce(u64) -> Option<&'k KnownKey>,
        slot: &mut S::Slot,
    ) -> Result<Option<&'a str>, ItemError> {
        self.take()?;
        let (key, value) = match self.known_key(propose) {
            Some(value) => (None, value),
            None => {
                let (key, value) = item::key(self.rest, &mut self.keys)?;
                (Some(key), value)
            }
        };
        self.value(value, slot)?;
        Ok(key)
    }

    /// Counts an entry that is read.
    #[inline(always)]
    fn take(&mut self) -> Result<(), ItemError> {
        let Some(left) = self.left.checked_sub(1) else {
            return fail(self.rest, Reason::TrailingBytes);
        };
        self.left = left;
        Ok(())
    }

    /// Reads the value of an entry from the start of `input`.
    #[inline(always)]
    fn value(&mut self, input: &'a [u8], slot: &mut S::Slot) -> Result<(), ItemError> {
        self.rest = read(input, self.sink, slot, self.nesting.inside(2 * self.left))?;
        Ok(())
    }

    /// Whether no entry is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The input after the proposed key, if that is the next one and follows the last one.
    #[inline(always)]
    fn known_key<'k>(
        &mut self,
        propose: impl FnOnce(u64) -> Option<&'k KnownKey>,
    ) -> Option<&'a [u8]> {
        let window = self.rest.first_chunk::<16>()?;
        let known = propose((u128::from_be_bytes(*window) >> 64) as u64)?;
        // Keys that are equal in their first bytes are compared where they are read.
        if known.word() <= self.keys.word() {
            return None;
        }
        let (key, value) = known.strip(window, self.rest)?;
        self.keys.set(known.word(), key);
        Some(value)
    }
}

/// The containers around an item.
#[derive(Clone, Copy, Debug)]
struct Nesting {
    /// The number of containers.
    depth: u32,
    /// Bytes that these containers need after it, at least one per item.
    reserved: usize,
}

impl Nesting {
    const TOP: Self = Self { depth: 0, reserved: 0 };

    #[inline]
    fn inside(self, reserved: usize) -> Self {
        Self { depth: self.depth + 1, reserved: self.reserved + reserved }
    }
}

/// Reads one item of any kind into `slot`, and returns the rest of the input. Inlined, so that only
/// containers cost a call.
#[inline(always)]
fn read<'a, S: Sink<'a>>(
    rest: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
    nesting: Nesting,
) -> Result<&'a [u8], ItemError> {
    match item::kind(rest) {
        Some(item::TAG) => {
            let (cid, tail) = item::link(rest)?;
            sink.link(slot, cid);
            Ok(tail)
        }
        Some(item::BYTES) => {
            let (bytes, tail) = item::bytes(rest)?;
            sink.bytes(slot, bytes);
            Ok(tail)
        }
        Some(item::TEXT) => {
            let (bytes, tail) = item::bytes(rest)?;
            if !sink.text_bytes(slot, bytes) {
                return fail(rest, Reason::NotUtf8);
            }
            Ok(tail)
        }
        Some(item::MAP) => map(rest, sink, slot, nesting),
        Some(item::ARRAY) => array(rest, sink, slot, nesting),
        Some(item::SIMPLE) => {
            let (simple, tail) = item::simple(rest)?;
            match simple {
                Simple::Null => sink.null(slot),
                Simple::Boolean(boolean) => sink.boolean(slot, boolean),
                Simple::Float(float) => sink.float(slot, float),
            }
            Ok(tail)
        }
        kind => {
            let (number, tail) = item::number(rest)?;
            integer(number, kind == Some(item::NEGATIVE), sink, slot);
            Ok(tail)
        }
    }
}

#[inline(never)]
fn map<'a, S: Sink<'a>>(
    rest: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
    nesting: Nesting,
) -> Result<&'a [u8], ItemError> {
    let (count, rest) = enter(rest, nesting, 2)?;
    let mut entries = Entries { sink, rest, keys: KeyOrder::new(), left: count, nesting };
    sink.map(slot, count, &mut entries)?;
    Ok(entries.rest)
}

#[inline(never)]
fn array<'a, S: Sink<'a>>(
    rest: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
    nesting: Nesting,
) -> Result<&'a [u8], ItemError> {
    let (count, mut rest) = enter(rest, nesting, 1)?;
    sink.array(slot, count, |at, slot| {
        rest = read(rest, sink, slot, nesting.inside(count - 1 - at))?;
        Ok(())
    })?;
    Ok(rest)
}

/// Reads the head of a container: its count, if the input can hold as many items.
#[inline(always)]
fn enter(rest: &[u8], nesting: Nesting, bytes_each: usize) -> item::Read<'_, usize> {
    if nesting.depth == MAX_DEPTH {
        let _ = item::number(rest)?;
        return fail(rest, Reason::Depth);
    }
    item::count(rest, bytes_each, nesting.reserved)
}

#[inline(always)]
fn integer<'a, S: Sink<'a>>(number: u64, is_negative: bool, sink: S, slot: &mut S::Slot) {
    match i64::try_from(number) {
        Ok(number) if is_negative => sink.integer(slot, -1 - number),
        Ok(number) => sink.integer(slot, number),
        Err(_) if is_negative => sink.wide_integer(slot, WideInteger::Negative(number)),
        Err(_) => sink.wide_integer(slot, WideInteger::Positive(number)),
    }
}

/// The sink of validation.
#[derive(Clone, Copy)]
struct Discard;

impl<'a> Sink<'a> for Discard {
    type Slot = ();
    #[inline]
    fn integer(self, _: &mut (), _: i64) {}
    #[inline]
    fn wide_integer(self, _: &mut (), _: WideInteger) {}
    #[inline]
    fn float(self, _: &mut (), _: f64) {}
    #[inline]
    fn boolean(self, _: &mut (), _: bool) {}
    #[inline]
    fn null(self, _: &mut ()) {}
    #[inline]
    fn text(self, _: &mut (), _: &'a str) {}
    #[inline]
    fn bytes(self, _: &mut (), _: &'a [u8]) {}
    #[inline]
    fn link(self, _: &mut (), _: CidRef<'a>) {}
    #[inline]
    fn array(
        self,
        slot: &mut (),
        count: usize,
        mut read: impl FnMut(usize, &mut ()) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        (0..count).try_for_each(|at| read(at, slot))
    }
    #[inline]
    fn map(
        self,
        slot: &mut (),
        count: usize,
        entries: &mut Entries<'a, Self>,
    ) -> Result<(), ItemError> {
        (0..count).try_for_each(|_| entries.next(slot).map(drop))
    }
}
