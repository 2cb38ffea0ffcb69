//! What does an event say?

mod owned;

pub use owned::OwnedEvent;

use crate::Value;

/// An event as NIP-01 has it, borrowed from the bytes and the arena that it was read into.
///
/// That it is well formed is all that is known: whether the id and the signature hold, [`verify`]
/// says.
///
/// [`verify`]: Event::verify
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The SHA-256 of the [canonical form](crate::canonical).
    pub id: [u8; 32],
    /// The author's x-only public key.
    pub pubkey: [u8; 32],
    /// Seconds since 1970, by the author's clock.
    pub created_at: i64,
    /// What kind of event it is.
    pub kind: u16,
    /// The tags, in order; a tag may be empty.
    pub tags: &'a [Tag<'a>],
    /// The content.
    pub content: &'a str,
    /// The BIP-340 signature over the id.
    pub sig: [u8; 64],
}

/// A tag: its name and its values, in order.
pub type Tag<'a> = &'a [Value<'a>];

impl Event<'_> {
    /// The same event, on its own.
    pub fn to_owned(&self) -> OwnedEvent {
        let tag = |tag: &Tag<'_>| tag.iter().map(|value| value.to_text().into_owned()).collect();
        OwnedEvent {
            id: self.id,
            pubkey: self.pubkey,
            created_at: self.created_at,
            kind: self.kind,
            tags: self.tags.iter().map(tag).collect(),
            content: self.content.to_owned(),
            sig: self.sig,
        }
    }
}
