//! Which commits are there to verify, and what came of it? The units of the task `sigs`.

use simnet::keys;
use simnet::signed_commits::{self, CommitEntry};
use wireproof::atproto::commit::{Commit, CommitError};
use wireproof::crypto::{CompressedKey, Curve, KeyError, PublicKey, SignatureFault};

use crate::counts::Counts;

/// A commit of a corpus file, and the key that is to have signed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignedCommit<'f> {
    pub(crate) object: &'f [u8],
    pub(crate) curve: Curve,
    /// The compressed point.
    pub(crate) key: &'f [u8; 33],
}

/// The commits of a file; `None` if it is none.
pub(crate) fn read(file: &[u8]) -> Option<Vec<SignedCommit<'_>>> {
    let commit = |CommitEntry { curve, commit: object, key }| {
        let curve = match curve {
            keys::Curve::K256 => Curve::K256,
            keys::Curve::P256 => Curve::P256,
        };
        SignedCommit { object, curve, key }
    };
    Some(signed_commits::read(file)?.into_iter().map(commit).collect())
}

impl SignedCommit<'_> {
    /// Decodes, hashes, parses the key and verifies, one after the other.
    pub(crate) fn verify(&self) -> Result<(), Refusal> {
        let commit = Commit::parse(self.object)?;
        let digest = commit.signing_bytes().digest();
        let key = PublicKey::from_sec1(self.curve, self.key)?;
        Ok(key.verify_digest(&digest, commit.sig)?)
    }

    /// The key, before anyone asks whether it is a point.
    pub(crate) fn compressed_key(&self) -> Result<CompressedKey, Refusal> {
        Ok(CompressedKey::from_bytes(self.curve, self.key)?)
    }
}

/// Why a signature does not count as valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It was verified and found wrong.
    Invalid,
    /// Commit, key or signature cannot be read.
    Unreadable,
}

impl From<SignatureFault> for Refusal {
    fn from(fault: SignatureFault) -> Self {
        match fault {
            SignatureFault::Mismatch | SignatureFault::HighS => Self::Invalid,
            _ => Self::Unreadable,
        }
    }
}

impl From<CommitError> for Refusal {
    fn from(_: CommitError) -> Self {
        Self::Unreadable
    }
}

impl From<KeyError> for Refusal {
    fn from(_: KeyError) -> Self {
        Self::Unreadable
    }
}

/// The counts of the task so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    commits: u64,
    valid_k256: u64,
    valid_p256: u64,
    invalid: u64,
    errors: u64,
}

impl Tally {
    /// Verifies all `commits`, one at a time.
    pub(crate) fn of(commits: &[SignedCommit<'_>]) -> Self {
        let mut tally = Self::default();
        commits.iter().for_each(|commit| tally.note(commit.curve, commit.verify()));
        tally
    }

    /// Counts what came of one commit.
    pub(crate) fn note(&mut self, curve: Curve, verdict: Result<(), Refusal>) {
        self.commits += 1;
        *match (verdict, curve) {
            (Ok(()), Curve::K256) => &mut self.valid_k256,
            (Ok(()), Curve::P256) => &mut self.valid_p256,
            (Err(Refusal::Invalid), _) => &mut self.invalid,
            (Err(Refusal::Unreadable), _) => &mut self.errors,
        } += 1;
    }
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        Self::from_iter([
            ("commits", tally.commits),
            ("valid_k256", tally.valid_k256),
            ("valid_p256", tally.valid_p256),
            ("invalid", tally.invalid),
            ("errors", tally.errors),
        ])
    }
}
