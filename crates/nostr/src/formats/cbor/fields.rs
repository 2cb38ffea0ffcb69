//! What do single fields of the packed form say, without the rest?

use super::items::{self, OneForm};
use crate::formats::tags;
use crate::input::Input;
use crate::{DecodeError, Field, Reason};

/// An event of which single fields are read: the id and the author's key stand at fixed offsets, the
/// time, the kind and the tags behind them.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    id: &'a [u8; 32],
    pubkey: &'a [u8; 32],
    behind: Input<'a>,
}

/// The tags, one by one.
pub type Tags<'a> = tags::Tags<'a, OneForm>;

impl<'a> Fields<'a> {
    /// The fields of the event in `bytes`.
    ///
    /// # Errors
    /// If `bytes` do not begin as an event does, up to the author's key.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(bytes);
        if *input.array()? != [0x87, 0x58, 0x20] {
            return Err(DecodeError::new(0, Reason::Expected("seven items, the id first")));
        }
        let id = input.array()?;
        let start = input;
        if *input.array()? != [0x58, 0x20] {
            return Err(start.fault(Reason::Length(Field::Pubkey)));
        }
        Ok(Self { id, pubkey: input.array()?, behind: input })
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

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// If it is no integer of 64 bits.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        items::read_created_at(&mut { self.behind })
    }

    /// The kind.
    ///
    /// # Errors
    /// If it is out of range, or no integer stands before it.
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        let mut input = self.behind;
        items::read_created_at(&mut input)?;
        items::read_kind(&mut input)
    }

    /// The tags, one by one.
    ///
    /// # Errors
    /// If no list of tags is where it must be.
    pub fn tags(&self) -> Result<Tags<'a>, DecodeError> {
        let mut input = self.behind;
        items::read_created_at(&mut input)?;
        items::read_kind(&mut input)?;
        Tags::new(input)
    }
}
