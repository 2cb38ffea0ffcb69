//! Takes verdicts in order: counts them, leaves out repetitions, and passes lines on to their recipient.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use net::DurationText;
use net::firehose::StopSignal;
use nostr_relay::{RelayNotice, Traffic};

use crate::checkpoints::{Checkpoints, Resumes};
use crate::judge::{JudgedBatch, JudgedItem, Outcome};
use crate::recipient::Recipient;
use crate::refusal::EventRefusal;
use crate::seen::SeenIds;
use follower::Status;
use program::failure::Failure;

/// Takes verdicts.
pub(crate) struct Taker {
    names: Vec<String>,
    seen: Arc<Mutex<SeenIds>>,
    recipient: Recipient,
    checkpoints: Arc<Checkpoints>,
    status: Status,
    /// Requested once there is no room.
    stop: StopSignal,
    /// Lines that may still be written.
    room: u64,
    /// Times that follow from items without lines.
    resumes: Resumes,
    counts: Counts,
}

/// The events of a run, by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// All that were received.
    pub received: u64,
    /// Valid events, each counted once.
    pub valid: u64,
    /// Events that came before.
    pub repeated: u64,
    /// Events that are not valid, or were not requested.
    pub refused: u64,
    /// Messages and events that could not be read.
    pub unreadable: u64,
}

impl Taker {
    pub(crate) fn new(
        names: Vec<String>,
        room: u64,
        seen: Arc<Mutex<SeenIds>>,
        recipient: Recipient,
        checkpoints: Arc<Checkpoints>,
        status: Status,
        stop: StopSignal,
    ) -> Self {
        let (resumes, counts) = (Resumes::new(), Counts::default());
        Self { names, seen, recipient, checkpoints, status, stop, room, resumes, counts }
    }

    pub(crate) fn take(&mut self, batch: JudgedBatch) -> Result<(), Failure> {
        let mut start = 0;
        for item in &batch.items {
            let line = &batch.lines[std::mem::replace(&mut start, item.end)..item.end];
            if self.room == 0 {
                break;
            }
            if self.count(item) && !line.is_empty() {
                self.recipient.add(&item.outcome, line)?;
                self.room -= 1;
            }
            self.resumes.extend(item.resume.map(|resume| (item.relay, resume)));
        }
        self.pass_on();
        if self.room == 0 {
            self.stop.request();
        }
        self.status.print_due_warnings();
        self.status.show(|| self.counts.events_text());
        Ok(self.checkpoints.store_if_due()?)
    }

    /// The counts at the end, and the times that follow once all lines are taken.
    pub(crate) fn finish(self) -> (Counts, Resumes) {
        (self.counts, self.resumes)
    }

    /// Passes lines on, with the times that follow from them and from the items before.
    fn pass_on(&mut self) {
        // Of many events of a relay the latest time remains.
        self.resumes.sort_unstable();
        self.resumes.dedup_by(|next, before| {
            let is_same = next.0 == before.0;
            before.1 = if is_same { next.1 } else { before.1 };
            is_same
        });
        if self.recipient.is_empty() {
            return self.checkpoints.apply_if_idle(&mut self.resumes);
        }
        let progress = self.checkpoints.start(std::mem::take(&mut self.resumes));
        self.recipient.pass_on(progress);
    }

    /// Counts and reports an item. Whether its line is written.
    fn count(&mut self, item: &JudgedItem) -> bool {
        if let Outcome::Notice(notice) = &item.outcome {
            self.counts.unreadable += u64::from(matches!(notice, RelayNotice::Unrecognized(_)));
            self.report(item.relay, notice);
            return true;
        }
        self.counts.received += 1;
        match &item.outcome {
            Outcome::Valid { id, .. } => {
                let is_new = self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(*id);
                self.counts.valid += u64::from(is_new);
                self.counts.repeated += u64::from(!is_new);
                is_new
            }
            Outcome::Repeated => {
                self.counts.repeated += 1;
                false
            }
            Outcome::Refused(refusal, _) => {
                self.counts.refused += 1;
                self.counts.unreadable += u64::from(matches!(refusal, EventRefusal::Unreadable(_)));
                let (relay, code) = (&self.names[item.relay], refusal.code());
                self.status
                    .warn(code, || format!("{relay}: an event is refused: {refusal} ({code})"));
                true
            }
            Outcome::Notice(_) => true,
        }
    }

    /// Prints a notice. Notices that a relay can repeat at will are warnings, one a minute per kind.
    fn report(&self, relay: usize, notice: &RelayNotice) {
        let text = || format!("{}: {}", self.names[relay], notice_text(notice));
        match notice {
            RelayNotice::Connected { .. }
            | RelayNotice::RetryScheduled(_)
            | RelayNotice::EndOfStored { gap: None, .. }
            | RelayNotice::Authenticated
            | RelayNotice::Compared { .. }
            | RelayNotice::Fetched { withheld: 0 } => self.status.print(&text()),
            RelayNotice::Disconnected(_)
            | RelayNotice::ConnectFailed(_)
            | RelayNotice::Fetched { .. }
            | RelayNotice::EndOfStored { .. }
            | RelayNotice::Closed(_) => self.status.print_warning(&text()),
            notice => self.status.warn(notice.name(), text),
        }
    }
}

impl Counts {
    pub(crate) fn to_text(self, traffic: Traffic) -> String {
        let Traffic { sent, received } = traffic;
        self.events_text() + &format!("; {sent} bytes sent, {received} received")
    }

    fn events_text(self) -> String {
        let Self { received, valid, repeated, refused, .. } = self;
        let mut text = format!("{received} events: {valid} valid");
        for (count, name) in [(repeated, "repeated"), (refused, "refused")] {
            if count > 0 {
                let _ = write!(text, ", {count} {name}");
            }
        }
        text
    }

    /// A read failure, after which events may be missing.
    pub(crate) fn unreadable_text(self) -> Option<String> {
        let count = self.unreadable;
        (count > 0).then(|| {
            format!("{count} messages or events of relays could not be read: events may be missing")
        })
    }
}

/// The text about a notice for a person.
pub(crate) fn notice_text(notice: &RelayNotice) -> String {
    match notice {
        RelayNotice::Connected { since: Some(since) } => format!("connected, since {since}"),
        RelayNotice::Connected { since: None } => "connected".to_owned(),
        RelayNotice::Disconnected(reason) => reason.to_string(),
        RelayNotice::ConnectFailed(error) => error.fault.to_string(),
        RelayNotice::RetryScheduled(delay) => format!("retrying in {}", DurationText(*delay)),
        RelayNotice::EndOfStored { gap: None, .. } => "all stored events are received".to_owned(),
        RelayNotice::EndOfStored { gap: Some(gap), .. } => {
            format!("stored events may be missing: {gap}")
        }
        RelayNotice::Compared { rounds, missing } => {
            format!("{missing} events are missing, after {rounds} messages")
        }
        RelayNotice::Fetched { withheld: 0 } => "the missing events are received".to_owned(),
        RelayNotice::Fetched { withheld } => {
            format!("{withheld} events that the relay named are not received")
        }
        RelayNotice::Closed(reason) => format!("the relay ended the subscription: {reason}"),
        RelayNotice::Message(text) => format!("the relay says: {text}"),
        RelayNotice::AuthRequested { .. } => {
            "the relay asks for authentication (NIP-42): give it a key with --auth-key if it requires one"
                .to_owned()
        }
        RelayNotice::Authenticated => "authenticated".to_owned(),
        RelayNotice::UnknownSubscription => {
            "a message of a subscription that was not requested is dropped".to_owned()
        }
        RelayNotice::Unrequested => "an event that was not requested".to_owned(),
        RelayNotice::Unrecognized(rule) => format!("a message that is none of a relay: {rule}"),
        other => other.name().to_owned(),
    }
}
