//! The tree of a mirror, as it was after any of its operations.
//!
//! Accounts are read in the order of their DIDs, and an entry is added when the one after it is known, so that the neighbours of an
//! absent account can be proved. The memory needed is the height of the tree.

use atproto::plc::Operation;
use atproto::syntax::{Did, DidBuf};
use codec::Cid;
use kernels::sha256::Digest;
use store::{MirroredOperation, PlcMirrorReader, StoreError, StoreFault};
use verify::checkpoint::{
    InclusionProof, MerkleTree, Neighbour, Proof, ProofSubject, entry, history_hash,
};

use crate::accounts::{Account, Accounts};

/// The tree of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorTree {
    /// The number up to which operations are part of it.
    pub cursor: u64,
    /// Number of accounts.
    pub accounts: u64,
    /// Number of operations.
    pub operations: u64,
    /// The root.
    pub root: Digest,
}

impl MirrorTree {
    /// The tree of all operations up to a number.
    ///
    /// # Errors
    /// If the mirror cannot be read, or is damaged.
    pub fn of(mirror: &PlcMirrorReader, cursor: u64) -> Result<Self, StoreError> {
        Ok(fold(mirror, cursor, None)?.0)
    }

    /// The same tree, and the proof of an account, or of its absence.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn with_proof(
        mirror: &PlcMirrorReader,
        cursor: u64,
        did: Did<'_>,
    ) -> Result<(Self, Proof), StoreError> {
        let (tree, watched, inclusions) = fold(mirror, cursor, Some(did))?;
        // One for every watched entry, in their order.
        let mut inclusions = inclusions.into_iter();
        let mut neighbour = |of: Option<Entry>| {
            let Entry { did, history } = of?;
            Some(Neighbour { did, history, inclusion: inclusions.next()? })
        };
        let subject = match watched {
            Watched::Absent { before, after } => {
                ProofSubject::Absent { before: neighbour(before), after: neighbour(after) }
            }
            Watched::Present(entry) => match neighbour(Some(entry)) {
                Some(present) => ProofSubject::Present(present.inclusion),
                None => ProofSubject::Absent { before: None, after: None },
            },
        };
        Ok((tree, Proof { did: did.to_buf(), subject }))
    }
}

/// An account in the tree.
#[derive(Clone, Debug)]
struct Entry {
    did: DidBuf,
    history: Digest,
}

/// The entries of which proofs were made.
enum Watched {
    Present(Entry),
    Absent { before: Option<Entry>, after: Option<Entry> },
}

/// The tree, the watched entries, and their proofs.
fn fold(
    mirror: &PlcMirrorReader,
    cursor: u64,
    did: Option<Did<'_>>,
) -> Result<(MirrorTree, Watched, Vec<InclusionProof>), StoreError> {
    let (mut accounts, mut tree, mut operations) = (Accounts::new(mirror), MerkleTree::new(), 0);
    let mut next_entry = || -> Result<Option<Entry>, StoreError> {
        while let Some(account) = accounts.next()? {
            if let Some((entry, count)) = entry_of(mirror, account, cursor)? {
                operations += count;
                return Ok(Some(entry));
            }
        }
        Ok(None)
    };
    let mut watched = Watched::Absent { before: None, after: None };
    let mut next = next_entry()?;
    if let (Some(first), Some(did)) = (&next, did)
        && did.as_str() < first.did.as_str()
    {
        watched = Watched::Absent { before: None, after: Some(first.clone()) };
        tree.watch_next();
    }
    while let Some(current) = next {
        next = next_entry()?;
        let is_before_next =
            |did: Did<'_>| next.as_ref().is_none_or(|next| did.as_str() < next.did.as_str());
        let mut watches_next = false;
        match did {
            Some(did) if did == current.did.as_did() => {
                watched = Watched::Present(current.clone());
                tree.watch_next();
            }
            Some(did) if current.did.as_str() < did.as_str() && is_before_next(did) => {
                watched = Watched::Absent { before: Some(current.clone()), after: next.clone() };
                tree.watch_next();
                watches_next = next.is_some();
            }
            _ => {}
        }
        tree.push(&entry(current.did.as_did(), &current.history));
        if watches_next {
            tree.watch_next();
        }
    }
    let accounts = tree.len();
    let (root, proofs) = tree.finish();
    Ok((MirrorTree { cursor, accounts, operations, root }, watched, proofs))
}

/// The entry of an account and the number of its operations, up to a number; `None` before its first operation.
fn entry_of(
    mirror: &PlcMirrorReader,
    account: Account,
    cursor: u64,
) -> Result<Option<(Entry, u64)>, StoreError> {
    let Account { did, mut operations } = account;
    let damaged =
        || StoreError::new(mirror.path(), StoreFault::Damaged(format!("history of {did}")));
    let all = operations.len();
    operations.retain(|operation| operation.seq <= cursor);
    if operations.is_empty() {
        return Ok(None);
    }
    if operations.len() < all {
        restore_flags(&mut operations).ok_or_else(damaged)?;
    }
    let cids: Option<Vec<(Cid, bool)>> =
        operations.iter().map(|of| Some((of.cid.parse().ok()?, of.nullified))).collect();
    let history = history_hash(cids.ok_or_else(damaged)?);
    let count = operations.len() as u64;
    let did = did.parse().map_err(|_| damaged())?;
    Ok(Some((Entry { did, history }, count)))
}

/// Sets which operations are nullified by the others: later ones may have nullified them since. `None` if they are no history.
fn restore_flags(operations: &mut [MirroredOperation]) -> Option<()> {
    let mut in_force: Vec<usize> = Vec::new();
    for at in 0..operations.len() {
        operations[at].nullified = false;
        let prev = Operation::parse(operations[at].json.as_bytes()).ok()?.prev();
        let kept = match prev {
            None => 0,
            Some(prev) => {
                let prev = prev.to_string();
                1 + in_force.iter().rposition(|of| operations[*of].cid == prev)?
            }
        };
        for nullified in in_force.drain(kept..) {
            operations[nullified].nullified = true;
        }
        in_force.push(at);
    }
    Some(())
}
