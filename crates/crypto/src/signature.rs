//! Checks of a signature without its key: length, ranges, a low s.

use crate::curve::Curve;

/// Why a signature is rejected. Faults of the signature alone come before faults that need the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureFault {
    /// The signature is not 64 bytes, as one in DER is not.
    #[error("a signature is 64 bytes long, this is {0}")]
    Length(usize),
    /// r is zero, or not below the order of the curve (for BIP-340: not below the field's size).
    #[error("r is out of range")]
    RRange,
    /// s is zero, or not below the order of the curve.
    #[error("s is out of range")]
    SRange,
    /// s is above half the order of the curve: the signature's twin, which anyone can compute.
    #[error("s is in the upper half")]
    HighS,
    /// The key is not a point of its curve.
    #[error("the key is not a point of its curve")]
    Key,
    /// The signature is well formed, but the key did not sign this message.
    #[error("not this key's signature of this message")]
    Mismatch,
}

/// The outcome of one signature check.
pub type SignatureVerdict = Result<(), SignatureFault>;

const _: () = assert!(size_of::<SignatureFault>() <= 16, "verdicts stay in two registers");

impl SignatureFault {
    /// `Ok` for a signature that matches key and message.
    pub(crate) fn unless(matches: bool) -> Result<(), Self> {
        if matches { Ok(()) } else { Err(Self::Mismatch) }
    }
}

/// Checks that a signature has 64 bytes with r and s from 1 to n − 1, and s at most n/2.
#[inline]
pub(crate) fn strict(curve: Curve, signature: &[u8]) -> Result<&[u8; 64], SignatureFault> {
    let signature = allowing_high_s(curve, signature)?;
    let (_, s) = halves(signature);
    if s <= curve.half_order() { Ok(signature) } else { Err(SignatureFault::HighS) }
}

/// Checks that a signature has 64 bytes with r and s from 1 to n − 1.
#[inline]
pub(crate) fn allowing_high_s(curve: Curve, signature: &[u8]) -> Result<&[u8; 64], SignatureFault> {
    let signature = of_length(signature)?;
    let (r, s) = halves(signature);
    if !curve.has_scalar(r) {
        return Err(SignatureFault::RRange);
    }
    if !curve.has_scalar(s) {
        return Err(SignatureFault::SRange);
    }
    Ok(signature)
}

/// Checks that a signature has 64 bytes.
#[inline]
pub(crate) fn of_length(signature: &[u8]) -> Result<&[u8; 64], SignatureFault> {
    signature.try_into().map_err(|_| SignatureFault::Length(signature.len()))
}

/// r and s.
#[inline]
pub(crate) fn halves(signature: &[u8; 64]) -> (&[u8; 32], &[u8; 32]) {
    let (r, s) = signature.split_at(32);
    (r.try_into().expect("half of 64 bytes"), s.try_into().expect("half of 64 bytes"))
}
