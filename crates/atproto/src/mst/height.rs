//! The layer of a key, from its hash.

use kernels::sha256::{self, Digest};

/// The layer of `key`, counted upward from the leaves' 0: half of the leading zero bits of its
/// SHA-256, rounded down.
///
/// ```
/// use wireproof::atproto::mst::key_height;
/// assert_eq!(key_height(b"2653ae71"), 0);
/// assert_eq!(key_height(b"app.bsky.feed.post/9adeb165882c"), 8);
/// ```
pub fn key_height(key: &[u8]) -> u8 {
    height_of(&sha256::digest(key))
}

/// The layers of the keys, in order, hashed together.
pub fn key_heights(keys: &[&[u8]]) -> Vec<u8> {
    let mut heights = Vec::with_capacity(keys.len());
    let mut digests = vec![[0; 32]; keys.len().min(KEY_BATCH)];
    for keys in keys.chunks(KEY_BATCH) {
        let digests = &mut digests[..keys.len()];
        sha256::digest_many_into(keys, digests);
        heights.extend(digests.iter().map(height_of));
    }
    heights
}

/// The layer of a key with this SHA-256; at most [`MAX_HEIGHT`](super::MAX_HEIGHT).
#[inline]
pub(super) fn height_of(digest: &Digest) -> u8 {
    let (words, _) = digest.as_chunks::<8>();
    let mut zeros = 0;
    for word in words {
        let word = u64::from_be_bytes(*word);
        zeros += word.leading_zeros();
        if word != 0 {
            break;
        }
    }
    (zeros / 2) as u8
}

/// Keys that are hashed together: enough to fill the hash lanes, few enough for the cache.
pub(super) const KEY_BATCH: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_height_is_half_of_the_leading_zero_bits_wherever_they_end() {
        assert_eq!(height_of(&[0; 32]), 128);
        for bit in 0..256 {
            let mut digest = [0xff; 32];
            digest[..bit / 8].fill(0);
            digest[bit / 8] = 0xff >> (bit % 8);
            assert_eq!(usize::from(height_of(&digest)), bit / 2, "{bit} zeros");
        }
    }

    #[test]
    fn the_heights_of_many_are_the_heights_of_each() {
        let keys: Vec<String> = (0..100).map(|n| format!("com.example.record/{n}")).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let each: Vec<u8> = keys.iter().map(|key| key_height(key)).collect();
        assert_eq!(key_heights(&keys), each);
        assert!(each.iter().any(|height| *height > 0));
        assert_eq!(key_height(b""), 0);
    }
}
