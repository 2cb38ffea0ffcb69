//! What is done with an event? It becomes a line, which acknowledges it when it is out.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use wireproof::net::firehose::{Ack, Delivered, Handler, Notice, ResyncError, Resynced, Stop};

use super::line;
use super::lines::Lines;
use super::selection::Selection;
use super::status::Status;
use super::watch::Watch;

/// Prints what it is given.
pub(super) struct Printer {
    pub(super) lines: Lines<Ack>,
    pub(super) selection: Selection,
    pub(super) watch: Arc<Watch>,
    pub(super) status: Status,
    /// After how many lines to stop.
    pub(super) limit: Option<u64>,
    pub(super) stop: Stop,
}

impl Handler for Printer {
    fn event(&self, event: &Delivered<'_>, ack: Ack) {
        self.watch.see(event.event, event.received);
        let host = self.watch.host(event.host.0);
        self.print(ack, |line| line::write(line, host, event, &self.selection));
    }

    fn resynced(&self, resynced: &Arc<Resynced>, ack: Ack) {
        self.print(ack, |line| line::write_resynced(line, resynced, &self.selection));
    }

    fn not_resynced(&self, did: &str, why: &ResyncError) {
        self.status.say_sometimes(&format!("{did} stays out of step: {why}"));
    }

    fn notice(&self, notice: &Notice) {
        self.watch.note(notice);
        self.status.notice(&self.watch, notice);
    }
}

impl Printer {
    /// Prints the line that `write` makes, if it makes one.
    fn print(&self, ack: Ack, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            line.shrink_to(KEPT_BYTES);
            match write(line) {
                true => self.put(line, ack),
                false => ack.done(),
            }
        });
    }

    fn put(&self, line: &[u8], ack: Ack) {
        self.lines.push(line, ack);
        let count = self.watch.lines.fetch_add(1, Relaxed) + 1;
        if self.limit == Some(count) {
            self.stop.now();
        }
    }
}

thread_local! {
    /// Where this thread makes its lines.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What of a long line's memory is kept for the next one.
const KEPT_BYTES: usize = 1 << 20;
