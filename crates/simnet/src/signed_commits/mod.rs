//! Which signatures does a verifier of repositories see?
//!
//! Many accounts, each with a real repository and one key, commit in turn; what is kept of a commit is
//! the signed object and the key. An account comes back a handful of times, at no fixed distance, so
//! that remembering keys pays as it would on a stream.
//!
//! ```
//! use wireproof_simnet::signed_commits::{self, Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick());
//! let file = corpus.to_file();
//! assert_eq!(signed_commits::read(&file).unwrap().len(), 192);
//! ```

mod corpus;
mod file;
mod manifest;
#[cfg(test)]
mod tests;

pub use corpus::{CommitCounts, Corpus, Spec};
pub use file::{CommitEntry, read, write};
pub use manifest::Manifest;
