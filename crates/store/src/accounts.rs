//! What is known of an account, in memory or in the file?

use std::sync::Arc;

use rusqlite::Connection;
use verify::sync::{AccountState, ChainState};

use crate::error::{StoreError, StoreFault};
use crate::overlay::Overlay;
use crate::row;
use crate::store::Store;

/// The accounts of a [`Store`](crate::Store), as a judge needs them. One for each judge; all of them
/// see the same.
///
/// What is stored here is in memory alone until it is given to
/// [`Store::checkpoint`](crate::Store::checkpoint).
#[derive(Debug)]
pub struct StoreState {
    pub(crate) overlay: Arc<Overlay>,
    pub(crate) reader: Connection,
    // Keeps the file open.
    pub(crate) store: Store,
}

impl ChainState for StoreState {
    type Error = StoreError;

    fn load_many(
        &mut self,
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), StoreError> {
        let mut missing = Vec::new();
        for (place, did) in dids.iter().enumerate() {
            match self.overlay.get(did) {
                Some(known) => accounts[place] = known,
                None => missing.push(place),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let read = self.read(&missing, dids, accounts);
        read.map_err(StoreError::at(self.store.path()))
    }

    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), StoreError> {
        changed.iter().for_each(|(did, account)| self.overlay.change(did, *account));
        Ok(())
    }
}

impl StoreState {
    /// Reads the accounts at these places, all of them from one state of the file.
    fn read(
        &self,
        places: &[usize],
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), StoreFault> {
        let reading = self.reader.unchecked_transaction()?;
        for &place in places {
            accounts[place] = row::read(&reading, dids[place])?.unwrap_or_default();
            self.overlay.remember(dids[place], accounts[place]);
        }
        Ok(reading.commit()?)
    }
}
