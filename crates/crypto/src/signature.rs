//! What can be told of an ECDSA signature without its key: length and ranges.

use crate::curve::Curve;
use crate::error::SignatureFault;

/// A signature of 64 bytes with r and s from 1 to n − 1, s at most n/2.
#[inline]
pub(crate) fn strict(curve: Curve, signature: &[u8]) -> Result<&[u8; 64], SignatureFault> {
    let signature = allowing_high_s(curve, signature)?;
    let (_, s) = halves(signature);
    if s <= curve.half_order() { Ok(signature) } else { Err(SignatureFault::HighS) }
}

/// A signature of 64 bytes with r and s from 1 to n − 1.
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

/// 64 bytes.
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
