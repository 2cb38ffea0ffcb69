//! An event that borrows from nothing.

use bumpalo::Bump;

use super::{Event, Tag};
use crate::Value;

/// An event on its own: the twin of [`Event`] for those who must keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEvent {
    /// The SHA-256 of the [canonical form](crate::canonical).
    pub id: [u8; 32],
    /// The author's x-only public key.
    pub pubkey: [u8; 32],
    /// Seconds since 1970, by the author's clock.
    pub created_at: i64,
    /// What kind of event it is.
    pub kind: u16,
    /// The tags, each a name and values.
    pub tags: Vec<Vec<String>>,
    /// The content.
    pub content: String,
    /// The BIP-340 signature over the id.
    pub sig: [u8; 64],
}

impl OwnedEvent {
    /// Borrows the event, with its lists in `arena`.
    pub fn borrow_in<'a>(&'a self, arena: &'a Bump) -> Event<'a> {
        let tag = |tag: &'a Vec<String>| -> Tag<'a> {
            arena.alloc_slice_fill_iter(tag.iter().map(|value| Value::Text(value)))
        };
        Event {
            id: self.id,
            pubkey: self.pubkey,
            created_at: self.created_at,
            kind: self.kind,
            tags: arena.alloc_slice_fill_iter(self.tags.iter().map(tag)),
            content: &self.content,
            sig: self.sig,
        }
    }
}
