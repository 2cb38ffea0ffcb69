//! The tree before a commit, found by undoing the commit's operations in the tree after it.
//!
//! A commit carries the nodes that its operations touched, its covering proof. In the tree of these
//! nodes every operation is checked (a created or updated record is there, a deleted one is not) and undone, in any order.
//! The resulting root is the one from which the commit started: the caller compares it with the one it knows. If the result
//! is one subtree that did not come with the commit, its CID is returned; only that comparison shows whether it is a root.
//!
//! Commits are processed in batches, so that the data to hash (keys of the nodes that were read, changed nodes of
//! a layer) fills the hash lanes, and the next batch reuses the memory. There are two ways: an arena of
//! loaded trees, which inverts every commit and defines the result and the error, and before it `splice`,
//! which edits the bytes of nodes, several times as fast, and leaves unusual commits to the arena.
//!
//! Source: the sync specification, version 1.1, "inductive firehose".

mod nodes;
mod splice;

use std::ops::Range;

use codec::{Cid, CidRef};
use splice::Splicer;

use super::arena::{Arena, KeyPosition, NodeId, Path};
use super::tree::check_key;
use super::{BlockSource, TreeError, key_heights, node};
use crate::event::{Action, Block, BlockIndex, RepoOp, first_duplicate};

/// The operation of a commit on one record, as the commit states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOp<'a> {
    /// The kind of operation.
    pub action: Action,
    /// The record's path.
    pub key: &'a [u8],
    /// The record after the operation; `None` for a delete.
    pub cid: Option<CidRef<'a>>,
    /// The record before the operation; `None` for a create.
    pub prev: Option<CidRef<'a>>,
}

impl<'a> From<&RepoOp<'a>> for RecordOp<'a> {
    fn from(op: &RepoOp<'a>) -> Self {
        Self { action: op.action, key: op.path.as_bytes(), cid: op.cid, prev: op.prev }
    }
}

impl<'a, R: AsRef<[&'a Block<'a>]>> BlockSource<'a> for BlockIndex<'a, R> {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.get_sha256(cid).map(|block| block.data)
    }
}

/// A commit to invert.
#[derive(Clone, Copy, Debug)]
pub struct Inversion<'o, 'a, S> {
    /// The root of the tree after the commit.
    pub root: Cid,
    /// The nodes that came with the commit.
    pub source: S,
    /// The operations of the commit, in any order.
    pub ops: &'o [RecordOp<'a>],
}

/// Why a commit cannot be inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InversionError {
    /// The index of the operation at fault, where there is one.
    pub op: Option<usize>,
    /// The broken rule.
    pub fault: InversionFault,
}

/// A rule that a commit must keep to be inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InversionFault {
    /// Two operations have the same path.
    #[error("two operations on the same path")]
    DuplicatePath,
    /// A create or update without a record, or a delete with one.
    #[error("a create or update names its record, and a delete names none")]
    Record,
    /// An update or delete without the previous record, or a create with one.
    #[error("an update or delete names the previous record, and a create names none")]
    Previous,
    /// The path of a create or update is not in the tree.
    #[error("the path is not in the tree")]
    Absent,
    /// The path of a create or update has another record in the tree.
    #[error("the path has another record in the tree")]
    OtherRecord,
    /// The path of a delete is in the tree.
    #[error("the deleted path is in the tree")]
    Present,
    /// A node breaks a rule, or is missing and would have to be read.
    #[error("{0}")]
    Tree(TreeError),
}

impl std::error::Error for InversionError {}

impl std::fmt::Display for InversionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.op {
            Some(op) => write!(f, "operation {op}: {}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

/// Computes the root of the tree before a commit, by undoing its operations in the tree after it.
///
/// # Errors
/// See [`InversionFault`].
pub fn invert<'a, S: BlockSource<'a>>(
    root: Cid,
    source: S,
    ops: &[RecordOp<'_>],
) -> Result<Cid, InversionError> {
    let commit = Inversion { root, source, ops };
    Inverter::new().invert_batch(&[commit]).pop().expect("a result for each commit")
}

/// Inverts commits in batches, in memory that is kept between calls.
#[derive(Clone, Debug)]
pub struct Inverter {
    splicer: Splicer,
    arena: Arena,
    path: Path,
}

/// The state of a commit in its batch.
struct CommitState {
    root: NodeId,
    /// The index of the first of its heights: the height of the root's first key, then of every deleted key.
    heights_at: usize,
    /// Its nodes among the loaded ones.
    nodes: Range<usize>,
    result: Result<(), InversionError>,
}

impl Inverter {
    /// Starts without memory.
    pub fn new() -> Self {
        let (splicer, path) = (Splicer::default(), Path::default());
        Self { splicer, arena: Arena::deferring_checks(), path }
    }

    /// Computes the roots of the trees before these commits, in order.
    pub fn invert_batch<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[Inversion<'_, '_, S>],
    ) -> Vec<Result<Cid, InversionError>> {
        let mut results = Vec::with_capacity(commits.len());
        for commits in commits.chunks(MAX_BATCH) {
            let spliced = self.splicer.invert_batch(commits);
            let left = commits.iter().zip(&spliced).filter(|(_, root)| root.is_none());
            let left: Vec<&Inversion<'_, '_, S>> = left.map(|(commit, _)| commit).collect();
            let mut left = self.invert_in_arena(&left).into_iter();
            let result = |root: Option<Cid>| {
                root.map_or_else(|| left.next().expect("a result for each commit"), Ok)
            };
            results.extend(spliced.into_iter().map(result));
        }
        results
    }

    /// The subtree to which a commit is undone, if the node at its top did not come with the commit. Whether that node is the
    /// root or has no key, so that the root is further below, is then unknown.
    pub fn unread_root<'a, S: BlockSource<'a>>(
        &mut self,
        commit: &Inversion<'_, '_, S>,
    ) -> Option<Cid> {
        self.arena.clear();
        let (mut states, heights) = self.begin(&[commit]);
        let state = states.first_mut().filter(|state| state.result.is_ok())?;
        self.undo(commit, state, &heights).ok()?;
        let is_unread = !commit.ops.is_empty() && self.arena.is_stub(state.root);
        is_unread.then(|| self.arena.cid(state.root))
    }

    /// Computes the roots of the trees before these commits, in order, by editing their trees.
    pub(super) fn invert_in_arena<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[&Inversion<'_, '_, S>],
    ) -> Vec<Result<Cid, InversionError>> {
        let mut results = Vec::with_capacity(commits.len());
        while let Some(rest) = commits.get(results.len()..).filter(|rest| !rest.is_empty()) {
            self.invert_some(rest, &mut results);
        }
        results
    }

    /// Inverts at least the first of these commits, and as many as the memory limit allows.
    fn invert_some<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[&Inversion<'_, '_, S>],
        results: &mut Vec<Result<Cid, InversionError>>,
    ) {
        self.arena.clear();
        let (mut states, heights) = self.begin(commits);
        let mut done = 0;
        while done < commits.len() && self.arena.bytes_len() < MAX_BATCH_BYTES {
            let state = &mut states[done];
            let nodes_before = self.arena.height_checks().len();
            if state.result.is_ok() {
                let heights = &heights[state.heights_at..];
                state.result = self.undo(commits[done], state, heights);
            }
            state.nodes = nodes_before..self.arena.height_checks().len();
            done += 1;
        }
        let states = &mut states[..done];
        self.reject_wrong_heights(states);
        let sound = states.iter().filter(|commit| commit.result.is_ok());
        self.arena.hash_dirty(sound.map(|commit| commit.root));
        let result = |commit: &CommitState| commit.result.map(|()| self.arena.cid(commit.root));
        results.extend(states.iter().map(result));
    }

    /// Checks the operations alone, and hashes together the keys whose heights are needed first.
    fn begin<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[&Inversion<'_, '_, S>],
    ) -> (Vec<CommitState>, Vec<u8>) {
        let mut keys = Vec::new();
        let mut states = Vec::with_capacity(commits.len());
        for commit in commits {
            let root = self.arena.stub(commit.root, 0);
            let result = check_ops(commit.ops);
            states.push(CommitState { root, heights_at: keys.len(), nodes: 0..0, result });
            push_known_keys(commit, &mut keys);
        }
        (states, key_heights(&keys))
    }

    /// Checks the operations against the tree after the commit, then undoes them.
    fn undo<'a, S: BlockSource<'a>>(
        &mut self,
        commit: &Inversion<'_, '_, S>,
        state: &mut CommitState,
        heights: &[u8],
    ) -> Result<(), InversionError> {
        if commit.ops.is_empty() {
            return Ok(());
        }
        let Self { arena, path, .. } = self;
        // Searches of earlier commits must not decide which nodes are read.
        path.forget_search();
        let Inversion { source, ops, .. } = commit;
        let root = &mut state.root;
        arena.load_root_at(*root, heights[0], source).map_err(|error| in_tree(None, error))?;
        for (index, op) in ops.iter().enumerate() {
            let in_tree = |error| in_tree(Some(index), error);
            let position = arena.descend(*root, op.key, 0, source, path).map_err(in_tree)?;
            check_op(arena, path, position, op).map_err(|fault| in_op(index, fault))?;
        }
        let mut heights = heights[1..].iter().copied();
        let mut failed = Vec::new();
        let mut first_error = None;
        // Deletes are undone first: that needs fewer nodes than the reverse.
        let deletes = ops.iter().enumerate().filter(|(_, op)| op.is_delete());
        let others = ops.iter().enumerate().filter(|(_, op)| !op.is_delete());
        for (index, op) in deletes.chain(others) {
            let height = heights.next().unwrap_or(0);
            if let Err(error) = undo_op(arena, path, root, op, height, source) {
                failed.push((index, height));
                first_error.get_or_insert(in_tree(Some(index), error));
            }
        }
        match first_error {
            Some(error) => self.undo_in_another_order(commit, root, failed, error),
            None => Ok(()),
        }
    }

    /// Retries the operations that failed for lack of a node. With a covering proof every order works; with
    /// fewer nodes one order may work where another does not, because after the first operations a subtree
    /// may no longer have to be read. This way all of the 1,024 smallest proofs in the published pairs of
    /// trees suffice; in the order of keys alone, 16 of them do not.
    #[cold]
    fn undo_in_another_order<'a, S: BlockSource<'a>>(
        &mut self,
        Inversion { source, ops, .. }: &Inversion<'_, '_, S>,
        root: &mut NodeId,
        mut failed: Vec<(usize, u8)>,
        error: InversionError,
    ) -> Result<(), InversionError> {
        let Self { arena, path, .. } = self;
        for _ in 0..MAX_ROUNDS {
            let before = failed.len();
            failed.retain(|(index, height)| {
                undo_op(arena, path, root, &ops[*index], *height, source).is_err()
            });
            if failed.is_empty() {
                return Ok(());
            }
            if failed.len() == before {
                break;
            }
        }
        Err(error)
    }

    /// Rejects the commits with a node whose keys belong to another layer.
    fn reject_wrong_heights(&mut self, states: &mut [CommitState]) {
        let heights = self.arena.pending_heights();
        let mut commits = states.iter_mut().peekable();
        for (node, error) in self.arena.height_checks().mismatches(&heights) {
            while commits.next_if(|commit| commit.nodes.end <= node).is_some() {}
            let commit = commits.peek_mut().expect("each node belongs to a commit");
            // This error takes precedence over errors that follow from the node.
            commit.result = Err(in_tree(None, error));
        }
    }
}

impl Default for Inverter {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordOp<'_> {
    fn is_delete(&self) -> bool {
        self.action == Action::Delete
    }
}

/// Adds the keys of a commit whose heights are needed first: the root's first key, or an empty one, then every deleted key.
fn push_known_keys<'k, 'a: 'k, S: BlockSource<'a>>(
    commit: &Inversion<'_, 'k, S>,
    keys: &mut Vec<&'k [u8]>,
) {
    let root_key = commit.source.block(&commit.root).and_then(node::first_key);
    keys.push(root_key.unwrap_or(&[]));
    keys.extend(commit.ops.iter().filter(|op| op.is_delete()).map(|op| op.key));
}

/// Undoes an operation that the tree agrees with.
#[inline]
fn undo_op<'a>(
    arena: &mut Arena,
    path: &mut Path,
    root: &mut NodeId,
    op: &RecordOp<'_>,
    height: u8,
    source: &impl BlockSource<'a>,
) -> Result<(), TreeError> {
    match (op.action, op.prev) {
        (Action::Update, Some(prev)) => arena.replace(*root, op.key, prev, source, path).map(drop),
        (Action::Delete, Some(prev)) => {
            arena.insert(root, (op.key, height), prev, source, path).map(drop)
        }
        _ => arena.remove(root, op.key, source, path).map(drop),
    }
}

/// Checks the operations alone, without a tree.
fn check_ops(ops: &[RecordOp<'_>]) -> Result<(), InversionError> {
    for (index, op) in ops.iter().enumerate() {
        check_key(op.key).map_err(|error| in_tree(Some(index), error))?;
        if op.cid.is_none() != (op.action == Action::Delete) {
            return Err(in_op(index, InversionFault::Record));
        }
        if op.prev.is_none() != (op.action == Action::Create) {
            return Err(in_op(index, InversionFault::Previous));
        }
    }
    match first_duplicate(ops, |op| op.key) {
        Some(index) => Err(in_op(index, InversionFault::DuplicatePath)),
        None => Ok(()),
    }
}

/// Checks that the tree after the commit agrees with the operation.
fn check_op(
    arena: &Arena,
    path: &Path,
    position: KeyPosition,
    op: &RecordOp<'_>,
) -> Result<(), InversionFault> {
    match (position, op.cid) {
        (Ok(index), Some(cid)) => {
            let (id, _) = path.end();
            let is_same = arena.value(id, index) == Some(cid);
            if is_same { Ok(()) } else { Err(InversionFault::OtherRecord) }
        }
        (Ok(_), None) => Err(InversionFault::Present),
        (Err(_), Some(_)) => Err(InversionFault::Absent),
        (Err(_), None) => Ok(()),
    }
}

#[cold]
fn in_op(op: usize, fault: InversionFault) -> InversionError {
    InversionError { op: Some(op), fault }
}

#[cold]
fn in_tree(op: Option<usize>, error: TreeError) -> InversionError {
    InversionError { op, fault: InversionFault::Tree(error) }
}

/// Passes over the operations that failed.
const MAX_ROUNDS: usize = 8;

#[cfg(test)]
impl Inverter {
    /// The roots of the commits that are inverted in the bytes of their nodes; `None` of the others.
    pub(super) fn splice<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[Inversion<'_, '_, S>],
    ) -> Vec<Option<Cid>> {
        self.splicer.invert_batch(commits)
    }
}

/// Commits that are inverted together: enough to fill the hash lanes, few enough for the cache.
const MAX_BATCH: usize = 256;

/// Bytes of keys in memory after which a batch ends: without shared prefixes, the keys of a hostile node
/// can be twenty times as long as its block.
const MAX_BATCH_BYTES: usize = 16 << 20;
