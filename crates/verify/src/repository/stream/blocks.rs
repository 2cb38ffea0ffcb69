//! The blocks of a stream in the order of a walk over the tree: a block is taken where it arrives, or held until the
//! walk asks for it, and dropped when it was read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::iter;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use atproto::mst::canonical::NodeSource;
use atproto::repo::BlockTotals;
use codec::Cid;
use codec::car::{BlockBatch, StreamError, StreamReader};

use super::held::{HeldBlocks, HoldError, TakenBlock};
use super::records::{RecordChecks, References, WantedRecords};
use super::tables::TableState;
use super::{StreamFailure, StreamOptions};
use crate::repository::rejection::{RepositoryFault, RepositoryRejection};

/// The blocks of an archive that is read from `R`.
pub(super) struct StreamedBlocks<R> {
    reader: StreamReader<R>,
    batch: BlockBatch,
    /// Index in `batch` of the next block.
    next: usize,
    /// Whether nothing more is read.
    is_over: bool,
    /// Whether the source is given its bytes in between, so that one that would block has not failed.
    is_fed: bool,
    /// Why reading ended early.
    failure: Option<StreamFailure>,
    commit: CommitBlock,
    /// Where the data starts of every node that the walk has reached.
    nodes: HashMap<Cid, u64, TableState>,
    /// Whether the node that was asked for last had been reached before.
    is_repeated: bool,
    /// Number of references to records so far.
    references: u64,
    records: RecordChecks,
    wanted: WantedRecords,
    /// Blocks that have arrived and that the walk has not asked for.
    held: HeldBlocks,
    max_held_bytes: usize,
    /// Whether the walk may still ask for held blocks.
    is_walking: bool,
    /// Blocks that are not found by CID.
    foreign: BlockTotals,
    /// Number of blocks so far.
    blocks: u64,
}

/// The block of the commit.
#[derive(Clone, Debug)]
pub(super) struct CommitBlock {
    pub(super) cid: Cid,
    /// Where its data starts in the archive.
    pub(super) offset: u64,
    pub(super) data: Arc<[u8]>,
}

/// Size and content of an archive that was read to its end.
pub(super) struct StreamTotals {
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    pub(super) extra: BlockTotals,
    pub(super) records: RecordChecks,
}

impl<R: Read> StreamedBlocks<R> {
    /// Reads up to the commit `root`.
    pub(super) fn open(
        reader: StreamReader<R>,
        root: Cid,
        options: &StreamOptions,
    ) -> Result<Self, StreamFailure> {
        let mut blocks = Self::new(reader, root, options);
        match blocks.poll_commit() {
            Poll::Ready(true) => Ok(blocks),
            _ => Err(blocks.refuse(missing_commit(root))),
        }
    }

    /// The blocks of a source that is given its bytes in between: whatever reads them must be
    /// [ready](Self::poll_ready) before.
    pub(super) fn fed(reader: StreamReader<R>, root: Cid, options: &StreamOptions) -> Self {
        Self { is_fed: true, ..Self::new(reader, root, options) }
    }

    fn new(reader: StreamReader<R>, root: Cid, options: &StreamOptions) -> Self {
        let (repository, tables) = (&options.repository, TableState::new(options.seed));
        Self {
            reader,
            batch: BlockBatch::default(),
            next: 0,
            is_over: false,
            is_fed: false,
            failure: None,
            commit: CommitBlock { cid: root, offset: 0, data: Arc::from(&[][..]) },
            nodes: HashMap::with_hasher(tables.clone()),
            is_repeated: false,
            references: 0,
            records: RecordChecks::new(repository.max_record_bytes, options.flag_records, &tables),
            wanted: WantedRecords::new(tables.clone()),
            held: HeldBlocks::new(options.max_held_bytes, options.spill, tables),
            max_held_bytes: options.max_held_bytes,
            is_walking: true,
            foreign: BlockTotals::default(),
            blocks: 0,
        }
    }

    /// Reads up to the commit; returns whether there is one.
    pub(super) fn poll_commit(&mut self) -> Poll<bool> {
        let root = self.commit.cid;
        let found = self.poll_hold_up_to(&root);
        if found == Poll::Ready(true)
            && let Some((offset, data)) = self.take_next()
        {
            self.commit = CommitBlock { cid: root, offset, data };
        }
        found
    }

    /// The source, which is given its bytes.
    pub(super) fn source_mut(&mut self) -> &mut R {
        self.reader.source_mut()
    }

    /// Bytes of the archive up to the last block that was read.
    pub(super) fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Reads until the next step of the walk can be made without waiting: until there is a next block, and `node` if the
    /// step asks for it, or the archive is over.
    #[inline]
    pub(super) fn poll_ready(&mut self, node: Option<&Cid>) -> Poll<()> {
        if !self.is_fed {
            return Poll::Ready(());
        }
        if !self.fill() {
            return Poll::Pending;
        }
        match node {
            Some(cid) if !self.has_arrived(cid) => self.poll_hold_up_to(cid).map(drop),
            _ => Poll::Ready(()),
        }
    }

    /// Whether a node is among the blocks so far.
    fn has_arrived(&self, cid: &Cid) -> bool {
        *cid == self.commit.cid
            || self.nodes.contains_key(cid)
            || self.held.offset_of(cid).is_some()
    }

    pub(super) fn commit(&self) -> &CommitBlock {
        &self.commit
    }

    /// Whether reading ended early: nothing more is decided.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The failure of a stream that is rejected for `rejection`: a fault of the archive takes precedence.
    #[cold]
    pub(super) fn refuse(&mut self, rejection: RepositoryRejection) -> StreamFailure {
        match self.read_to_end() {
            Ok(()) => rejection.into(),
            Err(failure) => failure,
        }
    }

    /// Reads the rest of the archive, of which the walk needs nothing.
    pub(super) fn read_to_end(&mut self) -> Result<(), StreamFailure> {
        match self.poll_to_end() {
            Poll::Ready(ended) => ended,
            Poll::Pending => Err(io::Error::from(io::ErrorKind::WouldBlock).into()),
        }
    }

    /// As [`read_to_end`](Self::read_to_end), as far as the source has bytes.
    pub(super) fn poll_to_end(&mut self) -> Poll<Result<(), StreamFailure>> {
        self.is_walking = false;
        while self.hold_next() {}
        match self.failure.take() {
            Some(failure) => Poll::Ready(Err(failure)),
            None if self.is_over => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }

    /// The first record that the tree names and the archive lacks, after the end of the archive.
    pub(super) fn missing_record(&mut self) -> Option<RepositoryRejection> {
        self.settle();
        let (cid, references) = self.wanted.first()?;
        let missing = RepositoryRejection::of(RepositoryFault::RecordMissing).with_cid(*cid);
        Some(missing.with_key(&references.path))
    }

    /// Removes the arrived records from the wanted ones, and the read blocks from the held ones.
    fn settle(&mut self) {
        if self.wanted.is_empty() && self.held.is_empty() {
            return;
        }
        self.held.remove(&self.commit.cid);
        for cid in self.nodes.keys() {
            self.held.remove(cid);
            for references in self.wanted.remove(cid) {
                self.records.flag_untyped(&references.borrowed());
            }
        }
        self.records.settle(&mut self.wanted, &mut self.held);
    }

    /// The totals of the archive, after [`missing_record`](Self::missing_record).
    pub(super) fn into_totals(self) -> StreamTotals {
        let mut extra = self.held.totals();
        extra += self.foreign;
        let blocks = self.blocks;
        let bytes = self.reader.position();
        let records = self.records;
        StreamTotals { blocks, bytes, extra, records }
    }

    /// Where the data of a block starts in the archive, of its first copy, if it has arrived.
    #[cold]
    pub(super) fn offset_of(&self, cid: &Cid) -> Option<u64> {
        if *cid == self.commit.cid {
            return Some(self.commit.offset);
        }
        let record = self.records.find(cid).map(|(offset, _)| offset);
        let copies = [self.nodes.get(cid).copied(), self.held.offset_of(cid), record];
        copies.into_iter().flatten().min()
    }

    /// A reference of the tree to the record `cid`, in the order of the walk.
    #[inline]
    pub(super) fn record(&mut self, path: &[u8], cid: Cid) {
        let references = References { first: self.references, path, count: 1 };
        self.references += 1;
        if cid == self.commit.cid {
            self.records.flag_untyped(&references);
        } else if self.is_next(&cid) {
            self.check_next(&cid, Some(references));
        } else if !self.records.count_again(&cid, &references) {
            self.find_record(cid, references);
        }
    }

    /// The first reference to a record that is not the next block: it was held, or it is wanted; or a further one to a
    /// record that was dropped.
    fn find_record(&mut self, cid: Cid, references: References<&[u8]>) {
        match self.held.take(&cid) {
            Ok(Some(TakenBlock { offset, data })) => {
                if self.records.add(&cid, offset, &data, iter::once(references))
                    && let Err(error) = self.held.insert(cid, offset, &data)
                {
                    self.fail_to_hold(error);
                }
            }
            Ok(None) => self.want(cid, references),
            Err(error) => self.fail(error.into()),
        }
    }

    fn want(&mut self, cid: Cid, references: References<&[u8]>) {
        self.wanted.insert(cid, references);
        let max_path_bytes = self.reader.position().saturating_add(self.max_held_bytes as u64);
        if self.wanted.path_bytes() > max_path_bytes {
            self.fail(StreamFailure::Unordered);
        }
    }

    /// Checks the next block as the record of `references`, and of the records that wanted it.
    #[inline]
    fn check_next(&mut self, cid: &Cid, references: Option<References<&[u8]>>) {
        let Some(block) = self.batch.get(self.next) else { return };
        // An earlier copy may be held.
        let offset = self.held.offset_of(cid).unwrap_or(block.data_offset() as u64);
        let (data, wanted) = (block.data, self.wanted.remove(cid));
        let all = wanted.iter().map(References::borrowed).chain(references);
        let is_kept = self.records.add(cid, offset, data, all);
        let held = if is_kept { self.held.insert(*cid, offset, data) } else { Ok(()) };
        self.advance();
        if let Err(error) = held {
            self.fail_to_hold(error);
        }
    }

    /// Whether the next block is `cid`.
    #[inline]
    fn is_next(&mut self, cid: &Cid) -> bool {
        self.fill();
        let next = self.batch.get(self.next);
        next.is_some_and(|block| block.cid.as_bytes() == cid.as_bytes())
    }

    /// Reads until there is a next block, or the archive is over; returns whether the source has had the bytes.
    #[inline]
    fn fill(&mut self) -> bool {
        while self.next == self.batch.len() && !self.is_over {
            if !self.read_batch() {
                return false;
            }
        }
        true
    }

    /// Reads a batch; returns whether the source has had the bytes.
    fn read_batch(&mut self) -> bool {
        match self.reader.next_batch() {
            Ok(Some(batch)) => (self.batch, self.next) = (batch, 0),
            Ok(None) => self.is_over = true,
            Err(StreamError::Car(error)) => {
                let cid = self.reader.mismatched_cid();
                let rejection = RepositoryRejection::in_section(error, cid);
                self.fail(rejection.into());
            }
            Err(StreamError::Io(error))
                if self.is_fed && error.kind() == io::ErrorKind::WouldBlock =>
            {
                return false;
            }
            Err(StreamError::Io(error)) => self.fail(error.into()),
            Err(other) => self.fail(io::Error::other(other).into()),
        }
        true
    }

    /// Takes the next block: where its data starts in the archive, and the data.
    fn take_next(&mut self) -> Option<(u64, Arc<[u8]>)> {
        let block = self.batch.get(self.next)?;
        let taken = (block.data_offset() as u64, Arc::from(block.data));
        self.advance();
        Some(taken)
    }

    #[inline]
    fn advance(&mut self) {
        self.next += 1;
        self.blocks += 1;
    }

    /// Holds all blocks before `cid`; returns whether it arrives.
    fn hold_up_to(&mut self, cid: &Cid) -> bool {
        self.poll_hold_up_to(cid) == Poll::Ready(true)
    }

    /// As [`hold_up_to`](Self::hold_up_to), as far as the source has bytes.
    fn poll_hold_up_to(&mut self, cid: &Cid) -> Poll<bool> {
        while !self.is_next(cid) {
            if !self.fill() {
                return Poll::Pending;
            }
            if !self.hold_next() {
                return Poll::Ready(false);
            }
        }
        Poll::Ready(true)
    }

    /// Holds the next block, unless it is a wanted record; returns whether there was one.
    fn hold_next(&mut self) -> bool {
        self.fill();
        let Some(block) = self.batch.get(self.next) else { return false };
        let Some(cid) = block.cid.to_cid() else {
            self.foreign += BlockTotals::of(block.data);
            self.advance();
            return true;
        };
        if self.wanted.contains(&cid) {
            self.check_next(&cid, None);
            return true;
        }
        let (offset, data) = (block.data_offset() as u64, block.data);
        if !self.is_walking {
            self.held.insert_dropped(cid, offset, data.len());
        } else if let Err(error) = self.held.insert(cid, offset, data) {
            self.fail_to_hold(error);
            return false;
        }
        self.advance();
        true
    }

    #[cold]
    fn fail_to_hold(&mut self, error: HoldError) {
        self.fail(match error {
            HoldError::Io(error) => error.into(),
            HoldError::Limit => StreamFailure::Unordered,
        });
    }

    /// Ends the reading: neither the walk nor the rest of the archive gets another block.
    #[cold]
    fn fail(&mut self, failure: StreamFailure) {
        self.failure.get_or_insert(failure);
        self.is_over = true;
        (self.batch, self.next) = (BlockBatch::default(), 0);
    }

    /// A node that the tree names.
    fn node(&mut self, cid: &Cid) -> Option<Arc<[u8]>> {
        if *cid == self.commit.cid {
            return Some(self.commit.data.clone());
        }
        self.is_repeated = self.nodes.contains_key(cid);
        if self.is_repeated {
            return Some(Arc::from(&[][..]));
        }
        let (offset, data) = match self.is_next(cid) {
            true => self.take_next(),
            false => self.find_node(cid),
        }?;
        self.nodes.insert(*cid, offset);
        Some(data)
    }

    /// A node that is not the next block.
    fn find_node(&mut self, cid: &Cid) -> Option<(u64, Arc<[u8]>)> {
        match self.held.take(cid) {
            Ok(Some(TakenBlock { offset, data })) => return Some((offset, data)),
            Ok(None) => {}
            Err(error) => {
                self.fail(error.into());
                return None;
            }
        }
        if self.hold_up_to(cid) {
            return self.take_next();
        }
        // Otherwise it is missing, or a record that was dropped as it cannot be a node.
        let (offset, record) = self.records.find(cid)?;
        Some((offset, Arc::from(record)))
    }
}

/// The rejection of an archive without the commit that its root names.
#[cold]
pub(super) fn missing_commit(root: Cid) -> RepositoryRejection {
    RepositoryRejection::of(RepositoryFault::MissingCommit).with_cid(root)
}

/// The blocks, which a walk and the reader of its records share.
pub(super) trait SharedBlocks: Clone {
    /// The source of the archive.
    type Source: Read;

    /// The blocks.
    fn blocks(&self) -> &RefCell<StreamedBlocks<Self::Source>>;
}

impl<R: Read> SharedBlocks for &RefCell<StreamedBlocks<R>> {
    type Source = R;

    fn blocks(&self) -> &RefCell<StreamedBlocks<R>> {
        self
    }
}

impl<R: Read> SharedBlocks for Rc<RefCell<StreamedBlocks<R>>> {
    type Source = R;

    fn blocks(&self) -> &RefCell<StreamedBlocks<R>> {
        self
    }
}

/// The nodes of a tree in a stream that has its records too.
pub(super) struct StreamedNodes<B>(pub(super) B);

impl<B: SharedBlocks> NodeSource for StreamedNodes<B> {
    type Block = Arc<[u8]>;

    fn node(&mut self, cid: &Cid) -> Option<Arc<[u8]>> {
        self.0.blocks().borrow_mut().node(cid)
    }

    fn reach(&mut self, _cid: &Cid, _block: &Arc<[u8]>) -> bool {
        !self.0.blocks().borrow().is_repeated
    }
}
