//! Which event is a map whose keys name the fields, and what does one of them say without the others?

use std::marker::PhantomData;

use bumpalo::Bump;

use super::draft::Draft;
use super::head::MAP;
use super::items::Reader;
use super::skip;
use crate::formats::tags::{self, Layout};
use crate::{DecodeError, Event, Field, Limits, Reason};

/// How keys name fields, beside how the values of tags are told.
pub(super) trait Keys: Layout {
    /// The field that the next key names, if it names one.
    fn field(reader: &mut Reader<'_, '_>) -> Result<Option<Field>, DecodeError>;
}

#[inline(always)]
pub(super) fn event<'a, K: Keys>(reader: &mut Reader<'a, '_>) -> Result<Event<'a>, DecodeError> {
    let start = reader.input.offset();
    let mut draft = Draft::default();
    for _ in 0..entries(reader)? {
        let at = reader.input.offset();
        match K::field(reader)? {
            Some(field) => draft.read::<K>(field, at, reader)?,
            None => skip::item(&mut reader.input, 0)?,
        }
    }
    draft.into_event(start)
}

#[inline(always)]
fn entries(reader: &mut Reader<'_, '_>) -> Result<usize, DecodeError> {
    reader.len(MAP, 2, "a map")
}

/// An event of which single fields are read: those before it are passed over, those behind it are not
/// looked at, so that nobody sees whether one comes twice.
#[derive(Clone, Debug)]
pub struct Fields<'a, K> {
    bytes: &'a [u8],
    arena: &'a Bump,
    keys: PhantomData<K>,
}

#[expect(private_bounds, reason = "the keys are those of the formats here")]
impl<'a, K: Keys> Fields<'a, K> {
    /// The fields of the event in `bytes`; nothing is looked at yet.
    #[inline]
    pub fn new(bytes: &'a [u8], arena: &'a Bump) -> Self {
        Self { bytes, arena, keys: PhantomData }
    }

    /// The id.
    ///
    /// # Errors
    /// If it is not 32 bytes, or what stands before it breaks a rule of the format.
    #[inline]
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Id, |reader| reader.fixed(Field::Id).copied())
    }

    /// The author's key.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    #[inline]
    pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Pubkey, |reader| reader.fixed(Field::Pubkey).copied())
    }

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// If it is no integer of 64 bits, or what stands before it breaks a rule of the format.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        self.read(Field::CreatedAt, |reader| reader.created_at())
    }

    /// The kind.
    ///
    /// # Errors
    /// If it is out of range, or what stands before it breaks a rule of the format.
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        self.read(Field::Kind, |reader| reader.kind())
    }

    /// The tags, one by one.
    ///
    /// # Errors
    /// If they are no list, or what stands before them breaks a rule of the format.
    pub fn tags(&self) -> Result<tags::Tags<'a, K>, DecodeError> {
        self.read(Field::Tags, |reader| tags::Tags::new(reader.input))
    }

    /// What `read` makes of the first value of `field`.
    #[inline(always)]
    fn read<T>(
        &self,
        field: Field,
        read: impl FnOnce(&mut Reader<'a, '_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let limits = Limits::default();
        let mut reader = Reader::new(self.bytes, self.arena, &limits);
        for _ in 0..entries(&mut reader)? {
            if K::field(&mut reader)? == Some(field) {
                return read(&mut reader);
            }
            skip::item(&mut reader.input, 0)?;
        }
        Err(DecodeError::new(0, Reason::Missing(field)))
    }
}
