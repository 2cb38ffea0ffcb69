//! Lines that go to the outbox with their ids, acknowledged to the stream once they are on disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use atproto::event::Event;
use delivery::{EventId, InvalidPayload, NewEvent, Outbox, OutboxError, RecordEffects};
use kernels::sha256;
use net::firehose::{Ack, DeliveredEvent, Verdict};
use verify::sync::Outcome;

use super::line::{EventLine, LineHeader, ResyncLines};
use super::outbox_acks::{SharedAck, Unstored};
use super::printer::LineRecipient;
use super::stats::{RunStats, micros};
use super::status_checks::StatusChecks;

/// Stores lines in the outbox.
pub(super) struct LinesToOutbox {
    pub(super) outbox: Outbox,
    pub(super) stats: Arc<RunStats>,
    pub(super) unstored: Arc<Unstored>,
    pub(super) checks: StatusChecks,
}

impl LineRecipient for LinesToOutbox {
    fn event(&self, event: &EventLine<'_, '_>, buffer: &mut Vec<u8>, ack: Ack) {
        let id = id_of(event.host, event.event);
        let ops_at = event.write(buffer, LineHeader::Live { id: &id });
        let did = event.event.did.unwrap_or_default();
        let new = self.new_event(id, did, buffer).map(|new| match ops_at {
            // After an end of the process it can be judged again, with another verdict.
            0 => new.compared_by_source(event.event.frame),
            _ if is_verified_commit(event.event) => new.compared_from(ops_at),
            _ => new,
        });
        let new = new.map(|new| self.add_effects(new, event));
        let appended = new.map(|new| {
            if calls_inactive(event.event) {
                let shared = SharedAck::new(ack, self.unstored.clone());
                shared.complete();
                let of_line = shared.clone();
                self.append(new, move |stored| of_line.record(stored));
                self.checks.add(did, event.host, event.event.seq, shared);
            } else {
                let unstored = self.unstored.clone();
                self.append(new, move |stored| unstored.settle(ack, stored));
            }
        });
        if let Err(error) = appended {
            self.unstored.fail(error.to_string());
        }
    }

    fn repository(&self, lines: &mut ResyncLines<'_, '_>, ack: Ack) -> io::Result<()> {
        let shared = SharedAck::new(ack, self.unstored.clone());
        let (repository, fetched_micros) = (lines.repository(), micros(SystemTime::now()));
        let (did, rev) = (&*repository.did, repository.head.rev.to_string());
        lines.compare_with(self.outbox.delivered_records(did).map_err(io::Error::other)?)?;
        if lines.lacks_base() {
            self.outbox.outdate_histories_of([did]).map_err(io::Error::other)?;
            shared.complete();
            return Ok(());
        }
        let (mut line, mut is_last) = (Vec::new(), false);
        while !is_last && !shared.has_failed() {
            line.clear();
            let id = EventId::of_resync(did, &rev, fetched_micros, lines.next_piece());
            let header = LineHeader::History { id: &id, fetched_micros };
            let mut effects = RecordEffects::of_repository(lines.is_whole());
            is_last = lines.write_next(&mut line, header, Some(&mut effects))?;
            if is_last {
                effects.complete();
            }
            let new = self.new_event(id, did, &line).map_err(io::Error::other)?;
            let of_line = shared.clone();
            self.append(new.with_effects(effects), move |stored| of_line.record(stored));
        }
        shared.complete();
        Ok(())
    }
}

impl LinesToOutbox {
    fn new_event(&self, id: EventId, did: &str, line: &[u8]) -> Result<NewEvent, InvalidPayload> {
        NewEvent::new(id, did, line.strip_suffix(b"\n").unwrap_or(line).to_vec())
    }

    /// Adds the effects of a commit, where records are remembered.
    fn add_effects(&self, new: NewEvent, event: &EventLine<'_, '_>) -> NewEvent {
        let effects = self.outbox.has_histories().then(|| event.effects()).flatten();
        match effects {
            Some(effects) => new.with_effects(effects),
            None => new,
        }
    }

    /// Stores a line; waits while the outbox is at a bound.
    fn append(&self, new: NewEvent, stored: impl FnOnce(Result<(), OutboxError>) + Send + 'static) {
        self.outbox.append(new, stored);
        self.stats.lines.fetch_add(1, Relaxed);
    }
}

/// The id of an event: the id of the commit if it is verified. A message without a number is named by its bytes.
pub(super) fn id_of(host: &str, event: &DeliveredEvent<'_>) -> EventId {
    let did = event.did.unwrap_or_default();
    match &event.verdict {
        Verdict::Judged(Outcome::Commit(commit, _)) => EventId::of_commit(did, commit.rev),
        _ => {
            let of_bytes = || {
                let digest = sha256::digest(event.frame);
                digest.first_chunk().map_or(0, |start| u64::from_be_bytes(*start))
            };
            EventId::of_message(did, host, event.seq.unwrap_or_else(of_bytes))
        }
    }
}

/// Whether it is a commit with the id of one, of which one revision has one content.
fn is_verified_commit(event: &DeliveredEvent<'_>) -> bool {
    matches!(event.verdict, Verdict::Judged(Outcome::Commit(..)))
}

/// Whether a well-formed `#account` event calls its account inactive.
fn calls_inactive(event: &DeliveredEvent<'_>) -> bool {
    match &event.verdict {
        Verdict::Judged(Outcome::Unjudged(Event::Account(account))) => !account.active,
        _ => false,
    }
}
