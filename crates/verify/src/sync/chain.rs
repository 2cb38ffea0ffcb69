//! Does a valid commit continue what is stored, and does it say truly where it started?

use atproto::event::{Action, Commit};
use codec::Cid;

use super::claim::{Claim, Opened};
use super::evidence::Evidence;
use super::outcome::{Chain, ChainBreak, Leniency};
use super::policy::Policy;
use super::proof;
use super::rejection::SyncRejection;
use super::state::{AccountState, Head, SyncState};

/// Rows 13 to 17 of an event whose commit object is proved.
pub(super) fn check<'a>(
    claim: &Claim<'a>,
    event: &'a Commit<'a>,
    opened: &Opened<'a>,
    account: &AccountState,
    evidence: &mut Evidence<'a, '_>,
) -> Result<Chain, SyncRejection<'a>> {
    let policy = evidence.policy;
    let chain = compare(claim, event, account, policy);
    let leniency = match origin(event, account.head.as_ref(), policy)? {
        Origin::Untold(leniency) => leniency,
        Origin::Tree(origin) => match proof::compare(evidence.undo(event, opened), event, origin) {
            Ok(()) => return Ok(chain),
            Err(_) if may_fail(policy, chain) => Leniency::FailedInversion,
            Err(rejection) => return Err(rejection),
        },
    };
    proof::look_up(event, opened.object.data)?;
    Ok(if chain == Chain::Intact { Chain::Unproved(leniency) } else { chain })
}

/// A failed inversion is only taken where the chain tells as much as it can.
fn may_fail(policy: &Policy, chain: Chain) -> bool {
    policy.accept_failed_inversion && !matches!(chain, Chain::Broken(_))
}

/// Where an event says that it started.
enum Origin {
    /// At this tree.
    Tree(Cid),
    /// Somewhere: a leniency takes that.
    Untold(Leniency),
}

/// Row 13. The first commit of all may leave out that it starts at the empty tree.
fn origin<'a>(
    event: &Commit<'a>,
    stored: Option<&Head>,
    policy: &Policy,
) -> Result<Origin, SyncRejection<'a>> {
    match (event.prev_data, lacks_prev(event)) {
        (Some(tree), false) => Ok(Origin::Tree(tree)),
        (Some(_), true) => Ok(Origin::Untold(Leniency::OpsWithoutPrev)),
        (None, false) if event.since.is_none() && stored.is_none() => {
            Ok(Origin::Tree(proof::empty_tree()))
        }
        (None, _) if policy.accept_missing_prev_data => {
            Ok(Origin::Untold(Leniency::MissingPrevData))
        }
        (None, _) => Err(SyncRejection::PrevDataMissing),
    }
}

/// Whether [`check`] may want the operations undone, whatever the state.
pub(super) fn may_be_undone(event: &Commit<'_>) -> bool {
    !lacks_prev(event) && (event.prev_data.is_some() || event.since.is_none())
}

/// Whether some record that was there is not told, so that the operations cannot be undone.
fn lacks_prev(event: &Commit<'_>) -> bool {
    event.ops.iter().any(|op| op.action != Action::Create && op.prev.is_none())
}

/// Rows 14 and 15.
fn compare(
    claim: &Claim<'_>,
    event: &Commit<'_>,
    account: &AccountState,
    policy: &Policy,
) -> Chain {
    let Some(head) = account.head else { return Chain::FirstSeen };
    if claim.since != Some(head.rev) && !policy.accept_since_mismatch {
        return Chain::Broken(ChainBreak::Since { since: claim.since, stored: head.rev });
    }
    match event.prev_data {
        Some(prev_data) if prev_data != head.data => {
            Chain::Broken(ChainBreak::PrevData { prev_data, stored: head.data })
        }
        _ if account.sync != SyncState::Synchronized => Chain::StillDesynchronized,
        _ => Chain::Intact,
    }
}
