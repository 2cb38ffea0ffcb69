//! The strict scanner: walks one item of any kind, checks every rule, and hands what it finds to a
//! [`Sink`], which may build values, count them, or do nothing.

use super::error::{DecodeError, Reason};
use super::item::{self, KeyOrder, Refusal, Simple, refuse};
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
    whole(input, Nothing, &mut ())
}

/// Checks that `input` begins with a canonical item, and answers its length in bytes.
///
/// # Errors
/// If it does not.
pub fn validate_prefix(input: &[u8]) -> Result<usize, DecodeError> {
    prefix(input, Nothing, &mut ())
}

/// Steps over one item, checking it whole.
pub(super) fn skip(rest: &[u8]) -> Result<&[u8], Refusal> {
    read(rest, Nothing, &mut (), Place::TOP)
}

/// Reads an input that must be exactly one item.
#[inline]
pub(super) fn whole<'a, S: Sink<'a>>(
    input: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
) -> Result<(), DecodeError> {
    let refusal = match read(input, sink, slot, Place::TOP) {
        Ok([]) => return Ok(()),
        Ok(behind) => refuse(behind, Reason::TrailingBytes),
        Err(refusal) => Err(refusal),
    };
    refusal.map_err(|refusal| refusal.within(input.len()))
}

/// Reads the item at the start of an input, and answers its length in bytes.
pub(super) fn prefix<'a, S: Sink<'a>>(
    input: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
) -> Result<usize, DecodeError> {
    match read(input, sink, slot, Place::TOP) {
        Ok(behind) => Ok(input.len() - behind.len()),
        Err(refusal) => Err(refusal.within(input.len())),
    }
}

/// What becomes of the items that the scanner finds. Each is written to a place that the sink has
/// made before: an item returned by value would be put together on the stack and copied, which
/// made a scan that builds values take 1.1 times as long.
pub(super) trait Sink<'a>: Copy {
    /// Where an item goes.
    type Slot: 'a;
    fn integer(self, slot: &mut Self::Slot, integer: i64);
    fn wide_integer(self, slot: &mut Self::Slot, integer: WideInteger);
    fn float(self, slot: &mut Self::Slot, float: f64);
    fn boolean(self, slot: &mut Self::Slot, boolean: bool);
    fn null(self, slot: &mut Self::Slot);
    fn text(self, slot: &mut Self::Slot, text: &'a str);
    fn bytes(self, slot: &mut Self::Slot, bytes: &'a [u8]);
    fn link(self, slot: &mut Self::Slot, cid: CidRef<'a>);
    /// An array of `count` items: calls `read` once for each, in order.
    fn array(
        self,
        slot: &mut Self::Slot,
        count: usize,
        read: impl FnMut(usize, &mut Self::Slot) -> Result<(), Refusal>,
    ) -> Result<(), Refusal>;
    /// A map of `count` entries: calls `read` once for each, in order, and gets its key.
    fn map(
        self,
        slot: &mut Self::Slot,
        count: usize,
        read: impl FnMut(usize, &mut Self::Slot) -> Result<&'a str, Refusal>,
    ) -> Result<(), Refusal>;
}

/// Where an item stands among its containers.
#[derive(Clone, Copy)]
struct Place {
    /// Containers around it.
    depth: u32,
    /// Bytes that those containers still need behind it, one for each item at least.
    owed: usize,
}

impl Place {
    const TOP: Self = Self { depth: 0, owed: 0 };

    #[inline]
    fn inside(self, owed: usize) -> Self {
        Self { depth: self.depth + 1, owed: self.owed + owed }
    }
}

/// Reads one item of any kind into `slot`, and answers what is left. Inlined where it is used, so
/// that only containers cost a call.
#[inline(always)]
fn read<'a, S: Sink<'a>>(
    rest: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
    place: Place,
) -> Result<&'a [u8], Refusal> {
    match item::kind(rest) {
        Some(item::TAG) => {
            let (cid, behind) = item::link(rest)?;
            sink.link(slot, cid);
            Ok(behind)
        }
        Some(item::BYTES) => {
            let (bytes, behind) = item::bytes(rest)?;
            sink.bytes(slot, bytes);
            Ok(behind)
        }
        Some(item::TEXT) => {
            let (text, behind) = item::text(rest)?;
            sink.text(slot, text);
            Ok(behind)
        }
        Some(item::MAP) => map(rest, sink, slot, place),
        Some(item::ARRAY) => array(rest, sink, slot, place),
        Some(item::SIMPLE) => {
            let (simple, behind) = item::simple(rest)?;
            match simple {
                Simple::Null => sink.null(slot),
                Simple::Boolean(boolean) => sink.boolean(slot, boolean),
                Simple::Float(float) => sink.float(slot, float),
            }
            Ok(behind)
        }
        kind => {
            let (number, behind) = item::number(rest)?;
            integer(number, kind == Some(item::NEGATIVE), sink, slot);
            Ok(behind)
        }
    }
}

#[inline(never)]
fn map<'a, S: Sink<'a>>(
    rest: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
    place: Place,
) -> Result<&'a [u8], Refusal> {
    let (count, mut rest) = enter(rest, place, 2)?;
    let mut keys = KeyOrder::new();
    sink.map(slot, count, |at, slot| {
        let (key, value) = item::key(rest, &mut keys)?;
        rest = read(value, sink, slot, place.inside(2 * (count - 1 - at)))?;
        Ok(key)
    })?;
    Ok(rest)
}

#[inline(never)]
fn array<'a, S: Sink<'a>>(
    rest: &'a [u8],
    sink: S,
    slot: &mut S::Slot,
    place: Place,
) -> Result<&'a [u8], Refusal> {
    let (count, mut rest) = enter(rest, place, 1)?;
    sink.array(slot, count, |at, slot| {
        rest = read(rest, sink, slot, place.inside(count - 1 - at))?;
        Ok(())
    })?;
    Ok(rest)
}

/// Reads the head of a container: its count, if there is room for it.
#[inline(always)]
fn enter(rest: &[u8], place: Place, bytes_each: usize) -> item::Read<'_, usize> {
    if place.depth == MAX_DEPTH {
        let _ = item::number(rest)?;
        return refuse(rest, Reason::Depth);
    }
    item::count(rest, bytes_each, place.owed)
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

/// Keeps nothing: judging alone.
#[derive(Clone, Copy)]
struct Nothing;

impl<'a> Sink<'a> for Nothing {
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
        mut read: impl FnMut(usize, &mut ()) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        (0..count).try_for_each(|at| read(at, slot))
    }
    #[inline]
    fn map(
        self,
        slot: &mut (),
        count: usize,
        mut read: impl FnMut(usize, &mut ()) -> Result<&'a str, Refusal>,
    ) -> Result<(), Refusal> {
        (0..count).try_for_each(|at| read(at, slot).map(drop))
    }
}
