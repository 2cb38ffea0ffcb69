//! Fields one at a time, read in place from an encoded event.

use std::marker::PhantomData;

use super::tags::{TagLayout, Tags};
use nostr::DecodeError;
use nostr::input::Input;

/// Fields that every format can read without decoding the rest of an event.
///
/// Bytes that a field does not need are not looked at: they may be malformed.
pub trait ReadFields {
    /// Reads the author's x-only public key.
    ///
    /// # Errors
    /// If the field, or a part that must be read to find it, breaks a rule of the format.
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
