//! `#account` and `#identity` events that several hosts send: the first is served.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use atproto::event::renumbered;
use kernels::sha256;

/// The last unsigned events, in two generations.
#[derive(Debug, Default)]
pub(crate) struct UnsignedEvents(Mutex<[HashSet<Hash>; 2]>);

/// Half of the SHA-256 of a frame without its sequence number.
type Hash = [u8; 16];

impl UnsignedEvents {
    /// Records an event. Whether a host has sent it before.
    pub(crate) fn is_known(&self, frame: &[u8]) -> bool {
        // Every frame with an account has a number.
        let Some(frame) = renumbered(frame, 0) else { return false };
        let digest = sha256::digest(&frame);
        let hash = *digest.first_chunk().expect("a digest has 32 bytes");
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [young, old] = &mut *generations;
        if young.contains(&hash) || old.contains(&hash) {
            return true;
        }
        if young.len() >= MAX_YOUNG {
            *old = std::mem::take(young);
        }
        young.insert(hash);
        false
    }
}

/// Maximum number of events of a generation.
const MAX_YOUNG: usize = 50_000;

#[cfg(test)]
mod tests {
    use atproto::event::{Event, Identity};

    use super::*;

    fn identity(seq: i64, did: &str) -> Vec<u8> {
        let time = "2026-07-01T00:00:00Z";
        Event::Identity(Identity { seq, did, time, handle: None }).to_frame()
    }

    #[test]
    fn an_event_is_known_whatever_number_a_host_gives_it_until_many_others_came() {
        let events = UnsignedEvents::default();
        assert!(!events.is_known(&identity(5, "did:plc:a")));
        assert!(events.is_known(&identity(700, "did:plc:a")));
        assert!(!events.is_known(&identity(5, "did:plc:b")));
        for number in 0..2 * MAX_YOUNG {
            events.is_known(&identity(1, &format!("did:plc:{number}")));
        }
        assert!(!events.is_known(&identity(5, "did:plc:a")));
        let generations = events.0.lock().unwrap();
        assert!(generations.iter().all(|generation| generation.len() <= MAX_YOUNG));
    }
}
