//! What does one field of a buffer say, without the others?

use super::walk::Table;
use super::*;
use crate::Field;

/// A buffer whose fields are looked at when they are asked for.
///
/// What is not asked for is not looked at.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    walk: Walk<'a>,
    event: Table<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of the buffer in `bytes`.
    ///
    /// # Errors
    /// If its root is not in it.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut walk = Walk::new(bytes)?;
        Ok(Self { event: walk.root()?, walk })
    }

    /// The id.
    ///
    /// # Errors
    /// If it is missing, not in the buffer or of a wrong length.
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        reader::fixed(&mut { self.walk }, self.event, ID, Field::Id)
    }

    /// The author's key.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    #[inline]
    pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        reader::fixed(&mut { self.walk }, self.event, PUBKEY, Field::Pubkey)
    }

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// If the field is not in its table.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        reader::created_at(self.event)
    }

    /// The kind.
    ///
    /// # Errors
    /// As [`created_at`](Self::created_at).
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        reader::kind(self.event)
    }
}
