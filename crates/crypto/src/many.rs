//! Which of these many signatures are their keys'?

use kernels::sha256::{self, Digest};

use crate::cache::KeyCache;
use crate::compressed::CompressedKey;
use crate::error::SignatureFault;
use crate::public_key::PublicKey;
use crate::signature;

/// A signature to be judged, by the strict rules of repository data.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// What was signed.
    pub signed: Signed<'a>,
    /// r and s, 64 bytes if it is well formed.
    pub signature: &'a [u8],
    /// Who is said to have signed.
    pub key: Key<'a>,
}

/// What was signed, hashed or not.
#[derive(Clone, Copy, Debug)]
pub enum Signed<'a> {
    /// The message.
    Message(&'a [u8]),
    /// The SHA-256 of the message.
    Digest(Digest),
}

/// A key in one of the forms that a caller may have it in.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    /// Checked before.
    Parsed(&'a PublicKey),
    /// Spelled, and perhaps no point at all: the batch finds out.
    Compressed(CompressedKey),
}

/// What is said of a signature.
pub type Verdict = Result<(), SignatureFault>;

/// Judges each signature. Curves may be mixed; the verdict of a check has the check's index.
///
/// Every verdict is that of [`PublicKey::verify_digest`], and of [`SignatureFault::Key`] where a
/// compressed key is no point.
///
/// ```
/// use wireproof_crypto::{Check, Curve, Key, SecretKey, Signed, SignatureFault, verify_many};
///
/// let secret = SecretKey::from_bytes(Curve::P256, &[7; 32])?;
/// let (key, signature) = (secret.public_key(), secret.sign(b"hello"));
/// let check = |message| Check {
///     signed: Signed::Message(message),
///     signature: &signature,
///     key: Key::Parsed(&key),
/// };
/// let verdicts = verify_many(&[check(b"hello"), check(b"goodbye")]);
/// assert_eq!(verdicts, [Ok(()), Err(SignatureFault::Mismatch)]);
/// # Ok::<(), wireproof_crypto::KeyError>(())
/// ```
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
    judge(checks, verdicts, |key, digest, signature| match key {
        Key::Parsed(key) => key.verify_low_s(digest, signature),
        Key::Compressed(key) => parse(key)?.verify_low_s(digest, signature),
    });
}

/// As [`verify_many_into`], with what `cache` keeps of keys that were met before. The keys of good
/// signatures are kept for the next batch.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_many_cached(checks: &[Check<'_>], cache: &mut KeyCache, verdicts: &mut [Verdict]) {
    judge(checks, verdicts, |key, digest, signature| match key {
        Key::Parsed(key) => key.verify_low_s(digest, signature),
        Key::Compressed(spelled) => {
            if let Some(key) = cache.get(&spelled) {
                return key.verify_low_s(digest, signature);
            }
            let key = parse(spelled)?;
            key.verify_low_s(digest, signature)?;
            cache.keep(key);
            Ok(())
        }
    });
}

/// Settles what can be told from a signature alone, and asks `verify` for the rest.
fn judge(
    checks: &[Check<'_>],
    verdicts: &mut [Verdict],
    mut verify: impl FnMut(Key<'_>, &Digest, &[u8; 64]) -> Verdict,
) {
    assert_eq!(checks.len(), verdicts.len(), "one place for each verdict");
    for ((check, digest), verdict) in checks.iter().zip(digests(checks)).zip(verdicts) {
        *verdict = signature::strict(check.key.curve(), check.signature)
            .and_then(|signature| verify(check.key, &digest, signature));
    }
}

/// The digest of each check; the messages among them are hashed together.
fn digests(checks: &[Check<'_>]) -> Vec<Digest> {
    let messages: Vec<&[u8]> = checks.iter().filter_map(|check| check.signed.message()).collect();
    let mut hashed = sha256::digest_many(&messages).into_iter();
    let digest = |check: &Check<'_>| match check.signed {
        Signed::Message(_) => hashed.next().expect("a digest for each message"),
        Signed::Digest(digest) => digest,
    };
    checks.iter().map(digest).collect()
}

fn parse(key: CompressedKey) -> Result<PublicKey, SignatureFault> {
    PublicKey::try_from(key).map_err(|_| SignatureFault::Key)
}

impl<'a> Signed<'a> {
    fn message(self) -> Option<&'a [u8]> {
        match self {
            Self::Message(message) => Some(message),
            Self::Digest(_) => None,
        }
    }
}

impl Key<'_> {
    fn curve(self) -> crate::Curve {
        match self {
            Self::Parsed(key) => key.curve(),
            Self::Compressed(key) => key.curve(),
        }
    }
}
