//! The accounts of a mirror in the order of their DIDs, with their operations, read in pages.

use std::collections::VecDeque;

use store::{MirroredOperation, PlcMirrorReader, StoreError};

/// An account and its operations, in the order of its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) did: String,
    pub(crate) operations: Vec<MirroredOperation>,
}

/// Reads accounts one after the other.
pub(crate) struct Accounts<'m> {
    mirror: &'m PlcMirrorReader,
    rows: VecDeque<MirroredOperation>,
    /// The DID and the place of the last row that was read.
    last: (String, u64),
    has_more: bool,
}

impl<'m> Accounts<'m> {
    pub(crate) fn new(mirror: &'m PlcMirrorReader) -> Self {
        Self { mirror, rows: VecDeque::new(), last: (String::new(), 0), has_more: true }
    }

    /// The next account.
    pub(crate) fn next(&mut self) -> Result<Option<Account>, StoreError> {
        let Some(first) = self.next_row()? else { return Ok(None) };
        let mut account = Account { did: first.did.clone(), operations: vec![first] };
        loop {
            if self.rows.is_empty() {
                self.fill()?;
            }
            let is_of_account = self.rows.front().is_some_and(|row| row.did == account.did);
            if !is_of_account {
                return Ok(Some(account));
            }
            account.operations.extend(self.rows.pop_front());
        }
    }

    fn next_row(&mut self) -> Result<Option<MirroredOperation>, StoreError> {
        if self.rows.is_empty() {
            self.fill()?;
        }
        Ok(self.rows.pop_front())
    }

    fn fill(&mut self) -> Result<(), StoreError> {
        if !self.has_more {
            return Ok(());
        }
        let page = self.mirror.operations_after_place(&self.last.0, self.last.1, PAGE)?;
        self.has_more = page.len() == PAGE;
        if let Some(last) = page.last() {
            self.last = (last.did.clone(), last.number);
        }
        self.rows = page.into();
        Ok(())
    }
}

/// Number of rows that are read at a time.
const PAGE: usize = 2_000;
