//! Verifies an export: that it is the whole repository that an account signed.
//!
//! | stage | proves | function |
//! |---|---|---|
//! | parse | the archive is well formed, every block has the hash in its CID, the commit is of version 3 with a DID and a revision | [`parse`] |
//! | signature | the commit is of the expected account, and the key signed it | [`ParsedRepository::verify_signature`] |
//! | tree | the tree is canonical, all its nodes and records are present, every key is a path | [`SignedRepository::walk`] |
//! | records | every record is a map in canonical DAG-CBOR, within the size limit, or is counted as invalid | [`WalkedRepository::verify_records`] |
//!
//! Every stage is a type that only the stage before can make, so that a caller can time them and cannot
//! skip one; [`verify`] runs all. The result is a [`Verified`] [`WholeRepository`], or a rejection for
//! the first fault; [`visit_rejections`] continues and passes on all.
//!
//! The export is a slice, in memory or mapped. [`stream`] verifies one that is received, with the same verdict.
//!
//! ```
//! use wireproof::atproto::commit::UnsignedCommit;
//! use wireproof::codec::{Cid, car, cid::Codec};
//! use wireproof::crypto::{Curve, SecretKey};
//! use wireproof::verify::repository::{self, Options};
//!
//! let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let tree = b"\xa2\x61e\x80\x61l\xf6";
//! let data = Cid::of(Codec::DagCbor, tree);
//! let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
//! let unsigned = UnsignedCommit { did, rev, data, prev: None };
//! let commit = unsigned.with_signature(&key.sign(&unsigned.to_bytes()));
//! let root = Cid::of(Codec::DagCbor, &commit);
//! let mut writer = car::Writer::new(Vec::new(), &[root])?;
//! writer.block(&root, &commit)?;
//! writer.block(&data, tree)?;
//! let export = writer.into_inner();
//!
//! let whole = repository::verify(&export, Some(did), &key.public_key(), &Options::default())?;
//! assert_eq!((whole.root(), whole.tree().records), (root, 0));
//! let other_key = SecretKey::from_bytes(Curve::K256, &[8; 32])?.public_key();
//! let rejected = repository::verify(&export, Some(did), &other_key, &Options::default());
//! assert_eq!(rejected.unwrap_err().code(), "signature/wrong");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod follow;
mod options;
mod records;
mod rejection;
pub mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod tree;

use std::ops::ControlFlow;

use atproto::commit::Commit;
use atproto::mst::Tree;
use atproto::mst::canonical::{Step, Summary};
use atproto::repo::{Archive, BlockTotals, Repository};
use atproto::syntax::{Did, Tid};
use codec::{AnyCid, Cid};
use crypto::PublicKey;

pub use options::Options;
pub use rejection::{RepositoryFault, RepositoryRejection};
pub(crate) use tree::{check_path, record_block};

use crate::{InvalidRecords, Verified};
use follow::ReadArchive;
use records::PrecheckedRecords;
use rejection::FaultSink;
use tree::{WalkResult, check_extra};

/// Whether the signature of a repository was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureProof {
    /// The caller's key signed the commit.
    Checked,
    /// The caller skipped the check.
    NotChecked,
}

/// A repository that was proved to be whole.
#[derive(Clone, Debug)]
pub struct WholeRepository<'a> {
    repository: Repository<'a>,
    signature: SignatureProof,
    tree: Summary,
    extra: BlockTotals,
    invalid: InvalidRecords,
}

impl<'a> WholeRepository<'a> {
    /// Whether the signature is part of the proof.
    pub fn signature(&self) -> SignatureProof {
        self.signature
    }

    /// Numbers of nodes and records of the tree.
    pub fn tree(&self) -> Summary {
        self.tree
    }

    /// The blocks that the commit does not lead to, repeated ones counted once.
    pub fn extra(&self) -> BlockTotals {
        self.extra
    }

    /// The records that are signed and invalid: none under [`Options::strict_records`].
    pub fn invalid_records(&self) -> &InvalidRecords {
        &self.invalid
    }
}

impl<'a> std::ops::Deref for WholeRepository<'a> {
    type Target = Repository<'a>;

    fn deref(&self) -> &Repository<'a> {
        &self.repository
    }
}

/// Verifies a repository in all four stages: whole, canonical, of the account `did` if one is given,
/// and signed by `key`.
///
/// # Errors
/// At the first fault.
pub fn verify<'a>(
    export: &'a [u8],
    did: Option<&str>,
    key: &PublicKey,
    options: &Options,
) -> Result<Verified<WholeRepository<'a>>, RepositoryRejection> {
    parse(export, options)?.verify_signature(did, key)?.walk()?.verify_records()
}

/// Verifies a repository in all stages but the signature: whole and canonical, by an unknown author.
///
/// # Errors
/// At the first fault.
pub fn verify_without_signature<'a>(
    export: &'a [u8],
    options: &Options,
) -> Result<Verified<WholeRepository<'a>>, RepositoryRejection> {
    parse(export, options)?.without_signature().walk()?.verify_records()
}

/// A repository whose blocks have the hashes in their CIDs.
#[derive(Clone, Debug)]
pub struct ParsedRepository<'a> {
    repository: Repository<'a>,
    options: Options,
    prechecked: PrecheckedRecords,
    /// The result of the walk, if the archive is in streamable order and without fault.
    walked: Option<WalkResult>,
}

/// A repository whose signature was verified, or skipped by the caller.
#[derive(Clone, Debug)]
pub struct SignedRepository<'a> {
    repository: Repository<'a>,
    options: Options,
    prechecked: PrecheckedRecords,
    walked: Option<WalkResult>,
    signature: SignatureProof,
}

/// A repository whose tree is canonical and whole.
#[derive(Clone, Debug)]
pub struct WalkedRepository<'a> {
    repository: Repository<'a>,
    options: Options,
    signature: SignatureProof,
    walked: WalkResult,
}

/// The first stage: reads the archive, checks every hash, and reads the commit. In streamable order the walk of the
/// third stage is part of it, so that the archive is read once from memory.
///
/// # Errors
/// If the archive breaks a rule or exceeds a limit, or its first root is not a valid commit of
/// version 3.
pub fn parse<'a>(
    export: &'a [u8],
    options: &Options,
) -> Result<ParsedRepository<'a>, RepositoryRejection> {
    let read = follow::read(export, options)
        .map_err(|error| RepositoryRejection::in_archive(export, error))?;
    let ReadArchive { archive, prechecked, walked } = read;
    let repository = Repository::at_first_root(archive)?;
    check_commit(repository.root(), repository.commit())?;
    Ok(ParsedRepository { repository, options: *options, prechecked, walked })
}

/// Checks the fields of a commit that its parser leaves unchecked.
pub(crate) fn check_commit(root: Cid, commit: &Commit<'_>) -> Result<(), RepositoryRejection> {
    let did = Did::parse(commit.did).err().map(RepositoryFault::Did);
    let rev = || Tid::parse(commit.rev).err().map(RepositoryFault::Rev);
    match did.or_else(rev) {
        Some(fault) => Err(RepositoryRejection::of(fault).with_cid(root)),
        None => Ok(()),
    }
}

/// Checks the account of a commit, if one is given, and the signature.
pub(crate) fn check_signature(
    root: Cid,
    commit: &Commit<'_>,
    did: Option<&str>,
    key: &PublicKey,
) -> Result<(), RepositoryRejection> {
    let reject = |fault| Err(RepositoryRejection::of(fault).with_cid(root));
    if did.is_some_and(|did| did != commit.did) {
        return reject(RepositoryFault::OtherAccount);
    }
    match key.verify_digest(&commit.signing_bytes().digest(), commit.sig) {
        Ok(()) => Ok(()),
        Err(fault) => reject(RepositoryFault::Signature(fault)),
    }
}

impl<'a> ParsedRepository<'a> {
    /// The repository, of which nothing more is proved yet.
    pub fn repository(&self) -> &Repository<'a> {
        &self.repository
    }

    /// The second stage: the commit is of `did`, if one is given, and `key` signed it.
    ///
    /// # Errors
    /// If the commit is another account's, or the signature is not one of `key` by the strict rules.
    pub fn verify_signature(
        self,
        did: Option<&str>,
        key: &PublicKey,
    ) -> Result<SignedRepository<'a>, RepositoryRejection> {
        check_signature(self.repository.root(), self.repository.commit(), did, key)?;
        Ok(self.into_signed(SignatureProof::Checked))
    }

    /// Skips the second stage: the author is not proved, and the result tells.
    pub fn without_signature(self) -> SignedRepository<'a> {
        self.into_signed(SignatureProof::NotChecked)
    }

    fn into_signed(self, signature: SignatureProof) -> SignedRepository<'a> {
        let Self { repository, options, prechecked, walked } = self;
        SignedRepository { repository, options, prechecked, walked, signature }
    }
}

impl<'a> SignedRepository<'a> {
    /// The third stage: walks the tree under all rules, finds the block of every record, and checks
    /// the syntax of every key.
    ///
    /// # Errors
    /// At the first fault in key order, or if there are more extra blocks than allowed.
    pub fn walk(self) -> Result<WalkedRepository<'a>, RepositoryRejection> {
        let Self { repository, options, prechecked, walked, signature } = self;
        let walked = match walked {
            Some(walked) => {
                check_extra(walked.extra, &options, &mut Err)?;
                walked
            }
            None => tree::walk(&repository, &prechecked, &options, &mut Err)?,
        };
        Ok(WalkedRepository { repository, options, signature, walked })
    }
}

impl<'a> WalkedRepository<'a> {
    /// The repository, of whose records nothing is proved yet but their presence.
    pub fn repository(&self) -> &Repository<'a> {
        &self.repository
    }

    /// Numbers of nodes and records of the tree.
    pub fn tree(&self) -> Summary {
        self.walked.tree
    }

    /// The last stage: checks every record. Records that are not a map, not canonical or too long are counted
    /// as [invalid](WholeRepository::invalid_records).
    ///
    /// # Errors
    /// Under [`Options::strict_records`], at the first such record in key order.
    pub fn verify_records(self) -> Result<Verified<WholeRepository<'a>>, RepositoryRejection> {
        let Self { repository, options, signature, walked } = self;
        let invalid = records::check(&repository, &walked.unchecked, &options, &mut Err)?;
        let WalkResult { tree, extra, .. } = walked;
        Ok(Verified::vouch(WholeRepository { repository, signature, tree, extra, invalid }))
    }

    /// An optional stage that proves the root a second time: builds the tree of these records from
    /// nothing and compares the roots. It can only agree, because the walk has checked every rule that
    /// makes a tree canonical.
    ///
    /// # Errors
    /// If the roots differ.
    pub fn rebuild(&self) -> Result<(), RepositoryRejection> {
        let mut walk = self.repository.walk(&self.options.tree);
        let records = std::iter::from_fn(|| {
            loop {
                if let Ok(Step::Record { key, value }) = walk.next()? {
                    return Some((key.to_vec(), AnyCid::from(value)));
                }
            }
        });
        let archive = self.repository.archive();
        let tree = Tree::from_sorted(records);
        let root = tree.map_err(|error| RepositoryRejection::in_tree(error, archive))?.root();
        if root == self.repository.commit().data {
            return Ok(());
        }
        Err(RepositoryRejection::of(RepositoryFault::Rebuilt(root)))
    }
}

/// Visits the faults of an export in the order in which they are found, until `visit` breaks: none where
/// [`verify`] accepts, or without `key` where [`verify_without_signature`] does. No list of them is held.
///
/// A fault costs only the data that depends on it, and the rest is still checked: a block with a wrong hash counts
/// as missing, a malformed node has no records. Without a commit there is no tree to check.
pub fn visit_rejections(
    export: &[u8],
    did: Option<&str>,
    key: Option<&PublicKey>,
    options: &Options,
    mut visit: impl FnMut(&RepositoryRejection) -> ControlFlow<()>,
) {
    let mut is_over = false;
    let mut sink = |fault: RepositoryRejection| {
        is_over = visit(&fault).is_break();
        if is_over { Err(fault) } else { Ok(()) }
    };
    // The error is the one at which the visitor broke, or one that leaves nothing more to check.
    if let Err(last) = collect(export, did, key, options, &mut sink)
        && !is_over
    {
        let _ = visit(&last);
    }
}

/// The first faults of an export, at most `max_faults`, as [`visit_rejections`] finds them.
pub fn collect_rejections(
    export: &[u8],
    did: Option<&str>,
    key: Option<&PublicKey>,
    options: &Options,
    max_faults: usize,
) -> Vec<RepositoryRejection> {
    let mut found = Vec::new();
    visit_rejections(export, did, key, options, |fault| {
        if found.len() < max_faults {
            found.push(fault.clone());
        }
        if found.len() < max_faults { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

fn collect(
    export: &[u8],
    did: Option<&str>,
    key: Option<&PublicKey>,
    options: &Options,
    sink: FaultSink<'_>,
) -> Result<(), RepositoryRejection> {
    let mut prechecked = PrecheckedRecords::new(export, options.max_record_bytes);
    let (checked, mut visit) = (options.checked_archive(), |block: &_| prechecked.visit(block));
    let archive = Archive::read_visiting(export, &checked, &mut visit, &mut |error| {
        sink(RepositoryRejection::in_archive(export, error)).map_err(|_| error)
    });
    let archive = archive.map_err(|error| RepositoryRejection::in_archive(export, error))?;
    let repository = Repository::at_first_root(archive)?;
    let (root, commit) = (repository.root(), repository.commit());
    check_commit(root, commit).or_else(&mut *sink)?;
    if let Some(key) = key {
        check_signature(root, commit, did, key).or_else(&mut *sink)?;
    }
    let walked = tree::walk(&repository, &prechecked, options, sink)?;
    records::check(&repository, &walked.unchecked, options, sink).map(drop)
}
