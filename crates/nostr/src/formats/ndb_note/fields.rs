//! What does one field of a note say, without the others?

use super::reader::u32_at;
use super::*;
use crate::input::kind;
use crate::{Field, Reason};

/// A note whose header is whole; each field has its place in it.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    // HEADER_BYTES at least
    note: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of the note in `bytes`.
    ///
    /// # Errors
    /// If they are shorter than the header, or of another version.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.len() < HEADER_BYTES {
            return Err(DecodeError::new(bytes.len(), Reason::Truncated));
        }
        match bytes[..ID] {
            [VERSION, 0, 0, 0] => Ok(Self { note: bytes }),
            [VERSION, ..] => Err(DecodeError::new(1, Reason::NotCanonical("a zero that is none"))),
            _ => Err(DecodeError::new(0, Reason::Version(bytes[0].into()))),
        }
    }

    /// The id.
    #[inline]
    pub fn id(&self) -> &'a [u8; 32] {
        self.at(ID)
    }

    /// The author's key.
    #[inline]
    pub fn pubkey(&self) -> &'a [u8; 32] {
        self.at(PUBKEY)
    }

    /// The signature.
    #[inline]
    pub fn sig(&self) -> &'a [u8; 64] {
        self.at(SIG)
    }

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// If it is out of range.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        let out_of_range = |_| DecodeError::new(CREATED_AT, Reason::Range(Field::CreatedAt));
        u64::from_le_bytes(*self.at(CREATED_AT)).try_into().map_err(out_of_range)
    }

    /// The kind.
    ///
    /// # Errors
    /// If it is out of range.
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        kind(u32_at(self.note, KIND).into(), KIND)
    }

    #[inline]
    fn at<const N: usize>(&self, start: usize) -> &'a [u8; N] {
        self.note[start..].first_chunk().expect("the header is whole")
    }
}
