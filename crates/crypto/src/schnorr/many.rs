//! Which of these many BIP-340 signatures are their keys'?

use super::{XOnlyKey, well_formed};
use crate::cache::KeyCache;
use crate::compressed::CompressedKey;
use crate::curve::Curve;
use crate::error::SignatureFault;
use crate::lanes::{self, Job as _};
use crate::many::SignatureVerdict;

/// A signature to be judged.
#[derive(Clone, Copy, Debug)]
pub struct SignatureCheck<'a> {
    /// What was signed, of any length; an event's id, for Nostr.
    pub message: &'a [u8],
    /// r and s, 64 bytes if it is well formed.
    pub signature: &'a [u8],
    /// Who is said to have signed.
    pub key: KeyRef<'a>,
}

/// A key in one of the forms that a caller may have it in.
#[derive(Clone, Copy, Debug)]
pub enum KeyRef<'a> {
    /// Checked before.
    Parsed(&'a XOnlyKey),
    /// 32 bytes that are perhaps no key at all: the batch finds out.
    Bytes(&'a [u8; 32]),
}

/// Judges each signature; the verdict of a check has the check's index.
///
/// Every verdict is that of [`XOnlyKey::verify`], and of [`SignatureFault::Key`] where the bytes of
/// a key are none.
pub fn verify_many(checks: &[SignatureCheck<'_>]) -> Vec<SignatureVerdict> {
    let mut verdicts = vec![Ok(()); checks.len()];
    verify_many_into(checks, &mut verdicts);
    verdicts
}

/// As [`verify_many`], into the places of the same index.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_many_into(checks: &[SignatureCheck<'_>], verdicts: &mut [SignatureVerdict]) {
    judge(checks, None, verdicts, lanes::pay_for);
}

/// As [`verify_many_into`], with what `cache` keeps of keys that were met before: where this
/// machine has lanes, their multiples. One cache serves ECDSA and BIP-340.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_many_cached(
    checks: &[SignatureCheck<'_>],
    cache: &mut KeyCache,
    verdicts: &mut [SignatureVerdict],
) {
    judge(checks, Some(cache), verdicts, lanes::pay_for);
}

/// Settles what can be told from a signature alone, and gives the rest to the lanes, if
/// `take_lanes` says so of their number, or to the library.
pub(crate) fn judge(
    checks: &[SignatureCheck<'_>],
    cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
    take_lanes: impl FnOnce(usize) -> bool,
) {
    assert_eq!(checks.len(), verdicts.len(), "one place for each verdict");
    let mut jobs = Vec::with_capacity(checks.len());
    for (place, check) in checks.iter().enumerate() {
        let SignatureCheck { message, key, .. } = *check;
        match well_formed(check.signature) {
            Err(fault) => verdicts[place] = Err(fault),
            Ok(signature) => jobs.push(Job { place, message, signature, key }),
        }
    }
    if take_lanes(jobs.len()) {
        return lanes::verify_schnorr(&jobs, cache, verdicts);
    }
    for job in &jobs {
        verdicts[job.place] = job.alone();
    }
}

/// A check whose signature is well formed.
pub(crate) struct Job<'a> {
    place: usize,
    pub(crate) message: &'a [u8],
    pub(crate) signature: &'a [u8; 64],
    pub(crate) key: KeyRef<'a>,
}

impl lanes::Job for Job<'_> {
    fn place(&self) -> usize {
        self.place
    }

    /// The point that x stands for: the one with even y.
    fn spelled(&self) -> CompressedKey {
        let mut bytes = [2; 33];
        bytes[1..].copy_from_slice(self.key.as_bytes());
        CompressedKey::from_bytes(Curve::K256, &bytes).expect("33 bytes that start with 2")
    }

    fn lane_key(&self) -> kernels::secp256k1::Key<'_> {
        kernels::secp256k1::Key::XOnly(self.key.as_bytes())
    }

    fn alone(&self) -> SignatureVerdict {
        match self.key {
            KeyRef::Parsed(key) => key.verify(self.message, self.signature),
            KeyRef::Bytes(bytes) => XOnlyKey::from_bytes(bytes)
                .map_err(|_| SignatureFault::Key)?
                .verify(self.message, self.signature),
        }
    }
}

impl KeyRef<'_> {
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        match self {
            Self::Parsed(key) => key.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}
