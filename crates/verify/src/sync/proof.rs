//! The operations of a commit against its signed tree: every outcome looked up at its path, and all
//! of them undone, which must lead back to the tree that the commit starts from.

use atproto::event::{BlockIndex, Commit};
use atproto::mst::inversion::{Inversion, InversionError, InversionFault, Inverter, RecordOp};
use atproto::mst::{TreeError, TreeFault, canonical};
use codec::Cid;
use codec::cid::Codec;

use super::policy::Policy;
use super::rejection::{OpFault, SyncRejection};

/// The root of the tree before the operations, or why they cannot be undone.
pub(super) type Inverted = Result<Cid, InversionError>;

/// Undoes the operations of `event` in the tree at `data`, the one after them.
pub(super) fn invert<'a>(event: &'a Commit<'a>, data: Cid, inverter: &mut Inverter) -> Inverted {
    let ops: Vec<RecordOp<'_>> = event.ops.iter().map(RecordOp::from).collect();
    let inversion = Inversion { root: data, source: BlockIndex::new(event.blocks), ops: &ops };
    inverter.invert_batch(&[inversion]).pop().expect("one result for each commit")
}

/// Rows 16 and 17: undoing the operations in the tree at `data` must lead to the tree at `origin`.
pub(super) fn check_inversion<'a>(
    inverted: Inverted,
    event: &'a Commit<'a>,
    data: Cid,
    origin: Cid,
) -> Result<(), SyncRejection<'a>> {
    match inverted {
        Ok(found) if found == origin => Ok(()),
        Ok(found) => Err(other_origin(event, data, origin, found)),
        Err(error) => Err(rejection(error, event)),
    }
}

/// The operations lead to another tree, or to a node without which the tree is not known.
#[cold]
fn other_origin<'a>(
    event: &'a Commit<'a>,
    data: Cid,
    prev_data: Cid,
    found: Cid,
) -> SyncRejection<'a> {
    let ops: Vec<RecordOp<'_>> = event.ops.iter().map(RecordOp::from).collect();
    let inversion = Inversion { root: data, source: BlockIndex::new(event.blocks), ops: &ops };
    match Inverter::new().unread_root(&inversion) {
        Some(node) => SyncRejection::PartialTree(node),
        None => SyncRejection::Inversion { prev_data, found },
    }
}

#[cold]
fn rejection<'a>(error: InversionError, event: &'a Commit<'a>) -> SyncRejection<'a> {
    let path = error.op.map_or("", |index| event.ops[index].path);
    match error.fault {
        InversionFault::Tree(error) => error.into(),
        InversionFault::DuplicatePath => SyncRejection::DuplicatePath(path),
        InversionFault::Present => SyncRejection::Op { path, fault: OpFault::StillInTree },
        InversionFault::OtherRecord => SyncRejection::Op { path, fault: OpFault::OtherInTree },
        _ => SyncRejection::Op { path, fault: OpFault::NotInTree },
    }
}

/// Row 16 alone: the tree at `data` must hold the outcome of every operation at its path.
pub(super) fn check_in_tree<'a>(
    event: &'a Commit<'a>,
    data: Cid,
    policy: &Policy,
) -> Result<(), SyncRejection<'a>> {
    let blocks = BlockIndex::new(event.blocks);
    for op in event.ops {
        let found = match canonical::search(data, &blocks, op.path.as_bytes()) {
            Err(TreeError { fault: TreeFault::Missing, .. })
                if op.cid.is_none() && policy.accept_unproved_deletes =>
            {
                continue;
            }
            found => found?,
        };
        let fault = match (op.cid, found.value) {
            (None, None) => continue,
            (Some(cid), Some(found)) if cid == found => continue,
            (Some(_), Some(_)) => OpFault::OtherInTree,
            (Some(_), None) => OpFault::NotInTree,
            (None, Some(_)) => OpFault::StillInTree,
        };
        return Err(SyncRejection::Op { path: op.path, fault });
    }
    Ok(())
}

/// The root of the tree without records.
pub(super) fn empty_tree() -> Cid {
    Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6")
}
