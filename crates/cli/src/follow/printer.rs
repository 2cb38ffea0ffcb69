//! The handler of `follow`: prints events as lines, which ack the events once they are written.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mapping::MappedFile;
use wireproof::atproto::repo::Repository;
use wireproof::codec::car;
use wireproof::net::firehose::{
    Ack, DeliveredEvent, Handler, Notice, ResyncError, ResyncedRepo, Verdict, Warning,
};
use wireproof::store::crash_point;
use wireproof::verify::sync::{Chain, Outcome};

use super::line::{self, ResyncLines};
use super::repetition_marks::RepetitionMarks;
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
    pub(super) marks: Arc<RepetitionMarks>,
}

impl Handler for Printer {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.stats.sample_lag(event.event, event.received);
        let host = self.stats.host(event.host.0);
        if self.selection.has_account(event.did) {
            self.warn_of(host, event);
        }
        let is_repeated = self.is_repeated(event);
        self.print(ack, |line| line::write(line, host, event, &self.selection, is_repeated));
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        if !self.selection.has_account(Some(&resynced.did)) {
            return ack.skip();
        }
        // A dropped acknowledgement ends the run: without these lines the account would miss records.
        if let Err(error) = self.print_records(resynced, ack) {
            let did = &resynced.did;
            self.status.warn("resync-unreadable", || {
                format!("{did}: cannot read the fetched repository: {error}")
            });
        }
    }

    fn resync_failed(&self, did: &str, why: &ResyncError) {
        self.status.warn("resync-failed", || format!("{did}: the resync failed: {why}"));
    }

    fn warning(&self, warning: &Warning<'_>) {
        self.status.warn(warning.code(), || warning.to_string());
    }

    fn notice(&self, notice: &Notice) {
        self.stats.record(notice);
        self.marks.notice(notice);
        self.status.notice(&self.stats, notice);
    }
}

impl Printer {
    /// Prints the records of a repository. The last line has the acknowledgement, so the account is resynced
    /// again if the run ends before.
    fn print_records(&self, resynced: &ResyncedRepo, ack: Ack) -> io::Result<()> {
        let archive = MappedFile::open(resynced.path())?;
        let options = car::Options::default();
        let repository = Repository::read(&archive, &options).map_err(io::Error::other)?;
        let lines = ResyncLines::new(resynced, &repository, &self.selection);
        let (mut lines, mut line) = (lines.map_err(io::Error::other)?, Vec::new());
        while !lines.write_next(&mut line).map_err(io::Error::other)? {
            if !self.lines.push_piece(&line) {
                self.lines.hold(ack);
                return Ok(());
            }
            crash_point("resync/piece");
            self.stats.lines.fetch_add(1, Relaxed);
            line.clear();
        }
        self.lines.push(&line, ack);
        crash_point("resync/last-piece");
        self.stats.lines.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Whether an earlier run may have printed the event.
    fn is_repeated(&self, event: &DeliveredEvent<'_>) -> bool {
        let Some(seq) = event.seq else { return false };
        self.marks.is_repeated(event.host.0, seq).unwrap_or_else(|error| {
            // The next checkpoint fails for the same reason, and ends the run.
            self.status.warn("state-file", || error.to_string());
            true
        })
    }

    /// Warns of an event that is not verified although it should be, or follows a missing one.
    fn warn_of(&self, host: &str, event: &DeliveredEvent<'_>) {
        let (did, code) = (event.did.unwrap_or("no account"), event.verdict.code());
        match &event.verdict {
            Verdict::Undecodable(why) => self.status.warn("undecodable", || {
                let len = event.frame.len();
                format!("{host}: a frame of {len} bytes cannot be decoded and is printed as it is: {why}")
            }),
            Verdict::UnknownKey(why) => self.status.warn(code, || {
                format!("{host}: {did}: an event is not verified, as the account's key is missing: {why}")
            }),
            Verdict::Judged(Outcome::Rejected(why)) => {
                self.status.warn(code, || format!("{host}: {did}: an event is refused ({code}): {why}"));
            }
            Verdict::Judged(Outcome::Commit(_, Chain::Broken(why))) => self.status.warn(code, || {
                format!("{host}: {did}: the event before is missing: {why}; --resync fetches the records")
            }),
            _ => {}
        }
    }

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
