//! Verifies a commit object against the key of its account.

use atproto::commit::{Commit, CommitError, CommitFault};
use atproto::syntax::{Did, Tid};
use codec::cbor::Reason;
use crypto::{PublicKey, SignatureFault};

use crate::Verified;

/// Parses the block of a commit and verifies that `key` signed it.
///
/// Proved: the block is canonical, a commit of version 3 with a valid DID and revision, and `key` signed
/// these bytes, unknown entries included. Not proved: that `key` is the account's, and that the block
/// has the CID under which it was sent.
///
/// # Errors
/// If the block is not such a commit, or the signature is not one of `key` by the strict rules: 64
/// bytes, r and s in range, s in the lower half. Source: the repository specification, version 3.
///
/// ```
/// use wireproof::atproto::commit::UnsignedCommit;
/// use wireproof::codec::cid::{Cid, Codec};
/// use wireproof::crypto::{Curve, SecretKey};
/// use wireproof::verify::commit;
///
/// let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
/// let data = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
/// let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
/// let unsigned = UnsignedCommit { did, rev, data, prev: None };
/// let block = unsigned.with_signature(&key.sign(&unsigned.to_bytes()));
///
/// assert_eq!(commit::verify(&block, &key.public_key()).map(|commit| commit.rev), Ok(rev));
/// let other_key = SecretKey::from_bytes(Curve::K256, &[8; 32])?.public_key();
/// assert_eq!(commit::verify(&block, &other_key).unwrap_err().code(), "signature/wrong");
/// # Ok::<(), wireproof::crypto::KeyError>(())
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

/// Why a commit is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitRejection<'a> {
    /// The block is not a commit object of version 3.
    #[error(transparent)]
    Object(CommitError),
    /// The field `did` is not a DID.
    #[error("commit account {0:?} is not a DID")]
    Did(&'a str),
    /// The field `rev` is not a TID.
    #[error("commit revision {0:?} is not a TID")]
    Rev(&'a str),
    /// The signature is malformed, malleable, or not the key's.
    #[error("commit signature: {0}")]
    Signature(SignatureFault),
}

impl CommitRejection<'_> {
    /// The stable code of the broken rule.
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

/// The stable code of a fault of a commit object.
pub(crate) fn object_code(error: &CommitError) -> &'static str {
    match error.fault {
        CommitFault::Cbor(Reason::Expected(_)) | CommitFault::Field(_) => "commit/field",
        CommitFault::Missing(_) => "commit/missing",
        CommitFault::SignatureLength(_) => "commit/signature-length",
        CommitFault::Version2 | CommitFault::Version(_) => "commit/version",
        _ => "commit/cbor",
    }
}

/// The stable code of a fault of a signature.
pub fn signature_code(fault: SignatureFault) -> &'static str {
    match fault {
        SignatureFault::Length(_) => "commit/signature-length",
        SignatureFault::RRange | SignatureFault::SRange => "signature/range",
        SignatureFault::HighS => "signature/high-s",
        SignatureFault::Key => "signature/key",
        _ => "signature/wrong",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use atproto::commit::UnsignedCommit;
    use codec::cid::{Cid, Codec};
    use crypto::{Curve, SecretKey};

    use super::*;

    const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
    const REV: &str = "3mptbypluud2a";

    fn key(curve: Curve) -> SecretKey {
        SecretKey::from_bytes(curve, &[7; 32]).unwrap()
    }

    fn unsigned<'a>(did: &'a str, rev: &'a str) -> UnsignedCommit<'a> {
        UnsignedCommit { did, rev, data: Cid::of(Codec::DagCbor, b"tree"), prev: None }
    }

    fn signed(did: &str, rev: &str, key: &SecretKey) -> Vec<u8> {
        let unsigned = unsigned(did, rev);
        unsigned.with_signature(&key.sign(&unsigned.to_bytes()))
    }

    fn code_of(block: &[u8], key: &SecretKey) -> &'static str {
        verify(block, &key.public_key()).expect_err("rejected").code()
    }

    #[test]
    fn a_signed_commit_is_verified_on_either_curve() {
        for curve in Curve::ALL {
            let key = key(curve);
            let block = signed(DID, REV, &key);
            let commit = verify(&block, &key.public_key()).unwrap();
            assert_eq!((commit.did, commit.rev, commit.data), (DID, REV, unsigned(DID, REV).data));
            assert_eq!(commit.into_inner(), Commit::parse(&block).unwrap());
        }
    }

    #[test]
    fn the_signature_of_another_key_is_rejected() {
        for curve in Curve::ALL {
            let other_key = SecretKey::from_bytes(curve, &[8; 32]).unwrap();
            assert_eq!(code_of(&signed(DID, REV, &key(curve)), &other_key), "signature/wrong");
        }
        assert_eq!(
            code_of(&signed(DID, REV, &key(Curve::K256)), &key(Curve::P256)),
            "signature/wrong"
        );
    }

    #[test]
    fn a_commit_with_any_flipped_bit_is_rejected() {
        let key = key(Curve::K256);
        let block = signed(DID, REV, &key);
        for at in 0..block.len() {
            for bit in 0..8 {
                let mut forged = block.clone();
                forged[at] ^= 1 << bit;
                assert!(verify(&forged, &key.public_key()).is_err(), "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn a_signature_with_high_s_is_rejected() {
        for curve in Curve::ALL {
            let key = key(curve);
            let unsigned = unsigned(DID, REV);
            let twin = high_s_twin(curve, key.sign(&unsigned.to_bytes()));
            assert_eq!(code_of(&unsigned.with_signature(&twin), &key), "signature/high-s");
        }
    }

    #[test]
    fn a_signature_of_zeros_is_rejected() {
        let key = key(Curve::K256);
        assert_eq!(code_of(&unsigned(DID, REV).with_signature(&[0; 64]), &key), "signature/range");
    }

    #[test]
    fn an_account_must_be_a_did_and_a_revision_a_tid() {
        let key = key(Curve::K256);
        for did in ["", "did:plc:", "alice.example", "did:plc:wq4aajammjtxdomz3e23667t "] {
            assert_eq!(code_of(&signed(did, REV, &key), &key), "commit/did", "{did:?}");
        }
        for rev in ["", "3mptbypluud2", "zmptbypluud2a", "3MPTBYPLUUD2A"] {
            assert_eq!(code_of(&signed(DID, rev, &key), &key), "commit/rev", "{rev:?}");
        }
    }

    #[test]
    fn each_malformed_object_has_its_own_code() {
        let key = key(Curve::K256);
        let good = signed(DID, REV, &key);
        let with = |from: &[u8], to: &[u8]| {
            let at = good.windows(from.len()).position(|window| window == from).unwrap();
            [&good[..at], to, &good[at + from.len()..]].concat()
        };
        assert_eq!(code_of(&good[..good.len() - 1], &key), "commit/cbor");
        assert_eq!(code_of(&[&good[..], &[0]].concat(), &key), "commit/cbor");
        assert_eq!(code_of(b"\xa1\x67version\x03", &key), "commit/missing");
        assert_eq!(code_of(&with(b"version\x03", b"version\x02"), &key), "commit/version");
        assert_eq!(code_of(&with(b"prev\xf6", b"prev\xf5"), &key), "commit/field");
        let long = with(b"sig\x58\x40", b"sig\x58\x41\x00");
        assert_eq!(code_of(&long, &key), "commit/signature-length");
    }

    #[test]
    fn each_fault_of_a_signature_has_a_code() {
        let codes = [
            (SignatureFault::Length(63), "commit/signature-length"),
            (SignatureFault::RRange, "signature/range"),
            (SignatureFault::SRange, "signature/range"),
            (SignatureFault::HighS, "signature/high-s"),
            (SignatureFault::Key, "signature/key"),
            (SignatureFault::Mismatch, "signature/wrong"),
        ];
        for (fault, code) in codes {
            assert_eq!(CommitRejection::Signature(fault).code(), code);
        }
    }

    /// The signature r, n − s, which a verifier without the low-s rule accepts as well.
    pub(crate) fn high_s_twin(curve: Curve, mut signature: [u8; 64]) -> [u8; 64] {
        let order: [u8; 32] = match curve {
            Curve::K256 => {
                *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\
            \xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41"
            }
            Curve::P256 => {
                *b"\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\
                \xbc\xe6\xfa\xad\xa7\x17\x9e\x84\xf3\xb9\xca\xc2\xfc\x63\x25\x51"
            }
        };
        let mut borrow = 0;
        for (s, n) in signature[32..].iter_mut().zip(order).rev() {
            let difference = i16::from(n) - i16::from(*s) - borrow;
            (*s, borrow) = (difference as u8, i16::from(difference < 0));
        }
        signature
    }
}
