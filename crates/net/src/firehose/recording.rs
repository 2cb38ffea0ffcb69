//! What did a batch change? A state that notes what the judge stores.

use atproto::event;
use atproto::syntax::Did;
use verify::sync::{AccountState, ChainState};

use super::ack::States;
use super::item::Numbers;

/// A state, and what was stored in it.
#[derive(Debug)]
pub(super) struct RecordingState<'s, S> {
    pub(super) state: &'s mut S,
    pub(super) numbers: &'s Numbers,
    /// What is to be journaled; `None` if nothing is.
    pub(super) stored: Option<States>,
}

impl<'s, S> RecordingState<'s, S> {
    pub(super) fn new(state: &'s mut S, numbers: &'s Numbers, is_kept: bool) -> Self {
        Self { state, numbers, stored: is_kept.then(Vec::new) }
    }
}

impl<S: ChainState> RecordingState<'_, S> {
    /// Notes what a host says of an account, if that is one and it is news.
    pub(super) fn set_active(&mut self, event: &event::Account<'_>) -> Result<(), S::Error> {
        match Did::parse(event.did) {
            Ok(did) => self.change(did.as_str(), |account| account.is_active = event.active),
            Err(_) => Ok(()),
        }
    }

    /// Changes what is known of one account.
    pub(super) fn change(
        &mut self,
        did: &str,
        change: impl FnOnce(&mut AccountState),
    ) -> Result<(), S::Error> {
        let mut accounts = [AccountState::UNKNOWN];
        self.load_many(&[did], &mut accounts)?;
        let [before] = accounts;
        let mut account = before;
        change(&mut account);
        if account == before { Ok(()) } else { self.store_many(&[(did, account)]) }
    }
}

impl<S: ChainState> ChainState for RecordingState<'_, S> {
    type Error = S::Error;

    fn load_many(&mut self, dids: &[&str], accounts: &mut [AccountState]) -> Result<(), S::Error> {
        self.state.load_many(dids, accounts)
    }

    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), S::Error> {
        self.state.store_many(changed)?;
        if let Some(stored) = &mut self.stored {
            let note = |(did, account): &(&str, AccountState)| {
                (self.numbers.of(Some(did)), Box::from(*did), *account)
            };
            stored.extend(changed.iter().map(note));
        }
        Ok(())
    }
}
