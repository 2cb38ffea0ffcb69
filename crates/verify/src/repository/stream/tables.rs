//! How the tables of a stream place their keys, which whoever sends the archive chooses.

use std::hash::{BuildHasher, DefaultHasher, RandomState};

use crypto::SeededState;

/// A secret of this process, or a seed of the caller.
#[derive(Clone)]
pub(super) enum TableState {
    Random(RandomState),
    Seeded(SeededState),
}

impl TableState {
    pub(super) fn new(seed: Option<[u8; 16]>) -> Self {
        match seed {
            None => Self::Random(RandomState::new()),
            Some(seed) => Self::Seeded(SeededState::new(seed)),
        }
    }
}

impl BuildHasher for TableState {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        match self {
            Self::Random(state) => state.build_hasher(),
            Self::Seeded(state) => state.build_hasher(),
        }
    }
}
