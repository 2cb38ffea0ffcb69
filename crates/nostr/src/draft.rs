//! An event that is being decoded: its fields, collected until it is whole.

use std::borrow::Borrow;

use crate::{DecodeError, Event, Field, Reason, Tag};

/// The fields of an event that is being decoded, in any order, at most once each.
#[derive(Debug)]
pub struct Draft<'a, Key, Sig> {
    /// The id.
    pub id: Option<Key>,
    /// The author's key.
    pub pubkey: Option<Key>,
    /// Seconds since 1970.
    pub created_at: Option<i64>,
    /// The kind.
    pub kind: Option<u16>,
    /// The tags.
    pub tags: Option<&'a [Tag<'a>]>,
    /// The content.
    pub content: Option<&'a str>,
    /// The signature.
    pub sig: Option<Sig>,
}

impl<Key, Sig> Default for Draft<'_, Key, Sig> {
    /// No field.
    #[inline(always)]
    fn default() -> Self {
        Self {
            id: None,
            pubkey: None,
            created_at: None,
            kind: None,
            tags: None,
            content: None,
            sig: None,
        }
    }
}

impl<'a, Key, Sig> Draft<'a, Key, Sig> {
    /// The event.
    ///
    /// # Errors
    /// If a field of the object at `start` is missing.
    #[inline(always)]
    pub fn into_event(self, start: usize) -> Result<Event<'a>, DecodeError>
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

/// Sets a field.
///
/// # Errors
/// If it has a value: this one, at `offset`, is the second.
#[inline(always)]
pub fn set_once<T>(
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
