//! A stream whose bytes are pushed: for callers that cannot wait inside a read, such as an event loop.
//!
//! The verdict equals [`verify`](super::verify) over a reader of the same bytes. A step of the walk is made once the blocks
//! that it reads have arrived, so that nothing is computed twice.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem;
use std::rc::Rc;
use std::task::Poll;

use atproto::mst::canonical::Summary;
use codec::car::{Pushed, StreamReader};
use crypto::PublicKey;

use super::blocks::{StreamedBlocks, missing_commit};
use super::{
    StreamFailure, StreamOptions, StreamedRepository, TreeWalk, WalkFault, check, conclude,
    failure, limits_of, parse, refuse, root,
};
use crate::Verified;
use crate::repository::rejection::RepositoryRejection;
use crate::repository::{SignatureProof, check_signature};

/// Verifies a repository whose bytes are pushed in pieces of any size.
///
/// ```
/// use wireproof::verify::repository::stream::{RepositoryFeed, StreamOptions};
/// # use wireproof::atproto::commit::UnsignedCommit;
/// # use wireproof::codec::{Cid, car, cid::Codec};
/// # let tree = b"\xa2\x61e\x80\x61l\xf6";
/// # let data = Cid::of(Codec::DagCbor, tree);
/// # let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
/// # let commit = UnsignedCommit { did, rev, data, prev: None }.with_signature(&[1; 64]);
/// # let root = Cid::of(Codec::DagCbor, &commit);
/// # let mut writer = car::Writer::new(Vec::new(), &[root])?;
/// # writer.block(&root, &commit)?;
/// # writer.block(&data, tree)?;
/// # let export = writer.into_inner();
///
/// let mut feed = RepositoryFeed::without_signature(&StreamOptions::default());
/// for piece in export.chunks(10) {
///     feed.push(piece)?;
/// }
/// assert_eq!(feed.finish()?.root(), root);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RepositoryFeed {
    author: Option<Author>,
    options: StreamOptions,
    stage: Stage,
}

/// The account that is expected, if one is, and its key.
struct Author {
    did: Option<String>,
    key: PublicKey,
}

/// How far a repository was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedProgress {
    /// Bytes of the archive up to the last block that was read.
    pub bytes: u64,
    /// Nodes of the tree that were reached.
    pub nodes: u64,
    /// Records that were reached.
    pub records: u64,
}

type Blocks = StreamedBlocks<Pushed>;
type Shared = Rc<RefCell<Blocks>>;

/// What is read next.
enum Stage {
    /// The header, whose first bytes have arrived.
    Header(Pushed),
    /// The commit.
    Commit(Box<Blocks>),
    /// The rest of the tree.
    Tree(Shared, Box<TreeWalk<Shared>>),
    /// The rest of an archive whose tree was walked as far as possible.
    Rest(Box<Blocks>, Result<Summary, WalkFault>),
    /// The rest of an archive that is rejected, unless it has a fault of its own.
    Refused(Box<Blocks>, Box<RepositoryRejection>),
    /// The same, of an archive without a root.
    RefusedRoot(Box<StreamReader<Pushed>>, Box<RepositoryRejection>),
    /// Nothing: the verdict is there, or was returned.
    Over(Option<Box<Verdict>>),
}

type Verdict = Result<Verified<StreamedRepository>, StreamFailure>;

impl RepositoryFeed {
    /// A repository of `did`, if one is given, signed by `key`.
    pub fn new(did: Option<&str>, key: &PublicKey, options: &StreamOptions) -> Self {
        let author = Author { did: did.map(str::to_owned), key: key.clone() };
        Self::of(Some(author), options)
    }

    /// A repository whose author is not proved, and the result tells.
    pub fn without_signature(options: &StreamOptions) -> Self {
        Self::of(None, options)
    }

    fn of(author: Option<Author>, options: &StreamOptions) -> Self {
        Self { author, options: *options, stage: Stage::Header(Pushed::default()) }
    }

    /// Adds the next bytes, and verifies as far as they allow.
    ///
    /// # Errors
    /// At a fault of the archive, or if too many of its blocks have to be held. What is pushed afterwards is ignored.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), StreamFailure> {
        match &mut self.stage {
            Stage::Header(pushed) => pushed.push(bytes),
            Stage::Commit(blocks) | Stage::Rest(blocks, _) | Stage::Refused(blocks, _) => {
                blocks.source_mut().push(bytes);
            }
            Stage::Tree(blocks, _) => blocks.borrow_mut().source_mut().push(bytes),
            Stage::RefusedRoot(reader, _) => reader.source_mut().push(bytes),
            Stage::Over(_) => return Ok(()),
        }
        self.advance();
        match &mut self.stage {
            Stage::Over(verdict) if verdict.as_ref().is_some_and(|verdict| verdict.is_err()) => {
                verdict.take().map_or(Ok(()), |verdict| verdict.map(drop))
            }
            _ => Ok(()),
        }
    }

    /// The verdict, after the last bytes.
    ///
    /// # Errors
    /// As [`verify`](super::verify). After an error of [`push`](Self::push), an error of the kind
    /// [`InvalidInput`](io::ErrorKind::InvalidInput).
    pub fn finish(mut self) -> Result<Verified<StreamedRepository>, StreamFailure> {
        match &mut self.stage {
            Stage::Header(pushed) => pushed.end(),
            Stage::Commit(blocks) | Stage::Rest(blocks, _) | Stage::Refused(blocks, _) => {
                blocks.source_mut().end();
            }
            Stage::Tree(blocks, _) => blocks.borrow_mut().source_mut().end(),
            Stage::RefusedRoot(reader, _) => reader.source_mut().end(),
            Stage::Over(_) => {}
        }
        self.advance();
        match self.stage {
            Stage::Over(Some(verdict)) => *verdict,
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput).into()),
        }
    }

    /// How far the repository was read.
    pub fn progress(&self) -> FeedProgress {
        let at = |blocks: &Blocks| FeedProgress { bytes: blocks.position(), ..Default::default() };
        match &self.stage {
            Stage::Commit(blocks) | Stage::Refused(blocks, _) => at(blocks),
            Stage::Tree(blocks, tree) => with_summary(at(&blocks.borrow()), tree.walk.summary()),
            Stage::Rest(blocks, Ok(summary)) => with_summary(at(blocks), *summary),
            Stage::Rest(blocks, Err(_)) => at(blocks),
            Stage::RefusedRoot(reader, _) => {
                FeedProgress { bytes: StreamReader::position(reader), ..Default::default() }
            }
            Stage::Header(_) | Stage::Over(_) => FeedProgress::default(),
        }
    }

    /// Goes from stage to stage as far as the bytes allow.
    fn advance(&mut self) {
        loop {
            let stage = mem::replace(&mut self.stage, Stage::Over(None));
            match self.next_stage(stage) {
                Step::To(stage) => self.stage = stage,
                Step::Wait(stage) => {
                    self.stage = stage;
                    return;
                }
            }
        }
    }

    fn next_stage(&self, stage: Stage) -> Step {
        match stage {
            Stage::Header(pushed) => self.read_header(pushed),
            Stage::Commit(blocks) => self.read_commit(blocks),
            Stage::Tree(blocks, tree) => read_tree(blocks, tree),
            Stage::Rest(blocks, walked) => self.read_rest(blocks, walked),
            Stage::Refused(mut blocks, why) => match blocks.poll_to_end() {
                Poll::Pending => Step::Wait(Stage::Refused(blocks, why)),
                Poll::Ready(Ok(())) => over(Err(StreamFailure::Rejected(why))),
                Poll::Ready(Err(failure)) => over(Err(failure)),
            },
            Stage::RefusedRoot(mut reader, why) => match refuse(&mut reader, *why.clone()) {
                StreamFailure::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Step::Wait(Stage::RefusedRoot(reader, why))
                }
                failure => over(Err(failure)),
            },
            Stage::Over(verdict) => Step::Wait(Stage::Over(verdict)),
        }
    }

    fn read_header(&self, pushed: Pushed) -> Step {
        let limits = limits_of(&self.options);
        if !pushed.has_header(&limits) {
            return Step::Wait(Stage::Header(pushed));
        }
        let reader = match StreamReader::new(pushed, &limits) {
            Ok(reader) => reader,
            Err(error) => return over(Err(failure(error))),
        };
        match root(&reader) {
            Ok(root) => Step::To(Stage::Commit(Box::new(Blocks::fed(reader, root, &self.options)))),
            Err(why) => Step::To(Stage::RefusedRoot(Box::new(reader), Box::new(why))),
        }
    }

    fn read_commit(&self, mut blocks: Box<Blocks>) -> Step {
        let refused = |blocks, why| Step::To(Stage::Refused(blocks, Box::new(why)));
        match blocks.poll_commit() {
            Poll::Pending => return Step::Wait(Stage::Commit(blocks)),
            Poll::Ready(false) => {
                let root = blocks.commit().cid;
                return refused(blocks, missing_commit(root));
            }
            Poll::Ready(true) => {}
        }
        if let Err(why) = check(blocks.commit()).and_then(|()| self.check_author(&blocks)) {
            return refused(blocks, why);
        }
        let blocks = Rc::new(RefCell::new(*blocks));
        let tree = TreeWalk::new(blocks.clone(), &self.options.repository);
        Step::To(Stage::Tree(blocks, Box::new(tree)))
    }

    fn check_author(&self, blocks: &Blocks) -> Result<(), RepositoryRejection> {
        let Some(Author { did, key }) = &self.author else { return Ok(()) };
        let commit = blocks.commit();
        check_signature(commit.cid, &parse(&commit.data), did.as_deref(), key)
    }

    fn read_rest(&self, mut blocks: Box<Blocks>, walked: Result<Summary, WalkFault>) -> Step {
        match blocks.poll_to_end() {
            Poll::Pending => Step::Wait(Stage::Rest(blocks, walked)),
            Poll::Ready(Err(failure)) => over(Err(failure)),
            Poll::Ready(Ok(())) => {
                let signature = match self.author {
                    Some(_) => SignatureProof::Checked,
                    None => SignatureProof::NotChecked,
                };
                over(conclude(*blocks, walked, signature, &self.options))
            }
        }
    }
}

/// The stage after another.
enum Step {
    /// This one, at once.
    To(Stage),
    /// This one, once there are more bytes.
    Wait(Stage),
}

fn over(verdict: Verdict) -> Step {
    Step::Wait(Stage::Over(Some(Box::new(verdict))))
}

fn read_tree(blocks: Shared, mut tree: Box<TreeWalk<Shared>>) -> Step {
    let Poll::Ready(walked) = tree.poll() else { return Step::Wait(Stage::Tree(blocks, tree)) };
    drop(tree);
    let blocks = Rc::into_inner(blocks).expect("the walk was the other owner");
    Step::To(Stage::Rest(Box::new(blocks.into_inner()), walked))
}

fn with_summary(progress: FeedProgress, summary: Summary) -> FeedProgress {
    FeedProgress { nodes: summary.nodes, records: summary.records, ..progress }
}

impl fmt::Debug for RepositoryFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.progress();
        f.debug_struct("RepositoryFeed").field("progress", &progress).finish_non_exhaustive()
    }
}
