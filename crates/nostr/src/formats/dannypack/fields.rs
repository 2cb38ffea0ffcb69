//! What do single fields say, without the rest?

use super::{Counted, HEAD_BYTES, section};
use crate::formats::tags;
use crate::input::Input;
use crate::{DecodeError, Reason};

/// An event of which single fields are read: all but tags and content stand at fixed offsets.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    head: &'a [u8; HEAD_BYTES],
    behind: Input<'a>,
}

/// The tags, one by one.
pub type Tags<'a> = tags::Tags<'a, Counted>;

impl<'a> Fields<'a> {
    /// The fields of the event in `bytes`.
    ///
    /// # Errors
    /// If `bytes` are too few for the fields at fixed offsets.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(bytes);
        match input.array() {
            Ok(head) => Ok(Self { head, behind: input }),
            Err(_) => Err(DecodeError::new(bytes.len(), Reason::Truncated)),
        }
    }

    /// The id.
    #[inline]
    pub fn id(&self) -> &'a [u8; 32] {
        self.at::<0, 32>()
    }

    /// The author's key.
    #[inline]
    pub fn pubkey(&self) -> &'a [u8; 32] {
        self.at::<32, 32>()
    }

    /// The signature.
    #[inline]
    pub fn sig(&self) -> &'a [u8; 64] {
        self.at::<64, 64>()
    }

    /// When it was made, by the author's clock.
    #[inline]
    pub fn created_at(&self) -> i64 {
        i64::from_le_bytes(*self.at::<128, 8>())
    }

    /// The kind.
    #[inline]
    pub fn kind(&self) -> u16 {
        u16::from_le_bytes(*self.at::<136, 2>())
    }

    /// The tags, one by one.
    ///
    /// # Errors
    /// If no list of tags is where it must be.
    pub fn tags(&self) -> Result<Tags<'a>, DecodeError> {
        Tags::new(section(&mut { self.behind })?)
    }

    #[inline(always)]
    fn at<const OFFSET: usize, const N: usize>(&self) -> &'a [u8; N] {
        let found = self.head[OFFSET..].first_chunk();
        found.expect("every field lies within the head")
    }
}
