//! Keys as text and as compressed points, before the point itself is computed.
//!
//! | form | text |
//! |---|---|
//! | did:key | `did:key:` and a Multikey |
//! | Multikey | `z` and base58 of multicodec (`e7 01` or `80 24`) and compressed point |
//! | legacy verification method | `z` and base58 of the bare point, mostly uncompressed; the method's type names the curve |

use std::fmt;

use crate::base58::{self, MAX_BYTES as MAX_MULTIBASE_BYTES};
use crate::curve::Curve;

/// Why text or bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text does not start with `did:key:`.
    #[error("a key as a DID starts with `did:key:`")]
    DidKey,
    /// The multibase letter is not `z`.
    #[error("a key as text starts with `z` for base58")]
    Multibase,
    /// A symbol outside the base58 alphabet, or more symbols than any key has.
    #[error("not base58 of the length of a key")]
    Base58,
    /// The multicodec names neither a K-256 nor a P-256 public key.
    #[error("not the multicodec of a K-256 or P-256 public key")]
    Multicodec,
    /// An Ed25519 public key.
    #[error("an Ed25519 key, which the AT Protocol does not use: keys are of K-256 or P-256")]
    Ed25519,
    /// A legacy type of verification method with a Multikey.
    #[error("a Multikey in a verification method of a legacy type, whose key has no multicodec")]
    MultikeyInLegacyType,
    /// The type of the verification method is unknown.
    #[error("not a known type of verification method")]
    MethodType,
    /// The point's length does not fit its form.
    #[error("a point of {0} bytes")]
    Length(usize),
    /// The point's first byte names no supported form.
    #[error("a point that starts with {0:#04x}")]
    Form(u8),
    /// No point of the curve has these coordinates.
    #[error("not a point of the curve")]
    NotOnCurve,
    /// A secret key is zero, or not below the order of the curve.
    #[error("a secret key out of range")]
    SecretRange,
}

/// A curve and the 33 bytes of a compressed point, which may or may not be on the curve: a key read
/// from text before its y is computed.
///
/// For [`verify_many`](crate::verify_many), which computes the y of many keys at once. Elsewhere use
/// [`PublicKey`](crate::PublicKey).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompressedKey {
    curve: Curve,
    // bytes[0] is 2 or 3
    bytes: [u8; 33],
}

impl CompressedKey {
    /// Reads a did:key.
    ///
    /// # Errors
    /// If the text is not a did:key, or holds another kind of key.
    pub fn from_did_key(text: &str) -> Result<Self, KeyError> {
        Self::from_multikey(text.strip_prefix("did:key:").ok_or(KeyError::DidKey)?)
    }

    /// Reads a Multikey, as `publicKeyMultibase` of a DID document holds it.
    ///
    /// # Errors
    /// If the text is not a Multikey, or holds another kind of key.
    pub fn from_multikey(text: &str) -> Result<Self, KeyError> {
        let mut buffer = [0; MAX_MULTIBASE_BYTES];
        let bytes = decode_multibase(text, &mut buffer)?;
        let (code, point) = bytes.split_first_chunk().ok_or(KeyError::Multicodec)?;
        match Curve::of_multicodec(*code) {
            Some(curve) => Self::from_bytes(curve, point),
            None if *code == ED25519_MULTICODEC => Err(KeyError::Ed25519),
            None => Err(KeyError::Multicodec),
        }
    }

    /// Reads a compressed point as SEC 1 writes it.
    ///
    /// # Errors
    /// If there are not 33 bytes, or the first is neither 2 nor 3.
    pub fn from_bytes(curve: Curve, bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: [u8; 33] = bytes.try_into().map_err(|_| KeyError::Length(bytes.len()))?;
        match bytes[0] {
            2 | 3 => Ok(Self { curve, bytes }),
            form => Err(KeyError::Form(form)),
        }
    }

    /// The curve.
    #[inline]
    pub fn curve(&self) -> Curve {
        self.curve
    }

    /// The compressed point: 2 or 3 for an even or odd y, then x.
    #[inline]
    pub fn as_bytes(&self) -> &[u8; 33] {
        &self.bytes
    }

    /// The key as a did:key.
    pub fn to_did_key(&self) -> String {
        self.to_text("did:key:")
    }

    /// The key as a Multikey.
    pub fn to_multikey(&self) -> String {
        self.to_text("")
    }

    fn to_text(self, prefix: &str) -> String {
        let mut bytes = [0; 35];
        bytes[..2].copy_from_slice(&self.curve.multicodec());
        bytes[2..].copy_from_slice(&self.bytes);
        encode_multibase(&bytes, prefix)
    }
}

impl fmt::Display for CompressedKey {
    /// The key as a did:key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_did_key())
    }
}

impl fmt::Debug for CompressedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompressedKey({self})")
    }
}

/// Decodes multibase text in base58 (`z…`) into `buffer` and returns the decoded bytes.
pub(crate) fn decode_multibase<'b>(
    text: &str,
    buffer: &'b mut [u8; MAX_MULTIBASE_BYTES],
) -> Result<&'b [u8], KeyError> {
    let symbols = text.strip_prefix('z').ok_or(KeyError::Multibase)?;
    base58::decode(symbols, buffer).ok_or(KeyError::Base58)
}

/// `prefix`, then `z` and the base58 of `bytes`.
pub(crate) fn encode_multibase(bytes: &[u8], prefix: &str) -> String {
    let mut text = String::with_capacity(prefix.len() + 1 + bytes.len() * 7 / 5);
    text.push_str(prefix);
    text.push('z');
    text.push_str(&bs58::encode(bytes).into_string());
    text
}

/// The multicodec of an Ed25519 public key, as a varint.
const ED25519_MULTICODEC: [u8; 2] = [0xed, 0x01];
