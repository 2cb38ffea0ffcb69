//! K-256, P-256 and BIP-340 by `kernels::curve`: in SIMD lanes on machines that have them, single signatures on any.
//!
//! The kernel returns valid, invalid or undecided. Undecided signatures go to the library, and so does
//! the question whether the key of an invalid signature is a point, which valid data does not raise. The
//! one rule that the kernel does not check, a low s, is checked before.

use kernels::curve as kernel;

use crate::cache::{KeyCache, StoredCurve};
use crate::compressed::CompressedKey;
use crate::public_key::PublicKey;
use crate::signature::{SignatureFault, SignatureVerdict};

/// Whether this machine has lanes, and they verify `count` signatures faster than a library.
pub(crate) fn are_faster(count: usize) -> bool {
    MAY_HAVE_LANES && count >= kernel::Backend::best().faster_from()
}

/// Whether the kernel verifies these few signatures one by one, with the tables of their keys, faster than a library.
pub(crate) fn are_faster_for<C: StoredCurve, K: LaneCheck<C>>(
    checks: &[K],
    cache: Option<&KeyCache>,
) -> bool {
    let (true, Some(cache)) = (MAY_HAVE_LANES, cache) else { return false };
    let has_table =
        |check: &K| cache.table_size(&check.compressed_key()) >= Some(kernel::ALONE_FROM);
    !checks.is_empty() && checks.iter().all(has_table)
}

/// A well-formed signature, ECDSA or BIP-340, with its key, which is on the curve `C`.
pub(crate) trait LaneCheck<C: kernel::Curve> {
    /// The index of its verdict.
    fn index(&self) -> usize;
    /// The key under which a cache files it.
    fn compressed_key(&self) -> CompressedKey;
    /// The key as the kernel reads it.
    fn kernel_key(&self) -> kernel::Key<'_, C>;
    /// The verdict of the library.
    fn verify_by_library(&self) -> SignatureVerdict;
}

/// Writes the verdicts that `run` finds to the signatures' indexes, one chunk at a time, with the
/// keys that the cache has tables of. The keys of valid signatures are recorded in the cache.
pub(crate) fn verify<C: StoredCurve, K: LaneCheck<C>>(
    checks: &[K],
    mut cache: Option<&mut KeyCache>,
    verdicts: &mut [SignatureVerdict],
    run: impl Fn(&[K], &[kernel::Key<'_, C>], &mut [kernel::Verdict]),
) {
    let mut found = [kernel::Verdict::Undecided; CHUNK];
    for checks in checks.chunks(CHUNK) {
        let mut find = |check: &K| cache.as_mut()?.find_table(&check.compressed_key());
        let tables: Vec<Option<usize>> = checks.iter().map(&mut find).collect();
        let key = |(check, table): (_, &Option<usize>)| match (&cache, table) {
            (Some(cache), Some(at)) => kernel::Key::Cached(cache.table(*at)),
            _ => K::kernel_key(check),
        };
        let keys: Vec<kernel::Key<'_, C>> = checks.iter().zip(&tables).map(key).collect();
        run(checks, &keys, &mut found[..checks.len()]);
        for (check, found) in checks.iter().zip(found) {
            verdicts[check.index()] = resolve(check, found);
        }
        if let Some(cache) = &mut cache {
            let is_valid = |(check, _): &(&K, &Option<usize>)| verdicts[check.index()].is_ok();
            let valid = || checks.iter().zip(&tables).filter(is_valid);
            cache.record_found(valid().filter_map(|(_, table)| *table));
            let new = valid().filter(|(_, table)| table.is_none());
            cache.record_valid(&Vec::from_iter(new.map(|(check, _)| check.compressed_key())));
        }
    }
}

fn resolve<C: kernel::Curve>(
    check: &impl LaneCheck<C>,
    found: kernel::Verdict,
) -> SignatureVerdict {
    match found {
        kernel::Verdict::Valid => Ok(()),
        kernel::Verdict::Invalid => Err(fault_of_invalid(&check.compressed_key())),
        kernel::Verdict::Undecided => check.verify_by_library(),
    }
}

#[cold]
fn fault_of_invalid(key: &CompressedKey) -> SignatureFault {
    match PublicKey::try_from(*key) {
        Ok(_) => SignatureFault::Mismatch,
        Err(_) => SignatureFault::Key,
    }
}

/// Whether the kernel may be faster than a library. WebAssembly has no product of 128 bits: its kernel takes as long as `k256`, and
/// would be a fifth of the module.
pub(crate) const MAY_HAVE_LANES: bool = !cfg!(target_family = "wasm");

/// Signatures in a chunk: they share the kernel's inversion, and the core's cache holds their tables.
const CHUNK: usize = 256;
