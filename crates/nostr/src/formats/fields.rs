//! What do single fields of an event say, where a layout tells them without the rest?

use bumpalo::Bump;

use super::Format;
use crate::{DecodeError, Event, Limits};

/// Which event is this, as far as somebody asks.
impl Format {
    /// The kind of the event that `bytes` are.
    ///
    /// Read from its place where the layout has one for it; the rest of the event is then not looked at,
    /// and may be broken. Else all of the event is decoded.
    ///
    /// # Errors
    /// If what is read breaks a rule of the format.
    pub fn kind(self, bytes: &[u8], arena: &Bump, limits: &Limits) -> Result<u16, DecodeError> {
        self.whole(bytes, arena, limits, |event| event.kind)
    }

    /// The author of the event that `bytes` are, read as by [`kind`](Self::kind).
    ///
    /// # Errors
    /// If what is read breaks a rule of the format.
    pub fn pubkey(
        self,
        bytes: &[u8],
        arena: &Bump,
        limits: &Limits,
    ) -> Result<[u8; 32], DecodeError> {
        self.whole(bytes, arena, limits, |event| event.pubkey)
    }

    /// Both, read as by [`kind`](Self::kind).
    ///
    /// # Errors
    /// If what is read breaks a rule of the format.
    pub fn kind_and_pubkey(
        self,
        bytes: &[u8],
        arena: &Bump,
        limits: &Limits,
    ) -> Result<(u16, [u8; 32]), DecodeError> {
        self.whole(bytes, arena, limits, |event| (event.kind, event.pubkey))
    }

    fn whole<T>(
        self,
        bytes: &[u8],
        arena: &Bump,
        limits: &Limits,
        field: impl FnOnce(&Event<'_>) -> T,
    ) -> Result<T, DecodeError> {
        self.decode(bytes, arena, limits).map(|event| field(&event))
    }
}
