//! A comparison of ids with a relay (NIP-77), and the events that are missing after it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use nostr::negentropy::{self, Items};

use super::options::Options;

/// The comparison, until it has ended.
#[derive(Debug)]
pub(super) struct Comparison {
    known: Arc<Items>,
    missing: HashSet<[u8; 32]>,
    rounds: u32,
    max_missing: usize,
    max_rounds: u32,
}

/// The next step after a message of the relay.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The next message to send.
    Send(Vec<u8>),
    /// The comparison is complete.
    Done,
}

impl Comparison {
    pub(super) fn new(known: Arc<Items>, options: &Options) -> Self {
        let (max_missing, max_rounds) = (options.max_missing, options.max_rounds);
        Self { known, missing: HashSet::new(), rounds: 0, max_missing, max_rounds }
    }

    /// The first message.
    pub(super) fn open(&self) -> Vec<u8> {
        negentropy::open(&self.known)
    }

    /// Handles a message of the relay.
    ///
    /// # Errors
    /// If it breaks a rule, or the comparison exceeds a limit.
    pub(super) fn receive(&mut self, message: &[u8]) -> Result<Step, String> {
        self.rounds += 1;
        let round = negentropy::compare(&self.known, message, MAX_MESSAGE_BYTES);
        let round = round.map_err(|error| format!("message {}, {error}", self.rounds))?;
        self.missing.extend(round.missing);
        if self.missing.len() > self.max_missing {
            return Err(format!("more than {} ids are missing", self.max_missing));
        }
        match round.reply {
            None => Ok(Step::Done),
            Some(_) if self.rounds >= self.max_rounds => {
                Err(format!("no end after {} messages", self.rounds))
            }
            Some(reply) => Ok(Step::Send(reply)),
        }
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The ids that the relay has and we have not.
    pub(super) fn into_ids(self) -> Vec<[u8; 32]> {
        self.missing.into_iter().collect()
    }

    pub(super) fn into_missing(self) -> Missing {
        Missing { queued: self.missing.into_iter().collect(), ..Missing::default() }
    }
}

/// Missing events, requested in groups.
#[derive(Debug, Default)]
pub(super) struct Missing {
    queued: VecDeque<[u8; 32]>,
    /// The ids of the last group that are not received, and the number of the group.
    requested: HashSet<[u8; 32]>,
    requested_count: usize,
    withheld: usize,
}

impl Missing {
    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    /// The ids of the next group; none at the end. Ids of the last group that the relay left out are requested again if it sent
    /// others: it may send fewer at once than are requested.
    pub(super) fn next_group(&mut self) -> Vec<[u8; 32]> {
        if self.requested.len() < self.requested_count {
            self.queued.extend(self.requested.drain())
        } else {
            self.withheld += self.requested.len()
        }
        let group: Vec<_> = self.queued.drain(..self.queued.len().min(GROUP_IDS)).collect();
        self.requested = group.iter().copied().collect();
        self.requested_count = group.len();
        group
    }

    /// Whether an event was requested and not received before.
    pub(super) fn take(&mut self, id: &[u8; 32]) -> bool {
        self.requested.remove(id)
    }

    /// Requests again the events not received on a lost connection.
    pub(super) fn retry(&mut self) {
        self.queued.extend(self.requested.drain());
        self.requested_count = 0;
    }

    /// Number of events that the relay did not send.
    pub(super) fn withheld(&self) -> usize {
        self.withheld
    }
}

/// Maximum size of a message to a relay before its hexadecimal form, in bytes: relays accept 128 KiB and more.
const MAX_MESSAGE_BYTES: usize = 60_000;

/// Ids in a request.
const GROUP_IDS: usize = 250;

#[cfg(test)]
mod tests {
    use nostr::negentropy::Item;

    use super::*;

    fn items(bytes: impl IntoIterator<Item = u8>) -> Items {
        bytes.into_iter().map(|byte| Item { created_at: byte.into(), id: [byte; 32] }).collect()
    }

    fn comparison(known: Items, max_missing: usize, max_rounds: u32) -> Comparison {
        let options = Options { max_missing, max_rounds, ..Options::default() };
        Comparison::new(Arc::new(known), &options)
    }

    #[test]
    fn a_comparison_ends_with_the_missing_ids_in_groups() {
        let mut comparison = comparison(items(0..100), 1_000, 10);
        let mut message = comparison.open();
        loop {
            let reply = negentropy::answer(&items(50..200), &message, 4096).unwrap();
            match comparison.receive(&reply).unwrap() {
                Step::Send(next) => message = next,
                Step::Done => break,
            }
        }
        let mut missing = comparison.into_missing();
        assert_eq!(missing.len(), 100);
        let mut group = missing.next_group();
        group.sort_unstable();
        assert!(group.iter().map(|id| id[0]).eq(100..200));
        assert!(missing.take(&[150; 32]) && !missing.take(&[150; 32]) && !missing.take(&[7; 32]));
        missing.retry();
        assert_eq!((missing.len(), missing.withheld()), (99, 0));
        missing.next_group();
        assert!(missing.take(&[151; 32]));
        assert_eq!((missing.next_group().len(), missing.withheld()), (98, 0));
        assert_eq!((missing.next_group().len(), missing.withheld()), (0, 98));
    }

    #[test]
    fn an_endless_or_boundless_comparison_is_refused() {
        // Ids of our own half, and another fingerprint of the rest, again and again.
        let endless = [&[0x61, 0, 0, 1][..], &[9; 16]].concat();
        let mut rounds = comparison(items(0..100), 1_000, 3);
        assert!(matches!(rounds.receive(&endless), Ok(Step::Send(_))));
        assert!(matches!(rounds.receive(&endless), Ok(Step::Send(_))));
        assert_eq!(rounds.receive(&endless), Err("no end after 3 messages".to_owned()));
        let ids: Vec<u8> = (0..5).flat_map(|byte| [byte; 32]).collect();
        let list = [&[0x61, 0, 0, 2, 5][..], &ids].concat();
        let mut few = comparison(items(100..101), 4, 3);
        assert_eq!(few.receive(&list), Err("more than 4 ids are missing".to_owned()));
        let broken = comparison(items(0..1), 4, 3).receive(&[0x62]).unwrap_err();
        assert_eq!(broken, "message 1, at byte 0: unsupported version 98");
    }
}
