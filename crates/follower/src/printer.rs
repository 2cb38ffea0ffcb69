//! The handler of `follow`: writes events as lines for a recipient, which acknowledges them.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use atproto::event::Event;
use atproto::repo::Repository;
use codec::car;
use mapping::MappedFile;
use net::firehose::{
    Ack, DeliveredEvent, Handler, Notice, ResyncError, ResyncRequests, ResyncedRepo, Verdict,
    Warning,
};
use verify::sync::{Chain, Outcome};

use super::account_log::AccountLog;
use super::histories::Histories;
use super::line::{EventLine, LineContent, ResyncLines};
use super::lost_events::LostEvents;
use super::selection::Selection;
use super::stats::RunStats;
use super::status::Status;

/// Where the lines of a run go.
pub trait LineRecipient: Send + Sync + 'static {
    /// Takes the line of an event, which it writes into the buffer.
    fn event(&self, event: &EventLine<'_, '_>, buffer: &mut Vec<u8>, ack: Ack);

    /// Learns that a batch of events ends, as [`Handler::batch_end`].
    fn batch_end(&self) {}

    /// Takes the lines of a repository.
    ///
    /// # Errors
    /// If the repository cannot be read. The acknowledgement is dropped, which ends the run: without these lines the
    /// account would miss records.
    fn repository(&self, lines: &mut ResyncLines<'_, '_>, ack: Ack) -> io::Result<()>;

    /// Learns of a condition of the connection.
    fn notice(&self, notice: &Notice) {
        let _ = notice;
    }
}

/// Writes the lines of the selected events of a run, and reports conditions to the operator.
pub(super) struct Printer<R> {
    pub(super) recipient: R,
    pub(super) selection: Selection,
    pub(super) stats: Arc<RunStats>,
    pub(super) status: Status,
    pub(super) accounts: Arc<AccountLog>,
    /// The histories of the run, if accounts get theirs.
    pub(super) histories: Option<Arc<Histories>>,
    pub(super) requests: ResyncRequests,
    pub(super) content: LineContent,
    pub(super) lost: LostEvents,
    /// Number of lines about accounts whose revisions go back.
    pub(super) lines_going_back: AtomicU64,
}

impl<R: LineRecipient> Handler for Printer<R> {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.stats.sample_lag(event.event, event.received);
        if !self.selection.has_account(event.did) {
            // It does not count towards `--events`.
            return ack.skip();
        }
        let host = self.stats.host(event.host.0);
        self.warn_of(host, event);
        self.accounts.record(event);
        if let (Some(did), true) = (event.did, calls_active(event)) {
            self.for_history(|histories| histories.is_back(did));
        }
        let filter = self.selection.filter();
        let line = EventLine::new(host, event, &filter, self.content);
        if !line.is_selected() {
            return ack.skip();
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            buffer.shrink_to(RETAINED_BYTES);
            self.recipient.event(&line, buffer, ack);
        });
    }

    fn batch_end(&self) {
        self.recipient.batch_end();
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        if let Some(_guard) = self.lost.last.none_since(resynced.began) {
            return self.write_fetched(resynced, ack);
        }
        self.requests.request(&resynced.did);
        ack.skip();
    }

    fn resync_failed(&self, did: &str, why: &ResyncError) {
        self.accounts.record_failure(did, why);
        self.lost.recheck.ended(did);
        self.for_history(|histories| histories.has_failed(did));
        self.status.warn("resync-failed", || format!("{did}: the resync failed: {why}"));
    }

    fn resync_delayed(&self, did: &str, why: &ResyncError, delay: Duration) {
        self.lost.recheck.ended(did);
        self.for_history(|histories| histories.is_delayed(did));
        self.status.warn("resync-delayed", || {
            let seconds = delay.as_secs();
            format!("{did}: the resync failed, and is repeated in {seconds} s: {why}")
        });
    }

    fn warning(&self, warning: &Warning<'_>) {
        match warning {
            Warning::RevisionsGoBack { did, .. } => self.warn_of_going_back(did, warning),
            _ => self.status.warn(warning.code(), || warning.to_string()),
        }
    }

    fn notice(&self, notice: &Notice) {
        self.stats.record(notice);
        self.recipient.notice(notice);
        self.status.notice(&self.stats, notice);
        self.lost.record(notice);
    }
}

impl<R: LineRecipient> Printer<R> {
    fn for_history(&self, record: impl FnOnce(&Histories)) {
        if let Some(histories) = &self.histories {
            record(histories);
        }
    }

    /// Writes a repository that is fetched, and ends the waits for it.
    fn write_fetched(&self, resynced: &ResyncedRepo, ack: Ack) {
        self.lost.recheck.ended(&resynced.did);
        self.for_history(|histories| histories.is_done(&resynced.did));
        if !self.selection.has_account(Some(&resynced.did)) {
            return ack.skip();
        }
        self.warn_of_part(resynced);
        if let Err(error) = self.write_records(resynced, ack) {
            let did = &resynced.did;
            self.status.warn("resync-unreadable", || {
                format!("{did}: cannot read the fetched repository: {error}")
            });
        }
    }

    /// Writes the records of a repository.
    fn write_records(&self, resynced: &ResyncedRepo, ack: Ack) -> io::Result<()> {
        let archive = MappedFile::of(resynced.file())?;
        let options = car::Options::default();
        let repository = Repository::read(&archive, &options).map_err(io::Error::other)?;
        // More may be selected than when it was fetched.
        let selected = self.selection.filter();
        let filter = match &resynced.collections {
            Some(names) => Arc::new(selected.within(names)),
            None => selected.clone(),
        };
        let had = resynced.base.iter().chain(&resynced.collections).flat_map(|names| names.iter());
        let had: Vec<_> = had.cloned().collect();
        let complete = match &resynced.collections {
            Some(_) => Some(selected.within(&had).collection_names()),
            None => (!selected.has_all_collections()).then(|| selected.collection_names()),
        };
        let has_proofs = self.content.proof.is_some();
        let lines = ResyncLines::new(resynced, &repository, &filter, has_proofs, complete);
        let mut lines = lines.map_err(io::Error::other)?;
        self.recipient.repository(&mut lines, ack)?;
        let now = self.selection.filter();
        let is_complete = match &resynced.base {
            Some(_) => !lines.lacks_base() && now.has_same_collections(&now.within(&had)),
            None => now.has_same_collections(&filter),
        };
        if !is_complete {
            self.for_history(|histories| histories.is_outdated(&resynced.did));
        }
        Ok(())
    }

    /// Warns of a server that did not prove the selected collections.
    fn warn_of_part(&self, resynced: &ResyncedRepo) {
        let Some(why) = &resynced.part_refusal else { return };
        self.status.warn("part-refused", || {
            let ResyncedRepo { did, host, .. } = resynced;
            let code = why.code().map(|code| format!(" ({code})")).unwrap_or_default();
            format!(
                "{did}: {host} does not prove the selected collections{code}: {why}; its whole repository was downloaded"
            )
        });
    }

    /// One line per account, up to a number of them.
    fn warn_of_going_back(&self, did: &str, warning: &Warning<'_>) {
        self.accounts.record_going_back(did, warning.to_string());
        let text =
            || format!("{warning}; if its server has lost them, start with --reset-account {did}");
        if self.lines_going_back.fetch_add(1, Relaxed) < MAX_LINES_GOING_BACK {
            self.status.print_warning(&text())
        } else {
            self.status.warn(warning.code(), text)
        }
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
}

/// Whether a well-formed `#account` event calls its account active.
fn calls_active(event: &DeliveredEvent<'_>) -> bool {
    match &event.verdict {
        Verdict::Judged(Outcome::Unjudged(Event::Account(account))) => account.active,
        _ => false,
    }
}

thread_local! {
    /// The line buffer of this thread.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lines about accounts whose revisions go back, after which one a minute is printed.
const MAX_LINES_GOING_BACK: u64 = 100;

/// Capacity kept of a long line for the next one, in bytes.
const RETAINED_BYTES: usize = 1 << 20;
