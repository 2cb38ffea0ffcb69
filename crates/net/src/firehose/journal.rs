//! The journal: where a run stores its cursors and account states, to resume after a restart.

use std::error::Error;
use std::sync::Arc;

use verify::sync::AccountState;

use crate::cursors::CursorStore;

/// Stores cursors and account states durably.
///
/// A checkpoint is consistent: every event up to a cursor is acknowledged, and so is every event that led to
/// an account state. Losing one costs repeated events. But it must not be stored partially, nor changed by
/// anything else: with a stored state ahead of the handled events, unhandled events would be ignored as old.
pub trait Journal: Send + Sync + 'static {
    /// The cursor of a stream, by its [name](crate::cursors::stream_name).
    ///
    /// # Errors
    /// If the journal cannot be read.
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError>;

    /// Stores the cursors of streams and the states of accounts, atomically. On return they are durable.
    /// Called on a thread of its own, at intervals even with nothing to store; every stream and account occurs at
    /// most once.
    ///
    /// # Errors
    /// If they cannot be stored, or the stored data is no longer in place. The run ends. If the journal is intact, it
    /// must hold the previous checkpoint.
    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError>;

    /// Whether account states are stored. If not, none are collected.
    fn keeps_accounts(&self) -> bool {
        true
    }
}

/// Why a journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JournalError(Box<dyn Error + Send + Sync>);

impl JournalError {
    /// An error with this cause.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl<J: Journal> Journal for Arc<J> {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        J::cursor(self, stream)
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        J::checkpoint(self, cursors, accounts)
    }

    fn keeps_accounts(&self) -> bool {
        J::keeps_accounts(self)
    }
}

/// A journal of cursors only: the next run starts without account states.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorsOnly<C>(pub C);

impl<C: CursorStore + 'static> Journal for CursorsOnly<C> {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        self.0.load(stream).map_err(JournalError::new)
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        _: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        match cursors {
            [] => Ok(()),
            cursors => self.0.store(cursors).map_err(JournalError::new),
        }
    }

    fn keeps_accounts(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursors::MemoryCursors;

    #[test]
    fn a_journal_of_cursors_keeps_no_accounts_shared_or_not() {
        let journal = CursorsOnly(MemoryCursors::default());
        assert!(!journal.keeps_accounts());
        assert!(!Arc::new(journal).keeps_accounts());
    }
}
