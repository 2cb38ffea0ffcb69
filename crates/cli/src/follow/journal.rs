//! What survives the end of the process? What the state file keeps.

use std::sync::Arc;

use wireproof::net::firehose::{Journal, JournalError};
use wireproof::store::Store;
use wireproof::verify::sync::AccountState;

use super::keys::StoredKeys;

/// A state file as a journal: cursors and accounts in one step, and the keys that were found meanwhile.
pub(super) struct StateFile {
    pub(super) store: Store,
    /// None if they are not kept.
    pub(super) keys: Option<Arc<StoredKeys>>,
    /// Where to begin with a stream that has no cursor.
    pub(super) first: Option<u64>,
}

impl Journal for StateFile {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        let stored = self.store.cursor(stream).map_err(JournalError::new)?;
        Ok(stored.or(self.first))
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        self.store.checkpoint(cursors, accounts).map_err(JournalError::new)?;
        match &self.keys {
            Some(keys) => keys.write().map_err(JournalError::new),
            None => Ok(()),
        }
    }
}
