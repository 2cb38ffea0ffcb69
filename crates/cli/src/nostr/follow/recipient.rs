//! Where lines go: to standard output, or into the outbox of destinations.

use std::sync::Arc;

use delivery::{EventId, InvalidPayload, NewEvent, Outbox};
use kernels::hex;

use super::checkpoints::Progress;
use super::judge::Outcome;
use crate::failure::Failure;
use follower::{LineSender, Lines, SharedAck, Unstored};

/// Takes lines, and applies what follows from them once they are taken or stored.
pub(super) enum Recipient {
    Stdout {
        lines: LineSender<Progress>,
        /// The lines that are not passed on yet.
        text: Vec<u8>,
        collected: Lines<Progress>,
    },
    Outbox {
        outbox: Outbox,
        unstored: Arc<Unstored<Progress>>,
        /// The events that are not passed on yet.
        events: Vec<NewEvent>,
    },
}

impl Recipient {
    pub(super) fn stdout(lines: LineSender<Progress>) -> Self {
        Self::Stdout { lines, text: Vec::new(), collected: Lines::new() }
    }

    pub(super) fn outbox(outbox: Outbox, unstored: Arc<Unstored<Progress>>) -> Self {
        Self::Outbox { outbox, unstored, events: Vec::new() }
    }

    /// Adds the line of an item. The outbox has events alone.
    pub(super) fn add(&mut self, outcome: &Outcome, line: &[u8]) -> Result<(), Failure> {
        match (self, outcome) {
            (Self::Stdout { text, .. }, _) => text.extend_from_slice(line),
            (Self::Outbox { events, .. }, Outcome::Valid { id, author }) => {
                let failed = |error: InvalidPayload| Failure::Local(error.to_string());
                events.push(new_event(id, author, line).map_err(failed)?);
            }
            (Self::Outbox { .. }, _) => {}
        }
        Ok(())
    }

    /// Whether all lines are passed on.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Stdout { text, .. } => text.is_empty(),
            Self::Outbox { events, .. } => events.is_empty(),
        }
    }

    /// Passes the lines on, with what follows from them. Waits while the outbox is at a bound.
    pub(super) fn pass_on(&mut self, progress: Progress) {
        match self {
            Self::Stdout { lines, text, collected } => {
                collected.add(text, progress);
                lines.push_all(collected);
                text.clear();
            }
            Self::Outbox { outbox, unstored, events } => {
                let shared = SharedAck::new(progress, unstored.clone());
                for event in events.drain(..) {
                    let shared = shared.clone();
                    outbox.append(event, move |stored| shared.record(stored));
                }
                shared.complete();
            }
        }
    }
}

/// An event of which another one with the same id is a repetition, whatever relay sent it.
fn new_event(id: &[u8; 32], author: &[u8; 32], line: &[u8]) -> Result<NewEvent, InvalidPayload> {
    let payload = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    let event = NewEvent::new(EventId::of_nostr_event(id), &hex::encode(author), payload)?;
    Ok(event.compared_by_source(id))
}
