//! Takes the events of a follower, and stores the proved ones for the clients.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use archive::{ArchivedEvent, JUDGE};
use atproto::event::Event;
use follower::{EventLine, LineRecipient, ResyncLines, Unstored, micros};
use net::firehose::{Ack, DeliveredEvent, FrameKind, StopSignal, Verdict};
use net::jetstream::EventKind;
use verify::sync::{Ignored, Outcome};

use crate::log::NewEvent;
use crate::repeats::Repeats;
use crate::seq::{MAX_NUMBERS, arrival_now};
use crate::shared::Shared;
use crate::unsigned::UnsignedEvents;

/// The recipient of a follower's events.
#[derive(Debug)]
pub struct Intake {
    shared: Arc<Shared>,
    unstored: Arc<Unstored>,
    repeats: Repeats,
    unsigned: UnsignedEvents,
}

/// Why an event was not stored.
#[derive(Clone, Debug)]
pub struct IntakeFailure(Arc<Unstored>);

impl IntakeFailure {
    /// The reason; `None` while all are stored.
    pub fn reason(&self) -> Option<String> {
        self.0.error()
    }
}

impl Intake {
    pub(crate) fn new(shared: Arc<Shared>, stop: StopSignal) -> Self {
        let repeats = Repeats::of_log(&shared.log);
        let (unstored, unsigned) = (Unstored::new(stop), UnsignedEvents::default());
        Self { shared, unstored, repeats, unsigned }
    }

    /// Why an event is not stored, when one is not.
    pub fn failure(&self) -> IntakeFailure {
        IntakeFailure(self.unstored.clone())
    }
}

impl LineRecipient for Intake {
    fn event(&self, line: &EventLine<'_, '_>, _: &mut Vec<u8>, ack: Ack) {
        let event = line.event;
        self.shared.hosts.note(line.host, seq(event));
        let metrics = &self.shared.metrics;
        if let Verdict::Judged(Outcome::Ignored(Ignored::Stale { .. })) = event.verdict {
            // Another host was faster.
            metrics.repeated.fetch_add(1, Relaxed);
            return ack.done();
        }
        let Some((new, did)) = served(event).zip(event.did) else {
            metrics.unproved.fetch_add(1, Relaxed);
            return ack.done();
        };
        let is_unsigned = matches!(event.kind, FrameKind::Account | FrameKind::Identity);
        if self.repeats.has(line.host, seq(event), event.frame)
            || (is_unsigned && self.unsigned.is_known(event.frame))
        {
            metrics.repeated.fetch_add(1, Relaxed);
            return ack.done();
        }
        let key = event.key.map(|key| key.to_did_key());
        let archived = ArchivedEvent {
            did: Some(did),
            arrival: 0,
            host: line.host,
            seq: seq(event),
            kind: archive::kind(event.frame),
            received: arrival_now(i64::try_from(micros(event.received)).unwrap_or(i64::MAX)),
            verdict: event.verdict.code(),
            key: key.as_deref(),
            judge: JUDGE,
            frame: event.frame,
        };
        let (shared, unstored) = (self.shared.clone(), self.unstored.clone());
        self.shared.log.append(&archived, new, move |stored| match stored {
            Ok(_) => {
                shared.metrics.stored.fetch_add(1, Relaxed);
                ack.done();
            }
            Err(error) => unstored.refuse(ack, error.to_string()),
        });
    }

    fn repository(&self, _: &mut ResyncLines<'_, '_>, ack: Ack) -> io::Result<()> {
        ack.done();
        Ok(())
    }
}

fn seq(event: &DeliveredEvent<'_>) -> Option<i64> {
    event.seq.and_then(|seq| i64::try_from(seq).ok())
}

/// The event as clients get it, if its signature is verified, or if it is a message about an account, which nobody signs.
fn served(event: &DeliveredEvent<'_>) -> Option<NewEvent> {
    let (kind, numbers) = match (event.kind, &event.verdict, event.event?) {
        (FrameKind::Commit, Verdict::Judged(Outcome::Commit(..)), Event::Commit(commit)) => {
            let ops = u16::try_from(commit.ops.len()).unwrap_or(MAX_NUMBERS);
            (EventKind::Commit, ops.max(1))
        }
        (FrameKind::Sync, Verdict::Judged(Outcome::Sync(..)), _) => (EventKind::Sync, 1),
        (FrameKind::Identity, Verdict::Judged(Outcome::Unjudged(_)), _) => (EventKind::Identity, 1),
        (FrameKind::Account, Verdict::Judged(Outcome::Unjudged(_)), _) => (EventKind::Account, 1),
        _ => return None,
    };
    Some(NewEvent { kind, did: event.did?.into(), frame: event.frame.clone(), numbers })
}
