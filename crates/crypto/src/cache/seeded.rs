//! A hash with a secret seed.

use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

/// The standard library's hash with a secret prefix, supplied by the caller: for hash maps whose keys are
/// chosen by untrusted peers.
///
/// ```
/// use std::collections::HashMap;
/// use wireproof::crypto::SeededState;
/// let mut table = HashMap::with_hasher(SeededState::new([7; 16]));
/// table.insert("did:web:example.com", 1);
/// assert_eq!(table["did:web:example.com"], 1);
/// ```
#[derive(Clone)]
pub struct SeededState([u8; 16]);

impl SeededState {
    /// Hashes with this secret.
    pub fn new(seed: [u8; 16]) -> Self {
        Self(seed)
    }
}

impl BuildHasher for SeededState {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.0);
        hasher
    }
}

impl fmt::Debug for SeededState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeededState")
    }
}
