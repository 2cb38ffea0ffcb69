//! Did this account sign this commit object?

use atproto::commit::{Commit, CommitError, CommitFault};
use atproto::syntax::{Did, Tid};
use codec::cbor::Reason;
use crypto::{PublicKey, SignatureFault};

use crate::Verified;

/// Reads the block of a commit and checks that `key` signed it.
///
/// What is proved: the block is canonical, a commit of version 3 with a DID and a revision that are
/// ones, and `key` signed these bytes, unknown entries among them. What is not: that `key` is the
/// account's, and that the block has the CID under which it came.
///
/// # Errors
/// If the block is no such commit, or the signature is not one of `key` by the strict rules: 64
/// bytes, r and s in range, s in the lower half. Source: the repository specification, version 3.
///
/// ```
/// use atproto::commit::UnsignedCommit;
/// use codec::cid::{Cid, Codec};
/// use crypto::{Curve, SecretKey};
/// use wireproof_verify::commit::{self, CommitRejection};
///
/// let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
/// let data = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
/// let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
/// let unsigned = UnsignedCommit { did, rev, data, prev: None };
/// let block = unsigned.with_signature(&key.sign(&unsigned.to_bytes()));
///
/// assert_eq!(commit::verify(&block, &key.public_key()).map(|commit| commit.rev), Ok(rev));
/// let stranger = SecretKey::from_bytes(Curve::K256, &[8; 32])?.public_key();
/// assert_eq!(commit::verify(&block, &stranger).unwrap_err().code(), "signature/wrong");
/// # Ok::<(), crypto::KeyError>(())
/// ```
pub fn verify<'a>(
    block: &'a [u8],
    key: &PublicKey,
) -> Result<Verified<Commit<'a>>, CommitRejection<'a>> {
    let commit = Commit::parse(block)?;
    if Did::parse(commit.did).is_err() {
        return Err(CommitRejection::Did(commit.did));
    }
    if Tid::parse(commit.rev).is_err() {
        return Err(CommitRejection::Rev(commit.rev));
    }
    key.verify_digest(&commit.signing_bytes().digest(), commit.sig)?;
    Ok(Verified::vouch(commit))
}

/// Why a block is not a commit that the key signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitRejection<'a> {
    /// The block is not a commit object of version 3.
    #[error(transparent)]
    Object(CommitError),
    /// The field `did` is not a DID.
    #[error("the commit's account {0:?} is not a DID")]
    Did(&'a str),
    /// The field `rev` is not a TID.
    #[error("the commit's revision {0:?} is not a TID")]
    Rev(&'a str),
    /// The signature is malformed, malleable, or not the key's.
    #[error("the commit's signature: {0}")]
    Signature(SignatureFault),
}

impl CommitRejection<'_> {
    /// The stable name of the rule that was broken.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Object(error) => object_code(error),
            Self::Did(_) => "commit/did",
            Self::Rev(_) => "commit/rev",
            Self::Signature(fault) => signature_code(*fault),
        }
    }
}

impl From<CommitError> for CommitRejection<'_> {
    #[cold]
    fn from(error: CommitError) -> Self {
        Self::Object(error)
    }
}

impl From<SignatureFault> for CommitRejection<'_> {
    #[cold]
    fn from(fault: SignatureFault) -> Self {
        Self::Signature(fault)
    }
}

/// The stable name of what is wrong with a commit object.
pub(crate) fn object_code(error: &CommitError) -> &'static str {
    match error.fault {
        CommitFault::Cbor(Reason::Expected(_)) | CommitFault::Field(_) => "commit/field",
        CommitFault::Missing(_) => "commit/missing",
        CommitFault::SignatureLength(_) => "commit/signature-length",
        CommitFault::Version2 | CommitFault::Version(_) => "commit/version",
        _ => "commit/cbor",
    }
}

/// The stable name of what is wrong with a signature.
pub(crate) fn signature_code(fault: SignatureFault) -> &'static str {
    match fault {
        SignatureFault::Length(_) => "commit/signature-length",
        SignatureFault::RRange | SignatureFault::SRange => "signature/range",
        SignatureFault::HighS => "signature/high-s",
        SignatureFault::Key => "signature/key",
        _ => "signature/wrong",
    }
}

#[cfg(test)]
mod tests;
