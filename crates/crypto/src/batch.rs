//! Batch verification of ECDSA signatures: in SIMD lanes where the machine has them, else by the
//! libraries.

use kernels::curve::{self as kernel, EcdsaItem, P256, Secp256k1};
use kernels::sha256::{self, Digest};

use crate::cache::{KeyCache, StoredCurve};
use crate::compressed::CompressedKey;
use crate::curve::Curve;
use crate::lanes::{self, LaneCheck};
use crate::public_key::PublicKey;
use crate::signature::{self, SignatureFault, SignatureVerdict};

/// A signature to verify by the strict rules of repository data.
#[derive(Clone, Copy, Debug)]
pub struct SignatureCheck<'a> {
    /// The signed message or its digest.
    pub signed: SignedData<'a>,
    /// r and s, 64 bytes if well formed.
    pub signature: &'a [u8],
    /// The alleged signer's key.
    pub key: KeyRef<'a>,
}

/// A signed message, hashed or not.
#[derive(Clone, Copy, Debug)]
pub enum SignedData<'a> {
    /// The message.
    Message(&'a [u8]),
    /// The SHA-256 of the message.
    Digest(Digest),
}

/// A key, parsed or not.
#[derive(Clone, Copy, Debug)]
pub enum KeyRef<'a> {
    /// A checked key.
    Parsed(&'a PublicKey),
    /// A compressed key that may not be a point; the batch finds out.
    Compressed(CompressedKey),
}

/// Verifies every signature. Curves may be mixed; the verdict of a check has the check's index.
///
/// Verdicts equal the results of [`PublicKey::verify_digest`], or [`SignatureFault::Key`] where a
/// compressed key is not a point.
///
/// ```
/// use wireproof::crypto::{
///     Curve, KeyRef, SecretKey, SignatureCheck, SignatureFault, SignedData, verify_many,
/// };
///
/// let secret = SecretKey::from_bytes(Curve::P256, &[7; 32])?;
/// let (key, signature) = (secret.public_key(), secret.sign(b"hello"));
/// let check = |message| SignatureCheck {
///     signed: SignedData::Message(message),
///     signature: &signature,
///     key: KeyRef::Parsed(&key),
/// };
/// let verdicts = verify_many(&[check(b"hello"), check(b"goodbye")]);
/// assert_eq!(verdicts, [Ok(()), Err(SignatureFault::Mismatch)]);
/// # Ok::<(), wireproof::crypto::KeyError>(())
/// ```
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

/// Like [`verify_many_into`], with the keys that `cache` holds from earlier batches. The keys of valid
/// signatures are added to it.
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

/// Writes the verdicts on malformed signatures, then verifies the rest: signatures of a curve in lanes if
/// `use_lanes` returns `true` for their number, otherwise by its library.
pub(crate) fn verify_batch(
    checks: &[SignatureCheck<'_>],
    mut cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
    use_lanes: impl Fn(usize) -> bool,
) {
    assert_eq!(checks.len(), verdicts.len(), "one verdict for each signature");
    let digests = digests(checks);
    let (mut k256, mut p256) = (Vec::with_capacity(checks.len()), Vec::new());
    for (index, (check, digest)) in checks.iter().zip(&digests).enumerate() {
        let SignatureCheck { key, .. } = *check;
        match signature::strict(key.curve(), check.signature) {
            Err(fault) => verdicts[index] = Err(fault),
            Ok(signature) => {
                let list = match key.curve() {
                    Curve::K256 => &mut k256,
                    Curve::P256 => &mut p256,
                };
                list.push(WellFormed { index, digest, signature, key });
            }
        }
    }
    verify_on::<Secp256k1>(&k256, cache.as_deref_mut(), verdicts, &use_lanes);
    verify_on::<P256>(&p256, cache, verdicts, &use_lanes);
}

/// Verifies signatures of one curve.
fn verify_on<C: StoredCurve>(
    checks: &[WellFormed<'_>],
    mut cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
    use_lanes: &impl Fn(usize) -> bool,
) {
    if use_lanes(checks.len()) || lanes::are_faster_for::<C, _>(checks, cache.as_deref()) {
        return lanes::verify(checks, cache, verdicts, verify_in_lanes::<C>);
    }
    for check in checks {
        verdicts[check.index] = check.verify(cache.as_deref_mut());
    }
}

fn verify_in_lanes<C: kernel::Curve>(
    checks: &[WellFormed<'_>],
    keys: &[kernel::Key<'_, C>],
    found: &mut [kernel::Verdict],
) {
    let pairs = checks.iter().zip(keys);
    let items: Vec<EcdsaItem<'_, C>> = pairs
        .map(|(check, key)| EcdsaItem {
            digest: check.digest,
            signature: check.signature,
            key: *key,
        })
        .collect();
    kernel::verify_ecdsa_many(&items, found);
}

/// The digests of the checks; messages are hashed together.
fn digests(checks: &[SignatureCheck<'_>]) -> Vec<Digest> {
    let messages: Vec<&[u8]> = checks.iter().filter_map(|check| check.signed.message()).collect();
    let mut hashed = sha256::digest_many(&messages).into_iter();
    let digest = |check: &SignatureCheck<'_>| match check.signed {
        SignedData::Message(_) => hashed.next().expect("a digest for each message"),
        SignedData::Digest(digest) => digest,
    };
    checks.iter().map(digest).collect()
}

/// A check whose signature is well formed and low.
pub(crate) struct WellFormed<'a> {
    index: usize,
    digest: &'a Digest,
    signature: &'a [u8; 64],
    key: KeyRef<'a>,
}

impl WellFormed<'_> {
    fn verify(&self, cache: Option<&mut KeyCache>) -> SignatureVerdict {
        match (self.key, cache) {
            (KeyRef::Parsed(key), _) => self.verify_by(key),
            (KeyRef::Compressed(key), None) => self.verify_by(&parse(key)?),
            (KeyRef::Compressed(key), Some(cache)) => self.verify_cached(key, cache),
        }
    }

    fn verify_cached(&self, compressed: CompressedKey, cache: &mut KeyCache) -> SignatureVerdict {
        if let Some(verdict) = cache.get_key(&compressed).map(|key| self.verify_by(key)) {
            verdict?;
            cache.record_alone(&compressed);
            return Ok(());
        }
        let key = parse(compressed)?;
        self.verify_by(&key)?;
        cache.insert_key(key);
        Ok(())
    }

    fn verify_by(&self, key: &PublicKey) -> SignatureVerdict {
        key.verify_low_s(self.digest, self.signature)
    }
}

impl<C: kernel::Curve> LaneCheck<C> for WellFormed<'_> {
    fn index(&self) -> usize {
        self.index
    }

    fn compressed_key(&self) -> CompressedKey {
        *self.key.as_compressed()
    }

    fn kernel_key(&self) -> kernel::Key<'_, C> {
        match &self.key {
            KeyRef::Parsed(key) => key.kernel_key(),
            KeyRef::Compressed(key) => kernel::Key::Compressed(key.as_bytes()),
        }
    }

    fn verify_by_library(&self) -> SignatureVerdict {
        self.verify(None)
    }
}

fn parse(key: CompressedKey) -> Result<PublicKey, SignatureFault> {
    PublicKey::try_from(key).map_err(|_| SignatureFault::Key)
}

impl<'a> SignedData<'a> {
    fn message(self) -> Option<&'a [u8]> {
        match self {
            Self::Message(message) => Some(message),
            Self::Digest(_) => None,
        }
    }
}

impl KeyRef<'_> {
    fn as_compressed(&self) -> &CompressedKey {
        match self {
            Self::Parsed(key) => key.as_compressed(),
            Self::Compressed(key) => key,
        }
    }

    fn curve(&self) -> Curve {
        self.as_compressed().curve()
    }
}
