//! Why an event of a file is refused, and the code of the reason.

use std::fmt;

use nostr_files::EntryFault;
use nostr_follower::EventRefusal;

/// Why an event of a file is refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum FileRefusal {
    Event(EventRefusal),
    /// Tables of a database do not agree.
    Database(EntryFault),
}

impl FileRefusal {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Event(refusal) => refusal.code(),
            Self::Database(fault) => fault.code(),
        }
    }
}

impl From<EntryFault> for FileRefusal {
    fn from(fault: EntryFault) -> Self {
        match fault {
            EntryFault::Unreadable(error) => Self::Event(EventRefusal::Unreadable(error)),
            fault => Self::Database(fault),
        }
    }
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(refusal) => refusal.fmt(f),
            Self::Database(fault) => fault.fmt(f),
        }
    }
}
