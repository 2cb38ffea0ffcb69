//! Where lines go: to standard output, or into the outbox of destinations.

use std::sync::Arc;

use delivery::{EventId, InvalidPayload, NewEvent, Outbox};
use kernels::hex;

use crate::checkpoints::Progress;
use crate::judge::Outcome;
use follower::{Acknowledge as _, LineSender, Lines, SharedAck, Unstored};
use program::failure::Failure;

/// Takes lines, and applies their effects once they are taken or stored.
pub(crate) enum Recipient {
    Stdout {
        lines: LineSender<Progress>,
        /// The lines that are not passed on yet.
        text: Vec<u8>,
        collected: Lines<Progress>,
    },
    /// A function, which gets every line and acknowledges it by its return.
    Handler(Box<dyn FnMut(&str) + Send>),
    Outbox {
        outbox: Outbox,
        unstored: Arc<Unstored<Progress>>,
        /// The events that are not passed on yet.
        events: Vec<NewEvent>,
    },
}

impl Recipient {
    pub(crate) fn stdout(lines: LineSender<Progress>) -> Self {
        Self::Stdout { lines, text: Vec::new(), collected: Lines::new() }
    }

    pub(crate) fn outbox(outbox: Outbox, unstored: Arc<Unstored<Progress>>) -> Self {
        Self::Outbox { outbox, unstored, events: Vec::new() }
    }

    /// Adds the line of an item. The outbox has events alone.
    pub(crate) fn add(&mut self, outcome: &Outcome, line: &[u8]) -> Result<(), Failure> {
        match (self, outcome) {
            (Self::Stdout { text, .. }, _) => text.extend_from_slice(line),
            (Self::Handler(handler), _) => {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                handler(std::str::from_utf8(line).expect("lines are UTF-8"));
            }
            (Self::Outbox { events, .. }, Outcome::Valid { id, author }) => {
                let failed = |error: InvalidPayload| Failure::Local(error.to_string());
                events.push(new_event(id, author, line).map_err(failed)?);
            }
            (Self::Outbox { .. }, _) => {}
        }
        Ok(())
    }

    /// Whether all lines are passed on.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Stdout { text, .. } => text.is_empty(),
            Self::Handler(_) => true,
            Self::Outbox { events, .. } => events.is_empty(),
        }
    }

    /// Passes the lines on, with their effects. Waits while the outbox is at a bound.
    pub(crate) fn pass_on(&mut self, progress: Progress) {
        match self {
            Self::Stdout { lines, text, collected } => {
                collected.add(text, progress);
                lines.push_all(collected);
                text.clear();
            }
            Self::Handler(_) => progress.done(),
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
