//! Which fields of a map came in, and is it an event?

use super::items::Reader;
use crate::formats::tags::Layout;
use crate::{DecodeError, Event, Field, Reason, Tag};

/// The fields as they come in.
#[derive(Default)]
pub(super) struct Draft<'a> {
    id: Option<&'a [u8; 32]>,
    pubkey: Option<&'a [u8; 32]>,
    created_at: Option<i64>,
    kind: Option<u16>,
    tags: Option<&'a [Tag<'a>]>,
    content: Option<&'a str>,
    sig: Option<&'a [u8; 64]>,
}

impl<'a> Draft<'a> {
    /// Reads the value of `field`, whose key stands at `start`.
    #[inline(always)]
    pub(super) fn read<L: Layout>(
        &mut self,
        field: Field,
        start: usize,
        reader: &mut Reader<'a, '_>,
    ) -> Result<(), DecodeError> {
        let is_first = match field {
            Field::Id => self.id.replace(reader.fixed(field)?).is_none(),
            Field::Pubkey => self.pubkey.replace(reader.fixed(field)?).is_none(),
            Field::CreatedAt => self.created_at.replace(reader.created_at()?).is_none(),
            Field::Kind => self.kind.replace(reader.kind()?).is_none(),
            Field::Tags => self.tags.replace(reader.tags::<L>()?).is_none(),
            Field::Content => self.content.replace(reader.content()?).is_none(),
            Field::Sig => self.sig.replace(reader.fixed(field)?).is_none(),
        };
        if is_first { Ok(()) } else { Err(DecodeError::new(start, Reason::Duplicate(field))) }
    }

    /// The event, if no field of the map at `start` is missing.
    #[inline(always)]
    pub(super) fn into_event(self, start: usize) -> Result<Event<'a>, DecodeError> {
        let missing = |field| move || DecodeError::new(start, Reason::Missing(field));
        Ok(Event {
            id: *self.id.ok_or_else(missing(Field::Id))?,
            pubkey: *self.pubkey.ok_or_else(missing(Field::Pubkey))?,
            created_at: self.created_at.ok_or_else(missing(Field::CreatedAt))?,
            kind: self.kind.ok_or_else(missing(Field::Kind))?,
            tags: self.tags.ok_or_else(missing(Field::Tags))?,
            content: self.content.ok_or_else(missing(Field::Content))?,
            sig: *self.sig.ok_or_else(missing(Field::Sig))?,
        })
    }
}
