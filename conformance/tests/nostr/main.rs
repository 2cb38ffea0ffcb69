//! Do Nostr events survive every format in which they travel, and does nothing else?
//!
//! | module | its input |
//! |---|---|
//! | `real` | real events through every format, and which a format has no place for |
//! | `verified` | real events under their authors' keys, and with one byte changed |
//! | `edges` | what layouts stumble over, and the exact outcome of each format |
//! | `hostile` | truncations and mutations of every encoded form |
//! | `properties` | any event at all |
//! | `summaries` | real events in strfry's summary for indexes, which is no format of events |
//!
//! Every other test goes over [`Format::ALL`](wireproof::nostr::formats::Format::ALL): a new format is held to
//! all of this by being listed there.

#![forbid(unsafe_code)]

mod edges;
mod hostile;
mod made;
mod properties;
mod real;
mod summaries;
mod verified;
