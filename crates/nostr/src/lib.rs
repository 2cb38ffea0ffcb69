//! Nostr: events, their ids and signatures, and every binary format in which they travel.
//!
//! | module or item | question it answers |
//! |---|---|
//! | [`Event`] | what does this event say? |
//! | [`canonical`] | which bytes is an event's id the SHA-256 of? |
//! | [`Event::verify`], [`verify_many`] | is this event its author's, are these many? |
//! | [`formats`] | how does an event travel, and what do these bytes say in that format? |
//! | [`Limits`] | how large may an event be? |
//!
//! A decoded [`Event`] borrows from the bytes it was read from and from an arena that the caller
//! brings and resets between events: in a steady state nothing is allocated. Text that a format keeps as the
//! bytes of its hexadecimal digits stays so ([`Value::Hex`]) until somebody asks for the text.
//!
//! ```
//! use bumpalo::Bump;
//! use wireproof_nostr::{Limits, formats::Format};
//! # let json = wireproof_nostr::example::JSON;
//!
//! let arena = Bump::new();
//! let event = Format::Json.decode(json.as_bytes(), &arena, &Limits::default())?;
//! event.verify()?;
//! assert_eq!((event.kind, event.tags[0][0].to_text().as_ref()), (1, "t"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here reads a file, a socket or a clock, and no input makes it panic, recurse past a stated
//! bound, or take memory out of proportion to its length.

#![forbid(unsafe_code)]

pub mod canonical;
mod error;
mod event;
#[doc(hidden)]
pub mod example;
pub mod formats;
mod gather;
mod input;
mod limits;
mod value;
mod verify;

pub use error::{DecodeError, EncodeError, Field, Reason};
pub use event::{Event, OwnedEvent, Tag};
pub use limits::{Limit, Limits};
pub use value::Value;
pub use verify::{EventFault, verify_many};
