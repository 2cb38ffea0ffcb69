//! The events that a format cannot hold, named so that no sum omits one silently.

use std::fmt::Display;

use kernels::hex;
use nostr::Event;
use serde::Serialize;

/// The events that a format cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unheld {
    /// Number of events.
    pub events: u64,
    /// The first of them, at most 100.
    pub named: Vec<UnheldEvent>,
}

/// An event that a format cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnheldEvent {
    /// The id in hexadecimal.
    pub id: String,
    /// The kind.
    pub kind: u16,
    /// The encoder's or decoder's reason.
    #[serde(rename = "message")]
    pub reason: String,
}

impl Unheld {
    /// Whether the format can hold every event.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    pub(crate) fn add(&mut self, event: &Event<'_>, reason: impl Display) {
        self.events += 1;
        if self.named.len() < MAX_NAMED {
            let (id, reason) = (hex::encode(&event.id), reason.to_string());
            self.named.push(UnheldEvent { id, kind: event.kind, reason });
        }
    }

    /// The number of events, and the first of them with their reasons; `None` without events.
    pub fn note(&self) -> Option<String> {
        let named = self.named.iter().take(IN_NOTE);
        let named =
            named.map(|UnheldEvent { id, kind, reason }| format!("{id} of kind {kind}: {reason}"));
        let mut named: Vec<_> = named.collect();
        let others = self.events.saturating_sub(IN_NOTE as u64);
        named.extend((others > 0).then(|| format!("and {others} more")));
        let amount =
            if self.events == 1 { "1 event".to_owned() } else { format!("{} events", self.events) };
        (!self.is_empty())
            .then(|| format!("without {amount} that it cannot hold: {}", named.join("; ")))
    }
}

/// Named events are at most this many: a file may have any number.
const MAX_NAMED: usize = 100;
/// Events in a note.
const IN_NOTE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_the_first_events_and_counts_the_others() {
        let event = Event {
            id: [0xab; 32],
            pubkey: [2; 32],
            created_at: 3,
            kind: 7,
            tags: &[],
            content: "",
            sig: [4; 64],
        };
        let mut unheld = Unheld::default();
        assert_eq!(unheld.note(), None);
        unheld.add(&event, "too long");
        let named = format!("{} of kind 7: too long", "ab".repeat(32));
        assert_eq!(unheld.note().unwrap(), format!("without 1 event that it cannot hold: {named}"));
        (0..200).for_each(|_| unheld.add(&event, "too long"));
        assert_eq!((unheld.events, unheld.named.len()), (201, 100));
        let three = [&named[..]; 3].join("; ");
        assert_eq!(
            unheld.note().unwrap(),
            format!("without 201 events that it cannot hold: {three}; and 198 more")
        );
    }
}
