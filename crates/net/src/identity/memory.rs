//! What is known, for how long, and who is finding it out?
//!
//! Each thing asked for has a [`Slot`]. Whoever finds nothing fresh in it takes its turn; the others
//! wait for theirs and then find the answer. If the first one gives up, the next one asks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::IdentityError;

/// A bounded number of slots by name. The ones that were not asked for go first.
#[derive(Debug)]
pub(super) struct Memory<V> {
    generations: Mutex<Generations<V>>,
    /// The most slots of one generation.
    max_slots: usize,
}

/// When the young are too many they become the old ones, who go, unless they were asked for since.
#[derive(Debug)]
struct Generations<V> {
    young: HashMap<Box<str>, Arc<Slot<V>>>,
    old: HashMap<Box<str>, Arc<Slot<V>>>,
}

/// One thing to know.
#[derive(Debug)]
pub(super) struct Slot<V> {
    known: Mutex<Option<Known<V>>>,
    /// Held by who is asking.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// How often it was said that what is known is no longer true.
    purges: AtomicU64,
    /// What was said so of late.
    recent: Mutex<Recent>,
    /// When an answer was last forced.
    forced: Mutex<Option<Instant>>,
}

/// The purges of a window of time.
#[derive(Debug, Default)]
struct Recent {
    since: Option<Instant>,
    purges: u32,
    /// When a purge will count that was one too many.
    deferred: Option<Instant>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Known<V> {
    pub(super) answer: Result<V, IdentityError>,
    pub(super) fresh_until: Instant,
    /// The slot's `purges` when the question was asked.
    pub(super) purges: u64,
}

impl<V: Clone> Memory<V> {
    /// Room for `capacity` slots.
    pub(super) fn new(capacity: usize) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new() };
        Self { generations: Mutex::new(generations), max_slots: (capacity / 2).max(1) }
    }

    /// The slot of `name`, a new one if there is none.
    pub(super) fn slot(&self, name: &str) -> Arc<Slot<V>> {
        let mut generations = lock(&self.generations);
        if let Some(slot) = generations.young.get(name) {
            return Arc::clone(slot);
        }
        if generations.young.len() >= self.max_slots {
            generations.old = std::mem::take(&mut generations.young);
        }
        let slot = generations.old.remove(name).unwrap_or_default();
        generations.young.insert(name.into(), Arc::clone(&slot));
        slot
    }

    /// The slot of `name` if there is one.
    pub(super) fn existing(&self, name: &str) -> Option<Arc<Slot<V>>> {
        let generations = lock(&self.generations);
        generations.young.get(name).or_else(|| generations.old.get(name)).cloned()
    }

    /// The same, and it was asked for.
    pub(super) fn recalled(&self, name: &str) -> Option<Arc<Slot<V>>> {
        let generations = lock(&self.generations);
        if let Some(slot) = generations.young.get(name) {
            return Some(slot.clone());
        }
        let is_old = generations.old.contains_key(name);
        drop(generations);
        is_old.then(|| self.slot(name))
    }

    /// How many slots there are.
    pub(super) fn len(&self) -> usize {
        let generations = lock(&self.generations);
        generations.young.len() + generations.old.len()
    }
}

impl<V: Clone> Slot<V> {
    /// The answer, if it is known and fresh.
    pub(super) fn fresh(&self) -> Option<Result<V, IdentityError>> {
        if lock(&self.recent).deferred.is_some_and(|due| due <= Instant::now()) {
            return None;
        }
        let known = lock(&self.known);
        let known = known
            .as_ref()
            .filter(|known| Instant::now() < known.fresh_until && known.purges == self.purges());
        known.map(|known| known.answer.clone())
    }

    /// The answer that was known last, if it was no error.
    pub(super) fn last(&self) -> Option<V> {
        lock(&self.known).as_ref().and_then(|known| known.answer.clone().ok())
    }

    pub(super) fn learn(&self, known: Known<V>) {
        *lock(&self.known) = Some(known);
    }

    /// Somebody asks now; gives the number of purges, which the answer will have heard of.
    pub(super) fn begin(&self) -> u64 {
        let mut recent = lock(&self.recent);
        recent.deferred = recent.deferred.filter(|due| *due > Instant::now());
        self.purges()
    }

    fn purges(&self) -> u64 {
        self.purges.load(Ordering::Acquire)
    }

    /// What is known, or just being asked, is no longer fresh.
    pub(super) fn purge(&self) {
        self.purges.fetch_add(1, Ordering::AcqRel);
    }

    /// [`purge`](Self::purge), but only so often in a window of time; what is one too many counts when
    /// the window is over. Whether this one counts at once.
    pub(super) fn purge_at_most(&self, most: u32, window: Duration) -> bool {
        let (mut recent, now) = (lock(&self.recent), Instant::now());
        let since = *recent.since.get_or_insert(now);
        if now.duration_since(since) >= window {
            (recent.since, recent.purges) = (Some(now), 0);
        }
        if recent.purges < most {
            recent.purges += 1;
            self.purge();
            return true;
        }
        recent.deferred = recent.since.map(|since| since + window);
        false
    }

    /// Whether an answer may be forced now, because the last one that was is `window` away.
    pub(super) fn may_force(&self, window: Duration) -> bool {
        let mut forced = lock(&self.forced);
        let now = Instant::now();
        let may = forced.is_none_or(|last| now.duration_since(last) >= window);
        if may {
            *forced = Some(now);
        }
        may
    }
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            purges: AtomicU64::new(0),
            recent: Mutex::default(),
            forced: Mutex::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_slots_is_bounded_and_those_asked_for_stay() {
        let memory = Memory::<u32>::new(10);
        let kept = memory.slot("kept");
        for number in 0..100 {
            memory.slot(&number.to_string());
            assert!(Arc::ptr_eq(&kept, &memory.slot("kept")));
            assert!(memory.len() <= 10);
        }
        assert!(memory.existing("0").is_none());
    }
}
