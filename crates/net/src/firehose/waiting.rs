//! Which accounts wait, and what has come of them since? Others are not held up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::item::Item;
use super::options;

/// The accounts of a worker that wait, each with its events in order.
#[derive(Debug)]
pub(super) struct Waiting {
    limits: ParkedLimits,
    queues: HashMap<u64, Queue>,
    /// What waits for repositories.
    held: Weight,
    /// What waits for keys.
    parked: Weight,
    /// How many of `queues` wait for keys.
    key_count: usize,
}

/// How much may wait. What waits for a key is bounded in total by the room of all events.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParkedLimits {
    /// Of one account.
    pub(super) account: Weight,
    /// Of all accounts that wait for their repositories.
    pub(super) held: Weight,
}

/// So many events, and bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// What an account waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Key,
    Repository,
}

#[derive(Debug)]
struct Queue {
    cause: For,
    since: Instant,
    items: Vec<Item>,
    weight: Weight,
}

impl ParkedLimits {
    /// The part of one worker.
    pub(super) fn of(bounds: &options::FlowLimits, workers: usize) -> Self {
        let part = |all: usize| all / workers.max(1);
        Self {
            account: Weight { events: bounds.max_account_events, bytes: bounds.max_account_bytes },
            held: Weight {
                events: part(bounds.max_held_events),
                bytes: part(bounds.max_held_bytes),
            },
        }
    }
}

impl Waiting {
    pub(super) fn new(limits: ParkedLimits) -> Self {
        let (queues, held, parked, key_count) = Default::default();
        Self { limits, queues, held, parked, key_count }
    }

    /// What an account waits for, if it does.
    pub(super) fn cause(&self, account: u64) -> Option<For> {
        // Nearly always nobody waits.
        if self.queues.is_empty() { None } else { Some(self.queues.get(&account)?.cause) }
    }

    /// The account waits from now on; if it does already, then for what it waits for.
    pub(super) fn begin(&mut self, account: u64, cause: For, now: Instant) {
        if let Entry::Vacant(place) = self.queues.entry(account) {
            let (items, weight) = Default::default();
            place.insert(Queue { cause, since: now, items, weight });
            self.key_count += usize::from(cause == For::Key);
        }
    }

    /// Another event of an account that waits. Whether that is now more than may wait.
    pub(super) fn push(&mut self, mut item: Item) -> bool {
        let Some(queue) = self.queues.get_mut(&item.account) else { return false };
        // What waits must not keep the whole buffer that it came in.
        item.arrival.frame = Bytes::copy_from_slice(&item.arrival.frame);
        let weight = Weight { events: 1, bytes: item.len() };
        queue.items.push(item);
        queue.weight.add(weight);
        let is_too_much = self.limits.account.is_below(queue.weight);
        match queue.cause {
            For::Key => {
                self.parked.add(weight);
                is_too_much
            }
            For::Repository => {
                self.held.add(weight);
                is_too_much || self.limits.held.is_below(self.held)
            }
        }
    }

    /// The account waits no more; its events, in order.
    pub(super) fn end(&mut self, account: u64) -> Vec<Item> {
        let Some(queue) = self.queues.remove(&account) else { return Vec::new() };
        match queue.cause {
            For::Key => {
                self.parked.subtract(queue.weight);
                self.key_count -= 1;
            }
            For::Repository => self.held.subtract(queue.weight),
        }
        queue.items
    }

    /// The accounts that have waited for their repositories for `most` or longer.
    pub(super) fn overdue(&self, most: Duration, now: Instant) -> Vec<u64> {
        let is_overdue = |queue: &Queue| {
            queue.cause == For::Repository && now.saturating_duration_since(queue.since) >= most
        };
        let overdue = self.queues.iter().filter(|(_, queue)| is_overdue(queue));
        overdue.map(|(account, _)| *account).collect()
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        self.parked.events + self.held.events
    }

    /// What waits for keys, and what waits for repositories.
    pub(super) fn weights(&self) -> (Weight, Weight) {
        (self.parked, self.held)
    }

    /// The accounts that wait for this.
    pub(super) fn accounts(&self, cause: For) -> Vec<u64> {
        let waits = |(_, queue): &(&u64, &Queue)| queue.cause == cause;
        self.queues.iter().filter(waits).map(|(account, _)| *account).collect()
    }

    /// How many accounts wait for this.
    pub(super) fn count(&self, cause: For) -> usize {
        match cause {
            For::Key => self.key_count,
            For::Repository => self.queues.len() - self.key_count,
        }
    }
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }

    fn subtract(&mut self, other: Self) {
        self.events -= other.events;
        self.bytes -= other.bytes;
    }

    /// Whether `other` is more, in either respect.
    fn is_below(self, other: Self) -> bool {
        other.events > self.events || other.bytes > self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::acks::AckTracker;
    use super::super::arrival::ReceivedFrame;
    use super::*;
    use crate::hosts::HostId;

    const LONG: Duration = Duration::from_secs(60);

    fn waiting() -> Waiting {
        let (account, held) =
            (Weight { events: 3, bytes: 100 }, Weight { events: 5, bytes: 1_000 });
        Waiting::new(ParkedLimits { account, held })
    }

    fn item(account: u64, seq: u64, len: usize) -> Item {
        let mut acks = AckTracker::new([None]);
        let ticket = acks.begin(HostId(0), Some(seq));
        let mut arrival =
            ReceivedFrame::new(HostId(0), vec![0; len].into(), SystemTime::UNIX_EPOCH);
        arrival.seq = Some(seq);
        Item { arrival, ticket, account, answer: None }
    }

    fn seqs(items: Vec<Item>) -> Vec<u64> {
        items.into_iter().filter_map(|item| item.arrival.seq).collect()
    }

    #[test]
    fn what_waits_comes_back_in_order_and_once() {
        let (mut waiting, now) = (waiting(), Instant::now());
        waiting.begin(1, For::Key, now);
        waiting.begin(2, For::Repository, now);
        for (account, seq) in [(1, 10), (2, 11), (1, 12)] {
            assert!(!waiting.push(item(account, seq, 1)));
        }
        assert_eq!((waiting.len(), waiting.cause(1), waiting.cause(3)), (3, Some(For::Key), None));
        assert_eq!((seqs(waiting.end(1)), seqs(waiting.end(1))), (vec![10, 12], vec![]));
        assert_eq!((waiting.count(For::Key), waiting.count(For::Repository)), (0, 1));
        assert_eq!(waiting.weights(), (Weight::default(), Weight { events: 1, bytes: 1 }));
    }

    #[test]
    fn who_waits_goes_on_waiting_for_the_same() {
        let (mut waiting, now) = (waiting(), Instant::now());
        waiting.begin(1, For::Key, now);
        waiting.begin(1, For::Repository, now);
        assert_eq!((waiting.cause(1), waiting.count(For::Key)), (Some(For::Key), 1));
    }

    #[test]
    fn an_account_with_too_many_events_or_bytes_is_told_of() {
        let (mut waiting, now) = (waiting(), Instant::now());
        (1..=2).for_each(|account| waiting.begin(account, For::Key, now));
        let many: Vec<bool> = (0..4).map(|seq| waiting.push(item(1, seq, 1))).collect();
        assert_eq!(many, [false, false, false, true]);
        assert!(!waiting.push(item(2, 9, 100)) && waiting.push(item(2, 10, 1)));
    }

    #[test]
    fn what_waits_for_repositories_is_bounded_together() {
        let (mut waiting, now) = (waiting(), Instant::now());
        (1..=3).for_each(|account| waiting.begin(account, For::Repository, now));
        let pushed = [1, 1, 2, 2, 3, 3].map(|account| waiting.push(item(account, 1, 1)));
        assert_eq!(pushed, [false, false, false, false, false, true]);
    }

    #[test]
    fn only_who_waits_for_a_repository_is_overdue() {
        let (mut waiting, now) = (waiting(), Instant::now());
        waiting.begin(1, For::Key, now);
        waiting.begin(2, For::Repository, now);
        waiting.begin(3, For::Repository, now + LONG);
        assert!(waiting.overdue(LONG, now + LONG / 2).is_empty());
        assert_eq!(waiting.overdue(LONG, now + LONG), [2]);
    }

    #[test]
    fn what_waits_has_its_own_bytes() {
        let (mut waiting, mut long) = (waiting(), item(1, 1, 100));
        let whole = long.arrival.frame.clone();
        long.arrival.frame = whole.slice(10..20);
        waiting.begin(1, For::Key, Instant::now());
        waiting.push(long);
        let kept = waiting.end(1).remove(0).arrival.frame;
        assert_eq!(kept.len(), 10);
        assert!(!whole.as_ptr_range().contains(&kept.as_ptr()));
    }
}
