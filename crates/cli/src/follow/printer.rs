//! The handler of `follow`: prints events as lines, which ack the events once they are written.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use wireproof::net::firehose::{Ack, DeliveredEvent, Handler, Notice, ResyncError, ResyncedRepo};

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
}

impl Handler for Printer {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.stats.sample_lag(event.event, event.received);
        let host = self.stats.host(event.host.0);
        self.print(ack, |line| line::write(line, host, event, &self.selection));
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        self.print(ack, |line| line::write_resynced(line, resynced, &self.selection));
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
    /// Prints the line of `write` if it writes one; other events do not count towards `--events`.
    fn print(&self, ack: Ack, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            line.shrink_to(RETAINED_BYTES);
            if !write(line) {
                return ack.skip();
            }
            self.lines.push(line, ack);
            self.stats.lines.fetch_add(1, Relaxed);
        });
    }
}

thread_local! {
    /// The line buffer of this thread.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Capacity kept of a long line for the next one, in bytes.
const RETAINED_BYTES: usize = 1 << 20;
