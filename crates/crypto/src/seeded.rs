//! Where in a table does a key go, so that strangers cannot choose it?

use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

/// The standard library's hash with a secret in front of each key: a hasher for tables whose keys
/// strangers choose, where nothing random is at hand but what the caller gives.
///
/// ```
/// use std::collections::HashMap;
/// use wireproof_crypto::SeededState;
/// let mut table = HashMap::with_hasher(SeededState::new([7; 16]));
/// table.insert("did:web:example.com", 1);
/// assert_eq!(table["did:web:example.com"], 1);
/// ```
#[derive(Clone)]
pub struct SeededState([u8; 16]);

impl SeededState {
    /// A hasher behind this secret.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_depend_on_the_seed_which_is_not_printed() {
        let place = |seed| SeededState::new([seed; 16]).hash_one("a key");
        assert_eq!(place(1), place(1));
        assert_ne!(place(1), place(2));
        assert_eq!(format!("{:?}", SeededState::new([77; 16])), "SeededState");
    }
}
