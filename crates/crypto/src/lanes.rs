//! K-256 and BIP-340 in the lanes of `kernels::secp256k1`, where this machine has them.
//!
//! The kernel says valid, invalid or undecided. What is undecided goes to libsecp256k1, and so does
//! the question whether an invalid signature has a key at all, which good data does not raise. The
//! rules that the kernel does not know (a low s) are checked before.

use kernels::secp256k1::{self as kernel, EcdsaItem, SchnorrItem};
use kernels::sha256::{self, Digest};

use crate::cache::KeyCache;
use crate::compressed::CompressedKey;
use crate::error::SignatureFault;
use crate::many::{self, SignatureVerdict};
use crate::public_key::PublicKey;
use crate::schnorr;
use crate::signature::halves;

/// Whether lanes are here, and the faster way to verify `count` signatures.
pub(crate) fn pay_for(count: usize) -> bool {
    count >= PAY_FROM && kernel::is_available()
}

/// What lanes need to know of a signature that is well formed.
pub(crate) trait Job {
    /// The index of its verdict.
    fn place(&self) -> usize;
    /// The key as a cache knows it.
    fn spelled(&self) -> CompressedKey;
    /// The key as the kernel reads it.
    fn lane_key(&self) -> kernel::Key<'_>;
    /// The verdict of the library.
    fn alone(&self) -> SignatureVerdict;
}

/// Writes the verdict on each ECDSA signature to its place.
pub(crate) fn verify_ecdsa(
    jobs: &[many::Job<'_>],
    cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
) {
    verify(jobs, cache, verdicts, |jobs, keys, found| {
        let pairs = jobs.iter().zip(keys);
        let items: Vec<EcdsaItem<'_>> = pairs
            .map(|(job, key)| EcdsaItem { digest: job.digest, signature: job.signature, key: *key })
            .collect();
        kernel::verify_ecdsa_many(&items, found);
    });
}

/// Writes the verdict on each BIP-340 signature to its place.
pub(crate) fn verify_schnorr(
    jobs: &[schnorr::Job<'_>],
    cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
) {
    verify(jobs, cache, verdicts, |jobs, keys, found| {
        let challenges = challenges(jobs);
        let triples = jobs.iter().zip(keys).zip(&challenges);
        let items: Vec<SchnorrItem<'_>> = triples
            .map(|((job, key), challenge)| SchnorrItem {
                challenge,
                signature: job.signature,
                key: *key,
            })
            .collect();
        kernel::verify_schnorr_many(&items, found);
    });
}

/// Gives each job the key that the cache has, and settles what `run` finds, some jobs at a time.
fn verify<J: Job>(
    jobs: &[J],
    mut cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
    run: impl Fn(&[J], &[kernel::Key<'_>], &mut [kernel::Verdict]),
) {
    let mut found = [kernel::Verdict::Undecided; AT_ONCE];
    for jobs in jobs.chunks(AT_ONCE) {
        let mut find = |job: &J| cache.as_mut()?.find_table(&job.spelled());
        let tables: Vec<Option<usize>> = jobs.iter().map(&mut find).collect();
        let key = |(job, table): (_, &Option<usize>)| match (&cache, table) {
            (Some(cache), Some(at)) => kernel::Key::Cached(cache.table(*at)),
            _ => J::lane_key(job),
        };
        let keys: Vec<kernel::Key<'_>> = jobs.iter().zip(&tables).map(key).collect();
        run(jobs, &keys, &mut found[..jobs.len()]);
        for (job, found) in jobs.iter().zip(found) {
            verdicts[job.place()] = settle(job, found);
        }
        if let Some(cache) = &mut cache {
            let is_new = |(job, table): &(&J, &Option<usize>)| {
                table.is_none() && verdicts[job.place()].is_ok()
            };
            let met = jobs.iter().zip(&tables).filter(is_new).map(|(job, _)| job.spelled());
            cache.meet_many(&Vec::from_iter(met));
        }
    }
}

fn settle(job: &impl Job, found: kernel::Verdict) -> SignatureVerdict {
    match found {
        kernel::Verdict::Valid => Ok(()),
        kernel::Verdict::Invalid => Err(why_invalid(&job.spelled())),
        kernel::Verdict::Undecided => job.alone(),
    }
}

#[cold]
fn why_invalid(key: &CompressedKey) -> SignatureFault {
    match PublicKey::try_from(*key) {
        Ok(_) => SignatureFault::Mismatch,
        Err(_) => SignatureFault::Key,
    }
}

/// The challenge of each job: the hash of r, key and message, tagged (BIP-340).
///
/// Puts the hashed bytes of all together first, because SHA-256 in lanes wants each message in one
/// piece.
fn challenges(jobs: &[schnorr::Job<'_>]) -> Vec<Digest> {
    let tag = sha256::digest(b"BIP0340/challenge");
    let len = |job: &schnorr::Job<'_>| 128 + job.message.len();
    let mut gathered = Vec::with_capacity(jobs.iter().map(len).sum());
    for job in jobs {
        let (r, _) = halves(job.signature);
        for part in [&tag, &tag, r, job.key.as_bytes(), job.message] {
            gathered.extend_from_slice(part);
        }
    }
    let mut rest = gathered.as_slice();
    let cut = |job| {
        let (message, behind) = rest.split_at(len(job));
        rest = behind;
        message
    };
    sha256::digest_many(&Vec::from_iter(jobs.iter().map(cut)))
}

/// Lanes need 33 µs for one signature and hardly more for eight, libsecp256k1 26 µs for each (one
/// Zen 5 core, keys from bytes; `cargo run --release -p wireproof-kernels --example signatures`).
const PAY_FROM: usize = 2;

/// How many signatures share the kernel's inversion, and how many tables the cache of a core has to
/// hold at once.
const AT_ONCE: usize = 256;
