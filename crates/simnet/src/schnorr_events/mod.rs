//! Signed Nostr events, one JSON object a line, for tests and benchmarks of BIP-340 verification.
//!
//! Some hundred authors write notes, reactions, profiles, contact lists and reports; every event
//! has its real id and a BIP-340 signature over it.
//!
//! ```
//! use wireproof_simnet::schnorr_events::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick());
//! assert_eq!(corpus.to_file().lines().count(), 256);
//! ```

mod event;
#[cfg(test)]
mod tests;
mod writing;

use serde::{Deserialize, Serialize};

use crate::corpus::{self, NoDetails};
use crate::random::{DEFAULT_SEED, Seed};
use crate::time::START_SECOND;

pub(crate) use event::to_json;
pub use event::{Author, SignedEvent, UnsignedEvent};
use writing::{KINDS, write};

/// The specification of a file of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The number of authors, with one key each.
    pub authors: usize,
    /// The number of events of all authors together.
    pub events: usize,
}

impl Default for Spec {
    /// 4,096 events of 320 authors.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, authors: 320, events: 4_096 }
    }
}

impl Spec {
    /// A small file for tests: 256 events of 24 authors.
    pub fn quick() -> Self {
        Self { authors: 24, events: 256, ..Self::default() }
    }
}

/// The description of a file of events.
pub type Manifest = corpus::Manifest<Spec, SignatureCounts>;

/// Generated events in the order of their creation.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    events: Vec<SignedEvent>,
}

impl Corpus {
    /// Generates the events of `spec`.
    ///
    /// # Panics
    /// If there are events, but no authors.
    pub fn generate(spec: &Spec) -> Self {
        let mut random = Seed::new(spec.seed, "schnorr events").stream(0);
        let authors: Vec<_> = (0..spec.authors).map(|_| Author::generate(&mut random)).collect();
        let kinds = random.apportioned(&KINDS.map(|(_, weight)| weight), spec.events);
        let mut created_at = START_SECOND;
        let mut events = Vec::with_capacity(spec.events);
        for kind in kinds {
            created_at += random.below(3);
            // The lesser of two draws: some authors write much more than others.
            let draws = [random.below(spec.authors as u64), random.below(spec.authors as u64)];
            let author = &authors[*draws.iter().min().expect("two draws") as usize];
            let unsigned = write(KINDS[kind].0, created_at, &events, &mut random);
            events.push(author.sign(unsigned));
        }
        Self { spec: spec.clone(), events }
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The events.
    pub fn events(&self) -> &[SignedEvent] {
        &self.events
    }

    /// The events as JSON, one per line.
    pub fn to_file(&self) -> String {
        self.events.iter().flat_map(|event| [event.to_json(), "\n".to_owned()]).collect()
    }

    /// The description of `file`, the text of [`Corpus::to_file`].
    pub fn manifest(&self, file: &str) -> Manifest {
        Manifest::new(self.spec.clone(), self.counts(), NoDetails {}, file)
    }

    /// The counts that a verifier finds.
    pub fn counts(&self) -> SignatureCounts {
        let events = self.events.len() as u64;
        SignatureCounts { events, valid: events, ..SignatureCounts::default() }
    }
}

/// The counts that a verifier finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureCounts {
    /// Events.
    pub events: u64,
    /// Valid signatures.
    pub valid: u64,
    /// Invalid signatures.
    pub invalid: u64,
    /// Events whose key or signature cannot be parsed.
    pub errors: u64,
}
