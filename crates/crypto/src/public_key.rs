//! Public keys: their text and byte forms, and the verification of one signature.

use std::fmt;
use std::hash::{Hash, Hasher};

use kernels::curve as kernel;
use kernels::sha256::{self, Digest};

use crate::base58::MAX_BYTES as MAX_MULTIBASE_BYTES;
use crate::compressed::{CompressedKey, KeyError, decode_multibase, encode_multibase};
use crate::curve::Curve;
use crate::libraries::{on_k256, on_p256};
use crate::signature::{self, SignatureFault, SignatureVerdict};

/// A public key: a point of K-256 or P-256, checked.
///
/// ```
/// use wireproof::crypto::{Curve, PublicKey};
/// let key = PublicKey::from_did_key("did:key:zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo")?;
/// assert_eq!(key.curve(), Curve::P256);
/// assert_eq!(key.to_multikey(), "zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo");
/// # Ok::<(), wireproof::crypto::KeyError>(())
/// ```
#[derive(Clone)]
pub struct PublicKey {
    compressed: CompressedKey,
    // The point that `compressed` encodes, and its y.
    point: Point,
    y: [u8; 32],
}

#[derive(Clone)]
enum Point {
    K256(on_k256::Point),
    P256(on_p256::Point),
}

/// Reading.
impl PublicKey {
    /// Reads a did:key.
    ///
    /// # Errors
    /// If the text is not such a text, holds another kind of key, or names no point of the curve.
    pub fn from_did_key(text: &str) -> Result<Self, KeyError> {
        CompressedKey::from_did_key(text)?.try_into()
    }

    /// Reads a Multikey, as `publicKeyMultibase` of a DID document holds it.
    ///
    /// # Errors
    /// If the text is not such a text, holds another kind of key, or names no point of the curve.
    pub fn from_multikey(text: &str) -> Result<Self, KeyError> {
        CompressedKey::from_multikey(text)?.try_into()
    }

    /// Reads `publicKeyMultibase` of a DID document's verification method of the type `kind`:
    /// `Multikey`, `EcdsaSecp256k1VerificationKey2019` or `EcdsaSecp256r1VerificationKey2019`.
    ///
    /// # Errors
    /// If the type is another, or the text is not a key of that type.
    pub fn from_verification_method(kind: &str, text: &str) -> Result<Self, KeyError> {
        if kind == "Multikey" {
            return Self::from_multikey(text);
        }
        Self::from_legacy(Curve::of_legacy_type(kind).ok_or(KeyError::MethodType)?, text)
    }

    /// Reads the text of a legacy verification method: `z` and base58 of a point of `curve`,
    /// compressed or not, without a multicodec.
    ///
    /// # Errors
    /// If the text is not multibase, or names no point of the curve.
    pub fn from_legacy(curve: Curve, text: &str) -> Result<Self, KeyError> {
        let mut buffer = [0; MAX_MULTIBASE_BYTES];
        match decode_multibase(text, &mut buffer)? {
            [a, b, _, rest @ ..]
                if rest.len() == 32 && Curve::of_multicodec([*a, *b]).is_some() =>
            {
                Err(KeyError::MultikeyInLegacyType)
            }
            point => Self::from_sec1(curve, point),
        }
    }

    /// Reads a point as SEC 1 writes it: 33 bytes compressed or 65 bytes uncompressed.
    ///
    /// # Errors
    /// If the bytes have another length or form (the point at infinity and hybrid forms are not
    /// accepted), or are not a point of the curve.
    pub fn from_sec1(curve: Curve, bytes: &[u8]) -> Result<Self, KeyError> {
        match bytes.try_into() {
            Ok(uncompressed) => Self::from_uncompressed(curve, uncompressed),
            Err(_) => CompressedKey::from_bytes(curve, bytes)?.try_into(),
        }
    }

    fn from_uncompressed(curve: Curve, bytes: &[u8; 65]) -> Result<Self, KeyError> {
        if bytes[0] != 4 {
            return Err(KeyError::Form(bytes[0]));
        }
        let point = match curve {
            Curve::K256 => on_k256::Point::from_uncompressed(bytes).map(Point::K256),
            Curve::P256 => on_p256::Point::from_sec1(bytes).map(Point::P256),
        };
        let compressed = CompressedKey::from_bytes(curve, &compress(bytes))?;
        Ok(Self::of(compressed, point.ok_or(KeyError::NotOnCurve)?))
    }

    fn of(compressed: CompressedKey, point: Point) -> Self {
        let uncompressed = match &point {
            Point::K256(point) => point.to_uncompressed(),
            Point::P256(point) => point.to_uncompressed(),
        };
        Self { compressed, point, y: *uncompressed.last_chunk().expect("65 bytes") }
    }

    #[cfg(feature = "signing")]
    pub(crate) fn of_k256(point: on_k256::Point) -> Self {
        let compressed = CompressedKey::from_bytes(Curve::K256, &point.to_compressed());
        Self::of(compressed.expect("the library's own form"), Point::K256(point))
    }
}

impl TryFrom<CompressedKey> for PublicKey {
    type Error = KeyError;

    /// Computes the point.
    fn try_from(compressed: CompressedKey) -> Result<Self, KeyError> {
        let bytes = compressed.as_bytes();
        let point = match compressed.curve() {
            Curve::K256 => on_k256::Point::from_compressed(bytes).map(Point::K256),
            Curve::P256 => on_p256::Point::from_sec1(bytes).map(Point::P256),
        };
        Ok(Self::of(compressed, point.ok_or(KeyError::NotOnCurve)?))
    }
}

/// SEC 1 §2.3.3: 2 or 3 for an even or odd y, then x.
fn compress(uncompressed: &[u8; 65]) -> [u8; 33] {
    let mut compressed = [0; 33];
    compressed.copy_from_slice(&uncompressed[..33]);
    compressed[0] = 2 | uncompressed[64] & 1;
    compressed
}

/// Writing.
impl PublicKey {
    /// The curve.
    pub fn curve(&self) -> Curve {
        self.compressed.curve()
    }

    /// The key in its compressed form.
    pub fn as_compressed(&self) -> &CompressedKey {
        &self.compressed
    }

    /// The compressed point as SEC 1 writes it.
    pub fn to_sec1(&self) -> [u8; 33] {
        *self.compressed.as_bytes()
    }

    /// The uncompressed point as SEC 1 writes it.
    pub fn to_sec1_uncompressed(&self) -> [u8; 65] {
        let mut bytes = [4; 65];
        bytes[1..33].copy_from_slice(self.x());
        bytes[33..].copy_from_slice(&self.y);
        bytes
    }

    /// The key as the kernel of its curve reads it.
    pub(crate) fn kernel_key<C: kernel::Curve>(&self) -> kernel::Key<'_, C> {
        kernel::Key::Point { x: self.x(), y: &self.y }
    }

    fn x(&self) -> &[u8; 32] {
        self.compressed.as_bytes().last_chunk().expect("33 bytes end in 32")
    }

    /// The text of a legacy verification method: `z` and base58 of the uncompressed point.
    pub fn to_legacy(&self) -> String {
        encode_multibase(&self.to_sec1_uncompressed(), "")
    }

    /// The key as a did:key.
    pub fn to_did_key(&self) -> String {
        self.compressed.to_did_key()
    }

    /// The key as a Multikey.
    pub fn to_multikey(&self) -> String {
        self.compressed.to_multikey()
    }
}

/// Verifying.
impl PublicKey {
    /// Checks that `signature` is this key's over the SHA-256 of `message`, by the strict rules of
    /// repository data: 64 bytes, r and s in range, s low.
    ///
    /// # Errors
    /// If it is not; the fault names the rule.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> SignatureVerdict {
        self.verify_digest(&sha256::digest(message), signature)
    }

    /// Like [`verify`](Self::verify), for a message whose SHA-256 is known.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn verify_digest(&self, digest: &Digest, signature: &[u8]) -> SignatureVerdict {
        self.verify_low_s(digest, signature::strict(self.curve(), signature)?)
    }

    /// Like [`verify`](Self::verify), but accepts both twins (r, s) and (r, n − s). For JSON web tokens
    /// only, whose specification has no low-s rule.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), but never [`SignatureFault::HighS`].
    pub fn verify_allowing_high_s(&self, message: &[u8], signature: &[u8]) -> SignatureVerdict {
        self.verify_digest_allowing_high_s(&sha256::digest(message), signature)
    }

    /// Like [`verify_allowing_high_s`](Self::verify_allowing_high_s), for a message whose SHA-256 is
    /// known.
    ///
    /// # Errors
    /// As [`verify_allowing_high_s`](Self::verify_allowing_high_s).
    pub fn verify_digest_allowing_high_s(
        &self,
        digest: &Digest,
        signature: &[u8],
    ) -> SignatureVerdict {
        let signature = signature::allowing_high_s(self.curve(), signature)?;
        SignatureFault::unless(match &self.point {
            Point::K256(point) => point.verifies_allowing_high_s(digest, signature),
            Point::P256(point) => point.verifies_allowing_high_s(digest, signature),
        })
    }

    /// Verifies a signature that is well formed by the strict rules.
    pub(crate) fn verify_low_s(&self, digest: &Digest, signature: &[u8; 64]) -> SignatureVerdict {
        SignatureFault::unless(match &self.point {
            Point::K256(point) => point.verifies(digest, signature),
            Point::P256(point) => point.verifies_allowing_high_s(digest, signature),
        })
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.compressed == other.compressed
    }
}

impl Eq for PublicKey {}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.compressed.hash(state);
    }
}

impl fmt::Display for PublicKey {
    /// The key as a did:key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.compressed.fmt(f)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}
