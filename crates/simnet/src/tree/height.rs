//! In which layer does a key stand?

use kernels::sha256::{self, Digest};

/// A layer of a tree, counted upward from the leaves' 0.
pub type Layer = u8;

/// The layer of `key`: half of the leading zero bits of its SHA-256, rounded down.
///
/// ```
/// assert_eq!(wireproof_simnet::tree::key_height("2653ae71"), 0);
/// assert_eq!(wireproof_simnet::tree::key_height("app.bsky.feed.post/9adeb165882c"), 8);
/// ```
pub fn key_height(key: &str) -> Layer {
    height_of(&sha256::digest(key.as_bytes()))
}

/// The layer of each key, hashed together.
pub fn key_heights(keys: &[&[u8]]) -> Vec<Layer> {
    sha256::digest_many(keys).iter().map(height_of).collect()
}

fn height_of(digest: &Digest) -> Layer {
    let leading_zeros = digest
        .iter()
        .position(|byte| *byte != 0)
        .map_or(256, |at| 8 * at as u32 + digest[at].leading_zeros());
    (leading_zeros / 2) as Layer
}
