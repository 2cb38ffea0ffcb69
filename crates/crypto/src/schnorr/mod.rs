//! BIP-340: Schnorr signatures on secp256k1 by keys of which only the x is known.
//!
//! ```
//! use wireproof_crypto::schnorr::{SecretKey, XOnlyKey};
//!
//! let secret = SecretKey::from_bytes(&[7; 32])?;
//! let signature = secret.sign(b"any length", &[0; 32]);
//! let key = XOnlyKey::from_bytes(&secret.public_key().to_bytes())?;
//! assert_eq!(key.verify(b"any length", &signature), Ok(()));
//! # Ok::<(), wireproof_crypto::KeyError>(())
//! ```

pub(crate) mod many;

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::curve::Curve;
use crate::error::{KeyError, SignatureFault};
use crate::libsecp256k1::{SchnorrSecret, XOnlyPoint};
use crate::public_key::match_or_fault;
use crate::signature::{halves, of_length};

pub(crate) use many::Job;
pub use many::{KeyRef, SignatureCheck, verify_many, verify_many_cached, verify_many_into};

/// A public key: an x for which secp256k1 has points, checked. It stands for the one with even y.
#[derive(Clone, Copy)]
pub struct XOnlyKey {
    bytes: [u8; 32],
    // The point that `bytes` stands for.
    point: XOnlyPoint,
}

impl XOnlyKey {
    /// Reads the 32 bytes of x, big-endian.
    ///
    /// # Errors
    /// If there are not 32, or no point of the curve has this x.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| KeyError::Length(bytes.len()))?;
        let point = XOnlyPoint::from_bytes(&bytes).ok_or(KeyError::NotOnCurve)?;
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
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignatureFault> {
        match_or_fault(self.point.verifies(message, well_formed(signature)?))
    }
}

/// A signature of 64 bytes with r below p and s below n.
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

/// A secret key, with its public key.
#[derive(Clone)]
pub struct SecretKey(SchnorrSecret);

impl SecretKey {
    /// The key of these bytes, big-endian. All but one draw in 2¹²⁷ of 32 random bytes are a key.
    ///
    /// # Errors
    /// If the number is zero or not below the order of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        SchnorrSecret::from_bytes(bytes).map(Self).ok_or(KeyError::SecretRange)
    }

    /// The public key.
    pub fn public_key(&self) -> XOnlyKey {
        XOnlyKey::from_bytes(&self.0.x_only()).expect("a secret key has a point")
    }

    /// Signs a message of any length. `aux` should be random; zeros are safe as well, but protect
    /// less against who can watch the machine.
    pub fn sign(&self, message: &[u8], aux: &[u8; 32]) -> [u8; 64] {
        self.0.sign(message, aux)
    }
}

impl fmt::Debug for SecretKey {
    /// The public key alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public_key())
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
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for XOnlyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XOnlyKey({self})")
    }
}

/// p = 2²⁵⁶ − 2³² − 977, big-endian (SEC 2 §2.4.1).
const FIELD_SIZE: [u8; 32] = {
    let mut size = [0xff; 32];
    (size[27], size[30], size[31]) = (0xfe, 0xfc, 0x2f);
    size
};
