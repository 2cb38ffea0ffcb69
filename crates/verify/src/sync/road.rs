//! The order of the checks: what is cheap first, the signature before anything that changes state,
//! the state last.

use atproto::event::{Commit, Sync};

use super::admission::{self, Now};
use super::chain;
use super::claim::{Claim, Message, Opened};
use super::evidence::Evidence;
use super::keys::AccountKey;
use super::outcome::{Chain, Outcome, SyncEffect};
use super::rejection::SyncRejection;
use super::state::{AccountState, Head, SyncState};
use crate::Verified;

/// Judges an event of an account, and advances the account if the event is valid.
pub(super) fn judge<'a>(
    claim: &Claim<'a>,
    key: AccountKey,
    account: &mut AccountState,
    now: Now,
    evidence: Evidence<'a, '_>,
) -> Outcome<'a> {
    walk(claim, key, account, now, evidence).unwrap_or_else(|other| other)
}

fn walk<'a>(
    claim: &Claim<'a>,
    key: AccountKey,
    account: &mut AccountState,
    now: Now,
    mut evidence: Evidence<'a, '_>,
) -> Result<Outcome<'a>, Outcome<'a>> {
    admission::check(claim, key, account, now)?;
    let opened = evidence.open(claim)?;
    check_signature(&opened, key, &mut evidence)?;
    let head = Head { rev: claim.rev, data: opened.object.data, commit: opened.root };
    match claim.message {
        Message::Sync(event) => Ok(accept_sync(event, head, account)),
        Message::Commit(event) => {
            let chain = chain::check(claim, event, &opened, account, &mut evidence)?;
            Ok(accept_commit(event, chain, head, account))
        }
    }
}

/// Row 11.
fn check_signature<'a>(
    opened: &Opened<'a>,
    key: AccountKey,
    evidence: &mut Evidence<'a, '_>,
) -> Result<(), SyncRejection<'a>> {
    match key {
        AccountKey::Known(key) => evidence.verify(opened, key).map_err(SyncRejection::Signature),
        AccountKey::Unknown | AccountKey::OtherHost => Err(SyncRejection::NoKey),
    }
}

fn accept_commit<'a>(
    event: &'a Commit<'a>,
    chain: Chain,
    head: Head,
    account: &mut AccountState,
) -> Outcome<'a> {
    account.head = Some(head);
    if matches!(chain, Chain::Broken(_)) {
        account.sync = SyncState::Desynchronized;
    }
    Outcome::Commit(Verified::vouch(event), chain)
}

fn accept_sync<'a>(event: &'a Sync<'a>, head: Head, account: &mut AccountState) -> Outcome<'a> {
    let effect = match account.head.replace(head) {
        None => SyncEffect::FirstSeen,
        Some(stored) if stored.data == head.data => SyncEffect::Unchanged,
        Some(_) => {
            account.sync = SyncState::Desynchronized;
            SyncEffect::Desynchronized
        }
    };
    Outcome::Sync(Verified::vouch(event), effect)
}
