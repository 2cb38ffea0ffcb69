//! Lines that go to the outbox: each with its id, acknowledged to the stream once it is on disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use wireproof::atproto::event::Event;
use wireproof::delivery::{EventId, InvalidPayload, NewEvent, Outbox, OutboxError};
use wireproof::kernels::sha256;
use wireproof::net::firehose::{Ack, DeliveredEvent, Verdict};
use wireproof::verify::sync::Outcome;

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
        event.write(buffer, LineHeader::Live { id: &id });
        let did = event.event.did.unwrap_or_default();
        let appended = match calls_inactive(event.event) {
            true => {
                let shared = SharedAck::new(ack, self.unstored.clone());
                shared.complete();
                let of_line = shared.clone();
                let appended = self.append(id, did, buffer, move |stored| of_line.record(stored));
                self.checks.add(did, event.host, event.event.seq, shared);
                appended
            }
            false => {
                let unstored = self.unstored.clone();
                self.append(id, did, buffer, move |stored| unstored.settle(ack, stored))
            }
        };
        if let Err(error) = appended {
            self.unstored.fail(error.to_string());
        }
    }

    fn repository(&self, lines: &mut ResyncLines<'_, '_>, ack: Ack) -> io::Result<()> {
        let shared = SharedAck::new(ack, self.unstored.clone());
        let (repository, fetched_micros) = (lines.repository(), micros(SystemTime::now()));
        let (did, rev) = (&*repository.did, repository.head.rev.to_string());
        let (mut line, mut is_last) = (Vec::new(), false);
        while !is_last && !shared.has_failed() {
            line.clear();
            let id = EventId::of_resync(did, &rev, lines.next_piece());
            let header = LineHeader::History { id: &id, fetched_micros };
            is_last = lines.write_next(&mut line, header).map_err(io::Error::other)?;
            let of_line = shared.clone();
            let appended = self.append(id, did, &line, move |stored| of_line.record(stored));
            appended.map_err(io::Error::other)?;
        }
        shared.complete();
        Ok(())
    }
}

impl LinesToOutbox {
    /// Stores a line; waits while the outbox is at a bound.
    fn append(
        &self,
        id: EventId,
        did: &str,
        line: &[u8],
        stored: impl FnOnce(Result<(), OutboxError>) + Send + 'static,
    ) -> Result<(), InvalidPayload> {
        let payload = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
        self.outbox.append(NewEvent::new(id, did, payload)?, stored);
        self.stats.lines.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// The id of an event: that of the commit if it is a verified one. A message without a number is named by its bytes.
fn id_of(host: &str, event: &DeliveredEvent<'_>) -> EventId {
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

/// Whether a well-formed `#account` event calls its account inactive.
fn calls_inactive(event: &DeliveredEvent<'_>) -> bool {
    match &event.verdict {
        Verdict::Judged(Outcome::Unjudged(Event::Account(account))) => !account.active,
        _ => false,
    }
}
