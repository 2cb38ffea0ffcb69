//! The events of the last sealed segment, to drop repetitions after a crash.
//!
//! A source repeats events whose storage was not acknowledged, so the first events after a start can be the last ones
//! before it. They are compared with the segment before theirs.

use std::collections::HashSet;
use std::path::Path;
use std::{fs, io};

use sha2::{Digest, Sha256};

use crate::event::ArchivedEvent;

/// The events of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SealedEvents(HashSet<Hash>);

/// Half of the SHA-256 of host, sequence number and frame.
type Hash = [u8; 16];

impl SealedEvents {
    /// Adds an event with a sequence number; `false` if it was there. Events without one are never the same.
    pub(super) fn insert(&mut self, event: &ArchivedEvent<'_>) -> bool {
        hash(event).is_none_or(|hash| self.0.insert(hash))
    }

    pub(super) fn contains(&self, event: &ArchivedEvent<'_>) -> bool {
        hash(event).is_some_and(|hash| self.0.contains(&hash))
    }

    /// Reads the file; one that is missing held nothing.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read?,
        };
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "no list of sealed events");
        let (checksum, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
        if *checksum != crc32c::crc32c(rest).to_le_bytes() {
            return Err(damaged());
        }
        Ok(Self(rest.as_chunks::<16>().0.iter().copied().collect()))
    }

    /// The bytes of the file: CRC-32C of the hashes, and the hashes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let rest: Vec<u8> = self.0.iter().flatten().copied().collect();
        [&crc32c::crc32c(&rest).to_le_bytes()[..], &rest].concat()
    }
}

fn hash(event: &ArchivedEvent<'_>) -> Option<Hash> {
    let mut hash = Sha256::new();
    hash.update((event.host.len() as u64).to_le_bytes());
    hash.update(event.host);
    hash.update(event.seq?.to_le_bytes());
    hash.update(event.frame);
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied()
}
