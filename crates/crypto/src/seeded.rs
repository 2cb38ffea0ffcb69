//! Where in a table does a key go, so that strangers cannot choose it?

use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

/// The standard library's hash with a secret in front of each key: a hasher for tables whose keys
/// strangers choose, where nothing random is at hand but what the caller gives.
///
/// ```
/// use std::collections::HashMap;
/// use wireproof_crypto::Seeded;
/// let mut table = HashMap::with_hasher(Seeded::new([7; 16]));
/// table.insert("did:web:example.com", 1);
/// assert_eq!(table["did:web:example.com"], 1);
/// ```
#[derive(Clone)]
pub struct Seeded([u8; 16]);

impl Seeded {
    /// A hasher behind this secret.
    pub fn new(seed: [u8; 16]) -> Self {
        Self(seed)
    }
}

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.0);
        hasher
    }
}

impl fmt::Debug for Seeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seeded")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_depend_on_the_seed_which_is_not_printed() {
        let place = |seed| Seeded::new([seed; 16]).hash_one("a key");
        assert_eq!(place(1), place(1));
        assert_ne!(place(1), place(2));
        assert_eq!(format!("{:?}", Seeded::new([77; 16])), "Seeded");
    }
}
