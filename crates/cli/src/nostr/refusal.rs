//! Why an event is refused, and the code of the reason.

use std::fmt;

use nostr::{DecodeError, EventFault};
use nostr_files::EntryFault;

/// Why an event is refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Unreadable(DecodeError),
    /// Tables of a database do not agree.
    Database(EntryFault),
    Invalid(EventFault),
    /// A relay sent an event that was not requested.
    Unmatched,
}

impl Refusal {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Unreadable(_) => "event/unreadable",
            Self::Database(fault) => fault.code(),
            Self::Invalid(EventFault::Id) => "event/id",
            Self::Invalid(EventFault::IdForm(_)) => "event/id-form",
            Self::Invalid(EventFault::Signature(_)) => "signature/wrong",
            Self::Invalid(_) => "event/refused",
            Self::Unmatched => "event/unmatched",
        }
    }
}

impl From<EntryFault> for Refusal {
    fn from(fault: EntryFault) -> Self {
        match fault {
            EntryFault::Unreadable(error) => Self::Unreadable(error),
            fault => Self::Database(fault),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Database(fault) => fault.fmt(f),
            Self::Invalid(fault) => fault.fmt(f),
            Self::Unmatched => f.write_str("the event does not match the filter"),
        }
    }
}
