//! What do single fields say, without the rest?

use super::{Counted, kind, len, version};
use crate::DecodeError;
use crate::formats::tags;
use crate::input::Input;

/// An event of which single fields are read: the id, the author's key and the signature stand at fixed
/// offsets, the time and the kind right behind them, the tags behind the content.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    id: &'a [u8; 32],
    pubkey: &'a [u8; 32],
    sig: &'a [u8; 64],
    behind: Input<'a>,
}

/// The tags, one by one.
pub type Tags<'a> = tags::Tags<'a, Counted>;

impl<'a> Fields<'a> {
    /// The fields of the event in `bytes`.
    ///
    /// # Errors
    /// If `bytes` are of another version, or too few for the fields at fixed offsets.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(bytes);
        version(&mut input)?;
        let (id, pubkey, sig) = (input.array()?, input.array()?, input.array()?);
        Ok(Self { id, pubkey, sig, behind: input })
    }

    /// The id.
    #[inline]
    pub fn id(&self) -> &'a [u8; 32] {
        self.id
    }

    /// The author's key.
    #[inline]
    pub fn pubkey(&self) -> &'a [u8; 32] {
        self.pubkey
    }

    /// The signature.
    #[inline]
    pub fn sig(&self) -> &'a [u8; 64] {
        self.sig
    }

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// If it is no integer of 64 bits.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(Input::varint(&mut { self.behind })? as i64)
    }

    /// The kind.
    ///
    /// # Errors
    /// If it is out of range, or no integer stands before it.
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        let mut input = self.behind;
        input.varint()?;
        kind(&mut input)
    }

    /// The tags, one by one.
    ///
    /// # Errors
    /// If what stands before them is broken, or no list of tags follows.
    pub fn tags(&self) -> Result<Tags<'a>, DecodeError> {
        let mut input = self.behind;
        input.varint()?;
        kind(&mut input)?;
        let len = len(&mut input)?;
        input.take(len)?;
        Tags::new(input)
    }
}
