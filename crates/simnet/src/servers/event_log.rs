//! The event log of one server, with its own sequence numbers, and the positions of its readers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use tokio::sync::watch;

use super::event::{EventSubject, NetworkEvent};
use super::fault::UNPOISONED;
use super::spec::CursorPolicy;
use crate::random::Random;

/// The events of one server.
#[derive(Debug)]
pub(super) struct EventLog {
    state: RwLock<LogState>,
    /// The number of events so far; readers wait for it to grow.
    length: watch::Sender<u64>,
    /// The positions of the readers.
    readers: Mutex<Vec<Weak<AtomicU64>>>,
    max_retained: usize,
}

#[derive(Debug)]
struct LogState {
    retained: VecDeque<LogEntry>,
    /// The number of dropped events.
    dropped: u64,
    /// The last sequence number of the dropped events.
    last_dropped_seq: Option<i64>,
    last_dropped_micros: Option<u64>,
    last_seq: i64,
    last_micros: u64,
    numbering: Numbering,
    sent: Vec<SentEvent>,
}

/// The sequence numbers of a server.
#[derive(Clone, Debug)]
pub(super) enum Numbering {
    /// Consecutive numbers.
    Consecutive,
    /// Numbers with gaps, as from a relay that skips events.
    Gaps(Box<Random>),
    /// One number per Jetstream event.
    PerJetstreamEvent,
}

/// An event with its sequence number.
#[derive(Clone, Debug)]
pub(super) struct LogEntry {
    /// The sequence number; the first if there are several.
    pub(super) seq: i64,
    /// The time of sending in microseconds since 1970, strictly increasing.
    pub(super) micros: u64,
    pub(super) event: Arc<NetworkEvent>,
}

/// The permanent record of an event that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentEvent {
    /// The sequence number on this server; the first if there are several.
    pub seq: i64,
    /// The subject of the event.
    pub subject: EventSubject,
}

/// The start of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At this position.
    At(u64),
    /// At this position; earlier events are no longer retained.
    Outdated(u64),
    /// No start: the cursor is ahead of the stream.
    Future,
}

/// The result of [`EventLog::read`].
#[derive(Debug)]
pub(super) enum ReadResult {
    /// Events, and the position after them.
    Events(Vec<LogEntry>, u64),
    /// No new events.
    Empty,
    /// The next event is no longer retained.
    Dropped,
}

impl EventLog {
    /// An empty log whose first sequence number follows `before`.
    pub(super) fn new(before: i64, numbering: Numbering, max_retained: usize) -> Self {
        let state = LogState {
            retained: VecDeque::new(),
            dropped: 0,
            last_dropped_seq: None,
            last_dropped_micros: None,
            last_seq: before,
            last_micros: 0,
            numbering,
            sent: Vec::new(),
        };
        let (state, length) = (RwLock::new(state), watch::Sender::new(0));
        Self { state, length, readers: Mutex::default(), max_retained: max_retained.max(1) }
    }

    /// Appends an event.
    pub(super) fn append(&self, event: &Arc<NetworkEvent>) {
        let mut state = self.state.write().expect(UNPOISONED);
        let span = state.span(event);
        if span == 0 {
            return;
        }
        let seq = state.last_seq + 1;
        state.last_seq += span;
        state.last_micros = event.micros.max(state.last_micros + 1);
        let entry = LogEntry { seq, micros: state.last_micros, event: event.clone() };
        state.last_micros += span as u64 - 1;
        state.sent.push(SentEvent { seq, subject: event.subject.clone() });
        state.retained.push_back(entry);
        if state.retained.len() > self.max_retained {
            let dropped = state.retained.pop_front().expect("more than zero events");
            state.dropped += 1;
            state.last_dropped_micros = Some(dropped.micros);
            state.last_dropped_seq =
                Some(state.retained.front().map_or(dropped.seq, |next| next.seq - 1));
        }
        let count = state.count();
        drop(state);
        self.length.send_replace(count);
    }

    /// Numbers the next event with `seq`. A number that was given before begins the sequence again: earlier events are forgotten.
    pub(super) fn renumber(&self, seq: i64) {
        let mut state = self.state.write().expect(UNPOISONED);
        if seq <= state.last_seq {
            state.dropped = state.count();
            state.retained.clear();
            (state.last_dropped_seq, state.last_dropped_micros) = (None, None);
        }
        state.last_seq = seq - 1;
    }

    /// The start of a reader with this cursor.
    pub(super) fn start(&self, cursor: Option<i64>, policy: CursorPolicy) -> Start {
        let state = self.state.read().expect(UNPOISONED);
        let Some(cursor) = cursor else { return Start::At(state.count()) };
        if cursor > state.last_seq {
            return if policy.rejects_future_cursor {
                Start::Future
            } else {
                Start::At(state.count())
            };
        }
        let first = cursor.saturating_add(i64::from(!policy.inclusive));
        let is_outdated =
            cursor > 0 && state.last_dropped_seq.is_some_and(|dropped| first <= dropped);
        if is_outdated && policy.reports_outdated_cursor {
            Start::Outdated(state.dropped)
        } else {
            Start::At(state.position_of_seq(first))
        }
    }

    /// The position of the first event that ends at this sequence number or later.
    pub(super) fn position_of_seq(&self, seq: i64) -> u64 {
        self.state.read().expect(UNPOISONED).position_of_seq(seq)
    }

    /// The position of the first event sent at this microsecond or later.
    pub(super) fn position_of_micros(&self, micros: u64) -> u64 {
        let state = self.state.read().expect(UNPOISONED);
        state.dropped + state.retained.partition_point(|entry| entry.micros < micros) as u64
    }

    /// Whether an event sent at this microsecond or later is no longer retained.
    pub(super) fn has_dropped_since(&self, micros: u64) -> bool {
        self.state
            .read()
            .expect(UNPOISONED)
            .last_dropped_micros
            .is_some_and(|dropped| dropped >= micros)
    }

    /// Up to `max` events from `position` on.
    pub(super) fn read(&self, position: u64, max: usize) -> ReadResult {
        let state = self.state.read().expect(UNPOISONED);
        let Some(offset) = position.checked_sub(state.dropped) else { return ReadResult::Dropped };
        let events: Vec<LogEntry> =
            state.retained.iter().skip(offset as usize).take(max).cloned().collect();
        match events.len() {
            0 => ReadResult::Empty,
            len => ReadResult::Events(events, position + len as u64),
        }
    }

    /// The number of events so far.
    pub(super) fn count(&self) -> u64 {
        *self.length.borrow()
    }

    /// The last sequence number.
    pub(super) fn last_seq(&self) -> i64 {
        self.state.read().expect(UNPOISONED).last_seq
    }

    /// The first retained sequence number, or the next one if there is none.
    pub(super) fn first_seq(&self) -> i64 {
        let state = self.state.read().expect(UNPOISONED);
        state.retained.front().map_or(state.last_seq + 1, |entry| entry.seq)
    }

    /// All events since the start.
    pub(super) fn sent(&self) -> Vec<SentEvent> {
        self.state.read().expect(UNPOISONED).sent.clone()
    }

    /// A channel that signals new events.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.length.subscribe()
    }

    /// Registers a reader at this position.
    pub(super) fn register_reader(&self, position: u64) -> LogReader {
        let reader = LogReader(Arc::new(AtomicU64::new(position)));
        let mut readers = self.readers.lock().expect(UNPOISONED);
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(&reader.0));
        reader
    }

    /// The numbers of events not yet sent, by reader.
    pub(super) fn backlogs(&self) -> Vec<u64> {
        let count = self.count();
        let readers = self.readers.lock().expect(UNPOISONED);
        let positions = readers.iter().filter_map(Weak::upgrade);
        positions.map(|position| count.saturating_sub(position.load(Ordering::Relaxed))).collect()
    }
}

/// The position of a reader, which the log lists until this value is dropped.
pub(super) struct LogReader(Arc<AtomicU64>);

impl LogReader {
    /// The position of the next event.
    pub(super) fn position(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the position of the next event.
    pub(super) fn advance_to(&self, position: u64) {
        self.0.store(position, Ordering::Relaxed);
    }
}

impl LogState {
    fn count(&self) -> u64 {
        self.dropped + self.retained.len() as u64
    }

    fn position_of_seq(&self, seq: i64) -> u64 {
        let next = self.retained.partition_point(|entry| entry.seq < seq);
        // The previous event may span several numbers.
        let spans = |entry: &LogEntry| match self.numbering {
            Numbering::PerJetstreamEvent => {
                entry.seq + i64::from(entry.event.subject.jetstream_events) > seq
            }
            _ => false,
        };
        let is_inside = next.checked_sub(1).is_some_and(|before| spans(&self.retained[before]));
        self.dropped + (next - usize::from(is_inside)) as u64
    }

    fn span(&mut self, event: &NetworkEvent) -> i64 {
        match &mut self.numbering {
            Numbering::Consecutive => 1,
            Numbering::Gaps(random) => {
                self.last_seq += random.below(3) as i64;
                1
            }
            Numbering::PerJetstreamEvent => i64::from(event.subject.jetstream_events),
        }
    }
}
