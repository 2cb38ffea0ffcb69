//! A record of a database, why it has no event, and how its event is compared with its row.

use kernels::hex;
use nostr::{DecodeError, Event};
use nostr_formats::packed_event::{self, PackedEvent};

/// A database's data of an event under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: u64,
    /// Length in bytes of the event, which is appended first. 0 if there is none.
    pub event_len: usize,
    /// Length in bytes of the summary in strfry's table `Event`, which is appended after the event. 0 if there is nothing to compare.
    pub summary_len: usize,
    /// Why it is no event of the database.
    pub fault: Option<RecordFault>,
}

/// Why a record is no event of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFault {
    /// Its value does not have the bytes of an event.
    Value(DecodeError),
    /// A row of strfry's table `Event` with the summary of the event with this id, and no payload.
    NoPayload([u8; 32]),
    /// A payload without a row in the table `Event`, so that strfry does not find it. Its event is appended.
    NoRow,
    /// The row in the table `Event` is no summary. The event is appended.
    MalformedRow,
}

/// The field in which an event differs from the summary in its row, by which strfry finds it.
pub fn difference(event: &Event<'_>, summary: &[u8]) -> Option<&'static str> {
    let Ok(row) = PackedEvent::new(summary) else { return Some("length") };
    let fields = [
        ("id", row.id() == &event.id),
        ("pubkey", row.pubkey() == &event.pubkey),
        ("created_at", row.created_at() == event.created_at),
        ("kind", row.kind() == event.kind),
    ];
    if let Some((name, _)) = fields.into_iter().find(|(_, is_equal)| !is_equal) {
        return Some(name);
    }
    let mut expected = Vec::with_capacity(summary.len());
    // An event that strfry would refuse now has no summary to compare the rest with.
    let encoded = packed_event::encode(event, &mut expected);
    (encoded.is_ok() && expected != summary).then_some("tags or expiration")
}

/// The id in a summary, as far as it has one.
pub(crate) fn id_of(summary: &[u8]) -> [u8; 32] {
    summary.first_chunk().copied().unwrap_or_default()
}

impl std::fmt::Display for RecordFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(fault) => fault.fmt(f),
            Self::NoPayload(id) => {
                write!(
                    f,
                    "table Event has the event {}, and EventPayload has no payload",
                    hex::encode(id)
                )
            }
            Self::NoRow => f.write_str("table EventPayload has this event, and Event has no row"),
            Self::MalformedRow => f.write_str("the row in table Event is no summary of an event"),
        }
    }
}
