//! Where labels go: as lines to standard output, into the outbox of destinations or to a function, or into a store.

use std::sync::Arc;

use delivery::{InvalidPayload, NewEvent, Outbox};
use follower::{Acknowledge as _, LineSender, Lines, SharedAck, Unstored};
use program::failure::Failure;

use crate::checkpoints::Progress;
use crate::judge::JudgedItem;
use crate::labeler::Labeler;
use crate::store::{FollowedLabel, LabelStore};

/// Takes lines, and applies their effects once they are taken or stored.
pub(crate) enum Recipient {
    Stdout(LineSender<Progress>),
    /// A function, which gets every line and acknowledges it by its return.
    Handler(Box<dyn FnMut(&str) + Send>),
    Outbox(Outbox, Arc<Unstored<Progress>>),
    /// Takes labels of whole messages in place of their lines.
    Store(Box<dyn LabelStore>),
}

impl Recipient {
    /// Passes lines of `labeler` on, after which `progress` follows. Waits while the outbox or standard output is at a bound, or
    /// labels are stored.
    pub(crate) fn pass_on<'l>(
        &mut self,
        labeler: &Labeler,
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
                    let Some(event) = new_event(labeler.did.as_str(), item, line) else { continue };
                    let event = event.map_err(|error| Failure::Local(error.to_string()))?;
                    let shared = shared.clone();
                    outbox.append(event, move |stored| shared.record(stored));
                }
                shared.complete();
            }
            Self::Store(store) => {
                let items: Vec<&JudgedItem> = lines.map(|(item, _)| item).collect();
                let labels: Vec<FollowedLabel<'_>> =
                    items.iter().filter_map(|item| followed(item)).collect();
                let up_to = items.iter().rev().find_map(|item| item.seq);
                store.take(labeler, &labels, up_to)?;
                progress.done();
            }
        }
        Ok(())
    }

    /// The number of first items that are passed on, if this many may be: a store takes no part of a message.
    pub(crate) fn whole(&self, items: &[JudgedItem], count: usize) -> usize {
        let is_inside = |item: &JudgedItem| item.label.is_some() && item.seq.is_none();
        let rest = match self {
            Self::Store(_) => count.checked_sub(1).map_or(&[][..], |last| &items[last..]),
            _ => &[],
        };
        count + rest.iter().take_while(|item| is_inside(item)).count()
    }

    /// Stores the labels that were taken and are not stored yet.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match self {
            Self::Store(store) => store.finish(),
            _ => Ok(()),
        }
    }
}

/// The label of a line, for a store.
fn followed(item: &JudgedItem) -> Option<FollowedLabel<'_>> {
    let label = item.label.as_ref()?;
    let (seq, index) = label.place;
    let (code, key, judged_micros) = (label.code, label.key, label.judged);
    Some(FollowedLabel { seq, index, bytes: &label.bytes, code, key, judged_micros })
}

/// A label, of which another one with the same id and bytes is a repetition, whatever its verdict.
fn new_event(
    service: &str,
    item: &JudgedItem,
    line: &[u8],
) -> Option<Result<NewEvent, InvalidPayload>> {
    let label = item.label.as_ref()?;
    let payload = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    let event = NewEvent::new(label.id.clone(), service, payload);
    Some(event.map(|event| event.compared_by_source(&label.digest)))
}
