//! The events, and who wrote them.

use serde::{Deserialize, Serialize};

use super::event::{Author, Event};
use super::writing::{KINDS, draft};
use crate::random::Seed;

/// What events to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything follows from this number.
    pub seed: u64,
    /// How many people write.
    pub authors: usize,
    /// How many events they write together.
    pub events: usize,
}

impl Default for Spec {
    /// 4,096 events of 320 authors.
    fn default() -> Self {
        Self { seed: 4_621_332_152, authors: 320, events: 4_096 }
    }
}

impl Spec {
    /// Events for tests: 256 of 24 authors.
    pub fn quick() -> Self {
        Self { authors: 24, events: 256, ..Self::default() }
    }
}

/// Generated events, in the order in which they were written.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    events: Vec<Event>,
}

impl Corpus {
    /// Makes the events of `spec`.
    ///
    /// # Panics
    /// If there are to be events, but no authors.
    pub fn generate(spec: &Spec) -> Self {
        let mut random = Seed::new(spec.seed, "schnorr events").stream(0);
        let authors: Vec<_> = (0..spec.authors).map(|_| Author::generate(&mut random)).collect();
        let kinds = random.deck(&KINDS.map(|(_, weight)| weight), spec.events);
        let mut created_at = FIRST_SECOND;
        let mut events = Vec::with_capacity(spec.events);
        for kind in kinds {
            created_at += random.below(3);
            // The lesser of two draws: some authors write much more than others.
            let draws = [random.below(spec.authors as u64), random.below(spec.authors as u64)];
            let author = &authors[*draws.iter().min().expect("two draws") as usize];
            let draft = draft(KINDS[kind].0, created_at, &events, &mut random);
            events.push(author.sign(draft));
        }
        Self { spec: spec.clone(), events }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The events as JSON, each followed by a line feed.
    pub fn to_file(&self) -> String {
        self.events.iter().flat_map(|event| [event.to_json(), "\n".to_owned()]).collect()
    }

    /// What a verifier must find.
    pub fn counts(&self) -> EventCounts {
        let events = self.events.len() as u64;
        EventCounts { events, valid: events, ..EventCounts::default() }
    }
}

/// How many signatures of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Events.
    pub events: u64,
    /// Signatures that are right.
    pub valid: u64,
    /// Signatures that are wrong.
    pub invalid: u64,
    /// Events whose key or signature cannot be read.
    pub errors: u64,
}

/// Before the first event: 2026-07-01T00:00:00Z.
const FIRST_SECOND: u64 = 1_782_864_000;
