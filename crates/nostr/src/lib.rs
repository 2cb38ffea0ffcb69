//! Nostr events: ids, signatures, their JSON, and requests to relays.
//!
//! | module or item | purpose |
//! |---|---|
//! | [`Event`], [`OwnedEvent`] | an event, borrowed or owned |
//! | [`canonical`] | the bytes whose SHA-256 is the id |
//! | [`Event::verify`], [`verify_many`] | checks of id and signature, one by one or in batches |
//! | [`IdSerialization`] | which forms of control characters an id may have |
//! | [`Filter`] | which events to take, as in requests to relays |
//! | [`negentropy`] | which events another side lacks, without sending all ids |
//! | [`json`] | encoding and decoding in JSON |
//! | [`Limits`] | limits on the size of decoded events |
//! | [`input`], [`draft`], [`limits`] | parts for decoders of other formats |
//!
//! A decoded [`Event`] borrows from its encoded bytes and from an arena that the caller owns and resets between
//! events, so that steady-state decoding does not allocate. Hexadecimal text that a format stores as bytes stays
//! bytes ([`Value::Hex`]) until a caller asks for the text.
//!
//! ```
//! use wireproof::nostr::{Arena, Limits, json};
//! # let text = wireproof::nostr::example::JSON;
//!
//! let arena = Arena::new();
//! let event = json::decode(text.as_bytes(), &arena, &Limits::default())?;
//! event.verify()?;
//! assert_eq!((event.kind, event.tags[0][0].to_text().as_ref()), (1, "t"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate reads no file, socket or clock. No input makes it panic, recurse past a stated limit, or allocate
//! memory out of proportion to its length.

#![forbid(unsafe_code)]

pub mod canonical;
pub mod draft;
mod error;
mod event;
mod filter;
pub mod input;
pub mod json;
pub mod limits;
pub mod negentropy;
mod verify;

pub use bumpalo::Bump as Arena;
pub use error::{DecodeError, EncodeError, Field, Reason};
pub use event::{Event, OwnedEvent, Tag, Value};
pub use filter::Filter;
pub use limits::{Limit, Limits};
pub use verify::{EventFault, IdSerialization, verify_many, verify_many_with};

/// An event for examples and tests.
#[doc(hidden)]
pub mod example {
    /// A signed note with one tag, as JSON.
    pub const JSON: &str = r#"{"id":"e20978737ab7cd36eca300a65f11738176123f2e0c23054544b18fe493e2aa1a","pubkey":"c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5","created_at":1698632753,"kind":1,"tags":[["t","gm"]],"content":"good morning","sig":"5687c1a97066c349cb3bde0c0719fd1652a13403ba6aca7557b646307ee6718528cd86989db08bf6a7fd04bea0b0b87c1dd1b78c2d21b80b80eebab7f40b8916"}"#;
}
