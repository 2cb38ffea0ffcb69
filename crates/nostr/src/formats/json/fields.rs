//! What does a single field of an object say, without the others?

use bumpalo::Bump;

use super::reader::{self, Reader};
use crate::{DecodeError, Field, Limits};

/// An event of which single fields are read: those before it are passed over, those behind it are not
/// looked at but for their being UTF-8, so that nobody sees whether one comes twice.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    text: &'a str,
    arena: &'a Bump,
}

impl<'a> Fields<'a> {
    /// The fields of the event in `bytes`; `arena` takes what is escaped.
    ///
    /// # Errors
    /// If `bytes` are not UTF-8.
    #[inline]
    pub fn new(bytes: &'a [u8], arena: &'a Bump) -> Result<Self, DecodeError> {
        Ok(Self { text: reader::utf8(bytes)?, arena })
    }

    /// The id.
    ///
    /// # Errors
    /// If it is not 64 digits, or what stands before it is not JSON.
    #[inline]
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Id, |reader| reader.hex(Field::Id))
    }

    /// The author's key.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    #[inline]
    pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Pubkey, |reader| reader.hex(Field::Pubkey))
    }

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// If it is no whole number of 64 bits, or what stands before it is not JSON.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        self.read(Field::CreatedAt, |reader| reader.integer(Field::CreatedAt))
    }

    /// The kind.
    ///
    /// # Errors
    /// If it is out of range, or what stands before it is not JSON.
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        self.read(Field::Kind, |reader| reader.kind())
    }

    #[inline(always)]
    fn read<T>(
        &self,
        field: Field,
        read: impl FnOnce(&mut Reader<'a, '_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let limits = Limits::default();
        let mut reader = Reader::of_text(self.text, self.arena, &limits);
        reader.go_to(field)?;
        read(&mut reader)
    }
}
