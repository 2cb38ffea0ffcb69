//! Verifies signed commits as any caller does, one at a time or in batches. The variant determines the input prepared at
//! load.

use std::hint::black_box;

use atproto::commit::{Commit, CommitError, SigningBytes, digest_many};
use crypto::{
    CompressedKey, Curve, KeyCache, KeyError, KeyRef, PublicKey, SignatureCheck, SignatureFault,
    SignedData, verify_many_cached, verify_many_into,
};
use protocol::{BoxError, Counts, Loaded, Parts, Proof, SignatureCounts, Verdict, Work};
use simnet::keys;
use simnet::signed_commits::{self, CommitEntry};

use super::Variants;

pub(super) fn variants() -> Variants {
    let (full, low_s) = (["low-s", "strict-cbor", "raw-bytes"], ["low-s"]);
    let variants: [(&str, &[&'static str]); 8] = [
        ("full", &full),
        ("crypto", &low_s),
        ("preparsed", &low_s),
        ("full/batch", &full),
        ("crypto/batch", &low_s),
        ("preparsed/batch", &low_s),
        ("full/cached", &full),
        ("full/batch-cached", &full),
    ];
    variants.map(|(name, checks)| (name.to_owned(), checks.to_vec())).into()
}

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let mut all = Vec::new();
    for file in files {
        all.extend(read(file).ok_or("not a file of signed commits")?);
    }
    Ok(Some(match variant {
        "full" => Box::new(Single(Units::<SignedCommit<'f>>::of(all))),
        "crypto" => Box::new(Single(Units::<Message<'f>>::of(all))),
        "preparsed" => Box::new(Single(Units::<KeyedMessage<'f>>::of(all))),
        "full/batch" => Box::new(Batched::new(Units::<SignedCommit<'f>>::of(all))),
        "crypto/batch" => Box::new(Batched::new(Units::<Message<'f>>::of(all))),
        "preparsed/batch" => Box::new(Batched::new(Units::<KeyedMessage<'f>>::of(all))),
        "full/cached" => Box::new(Batched::cached(Units::<SignedCommit<'f>>::of(all), 1)),
        "full/batch-cached" => Box::new(Batched::cached(Units::<SignedCommit<'f>>::of(all), BATCH)),
        _ => return Ok(None),
    }))
}

/// The reference counts of a file: from our own verdicts, one commit at a time.
pub(crate) fn counts(commits: &[SignedCommit<'_>]) -> Counts {
    count(commits.iter().map(|commit| (commit.curve, commit.verify())))
}

fn count(outcomes: impl Iterator<Item = (Curve, Outcome)>) -> Counts {
    let mut counts = SignatureCounts::default();
    outcomes.for_each(|(curve, outcome)| counts.add(curve == Curve::K256, verdict(outcome)));
    counts.into()
}

/// A commit of a corpus file, and the key that is to have signed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignedCommit<'f> {
    pub(crate) object: &'f [u8],
    curve: Curve,
    /// The compressed point.
    key: &'f [u8; 33],
}

/// The commits of a file; `None` if it is not a file of signed commits.
pub(crate) fn read(file: &[u8]) -> Option<Vec<SignedCommit<'_>>> {
    let commit = |CommitEntry { curve, commit: object, key }| {
        let curve = match curve {
            keys::Curve::K256 => Curve::K256,
            keys::Curve::P256 => Curve::P256,
        };
        SignedCommit { object, curve, key }
    };
    Some(signed_commits::read(file)?.into_iter().map(commit).collect())
}

impl<'f> SignedCommit<'f> {
    /// The key, not checked to be a point.
    fn compressed_key(&self) -> Result<CompressedKey, SignatureError> {
        Ok(CompressedKey::from_bytes(self.curve, self.key)?)
    }

    fn parse(self) -> Result<(Commit<'f>, KeyRef<'f>), SignatureError> {
        Ok((Commit::parse(self.object)?, KeyRef::Compressed(self.compressed_key()?)))
    }
}

pub(super) type Outcome = Result<(), SignatureError>;

/// Why a signature is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignatureError {
    /// It was verified and is wrong.
    Invalid,
    /// Commit, key or signature cannot be read.
    Unreadable,
}

pub(super) fn verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Ok(()) => Verdict::Valid,
        Err(SignatureError::Invalid) => Verdict::Invalid,
        Err(SignatureError::Unreadable) => Verdict::Error,
    }
}

impl From<SignatureFault> for SignatureError {
    fn from(fault: SignatureFault) -> Self {
        match fault {
            SignatureFault::Mismatch | SignatureFault::HighS => Self::Invalid,
            _ => Self::Unreadable,
        }
    }
}

impl From<CommitError> for SignatureError {
    fn from(_: CommitError) -> Self {
        Self::Unreadable
    }
}

impl From<KeyError> for SignatureError {
    fn from(_: KeyError) -> Self {
        Self::Unreadable
    }
}

/// The input of a variant for every commit.
trait Prepared<'f>: Sized {
    /// Prepares a commit at load.
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, SignatureError>;

    /// Verifies one commit.
    fn verify(&self) -> Outcome;

    /// The signature checks of many commits, at their indexes.
    fn checks(
        many: &[Result<Self, SignatureError>],
    ) -> Vec<Result<SignatureCheck<'_>, SignatureError>>;
}

/// Variant `full`: the bytes of the file.
impl<'f> Prepared<'f> for SignedCommit<'f> {
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, SignatureError> {
        Ok(*commit)
    }

    /// Decodes, hashes, parses the key and verifies.
    fn verify(&self) -> Outcome {
        let commit = Commit::parse(self.object)?;
        let digest = commit.signing_bytes().digest();
        let key = PublicKey::from_sec1(self.curve, self.key)?;
        Ok(key.verify_digest(&digest, commit.sig)?)
    }

    fn checks(
        many: &[Result<Self, SignatureError>],
    ) -> Vec<Result<SignatureCheck<'_>, SignatureError>> {
        let parse = |commit: &Result<Self, SignatureError>| (*commit)?.parse();
        let parsed: Vec<Result<(Commit<'f>, KeyRef<'_>), SignatureError>> =
            many.iter().map(parse).collect();
        let signed: Vec<SigningBytes<'_>> =
            parsed.iter().flatten().map(|(commit, _)| commit.signing_bytes()).collect();
        let mut digests = digest_many(&signed).into_iter();
        let check = |parsed: Result<(Commit<'f>, _), SignatureError>| {
            let (commit, key) = parsed?;
            let digest = digests.next().expect("there is a digest for each parsed commit");
            Ok(SignatureCheck { signed: SignedData::Digest(digest), signature: commit.sig, key })
        };
        parsed.into_iter().map(check).collect()
    }
}

/// Variant `crypto`: the unsigned bytes, the signature and the key's bytes.
struct Message<'f> {
    message: Vec<u8>,
    signature: &'f [u8; 64],
    commit: SignedCommit<'f>,
}

impl<'f> Prepared<'f> for Message<'f> {
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, SignatureError> {
        let parsed = Commit::parse(commit.object)?;
        let message = parsed.signing_bytes().to_vec();
        Ok(Self { message, signature: parsed.sig, commit: *commit })
    }

    fn verify(&self) -> Outcome {
        let key = PublicKey::from_sec1(self.commit.curve, self.commit.key)?;
        Ok(key.verify(&self.message, self.signature)?)
    }

    fn checks(
        many: &[Result<Self, SignatureError>],
    ) -> Vec<Result<SignatureCheck<'_>, SignatureError>> {
        each(many, |Self { message, signature, commit }| {
            let key = KeyRef::Compressed(commit.compressed_key()?);
            Ok(SignatureCheck { signed: SignedData::Message(message), signature: *signature, key })
        })
    }
}

/// Variant `preparsed`: the unsigned bytes, the signature and the parsed key.
struct KeyedMessage<'f> {
    message: Vec<u8>,
    signature: &'f [u8; 64],
    key: PublicKey,
}

impl<'f> Prepared<'f> for KeyedMessage<'f> {
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, SignatureError> {
        let Message { message, signature, .. } = Message::prepare(commit)?;
        let key = PublicKey::from_sec1(commit.curve, commit.key)?;
        Ok(Self { message, signature, key })
    }

    fn verify(&self) -> Outcome {
        Ok(self.key.verify(&self.message, self.signature)?)
    }

    fn checks(
        many: &[Result<Self, SignatureError>],
    ) -> Vec<Result<SignatureCheck<'_>, SignatureError>> {
        each(many, |Self { message, signature, key }| {
            let (signed, key) = (SignedData::Message(message), KeyRef::Parsed(key));
            Ok(SignatureCheck { signed, signature: *signature, key })
        })
    }
}

fn each<'u, P>(
    many: &'u [Result<P, SignatureError>],
    check: impl Fn(&'u P) -> Result<SignatureCheck<'u>, SignatureError>,
) -> Vec<Result<SignatureCheck<'u>, SignatureError>> {
    many.iter().map(|prepared| check(prepared.as_ref().map_err(|error| *error)?)).collect()
}

/// The commits of a corpus, prepared.
struct Units<P> {
    loaded: Loaded,
    curves: Vec<Curve>,
    /// As many as `curves`.
    prepared: Vec<Result<P, SignatureError>>,
}

impl<'f, P: Prepared<'f>> Units<P> {
    fn of(commits: Vec<SignedCommit<'f>>) -> Self {
        Self {
            loaded: Loaded::of(commits.iter().map(|commit| commit.object.len())),
            curves: commits.iter().map(|commit| commit.curve).collect(),
            prepared: commits.iter().map(P::prepare).collect(),
        }
    }

    fn proof(&self, outcomes: impl Iterator<Item = Outcome>) -> Proof {
        count(self.curves.iter().copied().zip(outcomes)).into()
    }
}

/// One commit after the other.
struct Single<P>(Units<P>);

impl<'f, P: Prepared<'f>> Single<P> {
    fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        self.0.prepared.iter().map(|prepared| prepared.as_ref().map_err(|error| *error)?.verify())
    }
}

impl<'f, P: Prepared<'f>> Work for Single<P> {
    fn loaded(&self) -> Loaded {
        self.0.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        Ok(self.0.proof(self.outcomes()))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for outcome in self.outcomes() {
            let _ = black_box(outcome);
        }
        Ok(Parts::default())
    }
}

/// One batch after the other.
struct Batched<P> {
    units: Units<P>,
    batch: usize,
    /// Kept over batches and passes.
    cache: Option<KeyCache>,
}

impl<'f, P: Prepared<'f>> Batched<P> {
    fn new(units: Units<P>) -> Self {
        Self { units, batch: BATCH, cache: None }
    }

    fn cached(units: Units<P>, batch: usize) -> Self {
        // A fixed seed is fine: no key is chosen to collide.
        Self { units, batch, cache: Some(KeyCache::new(CACHE_BYTES, [0; 16])) }
    }

    fn each_batch(&mut self, mut visit: impl FnMut(Vec<Outcome>)) {
        for batch in self.units.prepared.chunks(self.batch) {
            visit(verify_batch(&P::checks(batch), self.cache.as_mut()));
        }
    }
}

/// The outcomes of the checks, including checks that cannot be made.
fn verify_batch(
    checks: &[Result<SignatureCheck<'_>, SignatureError>],
    cache: Option<&mut KeyCache>,
) -> Vec<Outcome> {
    let readable: Vec<SignatureCheck<'_>> = checks.iter().flatten().copied().collect();
    let mut outcomes = vec![Ok(()); readable.len()];
    match cache {
        Some(cache) => verify_many_cached(&readable, cache, &mut outcomes),
        None => verify_many_into(&readable, &mut outcomes),
    }
    let mut outcomes = outcomes.into_iter();
    let mut outcome = |check: &Result<SignatureCheck<'_>, SignatureError>| {
        check.as_ref().map_err(|error| *error)?;
        Ok(outcomes.next().expect("there is an outcome for each readable check")?)
    };
    checks.iter().map(&mut outcome).collect()
}

impl<'f, P: Prepared<'f>> Work for Batched<P> {
    fn loaded(&self) -> Loaded {
        self.units.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut outcomes = Vec::with_capacity(self.units.prepared.len());
        self.each_batch(|batch| outcomes.extend(batch));
        Ok(self.units.proof(outcomes.into_iter()))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.each_batch(|batch| {
            black_box(batch);
        });
        Ok(Parts::default())
    }
}

/// Commits per call, as in a relay that catches up or starts over.
pub(super) const BATCH: usize = 256;

/// Memory for 6,000 keys, more than the default corpus has and half of the keys in the corpus of many accounts, and for the
/// larger tables of 700 or 100 of them.
const CACHE_BYTES: usize = 11 << 20;
