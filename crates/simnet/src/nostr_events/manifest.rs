//! What stands beside a corpus file, so that it can be checked and used.

use kernels::sha256;
use nostr::OwnedEvent;
use serde::{Deserialize, Serialize};

use super::corpus::Spec;
use crate::hex::hex;

/// The description of a file of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The seed.
    pub seed: u64,
    /// How many people wrote the events that these are of.
    pub authors: u64,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// What a decoder must find.
    pub counts: EventCounts,
}

impl Manifest {
    /// Describes `file`, which holds what is counted in `counts` of a corpus of this `spec`.
    pub fn new(spec: &Spec, counts: EventCounts, file: &str) -> Self {
        Self {
            seed: spec.seed,
            authors: spec.authors as u64,
            file_bytes: file.len() as u64,
            sha256: hex(&sha256::digest(file.as_bytes())),
            counts,
        }
    }
}

/// What is in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Events.
    pub events: u64,
    /// Events that cannot be read.
    pub errors: u64,
    /// Tags.
    pub tags: u64,
    /// Values of tags, their names among them.
    pub values: u64,
    /// Bytes of those values.
    pub value_bytes: u64,
    /// Bytes of contents.
    pub content_bytes: u64,
    /// The sum of the kinds.
    pub kinds: u64,
    /// The sum of the times.
    pub seconds: u64,
}

impl EventCounts {
    /// Counts `events`.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e OwnedEvent>) -> Self {
        let mut counts = Self::default();
        events.into_iter().for_each(|event| counts.add(event));
        counts
    }

    fn add(&mut self, event: &OwnedEvent) {
        self.events += 1;
        self.tags += event.tags.len() as u64;
        for value in event.tags.iter().flatten() {
            self.values += 1;
            self.value_bytes += value.len() as u64;
        }
        self.content_bytes += event.content.len() as u64;
        self.kinds += u64::from(event.kind);
        self.seconds = self.seconds.wrapping_add(event.created_at as u64);
    }
}
