//! Fields one at a time: read in place from an encoded event, or collected until the event is whole.

use std::borrow::Borrow;
use std::marker::PhantomData;

use super::tags::{TagLayout, Tags};
use crate::input::Input;
use crate::{DecodeError, Event, Field, Reason, Tag};

/// Fields that every format can read without decoding the rest of an event.
///
/// Bytes that a field does not need are not looked at: they may be malformed.
pub trait ReadFields {
    /// Reads the author's x-only public key.
    ///
    /// # Errors
    /// If the field, or what must be read to find it, breaks a rule of the format.
    fn pubkey(&self) -> Result<[u8; 32], DecodeError>;

    /// Reads the creation time in seconds since 1970, by the author's clock.
    ///
    /// # Errors
    /// As [`pubkey`](Self::pubkey).
    fn created_at(&self) -> Result<i64, DecodeError>;

    /// Reads the kind.
    ///
    /// # Errors
    /// As [`pubkey`](Self::pubkey).
    fn kind(&self) -> Result<u16, DecodeError>;
}

/// A layout that starts with `id` and `pubkey`, then `created_at`, `kind` and the tags.
pub(super) trait FieldOrder: TagLayout {
    /// Reads up to the end of `pubkey`.
    fn keys<'a>(input: &mut Input<'a>) -> Result<Keys<'a>, DecodeError>;

    /// Reads `created_at`.
    fn created_at(input: &mut Input<'_>) -> Result<i64, DecodeError>;

    /// Reads `kind`.
    fn kind(input: &mut Input<'_>) -> Result<u16, DecodeError>;
}

/// `id` and `pubkey`.
pub(super) type Keys<'a> = (&'a [u8; 32], &'a [u8; 32]);

/// An event whose fields are read in order: `id` and `pubkey` first, the others after them.
#[derive(Clone, Copy, Debug)]
pub struct SequentialFields<'a, L> {
    keys: Keys<'a>,
    rest: Input<'a>,
    layout: PhantomData<L>,
}

#[expect(private_bounds, reason = "only the formats of this crate have such a layout")]
impl<'a, L: FieldOrder> SequentialFields<'a, L> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = Input::new(bytes);
        Ok(Self { keys: L::keys(&mut rest)?, rest, layout: PhantomData })
    }

    /// The id.
    #[inline]
    pub fn id(&self) -> &'a [u8; 32] {
        self.keys.0
    }

    /// Reads the tags one by one.
    ///
    /// # Errors
    /// If `created_at` or `kind` is malformed, or no list of tags follows.
    pub fn tags(&self) -> Result<Tags<'a, L>, DecodeError> {
        let mut input = self.rest;
        L::created_at(&mut input)?;
        L::kind(&mut input)?;
        Tags::new(input)
    }
}

impl<L: FieldOrder> ReadFields for SequentialFields<'_, L> {
    #[inline]
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        Ok(*self.keys.1)
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        L::created_at(&mut { self.rest })
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        let mut input = self.rest;
        L::created_at(&mut input)?;
        L::kind(&mut input)
    }
}

/// The fields of an event that is being decoded, in any order, each at most once.
pub(super) struct Draft<'a, Key, Sig> {
    pub(super) id: Option<Key>,
    pub(super) pubkey: Option<Key>,
    pub(super) created_at: Option<i64>,
    pub(super) kind: Option<u16>,
    pub(super) tags: Option<&'a [Tag<'a>]>,
    pub(super) content: Option<&'a str>,
    pub(super) sig: Option<Sig>,
}

impl<'a, Key, Sig> Draft<'a, Key, Sig> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        let (id, pubkey, sig) = (None, None, None);
        Self { id, pubkey, created_at: None, kind: None, tags: None, content: None, sig }
    }

    /// The event, unless a field of the object at `start` is missing.
    #[inline(always)]
    pub(super) fn into_event(self, start: usize) -> Result<Event<'a>, DecodeError>
    where
        Key: Borrow<[u8; 32]>,
        Sig: Borrow<[u8; 64]>,
    {
        let missing = |field| move || DecodeError::new(start, Reason::Missing(field));
        Ok(Event {
            id: *self.id.ok_or_else(missing(Field::Id))?.borrow(),
            pubkey: *self.pubkey.ok_or_else(missing(Field::Pubkey))?.borrow(),
            created_at: self.created_at.ok_or_else(missing(Field::CreatedAt))?,
            kind: self.kind.ok_or_else(missing(Field::Kind))?,
            tags: self.tags.ok_or_else(missing(Field::Tags))?,
            content: self.content.ok_or_else(missing(Field::Content))?,
            sig: *self.sig.ok_or_else(missing(Field::Sig))?.borrow(),
        })
    }
}

/// Sets a field; rejects a second value of it, which stands at `offset`.
#[inline(always)]
pub(super) fn set_once<T>(
    slot: &mut Option<T>,
    value: T,
    field: Field,
    offset: usize,
) -> Result<(), DecodeError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DecodeError::new(offset, Reason::Duplicate(field))),
    }
}
