//! What stands beside a corpus file, so that it can be checked and used.

use kernels::sha256;
use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, EventCounts};
use crate::hex::hex;

/// The description of a file of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The seed.
    pub seed: u64,
    /// How many people wrote them, each with one key.
    pub authors: u64,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// What a verifier must find.
    pub counts: EventCounts,
}

impl Manifest {
    /// Describes `file`, the text that [`Corpus::to_file`] gave for `corpus`.
    pub fn new(corpus: &Corpus, file: &str) -> Self {
        Self {
            seed: corpus.spec().seed,
            authors: corpus.spec().authors as u64,
            file_bytes: file.len() as u64,
            sha256: hex(&sha256::digest(file.as_bytes())),
            counts: corpus.counts(),
        }
    }
}
