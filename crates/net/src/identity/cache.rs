//! The cache of a resolver: answers with their freshness, and one lookup at a time per name.
//!
//! Every name has a [`Slot`]. A caller that finds no fresh answer locks it and looks up; others wait for
//! the lock and then find the answer. If the first one is cancelled, the next one looks up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::IdentityError;
use crate::bounded_map::BoundedMap;

/// Slots by name, of a bounded number.
#[derive(Debug)]
pub(super) struct Cache<V>(Mutex<BoundedMap<Box<str>, Arc<Slot<V>>>>);

/// The answer of one name.
#[derive(Debug)]
pub(super) struct Slot<V> {
    known: Mutex<Option<CachedAnswer<V>>>,
    /// Held during a lookup.
    pub(super) lookup: tokio::sync::Mutex<()>,
    /// Number of purges.
    purges: AtomicU64,
    recent: Mutex<RecentPurges>,
    /// The time of the last forced lookup.
    forced: Mutex<Option<Instant>>,
}

/// The purges within a window of time.
#[derive(Debug, Default)]
struct RecentPurges {
    since: Option<Instant>,
    purges: u32,
    /// When a deferred purge takes effect.
    deferred: Option<Instant>,
}

/// A cached answer.
#[derive(Clone, Debug)]
pub(super) struct CachedAnswer<V> {
    pub(super) answer: Result<V, IdentityError>,
    pub(super) fresh_until: Instant,
    /// The slot's purges when the lookup started.
    pub(super) purges: u64,
}

impl<V> Cache<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self(Mutex::new(BoundedMap::new(capacity)))
    }

    /// The slot of `name`, a new one if there is none.
    pub(super) fn slot(&self, name: &str) -> Arc<Slot<V>> {
        let mut slots = lock(&self.0);
        if let Some(slot) = slots.get_mut(name) {
            return Arc::clone(slot);
        }
        let slot = Arc::<Slot<V>>::default();
        slots.insert(name.into(), Arc::clone(&slot));
        slot
    }

    /// The slot of `name` if there is one, which does not count as used.
    pub(super) fn peek(&self, name: &str) -> Option<Arc<Slot<V>>> {
        lock(&self.0).peek(name).cloned()
    }

    /// The slot of `name` if there is one, which counts as used.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Slot<V>>> {
        lock(&self.0).get_mut(name).map(|slot| slot.clone())
    }

    /// The number of slots.
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

impl<V: Clone> Slot<V> {
    /// The answer, if it is fresh.
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

    /// The last answer, fresh or not, unless it is an error.
    pub(super) fn last(&self) -> Option<V> {
        lock(&self.known).as_ref().and_then(|known| known.answer.clone().ok())
    }

    /// The last answer if it may be used in an outage: it is not an error, and was not purged since.
    pub(super) fn usable_in_outage(&self) -> Option<V> {
        let known = lock(&self.known);
        let known = known.as_ref().filter(|known| known.purges == self.purges());
        known.and_then(|known| known.answer.clone().ok())
    }

    pub(super) fn store(&self, known: CachedAnswer<V>) {
        *lock(&self.known) = Some(known);
    }

    /// Starts a lookup; returns the number of purges, for the answer. A deferred purge that is due is made.
    pub(super) fn start_lookup(&self) -> u64 {
        let mut recent = lock(&self.recent);
        if recent.deferred.take_if(|due| *due <= Instant::now()).is_some() {
            self.purge();
        }
        self.purges()
    }

    fn purges(&self) -> u64 {
        self.purges.load(Ordering::Acquire)
    }

    /// Makes the answer stale, including the answer of a running lookup.
    pub(super) fn purge(&self) {
        self.purges.fetch_add(1, Ordering::AcqRel);
    }

    /// Like [`purge`](Self::purge), at most `max` times within `window`; a purge beyond takes effect at the
    /// end of the window. Whether it took effect at once.
    pub(super) fn purge_at_most(&self, max: u32, window: Duration) -> bool {
        let (mut recent, now) = (lock(&self.recent), Instant::now());
        let since = *recent.since.get_or_insert(now);
        if now.duration_since(since) >= window {
            (recent.since, recent.purges) = (Some(now), 0);
        }
        if recent.purges < max {
            recent.purges += 1;
            self.purge();
            return true;
        }
        recent.deferred = recent.since.map(|since| since + window);
        false
    }

    /// Whether a lookup may be forced now: the last one was at least `window` ago.
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
            lookup: tokio::sync::Mutex::default(),
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
    fn the_number_of_slots_is_bounded_and_used_ones_stay() {
        let cache = Cache::<u32>::new(10);
        let kept = cache.slot("kept");
        for number in 0..100 {
            cache.slot(&number.to_string());
            assert!(Arc::ptr_eq(&kept, &cache.slot("kept")));
            assert!(cache.len() <= 10);
        }
        assert!(cache.peek("0").is_none());
    }
}
