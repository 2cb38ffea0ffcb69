//! strfry's PackedEvent: what a relay must know of an event to find it. Hand-written.
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 32 | `id` |
//! | 32 | 32 | `pubkey` |
//! | 64 | 8 | `created_at`, without sign, little-endian as the two below |
//! | 72 | 8 | `kind` |
//! | 80 | 8 | when it expires: 0 for never, 1 if it is ephemeral |
//! | 88 | … | for each tag: its name in 1 byte, how many bytes its value has in 1, the value |
//!
//! It is a summary, and no event comes back from it: there is neither content nor signature, and of the tags
//! only those with a name of one byte, their first values up to 255 bytes long. Those of `e` and `p` are
//! the 32 bytes that 64 digits spell. As strfry does, the writer puts an empty `d` before the tags of a
//! replaceable event and behind those of an addressable one, takes the first `expiration`, and refuses
//! an `e` or a `p` that is no id.

use std::borrow::Cow;

use kernels::hex;

use super::or_undo;
use crate::input::{Input, kind};
use crate::{DecodeError, EncodeError, Event, Field, Reason, Tag};

/// A summary, whole and well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedEvent<'a> {
    id: &'a [u8; 32],
    pubkey: &'a [u8; 32],
    created_at: i64,
    kind: u16,
    expiration: Expiration,
    // Checked by `new`.
    tags: &'a [u8],
}

/// When a relay should forget an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiration {
    /// It does not say.
    Never,
    /// Now: it is only passed on.
    Ephemeral,
    /// At this time, in seconds since 1970.
    At(u64),
}

/// A tag that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedTag<'a> {
    /// Its name.
    pub name: u8,
    /// Its first value; 32 bytes in tags `e` and `p`, else text in UTF-8, as far as the writer was honest.
    pub value: &'a [u8],
}

impl<'a> PackedEvent<'a> {
    /// The summary in `bytes`.
    ///
    /// # Errors
    /// If they are not exactly one.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(bytes);
        let (id, pubkey) = (input.array()?, input.array()?);
        let created_at = input;
        let out_of_range = |_| created_at.fault(Reason::Range(Field::CreatedAt));
        let created_at = i64::try_from(integer(&mut input)?).map_err(out_of_range)?;
        let kind = kind(integer(&mut input)?, KIND)?;
        let expiration = Expiration::of(integer(&mut input)?);
        let tags = input.rest();
        while !input.rest().is_empty() {
            tag(&mut input)?;
        }
        Ok(Self { id, pubkey, created_at, kind, expiration, tags })
    }

    /// The id.
    pub fn id(&self) -> &'a [u8; 32] {
        self.id
    }

    /// The author's key.
    pub fn pubkey(&self) -> &'a [u8; 32] {
        self.pubkey
    }

    /// When it was made, by the author's clock.
    pub fn created_at(&self) -> i64 {
        self.created_at
    }

    /// The kind.
    pub fn kind(&self) -> u16 {
        self.kind
    }

    /// When it expires.
    pub fn expiration(&self) -> Expiration {
        self.expiration
    }

    /// The tags, in order.
    pub fn tags(&self) -> impl Iterator<Item = IndexedTag<'a>> + use<'a> {
        let mut input = Input::new(self.tags);
        std::iter::from_fn(move || tag(&mut input).ok())
    }
}

impl Expiration {
    fn of(value: u64) -> Self {
        match value {
            0 => Self::Never,
            1 => Self::Ephemeral,
            at => Self::At(at),
        }
    }

    fn value(self) -> u64 {
        match self {
            Self::Never => 0,
            Self::Ephemeral => 1,
            Self::At(at) => at,
        }
    }
}

#[inline]
fn integer(input: &mut Input<'_>) -> Result<u64, DecodeError> {
    Ok(u64::from_le_bytes(*input.array()?))
}

#[inline]
fn tag<'a>(input: &mut Input<'a>) -> Result<IndexedTag<'a>, DecodeError> {
    let start = *input;
    let [name, len] = *input.array()?;
    let value = input.take(len.into())?;
    if is_id(name) && value.len() != 32 {
        return Err(start.fault(Reason::Length(Field::Tags)));
    }
    Ok(IndexedTag { name, value })
}

/// Appends the summary of `event`.
///
/// # Errors
/// If the time is before 1970, an `e` or a `p` is no id, or the expiration no time.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let past = EncodeError::Range { field: Field::CreatedAt, value: event.created_at };
    let created_at = u64::try_from(event.created_at).map_err(|_| past)?;
    let expiration = expiration(event)?;
    or_undo(out, |out| {
        out.extend_from_slice(&event.id);
        out.extend_from_slice(&event.pubkey);
        out.extend_from_slice(&created_at.to_le_bytes());
        out.extend_from_slice(&u64::from(event.kind).to_le_bytes());
        out.extend_from_slice(&expiration.value().to_le_bytes());
        if is_replaceable(event.kind) {
            out.extend_from_slice(NO_D);
        }
        event.tags.iter().try_for_each(|tag| write_tag(tag, out))?;
        if is_addressable(event.kind) {
            out.extend_from_slice(NO_D);
        }
        Ok(())
    })
}

fn expiration(event: &Event<'_>) -> Result<Expiration, EncodeError> {
    if is_ephemeral(event.kind) {
        return Ok(Expiration::Ephemeral);
    }
    let is_expiration = |tag: &&Tag<'_>| tag.first().is_some_and(|it| it.to_text() == "expiration");
    let Some(tag) = event.tags.iter().find(is_expiration) else { return Ok(Expiration::Never) };
    let at = tag.get(1).and_then(|value| value.to_text().parse().ok());
    let at = at.filter(|at| *at >= LEAST_EXPIRATION);
    at.map(Expiration::At).ok_or(EncodeError::NoPlace("an expiration that is no time"))
}

#[inline]
fn write_tag(tag: Tag<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Some(name) = tag.first().map(|name| name.to_text()) else { return Ok(()) };
    let [name] = *name.as_bytes() else { return Ok(()) };
    let value = tag.get(1).map_or(Cow::Borrowed(""), |value| value.to_text());
    if is_id(name) {
        let mut id = [0; 32];
        let digits = value.to_ascii_lowercase();
        if digits.len() != 64 || !hex::decode(digits.as_bytes(), &mut id) {
            return Err(EncodeError::NoPlace("an e or a p that is no id"));
        }
        out.extend_from_slice(&[name, 32]);
        out.extend_from_slice(&id);
    } else if let Ok(len) = u8::try_from(value.len()) {
        out.extend_from_slice(&[name, len]);
        out.extend_from_slice(value.as_bytes());
    }
    Ok(())
}

fn is_id(name: u8) -> bool {
    matches!(name, b'e' | b'p')
}

/// Of which a relay keeps the newest of an author and a kind. NIP-01, and what NIP-28 once asked.
fn is_replaceable(kind: u16) -> bool {
    matches!(kind, 0 | 3 | 41 | 10_000..20_000)
}

/// Of which a relay keeps the newest of an author, a kind and a `d`.
fn is_addressable(kind: u16) -> bool {
    matches!(kind, 30_000..40_000)
}

fn is_ephemeral(kind: u16) -> bool {
    matches!(kind, 20_000..30_000)
}

const KIND: usize = 72;

/// A tag `d` that says nothing.
const NO_D: &[u8] = b"d\0";

/// Times before this are taken for marks.
const LEAST_EXPIRATION: u64 = 100;

#[cfg(test)]
mod tests;
