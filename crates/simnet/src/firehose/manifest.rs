//! What stands beside a corpus file, so that it can be checked and used.

use kernels::sha256;
use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, FrameCounts, VerdictCounts};
use crate::hex::hex;

/// The description of a corpus file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The seed.
    pub seed: u64,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// What is in the blocks of its frames.
    pub counts: FrameCounts,
    /// What judging its commits must give.
    pub verdicts: VerdictCounts,
    /// The keys that sign its commits, in the order of the DIDs.
    pub accounts: Vec<AccountKey>,
}

/// An account and the key that signs its commits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AccountKey {
    /// The account.
    pub did: String,
    /// The public key, as a `did:key`.
    pub signing_key: String,
}

impl Manifest {
    /// Describes `file`, the bytes that [`Corpus::to_file`] gave for `corpus`.
    pub fn new(corpus: &Corpus, file: &[u8]) -> Self {
        let account = |(did, signing_key)| AccountKey { did, signing_key };
        let accounts = corpus.account_keys().into_iter().map(account).collect();
        Self {
            seed: corpus.spec().seed,
            file_bytes: file.len() as u64,
            sha256: hex(&sha256::digest(file)),
            counts: *corpus.counts(),
            verdicts: corpus.verdicts(),
            accounts,
        }
    }
}
