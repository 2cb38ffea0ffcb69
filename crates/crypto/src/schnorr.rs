//! BIP-340: Schnorr signatures on secp256k1 by keys of which only the x is known, one at a time and in
//! batches.
//!
//! ```
//! use wireproof::crypto::schnorr::{SecretKey, XOnlyKey};
//!
//! let secret = SecretKey::from_bytes(&[7; 32])?;
//! let signature = secret.sign(b"any length", &[0; 32]);
//! let key = XOnlyKey::from_bytes(&secret.public_key().to_bytes())?;
//! assert_eq!(key.verify(b"any length", &signature), Ok(()));
//! # Ok::<(), wireproof::crypto::KeyError>(())
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};

use kernels::curve::Secp256k1;
use kernels::secp256k1::{self as kernel, SchnorrItem};
use kernels::sha256::{self, Digest};

use crate::cache::KeyCache;
use crate::compressed::{CompressedKey, KeyError};
use crate::curve::Curve;
use crate::lanes::{self, LaneCheck};
use crate::libraries::on_k256;
use crate::signature::{SignatureFault, SignatureVerdict, halves, of_length};

/// A public key: an x for which secp256k1 has points, checked. It stands for the point with even y.
#[derive(Clone, Copy)]
pub struct XOnlyKey {
    bytes: [u8; 32],
    // The point that `bytes` stands for.
    point: on_k256::XOnlyPoint,
}

impl XOnlyKey {
    /// Reads the 32 bytes of x, big-endian.
    ///
    /// # Errors
    /// If there are not 32, or no point of the curve has this x.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| KeyError::Length(bytes.len()))?;
        let point = on_k256::XOnlyPoint::from_bytes(&bytes).ok_or(KeyError::NotOnCurve)?;
        Ok(Self { bytes, point })
    }

    /// x, big-endian.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.bytes
    }

    /// x, big-endian.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Checks that `signature` is this key's over `message`, which may have any length.
    ///
    /// # Errors
    /// If it is not; the fault names the rule.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> SignatureVerdict {
        SignatureFault::unless(self.point.verifies(message, well_formed(signature)?))
    }
}

impl PartialEq for XOnlyKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for XOnlyKey {}

impl Hash for XOnlyKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl fmt::Display for XOnlyKey {
    /// x in hexadecimal, as Nostr prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&kernels::hex::encode(&self.bytes))
    }
}

impl fmt::Debug for XOnlyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XOnlyKey({self})")
    }
}

/// A secret key, with its public key.
#[cfg(feature = "signing")]
#[derive(Clone)]
pub struct SecretKey(on_k256::SchnorrSecret);

#[cfg(feature = "signing")]
impl SecretKey {
    /// The key of these bytes, big-endian. 32 random bytes are a key except in one of 2¹²⁷ draws.
    ///
    /// # Errors
    /// If the number is zero or not below the order of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        on_k256::SchnorrSecret::from_bytes(bytes).map(Self).ok_or(KeyError::SecretRange)
    }

    /// The public key.
    pub fn public_key(&self) -> XOnlyKey {
        XOnlyKey::from_bytes(&self.0.x_only()).expect("a secret key has a point")
    }

    /// Signs a message of any length. `aux` should be random; zeros are safe too, but protect less
    /// against side channels.
    pub fn sign(&self, message: &[u8], aux: &[u8; 32]) -> [u8; 64] {
        self.0.sign(message, aux)
    }
}

#[cfg(feature = "signing")]
impl fmt::Debug for SecretKey {
    /// Shows the public key only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public_key())
    }
}

/// A signature to verify.
#[derive(Clone, Copy, Debug)]
pub struct SignatureCheck<'a> {
    /// The signed message, of any length; for Nostr an event's id.
    pub message: &'a [u8],
    /// r and s, 64 bytes if well formed.
    pub signature: &'a [u8],
    /// The alleged signer's key.
    pub key: KeyRef<'a>,
}

/// A key, parsed or not.
#[derive(Clone, Copy, Debug)]
pub enum KeyRef<'a> {
    /// A checked key.
    Parsed(&'a XOnlyKey),
    /// 32 bytes that may not be a key; the batch finds out.
    Bytes(&'a [u8; 32]),
}

/// Verifies every signature; the verdict of a check has the check's index.
///
/// Verdicts equal the results of [`XOnlyKey::verify`], or [`SignatureFault::Key`] where the bytes are
/// not a key.
pub fn verify_many(checks: &[SignatureCheck<'_>]) -> Vec<SignatureVerdict> {
    let mut verdicts = vec![Ok(()); checks.len()];
    verify_many_into(checks, &mut verdicts);
    verdicts
}

/// Like [`verify_many`], into a slice.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_many_into(checks: &[SignatureCheck<'_>], verdicts: &mut [SignatureVerdict]) {
    verify_batch(checks, None, verdicts, lanes::are_faster);
}

/// Like [`verify_many_into`], with the key tables that `cache` holds from earlier batches (used on
/// machines with lanes only). One cache serves ECDSA and BIP-340.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_many_cached(
    checks: &[SignatureCheck<'_>],
    cache: &mut KeyCache,
    verdicts: &mut [SignatureVerdict],
) {
    verify_batch(checks, Some(cache), verdicts, lanes::are_faster);
}

/// Writes the verdicts on malformed signatures, then verifies the rest in lanes if `use_lanes`
/// returns `true` for their number, else by the library.
pub(crate) fn verify_batch(
    checks: &[SignatureCheck<'_>],
    cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
    use_lanes: impl FnOnce(usize) -> bool,
) {
    assert_eq!(checks.len(), verdicts.len(), "one verdict for each signature");
    let mut rest = Vec::with_capacity(checks.len());
    for (index, check) in checks.iter().enumerate() {
        let SignatureCheck { message, key, .. } = *check;
        match well_formed(check.signature) {
            Err(fault) => verdicts[index] = Err(fault),
            Ok(signature) => rest.push(WellFormed { index, message, signature, key }),
        }
    }
    if use_lanes(rest.len()) || lanes::are_faster_for(&rest, cache.as_deref()) {
        return lanes::verify(&rest, cache, verdicts, verify_in_lanes);
    }
    for check in &rest {
        verdicts[check.index] = check.verify_by_library();
    }
}

fn verify_in_lanes(
    checks: &[WellFormed<'_>],
    keys: &[kernel::Key<'_>],
    found: &mut [kernel::Verdict],
) {
    let challenges = challenges(checks);
    let triples = checks.iter().zip(keys).zip(&challenges);
    let items: Vec<SchnorrItem<'_>> = triples
        .map(|((check, key), challenge)| SchnorrItem {
            challenge,
            signature: check.signature,
            key: *key,
        })
        .collect();
    kernel::verify_schnorr_many(&items, found);
}

/// The challenges of the checks: the tagged hash of r, key and message.
///
/// Gathers the hashed bytes first, because SHA-256 in lanes reads a message from one slice.
fn challenges(checks: &[WellFormed<'_>]) -> Vec<Digest> {
    let tag = sha256::digest(b"BIP0340/challenge");
    let len = |check: &WellFormed<'_>| 128 + check.message.len();
    let mut gathered = Vec::with_capacity(checks.iter().map(len).sum());
    for check in checks {
        let (r, _) = halves(check.signature);
        for part in [&tag, &tag, r, check.key.as_bytes(), check.message] {
            gathered.extend_from_slice(part);
        }
    }
    let mut rest = gathered.as_slice();
    let split_off = |check| {
        let (message, tail) = rest.split_at(len(check));
        rest = tail;
        message
    };
    sha256::digest_many(&Vec::from_iter(checks.iter().map(split_off)))
}

/// A check whose signature is well formed.
struct WellFormed<'a> {
    index: usize,
    message: &'a [u8],
    signature: &'a [u8; 64],
    key: KeyRef<'a>,
}

impl LaneCheck<Secp256k1> for WellFormed<'_> {
    fn index(&self) -> usize {
        self.index
    }

    /// The point with even y.
    fn compressed_key(&self) -> CompressedKey {
        let mut bytes = [2; 33];
        bytes[1..].copy_from_slice(self.key.as_bytes());
        CompressedKey::from_bytes(Curve::K256, &bytes).expect("33 bytes that start with 2")
    }

    fn kernel_key(&self) -> kernel::Key<'_> {
        kernel::Key::XOnly(self.key.as_bytes())
    }

    fn verify_by_library(&self) -> SignatureVerdict {
        match self.key {
            KeyRef::Parsed(key) => key.verify(self.message, self.signature),
            KeyRef::Bytes(bytes) => XOnlyKey::from_bytes(bytes)
                .map_err(|_| SignatureFault::Key)?
                .verify(self.message, self.signature),
        }
    }
}

impl KeyRef<'_> {
    fn as_bytes(&self) -> &[u8; 32] {
        match self {
            Self::Parsed(key) => key.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Checks that a signature has 64 bytes with r below p and s below n.
fn well_formed(signature: &[u8]) -> Result<&[u8; 64], SignatureFault> {
    let signature = of_length(signature)?;
    let (r, s) = halves(signature);
    if r >= &FIELD_SIZE {
        return Err(SignatureFault::RRange);
    }
    if s >= Curve::K256.order() {
        return Err(SignatureFault::SRange);
    }
    Ok(signature)
}

/// p = 2²⁵⁶ − 2³² − 977, big-endian (SEC 2 §2.4.1).
const FIELD_SIZE: [u8; 32] = {
    let mut size = [0xff; 32];
    (size[27], size[30], size[31]) = (0xfe, 0xfc, 0x2f);
    size
};
