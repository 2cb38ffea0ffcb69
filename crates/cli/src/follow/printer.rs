//! The handler of `follow`: prints events as lines, which ack the events once they are written.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wireproof::net::firehose::{
    Ack, DeliveredEvent, FlowLimits, Handler, Notice, ResyncError, ResyncedRepo, StopSignal,
};

use super::line;
use super::selection::Selection;
use super::stats::RunStats;
use super::status::Status;
use super::writer::LineSender;

/// Prints the events of a run.
pub(super) struct Printer {
    pub(super) lines: LineSender<Ack>,
    pub(super) selection: Selection,
    pub(super) stats: Arc<RunStats>,
    pub(super) status: Status,
    pub(super) limit: Option<Limit>,
    pub(super) stop: StopSignal,
}

/// How many lines of events there may be.
pub(super) struct Limit {
    lines: u64,
    /// How many events may be under way.
    max_events: u64,
    printed: AtomicU64,
}

/// What a line is to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    /// Whether another event may take the place of its own.
    is_replaced: bool,
    is_last: bool,
}

impl Limit {
    /// So many lines, in a run with these bounds, which are made narrower if there are fewer.
    pub(super) fn new(lines: u64, bounds: &mut FlowLimits) -> Self {
        bounds.max_events = bounds.max_events.min(usize::try_from(lines).unwrap_or(usize::MAX));
        Self { lines, max_events: bounds.max_events as u64, printed: AtomicU64::new(0) }
    }

    /// Takes the turn of a line.
    fn take(&self) -> Turn {
        let printed = self.printed.fetch_add(1, Relaxed) + 1;
        let is_replaced = printed + self.max_events <= self.lines;
        Turn { is_replaced, is_last: printed == self.lines }
    }
}

impl Handler for Printer {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.stats.sample_lag(event.event, event.received);
        let host = self.stats.host(event.host.0);
        self.print(ack, |line| line::write(line, host, event, &self.selection), Self::count);
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        // A resync is no event: the limit does not count it.
        self.print(ack, |line| line::write_resynced(line, resynced, &self.selection), |_, ack| ack);
    }

    fn resync_failed(&self, did: &str, why: &ResyncError) {
        self.status.print_limited(&format!("{did}: the resync failed: {why}"));
    }

    fn notice(&self, notice: &Notice) {
        self.stats.record(notice);
        self.status.notice(&self.stats, notice);
    }
}

impl Printer {
    /// Prints the line of `write` if it writes one, after counting it.
    fn print(
        &self,
        ack: Ack,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
        count: impl FnOnce(&Self, Ack) -> Ack,
    ) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            line.shrink_to(RETAINED_BYTES);
            if !write(line) {
                return ack.done();
            }
            self.lines.push(line, count(self, ack));
            self.stats.lines.fetch_add(1, Relaxed);
        });
    }

    /// MetricsSnapshot the line of an event, and asks to stop if it is the last one.
    fn count(&self, ack: Ack) -> Ack {
        let Some(limit) = &self.limit else { return ack };
        let turn = limit.take();
        if turn.is_last {
            self.stop.request();
        }
        if turn.is_replaced { ack } else { ack.narrowing() }
    }
}

thread_local! {
    /// The line buffer of this thread.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Capacity kept of a long line for the next one, in bytes.
const RETAINED_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(lines: u64, max_events: usize) -> (usize, Vec<(bool, bool)>) {
        let mut bounds = FlowLimits { max_events, ..FlowLimits::default() };
        let limit = Limit::new(lines, &mut bounds);
        let turn = |_| {
            let Turn { is_replaced, is_last } = limit.take();
            (is_replaced, is_last)
        };
        (bounds.max_events, (0..lines).map(turn).collect())
    }

    #[test]
    fn no_more_events_are_under_way_than_lines_are_missing() {
        assert_eq!(turns(1, 100), (1, vec![(false, true)]));
        assert_eq!(turns(2, 100), (2, vec![(false, false), (false, true)]));
        let many = [(true, false), (true, false), (false, false), (false, true)];
        assert_eq!(turns(4, 2), (2, many.to_vec()));
    }
}
