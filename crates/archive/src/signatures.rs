//! Signatures of rows, verified many at a time.

use crypto::{
    CompressedKey, KeyCache, KeyRef, SignatureCheck, SignatureVerdict, SignedData,
    verify_many_cached,
};

/// Signatures that are not verified yet, with their subjects.
pub(crate) struct SignatureBatch<T> {
    waiting: Vec<Waiting<T>>,
    cache: KeyCache,
}

struct Waiting<T> {
    subject: T,
    message: Vec<u8>,
    sig: Vec<u8>,
    key: CompressedKey,
}

impl<T> SignatureBatch<T> {
    pub(crate) fn new() -> Self {
        let seed = uuid::Uuid::new_v4().into_bytes();
        Self { waiting: Vec::new(), cache: KeyCache::new(CACHE_BYTES, seed) }
    }

    pub(crate) fn push(&mut self, subject: T, message: Vec<u8>, sig: &[u8], key: CompressedKey) {
        self.waiting.push(Waiting { subject, message, sig: sig.to_vec(), key });
    }

    /// Whether the signatures fill the lanes.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= BATCH_LEN
    }

    /// Verifies all, and takes them out.
    pub(crate) fn verify(&mut self) -> impl Iterator<Item = (T, SignatureVerdict)> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut verdicts = vec![Ok(()); waiting.len()];
        let checks: Vec<_> = waiting.iter().map(Waiting::check).collect();
        verify_many_cached(&checks, &mut self.cache, &mut verdicts);
        waiting.into_iter().map(|waiting| waiting.subject).zip(verdicts)
    }
}

impl<T> Waiting<T> {
    fn check(&self) -> SignatureCheck<'_> {
        SignatureCheck {
            signed: SignedData::Message(&self.message),
            signature: &self.sig,
            key: KeyRef::Compressed(self.key),
        }
    }
}

/// Signatures that are verified together.
const BATCH_LEN: usize = 256;

/// Memory of the keys that sign often.
const CACHE_BYTES: usize = 16 << 20;
