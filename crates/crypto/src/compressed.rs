//! How a key is spelled: from text to the 33 bytes of a compressed point, and back.
//!
//! | form | text |
//! |---|---|
//! | did:key | `did:key:` and a Multikey |
//! | Multikey | `z` and base58 of multicodec (`e7 01` or `80 24`) and compressed point |
//! | legacy verification method | `z` and base58 of the bare point, mostly uncompressed; the method's type names the curve |

use std::fmt;

use crate::base58::{self, Decoded};
use crate::curve::Curve;
use crate::error::KeyError;

/// A curve and the 33 bytes of a compressed point, which may or may not be one of the curve: what
/// text spells before anyone computes the point's y.
///
/// For [`verify_many`](crate::verify_many), which does that for many keys at once. Everyone else
/// wants a [`PublicKey`](crate::PublicKey).
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
    /// If the text is none, or of another kind of key.
    pub fn from_did_key(text: &str) -> Result<Self, KeyError> {
        Self::from_multikey(text.strip_prefix("did:key:").ok_or(KeyError::DidKey)?)
    }

    /// Reads a Multikey, as `publicKeyMultibase` of a DID document holds it.
    ///
    /// # Errors
    /// If the text is none, or of another kind of key.
    pub fn from_multikey(text: &str) -> Result<Self, KeyError> {
        let decoded = from_multibase(text)?;
        let (code, point) = decoded.as_bytes().split_first_chunk().ok_or(KeyError::Multicodec)?;
        let curve = Curve::of_multicodec(*code).ok_or(KeyError::Multicodec)?;
        Self::from_bytes(curve, point)
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
        self.spell("did:key:")
    }

    /// The key as a Multikey.
    pub fn to_multikey(&self) -> String {
        self.spell("")
    }

    fn spell(&self, prefix: &str) -> String {
        let mut bytes = [0; 35];
        bytes[..2].copy_from_slice(&self.curve.multicodec());
        bytes[2..].copy_from_slice(&self.bytes);
        let mut text = String::with_capacity(prefix.len() + 49);
        text.push_str(prefix);
        text.push('z');
        base58::encode_into(&bytes, &mut text);
        text
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

/// The bytes of multibase text in base58.
pub(crate) fn from_multibase(text: &str) -> Result<Decoded, KeyError> {
    let symbols = text.strip_prefix('z').ok_or(KeyError::Multibase)?;
    base58::decode(symbols).ok_or(KeyError::Base58)
}
