//! Which of these many signatures are their keys'?

use kernels::sha256::{self, Digest};

use crate::cache::KeyCache;
use crate::compressed::CompressedKey;
use crate::curve::Curve;
use crate::error::SignatureFault;
use crate::public_key::PublicKey;
use crate::{lanes, signature};

/// A signature to be judged, by the strict rules of repository data.
#[derive(Clone, Copy, Debug)]
pub struct SignatureCheck<'a> {
    /// What was signed.
    pub signed: SignedData<'a>,
    /// r and s, 64 bytes if it is well formed.
    pub signature: &'a [u8],
    /// Who is said to have signed.
    pub key: KeyRef<'a>,
}

/// What was signed, hashed or not.
#[derive(Clone, Copy, Debug)]
pub enum SignedData<'a> {
    /// The message.
    Message(&'a [u8]),
    /// The SHA-256 of the message.
    Digest(Digest),
}

/// A key in one of the forms that a caller may have it in.
#[derive(Clone, Copy, Debug)]
pub enum KeyRef<'a> {
    /// Checked before.
    Parsed(&'a PublicKey),
    /// Spelled, and perhaps no point at all: the batch finds out.
    Compressed(CompressedKey),
}

/// What is said of a signature.
pub type SignatureVerdict = Result<(), SignatureFault>;

/// Judges each signature. Curves may be mixed; the verdict of a check has the check's index.
///
/// Every verdict is that of [`PublicKey::verify_digest`], and of [`SignatureFault::Key`] where a
/// compressed key is no point.
///
/// ```
/// use wireproof_crypto::{SignatureCheck, Curve, KeyRef, SecretKey, SignedData, SignatureFault, verify_many};
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
/// # Ok::<(), wireproof_crypto::KeyError>(())
/// ```
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

/// As [`verify_many_into`], with what `cache` keeps of keys that were met before. The keys of good
/// signatures are kept for the next batch.
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

/// Settles what can be told from a signature alone, and sorts the rest: K-256 to the lanes if
/// `take_lanes` says so of their number, everything else to the libraries.
pub(crate) fn judge(
    checks: &[SignatureCheck<'_>],
    mut cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
    take_lanes: impl FnOnce(usize) -> bool,
) {
    assert_eq!(checks.len(), verdicts.len(), "one place for each verdict");
    let digests = digests(checks);
    let (mut k256, mut alone) = (Vec::with_capacity(checks.len()), Vec::new());
    for (place, (check, digest)) in checks.iter().zip(&digests).enumerate() {
        let SignatureCheck { key, .. } = *check;
        match signature::strict(key.curve(), check.signature) {
            Err(fault) => verdicts[place] = Err(fault),
            Ok(signature) => {
                let list = if key.curve() == Curve::K256 { &mut k256 } else { &mut alone };
                list.push(Job { place, digest, signature, key });
            }
        }
    }
    if take_lanes(k256.len()) {
        lanes::verify_ecdsa(&k256, cache.as_deref_mut(), verdicts);
    } else {
        alone.append(&mut k256);
    }
    for job in &alone {
        verdicts[job.place] = job.by_library(cache.as_deref_mut());
    }
}

/// The digest of each check; the messages among them are hashed together.
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
pub(crate) struct Job<'a> {
    place: usize,
    pub(crate) digest: &'a Digest,
    pub(crate) signature: &'a [u8; 64],
    key: KeyRef<'a>,
}

impl Job<'_> {
    fn by_library(&self, cache: Option<&mut KeyCache>) -> SignatureVerdict {
        match (self.key, cache) {
            (KeyRef::Parsed(key), _) => self.by_key(key),
            (KeyRef::Compressed(key), None) => self.by_key(&parse(key)?),
            (KeyRef::Compressed(key), Some(cache)) => self.by_cached_key(key, cache),
        }
    }

    fn by_cached_key(&self, spelled: CompressedKey, cache: &mut KeyCache) -> SignatureVerdict {
        if let Some(key) = cache.find_key(&spelled) {
            return self.by_key(key);
        }
        let key = parse(spelled)?;
        self.by_key(&key)?;
        cache.keep_key(key);
        Ok(())
    }

    fn by_key(&self, key: &PublicKey) -> SignatureVerdict {
        key.verify_low_s(self.digest, self.signature)
    }
}

impl lanes::Job for Job<'_> {
    fn place(&self) -> usize {
        self.place
    }

    fn spelled(&self) -> CompressedKey {
        *self.key.as_compressed()
    }

    fn lane_key(&self) -> kernels::secp256k1::Key<'_> {
        kernels::secp256k1::Key::Compressed(self.key.as_compressed().as_bytes())
    }

    fn alone(&self) -> SignatureVerdict {
        self.by_library(None)
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
