//! Where lines go: to standard output, into the outbox of destinations, or to a function.

use std::sync::Arc;

use delivery::{InvalidPayload, NewEvent, Outbox};
use follower::{Acknowledge as _, LineSender, Lines, SharedAck, Unstored};
use program::failure::Failure;

use crate::checkpoints::Progress;
use crate::judge::JudgedItem;

/// Takes lines, and applies their effects once they are taken or stored.
pub(crate) enum Recipient {
    Stdout(LineSender<Progress>),
    /// A function, which gets every line and acknowledges it by its return.
    Handler(Box<dyn FnMut(&str) + Send>),
    Outbox(Outbox, Arc<Unstored<Progress>>),
}

impl Recipient {
    /// Passes lines of `service` on, after which `progress` follows. Waits while the outbox or standard output is at a bound.
    pub(crate) fn pass_on<'l>(
        &mut self,
        service: &str,
        lines: impl Iterator<Item = (&'l JudgedItem, &'l [u8])>,
        progress: Progress,
    ) -> Result<(), Failure> {
        match self {
            Self::Stdout(sender) => {
                let text: Vec<u8> = lines.flat_map(|(_, line)| line).copied().collect();
                if text.is_empty() {
                    progress.done();
                    return Ok(());
                }
                let mut collected = Lines::new();
                collected.add(&text, progress);
                sender.push_all(&mut collected);
            }
            Self::Handler(handler) => {
                for (_, line) in lines {
                    let line = line.strip_suffix(b"\n").unwrap_or(line);
                    handler(std::str::from_utf8(line).expect("lines are UTF-8"));
                }
                progress.done();
            }
            Self::Outbox(outbox, unstored) => {
                let shared = SharedAck::new(progress, unstored.clone());
                for (item, line) in lines {
                    let Some(event) = new_event(service, item, line) else { continue };
                    let event = event.map_err(|error| Failure::Local(error.to_string()))?;
                    let shared = shared.clone();
                    outbox.append(event, move |stored| shared.record(stored));
                }
                shared.complete();
            }
        }
        Ok(())
    }
}

/// A label, of which another one with the same id and bytes is a repetition, whatever its verdict.
fn new_event(
    service: &str,
    item: &JudgedItem,
    line: &[u8],
) -> Option<Result<NewEvent, InvalidPayload>> {
    let (id, digest) = item.label.as_ref()?;
    let payload = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    let event = NewEvent::new(id.clone(), service, payload);
    Some(event.map(|event| event.compared_by_source(digest)))
}
