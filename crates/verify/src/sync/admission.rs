//! Is the event wanted at all? What can be told from the account's state before its key is used.

use super::claim::Claim;
use super::keys::AccountKey;
use super::outcome::{Ignored, Outcome};
use super::policy::Policy;
use super::rejection::SyncRejection;
use super::state::AccountState;
use atproto::syntax::Tid;

/// What time it is, and how far ahead of that a revision may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) now_micros: u64,
    pub(super) window_micros: u64,
}

impl Now {
    pub(super) fn new(now_micros: u64, policy: &Policy) -> Self {
        Self { now_micros, window_micros: policy.future_window_micros }
    }

    fn check<'a>(self, rev: Tid) -> Result<(), SyncRejection<'a>> {
        let Self { now_micros, window_micros } = self;
        if rev.micros() > now_micros.saturating_add(window_micros) {
            return Err(SyncRejection::FutureRev { rev, now_micros, window_micros });
        }
        Ok(())
    }
}

/// Rows 4 to 7. What is not admitted now will not be after later events of the account either,
/// because a stored revision only grows.
pub(super) fn check<'a>(
    claim: &Claim<'a>,
    key: AccountKey,
    account: &AccountState,
    now: Now,
) -> Result<(), Outcome<'a>> {
    if key == AccountKey::OtherHost {
        return Err(SyncRejection::Host.into());
    }
    if !account.is_active {
        return Err(Ignored::Inactive.into());
    }
    if let Some(head) = account.head
        && claim.rev <= head.rev
    {
        return Err(Ignored::Stale { rev: claim.rev, stored: head.rev }.into());
    }
    Ok(now.check(claim.rev)?)
}
