//! Round trips of Nostr events in every format, and the rejection of all other bytes.
//!
//! | module | its input |
//! |---|---|
//! | `real` | real events through every format, and which a format has no place for |
//! | `verified` | real events under their authors' keys, and with one byte changed; strfry's summaries of them |
//! | `hostile` | truncations and mutations of every encoded form |
//! | `properties` | any event; edge cases of the layouts, with the exact outcome of each format |
//!
//! Every other test goes over [`Format::ALL`](wireproof::nostr::formats::Format::ALL): a new format is held to
//! all of this by being listed there.

#![forbid(unsafe_code)]

mod hostile;
mod made;
mod properties;
mod real;
mod verified;
