//! The verdicts on a batch of received events, and their lines.

use std::sync::{Arc, Mutex, PoisonError};

use codec::printable::escape_json;
use events::{RelayLine, Verdict};
use kernels::hex;
use nostr::canonical::ControlChars;
use nostr::negentropy::{Item, Items};
use nostr::{
    Arena, DecodeError, Event, EventFault, Filter, IdSerialization, Limits, verify_many_with,
};
use nostr_formats::Format;
use nostr_relay::{RelayEvent, RelayItem, RelayNotice};

use crate::options::LineForm;
use crate::receive::{Batch, Received};
use crate::refusal::EventRefusal;
use crate::seen::SeenIds;
use program::controls::escape_controls;

/// Judges batches, on several threads.
pub(crate) struct Judge {
    pub(crate) filter: Filter,
    pub(crate) ids: IdSerialization,
    /// Events that are known from files.
    pub(crate) known: Option<Arc<Items>>,
    /// The ids of valid events that came before.
    pub(crate) seen: Arc<Mutex<SeenIds>>,
    pub(crate) form: LineForm,
    /// The names of the relays.
    pub(crate) names: Vec<String>,
}

/// The verdicts on a batch.
pub(crate) struct JudgedBatch {
    pub(crate) items: Vec<JudgedItem>,
    /// The lines of the items, one after the other.
    pub(crate) lines: Vec<u8>,
    /// The bytes in flight, until the lines are passed on.
    _batch: Batch,
}

/// The verdict on a message of a relay.
pub(crate) struct JudgedItem {
    pub(crate) relay: usize,
    pub(crate) outcome: Outcome,
    /// The time up to which the relay is followed after this item.
    pub(crate) resume: Option<u64>,
    /// The end of its line in the lines of the batch.
    pub(crate) end: usize,
}

pub(crate) enum Outcome {
    Valid {
        id: [u8; 32],
        author: [u8; 32],
    },
    /// An event that was known or came before; it is not verified again.
    Repeated,
    Refused(EventRefusal, Option<[u8; 32]>),
    Notice(RelayNotice),
}

impl Judge {
    /// A function that judges batches one after the other.
    pub(crate) fn worker(&self) -> impl FnMut(Batch) -> JudgedBatch {
        let mut arena = Arena::new();
        move |batch: Batch| {
            let (mut items, mut lines) = (Vec::with_capacity(batch.items.len()), Vec::new());
            let mut rest = &*batch.items;
            while !rest.is_empty() {
                let (group, later) = rest.split_at(group_len(rest));
                arena.reset();
                self.judge(group, &arena, &mut items, &mut lines);
                rest = later;
            }
            JudgedBatch { items, lines, _batch: batch }
        }
    }

    /// Appends the verdicts on a group, and the lines.
    fn judge(
        &self,
        group: &[Received],
        arena: &Arena,
        items: &mut Vec<JudgedItem>,
        lines: &mut Vec<u8>,
    ) {
        let decoded = self.decode(group, arena);
        let fresh = decoded.iter().flatten().filter_map(|decoded| match decoded {
            Decoded::Fresh(event) => Some(*event),
            _ => None,
        });
        let fresh: Vec<Event<'_>> = fresh.collect();
        let mut verdicts = verify_many_with(&fresh, self.ids).into_iter();
        for (Received { relay, item, .. }, decoded) in group.iter().zip(decoded) {
            let outcome = match (item, decoded) {
                (_, Some(Decoded::Fresh(event))) => {
                    let verdict = verdicts.next().expect("one for each fresh event");
                    outcome(event, verdict)
                }
                (_, Some(Decoded::Repeated)) => Outcome::Repeated,
                (_, Some(Decoded::Refused(refusal, id))) => Outcome::Refused(refusal, id),
                (RelayItem::Notice(notice), None) => Outcome::Notice(notice.clone()),
                // There is nothing else.
                (_, None) => continue,
            };
            self.write_line(*relay, item, &outcome, lines);
            let resume = match item {
                RelayItem::Event(event) => event.resume,
                RelayItem::Notice(RelayNotice::EndOfStored { resume, .. }) => *resume,
                _ => None,
            };
            items.push(JudgedItem { relay: *relay, outcome, resume, end: lines.len() });
        }
    }

    /// Decodes events, and sorts out events that need no verification; `None` for notices.
    fn decode<'a>(&self, items: &'a [Received], arena: &'a Arena) -> Vec<Option<Decoded<'a>>> {
        let limits = Limits::default();
        let decode = |Received { item, .. }: &'a Received| match item {
            RelayItem::Event(RelayEvent { text, .. }) => {
                Some(Format::Json.decode(text.as_str().as_bytes(), arena, &limits))
            }
            _ => None,
        };
        let decoded: Vec<_> = items.iter().map(decode).collect();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let sort = |event: Result<Event<'a>, DecodeError>| match event {
            Err(error) => Decoded::Refused(EventRefusal::Unreadable(error), None),
            Ok(event) if !self.filter.matches(&event) => {
                Decoded::Refused(EventRefusal::Unmatched, Some(event.id))
            }
            Ok(event) if seen.contains(&event.id) || self.is_known(&event) => Decoded::Repeated,
            Ok(event) => Decoded::Fresh(event),
        };
        decoded.into_iter().map(|event| event.map(sort)).collect()
    }

    fn is_known(&self, event: &Event<'_>) -> bool {
        let item = |created_at| Item { created_at, id: event.id };
        let is_among = |known: &Arc<Items>| {
            u64::try_from(event.created_at).is_ok_and(|at| known.contains(&item(at)))
        };
        self.known.as_ref().is_some_and(is_among)
    }

    /// Appends the line of an item, if it has one.
    fn write_line(&self, relay: usize, item: &RelayItem, outcome: &Outcome, lines: &mut Vec<u8>) {
        let start = lines.len();
        let has_verdicts = self.form == LineForm::Verdicts;
        match (outcome, item) {
            (Outcome::Valid { .. }, RelayItem::Event(event)) if has_verdicts => {
                let write = |lines: &mut Vec<u8>| write_event(event, self.form, lines);
                self.judged(relay, Verdict::Verified, outcome).append(lines, Some(write));
            }
            (Outcome::Valid { .. }, RelayItem::Event(event)) => {
                write_event(event, self.form, lines);
            }
            (Outcome::Refused(refusal, id), _) if has_verdicts => {
                let line = RelayLine {
                    id: id.map(|id| hex::encode(&id).into()),
                    message: Some(refusal.to_string().into()),
                    ..self.judged(relay, Verdict::Refused, outcome)
                };
                line.append(lines, NO_EVENT);
            }
            (Outcome::Notice(notice), _) if has_verdicts => {
                self.about(relay, notice).append(lines, NO_EVENT);
            }
            _ => return,
        }
        if has_verdicts {
            escape_json(lines, start)
        } else {
            escape_controls(lines, start)
        }
        lines.push(b'\n');
    }

    /// A line about a relay.
    fn line<'l>(&'l self, relay: usize, kind: &'static str) -> RelayLine<'l> {
        let relay = self.names[relay].as_str().into();
        RelayLine { v: 1, relay, kind: kind.into(), ..RelayLine::default() }
    }

    /// A line with the verdict on an event.
    fn judged(&self, relay: usize, verdict: Verdict, outcome: &Outcome) -> RelayLine<'_> {
        let code = Some(outcome.code().into());
        RelayLine { verdict: Some(verdict), code, ..self.line(relay, "event") }
    }

    /// A line with a message about a relay.
    fn about<'l>(&'l self, relay: usize, notice: &'l RelayNotice) -> RelayLine<'l> {
        let line = self.line(relay, notice.name());
        match notice {
            RelayNotice::Compared { missing, .. } => {
                RelayLine { missing: Some(*missing as u64), ..line }
            }
            RelayNotice::Fetched { withheld } => {
                RelayLine { withheld: Some(*withheld as u64), ..line }
            }
            RelayNotice::Closed(reason) => {
                let prefix = Some(&*reason.prefix).filter(|prefix| !prefix.is_empty());
                let prefix = prefix.map(Into::into);
                RelayLine { prefix, message: Some(reason.message.as_str().into()), ..line }
            }
            RelayNotice::AuthRequested { challenge } => {
                RelayLine { message: Some(challenge.as_str().into()), ..line }
            }
            RelayNotice::Message(text) => RelayLine { message: Some(text.as_str().into()), ..line },
            RelayNotice::EndOfStored { gap: None, .. } => {
                RelayLine { complete: Some(true), ..line }
            }
            RelayNotice::EndOfStored { gap: Some(gap), .. } => {
                let message = Some(gap.to_string().into());
                RelayLine { complete: Some(false), message, ..line }
            }
            notice => {
                let message = crate::taker::notice_text(notice);
                RelayLine { message: Some(message.into()), ..line }
            }
        }
    }
}

/// No event in a line.
const NO_EVENT: Option<fn(&mut Vec<u8>)> = None;

/// Number of items, at least one, whose events are in memory together in decoded form.
fn group_len(items: &[Received]) -> usize {
    let mut bytes = 0;
    let is_in_group = |received: &&Received| {
        let is_in_group = bytes < GROUP_BYTES;
        bytes += received.byte_len();
        is_in_group
    };
    items.iter().take_while(is_in_group).count()
}

/// An event before its verification.
enum Decoded<'a> {
    Fresh(Event<'a>),
    Repeated,
    Refused(EventRefusal, Option<[u8; 32]>),
}

fn outcome(event: Event<'_>, verdict: Result<ControlChars, EventFault>) -> Outcome {
    match verdict {
        Ok(_) => Outcome::Valid { id: event.id, author: event.pubkey },
        Err(fault) => Outcome::Refused(EventRefusal::Invalid(fault), Some(event.id)),
    }
}

impl Outcome {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal, _) => refusal.code(),
            _ => "verified",
        }
    }
}

/// Appends the event, as it was received if the form allows it and that is one line.
fn write_event(event: &RelayEvent, form: LineForm, lines: &mut Vec<u8>) {
    let text = event.text.as_str().as_bytes();
    if form != LineForm::Canonical && !text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return lines.extend_from_slice(text);
    }
    let arena = Arena::new();
    let decoded = Format::Json.decode(text, &arena, &Limits::default());
    let decoded = decoded.expect("it was decoded to be verified");
    Format::Json.encode(&decoded, lines).expect("JSON holds every event");
}

/// Size of the events that are decoded together, in bytes.
const GROUP_BYTES: usize = 4 << 20;
