//! Marks of lines that an earlier run may have printed already.
//!
//! Before an event is printed, the state file has a sequence number of its stream that is not lower: the last
//! printed one, or one reserved in advance. So after any end of a run, the next one can mark every event that
//! the output may have had. After an orderly end, no event is marked; after a reader that ended, the events that are
//! printed again; after a crash, up to [`RESERVED`] numbers more, and twice the numbers between two checkpoints.
//!
//! A worker waits for the state file where nothing is reserved, as for the first event. Every checkpoint reserves
//! enough for the time until the next.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use net::firehose::Notice;
use store::{Store, StoreError};

/// The marks of all streams of a run.
#[derive(Debug)]
pub(super) struct RepetitionMarks {
    store: Store,
    streams: Vec<StreamMarks>,
}

#[derive(Debug)]
struct StreamMarks {
    name: String,
    /// The last sequence number that an earlier run may have printed.
    earlier: AtomicU64,
    /// The last sequence number that this run has printed.
    printed: AtomicU64,
    /// The last one at the last checkpoint.
    checkpointed: AtomicU64,
    /// The sequence number in the state file; 0 if there is none.
    stored: AtomicU64,
    /// Held while the number in the state file is raised.
    raising: Mutex<()>,
}

impl RepetitionMarks {
    /// The marks of the streams with these names, in the order of the hosts.
    ///
    /// # Errors
    /// If the state file cannot be read.
    pub(super) fn load(
        store: Store,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, StoreError> {
        let load = |name: String| {
            let stored = store.printed(&name)?.unwrap_or(0);
            Ok(StreamMarks {
                name,
                earlier: stored.into(),
                printed: AtomicU64::new(0),
                checkpointed: AtomicU64::new(0),
                stored: stored.into(),
                raising: Mutex::new(()),
            })
        };
        let streams = names.into_iter().map(load).collect::<Result<_, StoreError>>()?;
        Ok(Self { store, streams })
    }

    /// Whether an earlier run may have printed the event. From now on it counts as printed.
    ///
    /// # Errors
    /// If the state file cannot be written.
    pub(super) fn is_repeated(&self, host: usize, seq: u64) -> Result<bool, StoreError> {
        let Some(stream) = self.streams.get(host) else { return Ok(false) };
        // Other workers print later events: most need no write, which would take the line from their caches.
        if seq > stream.printed.load(Relaxed) {
            stream.printed.fetch_max(seq, Relaxed);
        }
        if seq > stream.stored.load(Relaxed) {
            stream.raise(&self.store, seq)?;
        }
        Ok(seq <= stream.earlier.load(Relaxed))
    }

    /// Reserves the numbers until the next checkpoint, so that no worker waits for the state file.
    ///
    /// # Errors
    /// If the state file cannot be written.
    pub(super) fn reserve(&self) -> Result<(), StoreError> {
        self.streams.iter().try_for_each(|stream| stream.reserve(&self.store))
    }

    /// Voids the marks of a host that has reset its sequence.
    pub(super) fn notice(&self, notice: &Notice) {
        if notice.is_reset()
            && let Some(stream) = self.streams.get(notice.host().0)
        {
            let _guard = stream.raising.lock().unwrap_or_else(PoisonError::into_inner);
            let seqs = [&stream.earlier, &stream.printed, &stream.checkpointed, &stream.stored];
            seqs.iter().for_each(|seq| seq.store(0, Relaxed));
        }
    }

    /// Stores the printed position, at the end of a run that did not crash.
    ///
    /// # Errors
    /// If the state file cannot be written.
    pub(super) fn finish(&self) -> Result<(), StoreError> {
        for stream in &self.streams {
            let [earlier, printed, stored] =
                [&stream.earlier, &stream.printed, &stream.stored].map(|seq| seq.load(Relaxed));
            let last = earlier.max(printed);
            if last != stored {
                self.store.set_printed(&stream.name, last)?;
            }
        }
        Ok(())
    }
}

impl StreamMarks {
    /// Reserves twice as many numbers as were printed since the last call.
    fn reserve(&self, store: &Store) -> Result<(), StoreError> {
        let printed = self.printed.load(Relaxed);
        let before = self.checkpointed.swap(printed, Relaxed);
        // The first number of a stream says nothing of its rate.
        if before == 0 {
            return Ok(());
        }
        let until = printed.saturating_add(printed.saturating_sub(before).saturating_mul(2));
        if until > self.stored.load(Relaxed) { self.raise(store, until) } else { Ok(()) }
    }

    /// Raises the stored number above `seq`, in advance of the events after it.
    #[cold]
    fn raise(&self, store: &Store, seq: u64) -> Result<(), StoreError> {
        let _guard = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        if seq > self.stored.load(Relaxed) {
            let reserved = seq.saturating_add(RESERVED);
            store.set_printed(&self.name, reserved)?;
            self.stored.store(reserved, Relaxed);
        }
        Ok(())
    }
}

/// Sequence numbers that are reserved at a time, at least: one write for as many events.
const RESERVED: u64 = 10_000;

#[cfg(test)]
mod tests {
    use net::hosts::HostId;
    use store::Options;

    use super::*;

    fn marks(dir: &tempfile::TempDir) -> RepetitionMarks {
        let store = Store::open(&dir.path().join("state.sqlite"), Options::default()).unwrap();
        RepetitionMarks::load(store, ["a".to_owned(), "b".to_owned()]).unwrap()
    }

    #[test]
    fn after_an_end_in_order_the_printed_events_are_marked_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let first = marks(&dir);
        assert!([7, 9, 8].map(|seq| first.is_repeated(0, seq).unwrap()) == [false; 3]);
        first.finish().unwrap();
        drop(first);
        let second = marks(&dir);
        assert!([8, 9, 10].map(|seq| second.is_repeated(0, seq).unwrap()) == [true, true, false]);
        assert!(!second.is_repeated(1, 1).unwrap(), "another stream");
    }

    #[test]
    fn after_a_crash_at_least_the_printed_events_are_marked() {
        let dir = tempfile::tempdir().unwrap();
        let (first, last) = (marks(&dir), 3 * RESERVED);
        (1..=last).for_each(|seq| assert!(!first.is_repeated(0, seq).unwrap()));
        drop(first);
        let second = marks(&dir);
        assert!((1..=last).all(|seq| second.is_repeated(0, seq).unwrap()));
        assert!(!second.is_repeated(0, last + RESERVED + 1).unwrap());
    }

    #[test]
    fn a_checkpoint_reserves_the_numbers_until_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let marks = marks(&dir);
        let print = |seq| assert!(!marks.is_repeated(0, seq).unwrap());
        let stored = || marks.streams[0].stored.load(Relaxed);
        print(1);
        marks.reserve().unwrap();
        assert_eq!(stored(), 1 + RESERVED, "nothing is known of the rate");
        print(RESERVED);
        marks.reserve().unwrap();
        let until = RESERVED + 2 * (RESERVED - 1) + RESERVED;
        assert_eq!((stored(), marks.store.printed("a")), (until, Ok(Some(until))));
        (2..until).step_by(100).for_each(print);
        assert_eq!(stored(), until, "no worker has written");
        print(until + 1);
        assert_eq!(stored(), until + 1 + RESERVED);
    }

    #[test]
    fn a_slow_stream_reserves_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        let marks = marks(&dir);
        for seq in 1..100 {
            assert!(!marks.is_repeated(0, seq).unwrap());
            marks.reserve().unwrap();
        }
        assert_eq!(marks.store.printed("a"), Ok(Some(1 + RESERVED)));
    }

    #[test]
    fn a_reset_sequence_is_not_marked() {
        let dir = tempfile::tempdir().unwrap();
        let first = marks(&dir);
        assert!(!first.is_repeated(0, 1_000_000).unwrap());
        drop(first);
        let second = marks(&dir);
        second.notice(&Notice::SequenceReset { host: HostId(0), after: 1_000_000, seq: 5 });
        assert!(!second.is_repeated(0, 5).unwrap());
        second.finish().unwrap();
        drop(second);
        assert!(!marks(&dir).is_repeated(0, 6).unwrap());
    }
}
