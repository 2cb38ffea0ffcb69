//! Events that a source sends again, as they were stored but not acknowledged when the process before ended.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use archive::ArchivedEvent;
use kernels::sha256;

use crate::log::EventLog;

/// The last events of the log.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    hashes: Mutex<HashSet<Hash>>,
    /// The greatest sequence number of each host: later ones are new.
    last: HashMap<Box<str>, i64>,
}

/// Half of the SHA-256 of a host's name and a frame.
type Hash = [u8; 16];

impl Repeats {
    /// The last events of the log.
    pub(crate) fn of_log(log: &EventLog) -> Self {
        let mut reader = log.wal.reader(earliest(*log.stored().borrow()));
        let mut repeats = log.archived.clone();
        // Events that cannot be read are stored again.
        while let Ok(Some(group)) = reader.next_group() {
            group.events().iter().for_each(|event| repeats.add(event));
        }
        let RecentEvents { hashes, last } = repeats;
        Self { hashes: Mutex::new(hashes), last }
    }

    /// Whether the event is in the log. It can be repeated once.
    pub(crate) fn has(&self, host: &str, seq: Option<i64>, frame: &[u8]) -> bool {
        let Some(last) = self.last.get(host) else { return false };
        if seq.is_some_and(|seq| seq > *last) {
            return false;
        }
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        hashes.remove(&hash(host, frame))
    }
}

/// The events that a source may send again, and the greatest sequence number of each host.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentEvents {
    hashes: HashSet<Hash>,
    last: HashMap<Box<str>, i64>,
}

impl RecentEvents {
    /// Adds an event of the log or of the archive.
    pub(crate) fn add(&mut self, event: &ArchivedEvent<'_>) {
        if self.hashes.len() > MAX_HASHES {
            self.hashes.clear();
        }
        self.hashes.insert(hash(event.host, event.frame));
        let seq = event.seq.unwrap_or(i64::MAX);
        let greatest = self.last.entry(event.host.into()).or_insert(seq);
        *greatest = seq.max(*greatest);
    }
}

/// The arrival after which events can be unacknowledged, of a log with this last one.
pub(crate) fn earliest(last: i64) -> i64 {
    last.saturating_sub(REPEATED_MICROS)
}

fn hash(host: &str, frame: &[u8]) -> Hash {
    let digest = sha256::digest(&[host.as_bytes(), b"\0", frame].concat());
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// Time before the last event in which events can be unacknowledged.
const REPEATED_MICROS: i64 = 120_000_000;

/// Maximum number of hashes: more than a follower has unacknowledged.
const MAX_HASHES: usize = 200_000;
