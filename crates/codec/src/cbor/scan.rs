//! The strict scanner: walks one item of any kind, checks every rule, and hands what it finds to a
//! [`Sink`], which may build values, count them, or do nothing.

use super::error::{DecodeError, Reason};
use super::reader::{self, Keys, Reader, Simple, fail};
use super::{MAX_DEPTH, WideInteger};
use crate::cid::CidRef;

/// Checks that `input` is exactly one canonical item.
///
/// # Errors
/// If it is not: the rule, and the offset of the item that broke it.
///
/// ```
/// use wireproof_codec::cbor::{Reason, validate};
/// assert!(validate(b"\x82\x01\x02").is_ok());
/// let error = validate(b"\x82\x01\x18\x02").unwrap_err();
/// assert_eq!((error.offset, error.reason), (2, Reason::NotMinimal));
/// ```
pub fn validate(input: &[u8]) -> Result<(), DecodeError> {
    match validate_prefix(input)? {
        len if len == input.len() => Ok(()),
        len => fail(len, Reason::TrailingBytes),
    }
}

/// Checks that `input` begins with a canonical item, and answers its length in bytes.
///
/// # Errors
/// If it does not.
pub fn validate_prefix(input: &[u8]) -> Result<usize, DecodeError> {
    let mut reader = Reader::new(input);
    skip(&mut reader)?;
    Ok(reader.offset())
}

/// Steps over one item, checking it whole.
pub(super) fn skip(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    item(reader, Nothing, Place::TOP)
}

/// What becomes of the items that the scanner finds. A sink is `Copy` because a container's
/// items arrive while it is being made.
pub(super) trait Sink<'a>: Copy {
    type Item;
    fn integer(self, integer: i64) -> Self::Item;
    fn wide_integer(self, integer: WideInteger) -> Self::Item;
    fn float(self, float: f64) -> Self::Item;
    fn boolean(self, boolean: bool) -> Self::Item;
    fn null(self) -> Self::Item;
    fn text(self, text: &'a str) -> Self::Item;
    fn bytes(self, bytes: &'a [u8]) -> Self::Item;
    fn link(self, cid: CidRef<'a>) -> Self::Item;
    /// An array of `count` items, each read by a call of `next`, in order.
    fn array(
        self,
        count: usize,
        next: impl FnMut(usize) -> Result<Self::Item, DecodeError>,
    ) -> Result<Self::Item, DecodeError>;
    /// A map of `count` entries, each read by a call of `next`, in order.
    fn map(
        self,
        count: usize,
        next: impl FnMut(usize) -> Result<(&'a str, Self::Item), DecodeError>,
    ) -> Result<Self::Item, DecodeError>;
}

/// Where an item stands among its containers.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Containers around it.
    depth: u32,
    /// Bytes that those containers still need behind it, one for each item at least.
    owed: usize,
}

impl Place {
    pub(super) const TOP: Self = Self { depth: 0, owed: 0 };

    #[inline]
    fn inside(self, owed: usize) -> Self {
        Self { depth: self.depth + 1, owed: self.owed + owed }
    }
}

/// Reads one item of any kind.
pub(super) fn item<'a, S: Sink<'a>>(
    reader: &mut Reader<'a>,
    sink: S,
    place: Place,
) -> Result<S::Item, DecodeError> {
    let start = reader.offset();
    match reader.peek().map(|byte| byte >> 5) {
        Some(reader::TEXT) => {
            let (_, len) = reader.head()?;
            Ok(sink.text(reader.text_of(start, len)?))
        }
        Some(reader::BYTES) => {
            let (_, len) = reader.head()?;
            Ok(sink.bytes(reader.take(start, len)?))
        }
        Some(reader::TAG) => Ok(sink.link(reader.link_of(start)?)),
        Some(reader::SIMPLE) => Ok(match reader.simple()? {
            Simple::Null => sink.null(),
            Simple::Boolean(boolean) => sink.boolean(boolean),
            Simple::Float(float) => sink.float(float),
        }),
        Some(reader::MAP) => {
            let (_, count) = reader.head()?;
            enter(start, place)?;
            let count = reader.claim(start, count, 2, place.owed)?;
            let mut keys = Keys::new();
            sink.map(count, |at| {
                let key = reader.key(&mut keys)?;
                Ok((key, item(reader, sink, place.inside(2 * (count - 1 - at)))?))
            })
        }
        Some(reader::ARRAY) => {
            let (_, count) = reader.head()?;
            enter(start, place)?;
            let count = reader.claim(start, count, 1, place.owed)?;
            sink.array(count, |at| item(reader, sink, place.inside(count - 1 - at)))
        }
        _ => integer(reader, sink),
    }
}

#[inline]
fn integer<'a, S: Sink<'a>>(reader: &mut Reader<'a>, sink: S) -> Result<S::Item, DecodeError> {
    let (kind, number) = reader.head()?;
    let is_negative = kind == reader::NEGATIVE;
    Ok(match i64::try_from(number) {
        Ok(number) if is_negative => sink.integer(-1 - number),
        Ok(number) => sink.integer(number),
        Err(_) if is_negative => sink.wide_integer(WideInteger::Negative(number)),
        Err(_) => sink.wide_integer(WideInteger::Positive(number)),
    })
}

#[inline]
fn enter(start: usize, place: Place) -> Result<(), DecodeError> {
    if place.depth < MAX_DEPTH { Ok(()) } else { fail(start, Reason::Depth) }
}

/// Keeps nothing: judging alone.
#[derive(Clone, Copy)]
struct Nothing;

impl<'a> Sink<'a> for Nothing {
    type Item = ();
    #[inline]
    fn integer(self, _: i64) {}
    #[inline]
    fn wide_integer(self, _: WideInteger) {}
    #[inline]
    fn float(self, _: f64) {}
    #[inline]
    fn boolean(self, _: bool) {}
    #[inline]
    fn null(self) {}
    #[inline]
    fn text(self, _: &'a str) {}
    #[inline]
    fn bytes(self, _: &'a [u8]) {}
    #[inline]
    fn link(self, _: CidRef<'a>) {}
    #[inline]
    fn array(
        self,
        count: usize,
        next: impl FnMut(usize) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        (0..count).try_for_each(next)
    }
    #[inline]
    fn map(
        self,
        count: usize,
        mut next: impl FnMut(usize) -> Result<(&'a str, ()), DecodeError>,
    ) -> Result<(), DecodeError> {
        (0..count).try_for_each(|at| next(at).map(drop))
    }
}
