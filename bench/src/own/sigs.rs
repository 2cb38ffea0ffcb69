//! How do we verify signed commits when measured? Through the same calls as anyone, one commit at a
//! time or many together, with as much given beforehand as the variant says.

use std::hint::black_box;

use wireproof::atproto::commit::{Commit, SigningBytes, digest_many};
use wireproof::crypto::{
    Curve, KeyCache, KeyRef, PublicKey, SignatureCheck, SignedData, verify_many_cached,
    verify_many_into,
};

use super::Work;
use crate::corpora::commits::{self, Refusal, SignedCommit, Tally};
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name, each with the checks that its measured path makes.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    let variants: [(&str, &[&str]); 7] = [
        ("full", FROM_BYTES),
        ("crypto", LOW_S),
        ("preparsed", LOW_S),
        ("full/batch", FROM_BYTES),
        ("crypto/batch", LOW_S),
        ("preparsed/batch", LOW_S),
        ("full/batch-cached", FROM_BYTES),
    ];
    variants.into_iter().map(|(name, checks)| (name.to_owned(), checks))
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let mut all = Vec::new();
    for file in files {
        all.extend(commits::read(file).ok_or("not a file of signed commits")?);
    }
    Ok(Some(match variant {
        "full" => Box::new(Alone(Units::<SignedCommit<'f>>::of(all))),
        "crypto" => Box::new(Alone(Units::<Cut<'f>>::of(all))),
        "preparsed" => Box::new(Alone(Units::<Ready<'f>>::of(all))),
        "full/batch" => Box::new(Together::new(Units::<SignedCommit<'f>>::of(all), None)),
        "crypto/batch" => Box::new(Together::new(Units::<Cut<'f>>::of(all), None)),
        "preparsed/batch" => Box::new(Together::new(Units::<Ready<'f>>::of(all), None)),
        "full/batch-cached" => {
            Box::new(Together::new(Units::<SignedCommit<'f>>::of(all), Some(cache())))
        }
        _ => return Ok(None),
    }))
}

fn cache() -> KeyCache {
    // Nobody chooses keys against us here.
    KeyCache::new(CACHE_BYTES, [0; 16])
}

type Verdict = Result<(), Refusal>;

/// What a variant is given of each commit.
trait Given<'f>: Sized {
    /// Made before anything is timed.
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, Refusal>;

    /// One commit.
    fn verify(&self) -> Verdict;

    /// What to check of many. Those that nothing can be checked of keep their place.
    fn checks(many: &[Result<Self, Refusal>]) -> Vec<Result<SignatureCheck<'_>, Refusal>>;
}

/// Variant `full`: the bytes of the file.
impl<'f> Given<'f> for SignedCommit<'f> {
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, Refusal> {
        Ok(*commit)
    }

    fn verify(&self) -> Verdict {
        SignedCommit::verify(self)
    }

    fn checks(many: &[Result<Self, Refusal>]) -> Vec<Result<SignatureCheck<'_>, Refusal>> {
        let parse = |given: &Result<Self, Refusal>| (*given)?.parse();
        let parsed: Vec<Result<(Commit<'f>, KeyRef<'_>), Refusal>> =
            many.iter().map(parse).collect();
        let signed: Vec<SigningBytes<'_>> =
            parsed.iter().flatten().map(|(commit, _)| commit.signing_bytes()).collect();
        let mut digests = digest_many(&signed).into_iter();
        let check = |parsed: Result<(Commit<'f>, _), Refusal>| {
            let (commit, key) = parsed?;
            let signed = SignedData::Digest(digests.next().expect("one for each that was parsed"));
            Ok(SignatureCheck { signed, signature: commit.sig, key })
        };
        parsed.into_iter().map(check).collect()
    }
}

impl<'f> SignedCommit<'f> {
    fn parse(self) -> Result<(Commit<'f>, KeyRef<'f>), Refusal> {
        Ok((Commit::parse(self.object)?, KeyRef::Compressed(self.compressed_key()?)))
    }
}

/// Variant `crypto`: the unsigned bytes, the signature and the key's bytes.
struct Cut<'f> {
    message: Vec<u8>,
    signature: &'f [u8; 64],
    commit: SignedCommit<'f>,
}

impl<'f> Given<'f> for Cut<'f> {
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, Refusal> {
        let parsed = Commit::parse(commit.object)?;
        let message = parsed.signing_bytes().to_vec();
        Ok(Self { message, signature: parsed.sig, commit: *commit })
    }

    fn verify(&self) -> Verdict {
        let key = PublicKey::from_sec1(self.commit.curve, self.commit.key)?;
        Ok(key.verify(&self.message, self.signature)?)
    }

    fn checks(many: &[Result<Self, Refusal>]) -> Vec<Result<SignatureCheck<'_>, Refusal>> {
        each(many, |Self { message, signature, commit }| {
            let key = KeyRef::Compressed(commit.compressed_key()?);
            Ok(SignatureCheck { signed: SignedData::Message(message), signature: *signature, key })
        })
    }
}

/// Variant `preparsed`: the unsigned bytes, the signature and the key.
struct Ready<'f> {
    message: Vec<u8>,
    signature: &'f [u8; 64],
    key: PublicKey,
}

impl<'f> Given<'f> for Ready<'f> {
    fn prepare(commit: &SignedCommit<'f>) -> Result<Self, Refusal> {
        let Cut { message, signature, .. } = Cut::prepare(commit)?;
        let key = PublicKey::from_sec1(commit.curve, commit.key)?;
        Ok(Self { message, signature, key })
    }

    fn verify(&self) -> Verdict {
        Ok(self.key.verify(&self.message, self.signature)?)
    }

    fn checks(many: &[Result<Self, Refusal>]) -> Vec<Result<SignatureCheck<'_>, Refusal>> {
        each(many, |Self { message, signature, key }| {
            let (signed, key) = (SignedData::Message(message), KeyRef::Parsed(key));
            Ok(SignatureCheck { signed, signature: *signature, key })
        })
    }
}

fn each<'u, G>(
    many: &'u [Result<G, Refusal>],
    check: impl Fn(&'u G) -> Result<SignatureCheck<'u>, Refusal>,
) -> Vec<Result<SignatureCheck<'u>, Refusal>> {
    many.iter().map(|given| check(given.as_ref().map_err(|refusal| *refusal)?)).collect()
}

/// The commits, made ready.
struct Units<G> {
    loaded: Loaded,
    curves: Vec<Curve>,
    // As many as `curves`.
    given: Vec<Result<G, Refusal>>,
}

impl<'f, G: Given<'f>> Units<G> {
    fn of(commits: Vec<SignedCommit<'f>>) -> Self {
        let bytes = commits.iter().map(|commit| commit.object.len() as u64).sum();
        Self {
            loaded: Loaded { units: commits.len() as u64, bytes },
            curves: commits.iter().map(|commit| commit.curve).collect(),
            given: commits.iter().map(G::prepare).collect(),
        }
    }

    fn count(&self, verdicts: impl Iterator<Item = Verdict>) -> Counts {
        let mut tally = Tally::default();
        self.curves.iter().zip(verdicts).for_each(|(curve, verdict)| tally.note(*curve, verdict));
        tally.into()
    }
}

/// One commit after the other.
struct Alone<G>(Units<G>);

impl<'f, G: Given<'f>> Alone<G> {
    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.0.given.iter().map(|given| given.as_ref().map_err(|refusal| *refusal)?.verify())
    }
}

impl<'f, G: Given<'f>> Work for Alone<G> {
    fn loaded(&self) -> Loaded {
        self.0.loaded
    }

    fn prove(&mut self) -> Counts {
        self.0.count(self.verdicts())
    }

    fn pass(&mut self) {
        for verdict in self.verdicts() {
            let _ = black_box(verdict);
        }
    }
}

/// As many as make a batch, and then the next.
struct Together<G> {
    units: Units<G>,
    /// Kept over batches and passes.
    cache: Option<KeyCache>,
}

impl<'f, G: Given<'f>> Together<G> {
    fn new(units: Units<G>, cache: Option<KeyCache>) -> Self {
        Self { units, cache }
    }

    fn each_batch(&mut self, mut take: impl FnMut(Vec<Verdict>)) {
        for batch in self.units.given.chunks(BATCH) {
            take(judge(&G::checks(batch), self.cache.as_mut()));
        }
    }
}

/// The verdict on each check, those that there is nothing to check of included.
fn judge(
    checks: &[Result<SignatureCheck<'_>, Refusal>],
    cache: Option<&mut KeyCache>,
) -> Vec<Verdict> {
    let readable: Vec<SignatureCheck<'_>> = checks.iter().flatten().copied().collect();
    let mut verdicts = vec![Ok(()); readable.len()];
    match cache {
        Some(cache) => verify_many_cached(&readable, cache, &mut verdicts),
        None => verify_many_into(&readable, &mut verdicts),
    }
    let mut verdicts = verdicts.into_iter();
    let mut verdict = |check: &Result<SignatureCheck<'_>, Refusal>| {
        check.as_ref().map_err(|refusal| *refusal)?;
        Ok(verdicts.next().expect("one for each that is readable")?)
    };
    checks.iter().map(&mut verdict).collect()
}

impl<'f, G: Given<'f>> Work for Together<G> {
    fn loaded(&self) -> Loaded {
        self.units.loaded
    }

    fn prove(&mut self) -> Counts {
        let mut verdicts = Vec::with_capacity(self.units.given.len());
        self.each_batch(|batch| verdicts.extend(batch));
        self.units.count(verdicts.into_iter())
    }

    fn pass(&mut self) {
        self.each_batch(|batch| {
            black_box(batch);
        });
    }
}

/// Commits handed over together: what a relay has when it is behind, or starts over.
pub(super) const BATCH: usize = 256;

/// Room for 13,000 keys; the corpus has some hundred.
const CACHE_BYTES: usize = 16 << 20;

const FROM_BYTES: &[&str] = &["low-s", "strict-cbor", "raw-bytes"];
const LOW_S: &[&str] = &["low-s"];
