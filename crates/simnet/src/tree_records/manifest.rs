//! What stands beside a corpus file, so that it can be checked and used.

use kernels::sha256;
use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, TreeCounts};
use crate::hex::hex;

/// The description of a file of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The seed.
    pub seed: u64,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// What a tree must give.
    pub counts: TreeCounts,
}

impl Manifest {
    /// Describes `file`, the bytes that [`Corpus::to_file`] gave for `corpus`.
    pub fn new(corpus: &Corpus, file: &[u8]) -> Self {
        Self {
            seed: corpus.spec().seed,
            file_bytes: file.len() as u64,
            sha256: hex(&sha256::digest(file)),
            counts: corpus.counts(),
        }
    }
}
