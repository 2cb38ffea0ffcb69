//! Events in maps: decoded whole, or one field without the others.

use std::marker::PhantomData;

use bumpalo::Bump;

use super::Layout;
use super::head::{self, MAP};
use super::reader::Reader;
use crate::fields::ReadFields;
use crate::tags::Tags;
use nostr::draft::{Draft, set_once};
use nostr::{DecodeError, Event, Field, Limits, Reason};

/// A map layout: how its keys name the fields.
pub(super) trait MapKeys: Layout {
    /// Reads a key; `None` if it names no field.
    fn field(reader: &mut Reader<'_, '_>) -> Result<Option<Field>, DecodeError>;
}

#[inline(always)]
pub(super) fn event<'a, K: MapKeys>(reader: &mut Reader<'a, '_>) -> Result<Event<'a>, DecodeError> {
    let start = reader.input.offset();
    let mut draft = Draft::default();
    for _ in 0..entry_count(reader)? {
        let at = reader.input.offset();
        match K::field(reader)? {
            Some(field) => read_field::<K>(&mut draft, field, at, reader)?,
            None => head::skip(&mut reader.input, 0)?,
        }
    }
    draft.into_event(start)
}

/// Reads the value of `field`, whose key stands at `start`.
#[inline(always)]
fn read_field<'a, K: MapKeys>(
    draft: &mut Draft<'a, &'a [u8; 32], &'a [u8; 64]>,
    field: Field,
    start: usize,
    reader: &mut Reader<'a, '_>,
) -> Result<(), DecodeError> {
    match field {
        Field::Id => set_once(&mut draft.id, reader.fixed(field)?, field, start),
        Field::Pubkey => set_once(&mut draft.pubkey, reader.fixed(field)?, field, start),
        Field::CreatedAt => set_once(&mut draft.created_at, reader.created_at()?, field, start),
        Field::Kind => set_once(&mut draft.kind, reader.kind()?, field, start),
        Field::Tags => set_once(&mut draft.tags, reader.tags::<K>()?, field, start),
        Field::Content => set_once(&mut draft.content, reader.content()?, field, start),
        Field::Sig => set_once(&mut draft.sig, reader.fixed(field)?, field, start),
    }
}

#[inline(always)]
fn entry_count(reader: &mut Reader<'_, '_>) -> Result<usize, DecodeError> {
    reader.len(MAP, 2, "a map")
}

/// The fields of a map. A read skips the fields before its own and does not look at those after it, so that
/// duplicates are not noticed.
#[derive(Clone, Debug)]
pub struct MapFields<'a, K> {
    bytes: &'a [u8],
    arena: &'a Bump,
    keys: PhantomData<K>,
}

#[expect(private_bounds, reason = "only the formats of this module have such keys")]
impl<'a, K: MapKeys> MapFields<'a, K> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], arena: &'a Bump) -> Result<Self, DecodeError> {
        Ok(Self { bytes, arena, keys: PhantomData })
    }

    /// Reads the id.
    ///
    /// # Errors
    /// If the field is not 32 bytes, or a part before it breaks a rule of the format.
    #[inline]
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Id, |reader| reader.fixed(Field::Id).copied())
    }

    /// Reads the tags one by one.
    ///
    /// # Errors
    /// If the field is not an array, or a part before it breaks a rule of the format.
    pub fn tags(&self) -> Result<Tags<'a, K>, DecodeError> {
        self.read(Field::Tags, |reader| Tags::new(reader.input))
    }

    /// Reads the first value of `field`.
    #[inline(always)]
    fn read<T>(
        &self,
        field: Field,
        read: impl FnOnce(&mut Reader<'a, '_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let limits = Limits::default();
        let mut reader = Reader::new(self.bytes, self.arena, &limits);
        for _ in 0..entry_count(&mut reader)? {
            if K::field(&mut reader)? == Some(field) {
                return read(&mut reader);
            }
            head::skip(&mut reader.input, 0)?;
        }
        Err(DecodeError::new(0, Reason::Missing(field)))
    }
}

impl<K: MapKeys> ReadFields for MapFields<'_, K> {
    #[inline]
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Pubkey, |reader| reader.fixed(Field::Pubkey).copied())
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        self.read(Field::CreatedAt, |reader| reader.created_at())
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        self.read(Field::Kind, |reader| reader.kind())
    }
}
