//! Which events does a relay of Nostr see?
//!
//! Kinds, lengths and tags as they were measured on real relays, real ids and BIP-340 signatures; what
//! the events say is made up. Every event fits every format that is compared: text has no control
//! characters but line feed, carriage return and tab, a tag has at most 255 values, and a value less
//! than 32 KiB.
//!
//! ```
//! use wireproof_simnet::nostr_events::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec { events: 50, ..Spec::quick() });
//! assert_eq!(corpus.to_file().lines().count(), 50);
//! ```

mod calibration;
mod corpus;
mod lexicon;
mod manifest;
mod page;
#[cfg(test)]
mod tests;
mod writing;

pub use corpus::{Corpus, Spec};
pub use manifest::{EventCounts, Manifest};
