//! Gaps in a batch: the events of an account after one, which wait for its repository, and the state of the account
//! before them.

use atproto::commit::Commit as CommitObject;
use atproto::event::Block;
use atproto::syntax::Tid;
use codec::{Cid, CidRef};
use verify::sync::{Chain, Head, Judged, Outcome, SyncEffect};

use super::queue::QueuedEvent;

/// The events of an account that follow a gap in their batch.
#[derive(Debug)]
pub(super) struct AfterGap<'e> {
    pub(super) account: u64,
    pub(super) did: &'e str,
    /// The index in the batch of the first of them.
    pub(super) from: usize,
    /// The head of the account before it.
    pub(super) head: Head,
}

/// The events after gaps, of accounts whose resync starts with this batch. An event waits once: after a resync that
/// failed or took too long it is delivered unchanged.
pub(super) fn events_after_gaps<'e>(
    events: &'e [QueuedEvent],
    judged: &[Judged<'_>],
    is_delivered: impl Fn(usize) -> bool,
    starts_resync: impl Fn(u64, &str) -> bool,
) -> Vec<AfterGap<'e>> {
    let mut all: Vec<AfterGap<'e>> = Vec::new();
    let gaps = (0..).zip(events.iter().zip(judged)).filter(|(_, (_, of))| is_gap(&of.outcome));
    for (gap, (event, _)) in gaps.filter(|(at, _)| is_delivered(*at)) {
        let account = event.account;
        let Some(did) = event.received.did() else { continue };
        if all.iter().any(|known| known.account == account) || !starts_resync(account, did) {
            continue;
        }
        let is_next = |event: &QueuedEvent| event.account == account && !event.has_waited;
        let Some(next) = events[gap + 1..].iter().position(is_next) else { continue };
        let from = gap + 1 + next;
        let before = events[gap..from].iter().zip(&judged[gap..from]).rev();
        let mut heads = before.filter(|(event, _)| event.account == account);
        if let Some(head) = heads.find_map(|(_, of)| head_after(&of.outcome)) {
            all.push(AfterGap { account, did, from, head });
        }
    }
    all
}

/// Whether an account misses events before this one.
pub(super) fn is_gap(outcome: &Outcome<'_>) -> bool {
    matches!(
        outcome,
        Outcome::Commit(_, Chain::Broken(_) | Chain::StillDesynchronized)
            | Outcome::Sync(_, SyncEffect::Desynchronized)
    )
}

/// The head of an account after an accepted event.
fn head_after(outcome: &Outcome<'_>) -> Option<Head> {
    match outcome {
        Outcome::Commit(commit, _) => head_of(commit.root, commit.rev, commit.blocks),
        Outcome::Sync(sync, _) => head_of(sync.root, sync.rev, sync.blocks),
        _ => None,
    }
}

fn head_of(root: Option<CidRef<'_>>, rev: &str, blocks: &[Block<'_>]) -> Option<Head> {
    let commit: Cid = root?.to_cid()?;
    let block = blocks.iter().find(|block| block.cid == commit.as_cid_ref())?;
    let data = CommitObject::parse(block.data).ok()?.data;
    Some(Head { rev: Tid::parse(rev).ok()?, data, commit })
}
