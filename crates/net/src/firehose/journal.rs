//! Who remembers, beyond the end of the process, how far we came?

use std::error::Error;
use std::sync::Arc;

use verify::sync::AccountState;

use crate::cursors::CursorStore;

/// Keeps the cursors, and what is known of accounts, so that a later run goes on where this one ended.
///
/// What a checkpoint is given is true: everything up to a cursor is acknowledged, and so is every event
/// that made an account what it is. It may be lost, which costs repetitions; but it must not be kept in
/// part, or changed by anything else: an account on disk that is ahead of what was handled would turn
/// events that nobody has seen into old ones.
pub trait Journal: Send + Sync + 'static {
    /// The cursor of a stream, by its [name](crate::cursors::stream_name), if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError>;

    /// Keeps the cursors of these streams and what is known of these accounts, all or none. When this
    /// returns, they survive a loss of power. Called by a thread of its own; no stream and no account
    /// comes twice.
    ///
    /// # Errors
    /// If they cannot be kept; what was before is as it was. The run ends.
    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError>;

    /// Whether accounts are kept. If not, none are gathered.
    fn keeps_accounts(&self) -> bool {
        true
    }
}

/// Why a journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JournalError(Box<dyn Error + Send + Sync>);

impl JournalError {
    /// For this reason, which its text tells.
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

/// Keeps the cursors alone: the next run begins with accounts of which nothing is known.
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
        self.0.store(cursors).map_err(JournalError::new)
    }

    fn keeps_accounts(&self) -> bool {
        false
    }
}
