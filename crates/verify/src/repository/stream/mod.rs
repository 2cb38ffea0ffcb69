//! Verifies an export as it is received: from a pipe, a network connection or any other reader.
//!
//! The verdict equals [`verify`](super::verify) on the whole export: the same proof, or the same rejection. The
//! export is never held as a whole. In streamable order (the commit, then every node before its records and children)
//! every block is hashed, checked and dropped as it arrives, and memory grows with the number of blocks alone: 37
//! bytes a record, some 60 a node, 64 KiB of blocks that are read ahead and the nodes on the path to the current one.
//! A record that is invalid or flagged takes some 150 bytes more, and at most its own size.
//!
//! In another order blocks that come before a link to them are held: in memory up to
//! [`max_held_bytes`](StreamOptions::max_held_bytes), then in a file that the caller provides. Of records that come after
//! other blocks the paths are held, which may exceed the bytes read by that limit.
//!
//! An archive over its limit of bytes is rejected at the section that exceeds it, and not at its start, because its
//! length is not known before.
//!
//! ```
//! use wireproof::verify::repository::stream::{self, StreamOptions};
//! # use wireproof::atproto::commit::UnsignedCommit;
//! # use wireproof::codec::{Cid, car, cid::Codec};
//! # let tree = b"\xa2\x61e\x80\x61l\xf6";
//! # let data = Cid::of(Codec::DagCbor, tree);
//! # let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
//! # let commit = UnsignedCommit { did, rev, data, prev: None }.with_signature(&[1; 64]);
//! # let root = Cid::of(Codec::DagCbor, &commit);
//! # let mut writer = car::Writer::new(Vec::new(), &[root])?;
//! # writer.block(&root, &commit)?;
//! # writer.block(&data, tree)?;
//! # let export = writer.into_inner();
//! let connection: &[u8] = &export;
//!
//! let opened = stream::open(connection, &StreamOptions::default())?;
//! assert_eq!(opened.commit().did, did);
//! let whole = opened.without_signature().verify()?;
//! assert_eq!((whole.root(), whole.tree().records, whole.blocks()), (root, 0, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod feed;
mod held;
mod records;
mod tables;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::task::Poll;

use atproto::commit::{Commit, CommitError};
use atproto::mst::TreeError;
use atproto::mst::canonical::{Step, Summary, Walker};
use atproto::repo::{BlockTotals, RepoError, RepoFault};
use atproto::syntax::RepoPathChecker;
use codec::Cid;
use codec::car::{self, StreamError, StreamReader};
use crypto::PublicKey;

pub use feed::{FeedProgress, RepositoryFeed};
pub use held::{OpenSpill, Spill};

use super::rejection::{RepositoryFault, RepositoryRejection};
use super::tree::{check_extra, check_path, record_cid};
use super::{Options, SignatureProof, check_commit, check_signature};
use crate::{Flagged, InvalidRecords, Verified};
use blocks::{CommitBlock, SharedBlocks, StreamTotals, StreamedBlocks, StreamedNodes};

/// Limits of a streamed repository.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Limits of the repository.
    pub repository: Options,
    /// Maximum bytes in memory of blocks that arrive before a link to them, and of paths beyond the bytes that were read.
    pub max_held_bytes: usize,
    /// Opens the file for such blocks beyond that limit; without one the limit is an
    /// [error](StreamFailure::Unordered).
    pub spill: Option<OpenSpill>,
    /// Whether records are also checked against the data model, as [`Flagged`] reports it.
    pub flag_records: bool,
    /// The secret by which tables place the CIDs of the archive; `None` takes one of this process. WebAssembly has none: give
    /// random bytes there. It never changes a verdict.
    pub seed: Option<[u8; 16]>,
}

impl Default for StreamOptions {
    /// The default limits of repositories, 64 MiB of held blocks and no file for more, no flagged records.
    fn default() -> Self {
        let repository = Options::default();
        Self { repository, max_held_bytes: 64 << 20, spill: None, flag_records: false, seed: None }
    }
}

/// Why a stream is not proved to be a whole repository.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamFailure {
    /// It is not one.
    Rejected(Box<RepositoryRejection>),
    /// The stream or the spill file failed.
    Io(io::Error),
    /// More blocks arrive before a link to them than may be held, or paths of more records that arrive later.
    Unordered,
}

impl From<RepositoryRejection> for StreamFailure {
    #[cold]
    fn from(rejection: RepositoryRejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

impl From<io::Error> for StreamFailure {
    #[cold]
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::error::Error for StreamFailure {}

impl fmt::Display for StreamFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Unordered => f.write_str(
                "more blocks or paths of records than may be held, as the archive is not in streamable order: raise the \
                 limit, provide a spill file for blocks, or verify the archive as a whole",
            ),
        }
    }
}

/// A repository that was proved to be whole, and of which nothing was kept but this.
#[derive(Clone, Debug)]
pub struct StreamedRepository {
    commit: CommitBlock,
    signature: SignatureProof,
    tree: Summary,
    blocks: u64,
    bytes: u64,
    extra: BlockTotals,
    invalid: InvalidRecords,
    flagged: Flagged,
}

impl StreamedRepository {
    /// The CID of the commit.
    pub fn root(&self) -> Cid {
        self.commit.cid
    }

    /// The commit.
    pub fn commit(&self) -> Commit<'_> {
        parse(&self.commit.data)
    }

    /// The bytes of the commit.
    pub fn commit_block(&self) -> &[u8] {
        &self.commit.data
    }

    /// Whether the signature is part of the proof.
    pub fn signature(&self) -> SignatureProof {
        self.signature
    }

    /// Numbers of nodes and records of the tree.
    pub fn tree(&self) -> Summary {
        self.tree
    }

    /// The number of blocks in the archive, including repeated ones.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The length of the archive in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The blocks that the commit does not lead to, repeated ones counted once.
    pub fn extra(&self) -> BlockTotals {
        self.extra
    }

    /// The records that are signed and invalid: none under [`Options::strict_records`].
    pub fn invalid_records(&self) -> &InvalidRecords {
        &self.invalid
    }

    /// The records that break a rule of the data model: none without [`StreamOptions::flag_records`].
    pub fn flagged_records(&self) -> &Flagged {
        &self.flagged
    }
}

/// Verifies a stream as [`verify`](super::verify) does an export.
///
/// # Errors
/// If it is not a whole repository, of `did` if one is given and signed by `key`; if the stream fails, or too many of
/// its blocks have to be held.
pub fn verify<R: Read>(
    source: R,
    did: Option<&str>,
    key: &PublicKey,
    options: &StreamOptions,
) -> Result<Verified<StreamedRepository>, StreamFailure> {
    open(source, options)?.verify_signature(did, key)?.verify()
}

/// Reads a stream up to its commit, and checks the fields of the commit.
///
/// # Errors
/// If there is no valid commit, or the stream fails. The stream is then read to its end, as a fault of the archive takes
/// precedence.
pub fn open<R: Read>(source: R, options: &StreamOptions) -> Result<OpenedStream<R>, StreamFailure> {
    let mut reader = StreamReader::new(source, &limits_of(options)).map_err(failure)?;
    let root = match root(&reader) {
        Ok(root) => root,
        Err(rejection) => return Err(refuse(&mut reader, rejection)),
    };
    let mut blocks = StreamedBlocks::open(reader, root, options)?;
    match check(blocks.commit()) {
        Ok(()) => Ok(OpenedStream { blocks, options: *options }),
        Err(rejection) => Err(blocks.refuse(rejection)),
    }
}

/// The limits of the archive.
fn limits_of(options: &StreamOptions) -> car::Options {
    let mut limits = options.repository.checked_archive();
    limits.max_total_bytes = limits.max_total_bytes.min(MAX_BYTES);
    limits
}

/// The first root, which must be able to be a commit.
fn root<R: Read>(reader: &StreamReader<R>) -> Result<Cid, RepositoryRejection> {
    let Some(root) = reader.roots().first() else {
        return Err(RepositoryRejection::of(RepositoryFault::NoRoot));
    };
    match root.to_cid() {
        Some(cid) if root.is_dag_cbor() => Ok(cid),
        cid => Err(RepositoryRejection::of(RepositoryFault::Root).with_cid(cid)),
    }
}

/// The failure of a stream without a commit: a fault of the archive takes precedence.
#[cold]
fn refuse<R: Read>(reader: &mut StreamReader<R>, rejection: RepositoryRejection) -> StreamFailure {
    loop {
        match reader.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => return rejection.into(),
            Err(StreamError::Car(error)) => {
                return RepositoryRejection::in_section(error, reader.mismatched_cid()).into();
            }
            Err(error) => return failure(error),
        }
    }
}

#[cold]
fn failure(error: StreamError) -> StreamFailure {
    match error {
        StreamError::Car(error) => RepositoryRejection::in_section(error, None).into(),
        StreamError::Io(error) => error.into(),
        other => io::Error::other(other).into(),
    }
}

/// Checks a commit except its signature.
fn check(CommitBlock { cid, offset, data }: &CommitBlock) -> Result<(), RepositoryRejection> {
    match Commit::parse(data) {
        Ok(commit) => check_commit(*cid, &commit),
        Err(CommitError { offset: at, fault }) => {
            let (offset, cid) = (offset + at as u64, Some(*cid));
            Err(RepoError { offset, cid, fault: RepoFault::Commit(fault) }.into())
        }
    }
}

fn parse(commit: &[u8]) -> Commit<'_> {
    Commit::parse(commit).expect("parsed when it was received")
}

/// A stream whose commit was read. Nothing is proved yet but its hash and its syntax.
pub struct OpenedStream<R> {
    blocks: StreamedBlocks<R>,
    options: StreamOptions,
}

/// A stream whose commit is signed by the expected key, or by one that the caller does not know.
pub struct SignedStream<R> {
    blocks: StreamedBlocks<R>,
    options: StreamOptions,
    signature: SignatureProof,
}

impl<R> fmt::Debug for OpenedStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedStream").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for SignedStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedStream").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<R: Read> OpenedStream<R> {
    /// The commit.
    pub fn commit(&self) -> Commit<'_> {
        parse(&self.blocks.commit().data)
    }

    /// The commit is of `did`, if one is given, and `key` signed it.
    ///
    /// # Errors
    /// If not. The stream is then read to its end, as a fault of the archive takes precedence.
    pub fn verify_signature(
        mut self,
        did: Option<&str>,
        key: &PublicKey,
    ) -> Result<SignedStream<R>, StreamFailure> {
        match check_signature(self.blocks.commit().cid, &self.commit(), did, key) {
            Ok(()) => Ok(self.into_signed(SignatureProof::Checked)),
            Err(rejection) => Err(self.blocks.refuse(rejection)),
        }
    }

    /// Skips the signature: the author is not proved, and the result tells.
    pub fn without_signature(self) -> SignedStream<R> {
        self.into_signed(SignatureProof::NotChecked)
    }

    /// Reads the stream to its end without a proof: for a caller that has no key, and for which a fault of the archive
    /// takes precedence.
    ///
    /// # Errors
    /// At a fault of the archive, or if the stream fails.
    pub fn read_to_end(mut self) -> Result<(), StreamFailure> {
        self.blocks.read_to_end()
    }

    fn into_signed(self, signature: SignatureProof) -> SignedStream<R> {
        let Self { blocks, options } = self;
        SignedStream { blocks, options, signature }
    }
}

impl<R: Read> SignedStream<R> {
    /// Reads the rest of the stream: the archive is well formed, the tree canonical and complete, every key a path, and
    /// every record is valid or counted as invalid.
    ///
    /// # Errors
    /// At the first fault in the order of the stages, once the stream was read to its end; if the stream fails, or too
    /// many of its blocks have to be held.
    pub fn verify(self) -> Result<Verified<StreamedRepository>, StreamFailure> {
        let Self { blocks, options, signature } = self;
        let blocks = RefCell::new(blocks);
        let walked = TreeWalk::new(&blocks, &options.repository).poll();
        let mut blocks = blocks.into_inner();
        blocks.read_to_end()?;
        match walked {
            Poll::Ready(walked) => conclude(blocks, walked, signature, &options),
            Poll::Pending => Err(io::Error::from(io::ErrorKind::WouldBlock).into()),
        }
    }
}

/// The verdict on a stream that was read to its end after a walk.
fn conclude<R: Read>(
    mut blocks: StreamedBlocks<R>,
    walked: Result<Summary, WalkFault>,
    signature: SignatureProof,
    options: &StreamOptions,
) -> Result<Verified<StreamedRepository>, StreamFailure> {
    // A record that is missing was named before the walk ended.
    let missing = blocks.missing_record();
    let tree = match (missing, walked) {
        (Some(missing), _) => return Err(missing.into()),
        (None, Err(fault)) => return Err(fault.rejection(&blocks).into()),
        (None, Ok(tree)) => tree,
    };
    let commit = blocks.commit().clone();
    let StreamTotals { blocks, bytes, extra, records } = blocks.into_totals();
    check_extra(extra, &options.repository, &mut Err)?;
    if options.repository.strict_records
        && let Some(rejection) = records.rejection()
    {
        return Err(rejection.into());
    }
    let (invalid, flagged) = records.into_findings();
    let whole =
        StreamedRepository { commit, signature, tree, blocks, bytes, extra, invalid, flagged };
    Ok(Verified::vouch(whole))
}

/// The fault that ended a walk.
enum WalkFault {
    /// A key or a link to a record.
    Entry(Box<RepositoryRejection>),
    /// A node, with its block if it was read.
    Tree(TreeError, Option<Arc<[u8]>>),
}

impl WalkFault {
    fn rejection<R: Read>(self, blocks: &StreamedBlocks<R>) -> RepositoryRejection {
        match self {
            Self::Entry(rejection) => *rejection,
            Self::Tree(error, node) => {
                let offset = error.cid.and_then(|cid| blocks.offset_of(&cid));
                RepositoryRejection::in_node(error, offset, node.as_deref())
            }
        }
    }
}

/// The walk over the tree of a stream.
struct TreeWalk<B: SharedBlocks> {
    blocks: B,
    walk: Walker<StreamedNodes<B>>,
    paths: RepoPathChecker,
    allow_any_key: bool,
}

impl<B: SharedBlocks> TreeWalk<B> {
    /// The walk over the tree that the commit names.
    fn new(blocks: B, options: &Options) -> Self {
        let root = parse(&blocks.blocks().borrow().commit().data).data;
        let walk = Walker::over(root, StreamedNodes(blocks.clone()), &options.tree);
        let paths = RepoPathChecker::default();
        Self { blocks, walk, paths, allow_any_key: options.allow_any_key }
    }

    /// Walks as far as the first fault, or as far as the blocks can be read.
    fn poll(&mut self) -> Poll<Result<Summary, WalkFault>> {
        let Self { blocks, walk, paths, allow_any_key } = self;
        let blocks = blocks.blocks();
        loop {
            if blocks.borrow_mut().poll_ready(walk.next_node()).is_pending() {
                return Poll::Pending;
            }
            let Some(step) = walk.next() else { break };
            match step {
                Ok(Step::Node { .. }) => {}
                Ok(Step::Record { key, value }) => {
                    let checked = if *allow_any_key { Ok(()) } else { check_path(paths, key) };
                    let cid = checked.and_then(|()| {
                        record_cid(value).map_err(|rejection| rejection.with_key(key))
                    });
                    match cid {
                        Ok(cid) => blocks.borrow_mut().record(key, cid),
                        Err(why) => return Poll::Ready(Err(WalkFault::Entry(Box::new(why)))),
                    }
                }
                Err(error) => {
                    let node = walk.faulty_node().cloned();
                    return Poll::Ready(Err(WalkFault::Tree(error, node)));
                }
            }
            if blocks.borrow().has_failed() {
                break;
            }
        }
        Poll::Ready(Ok(walk.summary()))
    }
}

/// Maximum length of an archive: a record's place is kept in 39 bits.
const MAX_BYTES: u64 = 1 << 39;
