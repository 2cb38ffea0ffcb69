//! Why an event of a relay is refused, and the code of the reason.

use std::fmt;

use nostr::{DecodeError, EventFault};

/// Why an event is refused.
#[derive(Clone, Copy, Debug)]
pub enum EventRefusal {
    /// It cannot be read.
    Unreadable(DecodeError),
    /// Its id or its signature is wrong.
    Invalid(EventFault),
    /// It was not requested.
    Unmatched,
}

impl EventRefusal {
    /// The code: `docs/formats/codes.md` lists all.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unreadable(_) => "event/unreadable",
            Self::Invalid(EventFault::Id) => "event/id",
            Self::Invalid(EventFault::IdForm(_)) => "event/id-form",
            Self::Invalid(EventFault::Signature(_)) => "signature/wrong",
            Self::Invalid(_) => "event/refused",
            Self::Unmatched => "event/unmatched",
        }
    }
}

impl fmt::Display for EventRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Invalid(fault) => fault.fmt(f),
            Self::Unmatched => f.write_str("the event does not match the filter"),
        }
    }
}
