//! Which signatures does a verifier of Nostr events see?
//!
//! Some hundred authors write notes, reactions, profiles, contact lists and reports; each event has
//! its real id and a BIP-340 signature over it. They are told as JSON, one event a line.
//!
//! ```
//! use wireproof_simnet::schnorr_events::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick());
//! assert_eq!(corpus.to_file().lines().count(), 256);
//! ```

mod corpus;
mod event;
mod manifest;
#[cfg(test)]
mod tests;
mod writing;

pub use corpus::{Corpus, EventCounts, Spec};
pub(crate) use event::to_json;
pub use event::{Author, Draft, Event};
pub use manifest::Manifest;
