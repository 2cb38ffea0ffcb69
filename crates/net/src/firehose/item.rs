//! An event on its way from the socket to the handler.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use verify::sync::AccountKey;

use super::acks::Ticket;
use super::arrival::ReceivedFrame;
use super::keys::KeyError;

/// An event under way.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) arrival: ReceivedFrame,
    pub(super) ticket: Ticket,
    /// Whose it is, by number.
    pub(super) account: u64,
    /// What was found out about the account's key since the event came.
    pub(super) answer: Option<Arc<Answer>>,
}

/// What was found out about a key.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) found: Result<AccountKey, KeyError>,
    /// Whether it was asked for because another key had not signed; then it is the last one.
    pub(super) is_last: bool,
}

impl Item {
    /// The reason why its key is not known, if it was asked for.
    pub(super) fn problem(&self) -> Option<&KeyError> {
        self.answer.as_ref()?.found.as_ref().err()
    }

    /// How many bytes it holds.
    pub(super) fn len(&self) -> usize {
        self.arrival.frame.len()
    }
}

/// Whose partition an account is, of so many workers.
pub(super) fn worker_of(account: u64, workers: usize) -> usize {
    (account % workers as u64) as usize
}

/// Gives accounts numbers, from a secret of this run: strangers who choose DIDs choose neither their
/// worker nor whom they partition a number with. Two that do would wait for each other, no more.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(RandomState);

impl Numbers {
    /// The number of an account; one for all events that are nobody's.
    pub(super) fn of(&self, did: Option<&str>) -> u64 {
        did.map_or(0, |did| self.0.hash_one(did))
    }
}
