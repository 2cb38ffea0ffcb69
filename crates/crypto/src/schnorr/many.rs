//! Which of these many BIP-340 signatures are their keys'?

use super::{XOnlyKey, well_formed};
use crate::error::SignatureFault;
use crate::many::Verdict;

/// A signature to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// What was signed, of any length; an event's id, for Nostr.
    pub message: &'a [u8],
    /// r and s, 64 bytes if it is well formed.
    pub signature: &'a [u8],
    /// Who is said to have signed.
    pub key: Key<'a>,
}

/// A key in one of the forms that a caller may have it in.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    /// Checked before.
    Parsed(&'a XOnlyKey),
    /// 32 bytes that are perhaps no key at all: the batch finds out.
    Bytes(&'a [u8; 32]),
}

/// Judges each signature; the verdict of a check has the check's index.
///
/// Every verdict is that of [`XOnlyKey::verify`], and of [`SignatureFault::Key`] where the bytes of
/// a key are none.
pub fn verify_many(checks: &[Check<'_>]) -> Vec<Verdict> {
    let mut verdicts = vec![Ok(()); checks.len()];
    verify_many_into(checks, &mut verdicts);
    verdicts
}

/// As [`verify_many`], into the places of the same index.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_many_into(checks: &[Check<'_>], verdicts: &mut [Verdict]) {
    assert_eq!(checks.len(), verdicts.len(), "one place for each verdict");
    for (check, verdict) in checks.iter().zip(verdicts) {
        *verdict = judge(check);
    }
}

fn judge(check: &Check<'_>) -> Verdict {
    well_formed(check.signature)?;
    match check.key {
        Key::Parsed(key) => key.verify(check.message, check.signature),
        Key::Bytes(bytes) => XOnlyKey::from_bytes(bytes)
            .map_err(|_| SignatureFault::Key)?
            .verify(check.message, check.signature),
    }
}
