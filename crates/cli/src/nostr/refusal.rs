//! Why an event is refused, and the code of the reason.

use std::fmt;

use wireproof::nostr::{DecodeError, EventFault};

/// Why an event is refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Unreadable(DecodeError),
    Invalid(EventFault),
    /// A relay sent an event that was not requested.
    Unmatched,
}

impl Refusal {
    pub(super) fn code(self) -> &'static str {
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Invalid(fault) => fault.fmt(f),
            Self::Unmatched => f.write_str("the event does not match the filter"),
        }
    }
}
