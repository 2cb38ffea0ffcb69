//! Which repository does one read as a whole?
//!
//! That of an account which has written for years and deleted nothing: its newest commit, its tree and
//! all its records, in one archive.
//!
//! ```
//! use wireproof_simnet::repository_corpus::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec { records: 100, ..Spec::quick() });
//! assert_eq!(corpus.counts().records, 100);
//! ```

mod corpus;
mod manifest;
#[cfg(test)]
mod tests;

pub use corpus::{BlockOrder, Corpus, RepositoryCounts, Spec};
pub use manifest::{DidDocument, Manifest, VerificationMethod};
