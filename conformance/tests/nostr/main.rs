//! Round trips of Nostr events in every format, and the rejection of all other bytes.
//!
//! | module | input |
//! |---|---|
//! | `real` | real events in every format, and the events that a format cannot hold |
//! | `verified` | real events under their authors' keys, and with one byte changed; strfry's summaries of them |
//! | `hostile` | truncations and mutations of every encoded form |
//! | `containers` | real events in containers of every format; the test vector of the page on containers |
//! | `control_chars` | events whose id depends on the form of control characters |
//! | `verdicts` | the events on which other implementations judge differently, from the page on JSON |
//! | `pages` | the tables on the pages of the formats |
//! | `vectors` | the published file of events, encodings and refusals |
//! | `properties` | any event; edge cases of the layouts, with the exact outcome of every format |
//!
//! All other tests iterate over [`Format::ALL`](nostr_formats::Format::ALL), so they also cover a new format
//! that is listed there.

#![forbid(unsafe_code)]

mod containers;
mod control_chars;
mod hostile;
mod made;
mod pages;
mod properties;
mod real;
mod vector_file;
mod vector_refusals;
mod vectors;
mod verdict_texts;
mod verdicts;
mod verified;
