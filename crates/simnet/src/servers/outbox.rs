//! What one server has told, by its own sequence numbers, and where in that a reader is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use tokio::sync::watch;

use super::fault::UNPOISONED;
use super::spec::CursorPolicy;
use super::told::{EventSubject, Told};
use crate::random::Random;

/// The events of one server.
#[derive(Debug)]
pub(super) struct Outbox {
    log: RwLock<Log>,
    /// How many events there have been: readers wait for it to grow.
    grown: watch::Sender<u64>,
    /// How far each reader is.
    readers: Mutex<Vec<Weak<AtomicU64>>>,
    window: usize,
}

#[derive(Debug)]
struct Log {
    kept: VecDeque<Entry>,
    /// How many events have been let go.
    gone: u64,
    /// The last sequence number of those.
    gone_seq: Option<i64>,
    gone_micros: Option<u64>,
    last_seq: i64,
    last_micros: u64,
    numbering: Numbering,
    ledger: Vec<SentEvent>,
}

/// How a server counts.
#[derive(Clone, Debug)]
pub(super) enum Numbering {
    /// One by one.
    Even,
    /// With gaps, as a relay that leaves events out.
    Gaps(Box<Random>),
    /// As many as a Jetstream makes of an event.
    Postings,
}

/// An event in its place.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The sequence number; of several, the first.
    pub(super) seq: i64,
    /// When this server told it: never the same microsecond twice.
    pub(super) micros: u64,
    pub(super) told: Arc<Told>,
}

/// That an event was told, and as what: all that is kept of it for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentEvent {
    /// The sequence number on this server; of several, the first.
    pub seq: i64,
    /// What it was about.
    pub subject: EventSubject,
}

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At this place.
    At(u64),
    /// At this place, and what lies before it is no longer kept.
    Outdated(u64),
    /// Nowhere: the cursor is ahead of the stream.
    Future,
}

/// What a reader gets.
#[derive(Debug)]
pub(super) enum Read {
    /// These events, up to this place.
    Events(Vec<Entry>, u64),
    /// There is nothing yet.
    Nothing,
    /// The reader is so far behind that what it needs is no longer kept.
    Gone,
}

impl Outbox {
    /// An empty one whose first sequence number follows `before`.
    pub(super) fn new(before: i64, numbering: Numbering, window: usize) -> Self {
        let log = Log {
            kept: VecDeque::new(),
            gone: 0,
            gone_seq: None,
            gone_micros: None,
            last_seq: before,
            last_micros: 0,
            numbering,
            ledger: Vec::new(),
        };
        let (log, grown) = (RwLock::new(log), watch::Sender::new(0));
        Self { log, grown, readers: Mutex::default(), window: window.max(1) }
    }

    /// Tells an event.
    pub(super) fn append(&self, told: &Arc<Told>) {
        let mut log = self.log.write().expect(UNPOISONED);
        let span = log.span(told);
        if span == 0 {
            return;
        }
        let seq = log.last_seq + 1;
        log.last_seq += span;
        log.last_micros = told.micros.max(log.last_micros + 1);
        let entry = Entry { seq, micros: log.last_micros, told: told.clone() };
        log.last_micros += span as u64 - 1;
        log.ledger.push(SentEvent { seq, subject: told.subject.clone() });
        log.kept.push_back(entry);
        if log.kept.len() > self.window {
            let gone = log.kept.pop_front().expect("more than none");
            log.gone += 1;
            log.gone_micros = Some(gone.micros);
            log.gone_seq = Some(log.kept.front().map_or(gone.seq, |next| next.seq - 1));
        }
        let count = log.count();
        drop(log);
        self.grown.send_replace(count);
    }

    /// Where a reader with this cursor begins.
    pub(super) fn start(&self, cursor: Option<i64>, manners: CursorPolicy) -> Start {
        let log = self.log.read().expect(UNPOISONED);
        let Some(cursor) = cursor else { return Start::At(log.count()) };
        if cursor > log.last_seq {
            return if manners.rejects_future_cursor {
                Start::Future
            } else {
                Start::At(log.count())
            };
        }
        let first = cursor.saturating_add(i64::from(!manners.inclusive));
        let is_outdated = cursor > 0 && log.gone_seq.is_some_and(|gone| first <= gone);
        match is_outdated && manners.reports_outdated_cursor {
            true => Start::Outdated(log.gone),
            false => Start::At(log.place_of_seq(first)),
        }
    }

    /// The place of the first event that ends at this sequence number or later.
    pub(super) fn place_of_seq(&self, seq: i64) -> u64 {
        self.log.read().expect(UNPOISONED).place_of_seq(seq)
    }

    /// The place of the first event that was told at this microsecond or later.
    pub(super) fn place_of_micros(&self, micros: u64) -> u64 {
        let log = self.log.read().expect(UNPOISONED);
        log.gone + log.kept.partition_point(|entry| entry.micros < micros) as u64
    }

    /// Whether something that was told at this microsecond or later is no longer kept.
    pub(super) fn has_lost_since(&self, micros: u64) -> bool {
        self.log.read().expect(UNPOISONED).gone_micros.is_some_and(|gone| gone >= micros)
    }

    /// Up to `most` events from a place on.
    pub(super) fn read(&self, place: u64, most: usize) -> Read {
        let log = self.log.read().expect(UNPOISONED);
        let Some(offset) = place.checked_sub(log.gone) else { return Read::Gone };
        let events: Vec<Entry> =
            log.kept.iter().skip(offset as usize).take(most).cloned().collect();
        match events.len() {
            0 => Read::Nothing,
            len => Read::Events(events, place + len as u64),
        }
    }

    /// How many events there have been.
    pub(super) fn count(&self) -> u64 {
        *self.grown.borrow()
    }

    /// The last sequence number.
    pub(super) fn last_seq(&self) -> i64 {
        self.log.read().expect(UNPOISONED).last_seq
    }

    /// The first sequence number that is kept, or else the next one.
    pub(super) fn first_seq(&self) -> i64 {
        let log = self.log.read().expect(UNPOISONED);
        log.kept.front().map_or(log.last_seq + 1, |entry| entry.seq)
    }

    /// What has been told from the start on.
    pub(super) fn ledger(&self) -> Vec<SentEvent> {
        self.log.read().expect(UNPOISONED).ledger.clone()
    }

    /// Waits for events.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    /// Enters a reader, who says from time to time how far it is. Dropping it signs it off.
    pub(super) fn enter(&self, place: u64) -> Arc<AtomicU64> {
        let reader = Arc::new(AtomicU64::new(place));
        let mut readers = self.readers.lock().expect(UNPOISONED);
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(&reader));
        reader
    }

    /// How many events each reader has yet to be sent.
    pub(super) fn backlogs(&self) -> Vec<u64> {
        let count = self.count();
        let readers = self.readers.lock().expect(UNPOISONED);
        let places = readers.iter().filter_map(Weak::upgrade);
        places.map(|place| count.saturating_sub(place.load(Ordering::Relaxed))).collect()
    }
}

impl Log {
    fn count(&self) -> u64 {
        self.gone + self.kept.len() as u64
    }

    fn place_of_seq(&self, seq: i64) -> u64 {
        let next = self.kept.partition_point(|entry| entry.seq < seq);
        // The one before may span several numbers.
        let spans = |entry: &Entry| match self.numbering {
            Numbering::Postings => entry.seq + i64::from(entry.told.subject.jetstream_events) > seq,
            _ => false,
        };
        let is_inside = next.checked_sub(1).is_some_and(|before| spans(&self.kept[before]));
        self.gone + (next - usize::from(is_inside)) as u64
    }

    fn span(&mut self, told: &Told) -> i64 {
        match &mut self.numbering {
            Numbering::Even => 1,
            Numbering::Gaps(random) => {
                self.last_seq += random.below(3) as i64;
                1
            }
            Numbering::Postings => i64::from(told.subject.jetstream_events),
        }
    }
}
