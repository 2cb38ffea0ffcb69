//! Which records does one put into a tree to see how fast it is?
//!
//! The keys of an account that has written for years, in the mix of collections that accounts have,
//! each with the name of a record; an order in which to insert them that is none; and the keys to look
//! up.
//!
//! ```
//! use wireproof_simnet::tree_records::{self, Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick());
//! let file = corpus.to_file();
//! assert_eq!(tree_records::read(&file).unwrap().records.len(), 2_000);
//! ```

mod corpus;
mod file;
mod manifest;
#[cfg(test)]
mod tests;

pub use corpus::{Corpus, Spec, TreeCounts};
pub use file::{Record, TreeRecords, read};
pub use manifest::Manifest;
