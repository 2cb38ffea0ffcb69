//! Round trips of Nostr events in every format, and the rejection of all other bytes.
//!
//! | module | input |
//! |---|---|
//! | `real` | real events in every format, and the events that a format cannot hold |
//! | `verified` | real events under their authors' keys, and with one byte changed; strfry's summaries of them |
//! | `hostile` | truncations and mutations of every encoded form |
//! | `control_chars` | events whose id depends on the form of control characters |
//! | `verdicts` | the events on which other implementations judge differently, from the page on JSON |
//! | `properties` | any event; edge cases of the layouts, with the exact outcome of each format |
//!
//! All other tests iterate over [`Format::ALL`](wireproof::nostr::formats::Format::ALL), so they also cover a new format
//! that is listed there.

#![forbid(unsafe_code)]

mod control_chars;
mod hostile;
mod made;
mod properties;
mod real;
mod verdict_texts;
mod verdicts;
mod verified;
