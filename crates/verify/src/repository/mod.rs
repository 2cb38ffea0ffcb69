//! Is this export the whole repository that an account signed?
//!
//! | stage | what it proves | function |
//! |---|---|---|
//! | parse | the archive is one, each block is what its CID says, the commit is of version 3 with a DID and a revision | [`parse`] |
//! | signature | the account is the one asked for, and the key signed the commit | [`ParsedRepository::verify_signature`] |
//! | tree | the tree is canonical, every node and every record of it is there, every key is a path | [`SignedRepository::walk`] |
//! | records | every record is a map in canonical DAG-CBOR, and not too long | [`WalkedRepository::verify_records`] |
//!
//! Each stage is a type that only the stage before can make, so that a caller may time them and cannot
//! leave one out; [`verify`] does all. What is proved of the whole is a [`Verified`]
//! [`WholeRepository`]. A refusal is the first fault; [`collect_rejections`] goes on and collects them.
//!
//! ```
//! use atproto::commit::UnsignedCommit;
//! use codec::{Cid, car, cid::Codec};
//! use crypto::{Curve, SecretKey};
//! use wireproof_verify::repository::{self, Options};
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
//! let stranger = SecretKey::from_bytes(Curve::K256, &[8; 32])?.public_key();
//! let refused = repository::verify(&export, Some(did), &stranger, &Options::default());
//! assert_eq!(refused.unwrap_err().code(), "signature/wrong");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod collect;
mod records;
mod rejection;
#[cfg(test)]
pub(crate) mod tests;
mod tree;

use atproto::mst::{TreeLimits, canonical};
use atproto::repo::{Archive, BlockTotals, RepoError, Repository};
use atproto::syntax::{Did, Tid};
use codec::{CidRef, car};
use crypto::PublicKey;

pub use collect::collect_rejections;
pub(crate) use records::check_record;
pub use rejection::{RepositoryFault, RepositoryRejection};
pub use tree::WalkedRepository;
pub(crate) use tree::{Paths, in_tree, record_block};

use crate::Verified;
use records::SoundRecords;

/// What is asked of a repository. Everything is strict unless a field says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bounds of the archive. Hashes are always checked, whatever is said here.
    pub archive: car::Options,
    /// Bounds of the tree.
    pub tree: TreeLimits,
    /// The longest record, in bytes.
    pub max_record_bytes: usize,
    /// The most blocks that the commit does not lead to. They are always counted.
    pub max_extra_blocks: u64,
    /// The most bytes in such blocks.
    pub max_extra_bytes: u64,
    /// Lets keys of the tree be other than a collection and a record key.
    pub allow_any_key: bool,
}

impl Default for Options {
    /// The bounds of archives and trees, records of up to 1 MiB, any number of blocks beside the
    /// repository, and only paths as keys.
    fn default() -> Self {
        Self {
            archive: car::Options::default(),
            tree: TreeLimits::default(),
            max_record_bytes: 1 << 20,
            max_extra_blocks: u64::MAX,
            max_extra_bytes: u64::MAX,
            allow_any_key: false,
        }
    }
}

/// Whether somebody is known to have signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureProof {
    /// The key that the caller gave signed the commit.
    Checked,
    /// The caller chose not to ask.
    NotChecked,
}

/// A repository that was proved to be whole.
#[derive(Clone, Debug)]
pub struct WholeRepository<'a> {
    repository: Repository<'a>,
    signature: SignatureProof,
    tree: canonical::Summary,
    extra: BlockTotals,
}

impl<'a> WholeRepository<'a> {
    /// Whether the signature is part of the proof.
    pub fn signature(&self) -> SignatureProof {
        self.signature
    }

    /// How many nodes and records the tree has.
    pub fn tree(&self) -> canonical::Summary {
        self.tree
    }

    /// The blocks that the commit does not lead to, repeated ones not counted again.
    pub fn extra(&self) -> BlockTotals {
        self.extra
    }
}

impl<'a> std::ops::Deref for WholeRepository<'a> {
    type Target = Repository<'a>;

    fn deref(&self) -> &Repository<'a> {
        &self.repository
    }
}

/// Proves a repository in all four stages: whole, canonical, of the account `did` if one is asked
/// for, and signed by `key`.
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

/// Proves a repository in all stages but the signature: whole and canonical, but anybody's.
///
/// # Errors
/// At the first fault.
pub fn verify_without_signature<'a>(
    export: &'a [u8],
    options: &Options,
) -> Result<Verified<WholeRepository<'a>>, RepositoryRejection> {
    parse(export, options)?.without_signature().walk()?.verify_records()
}

/// A repository whose blocks are what their CIDs say.
#[derive(Clone, Debug)]
pub struct ParsedRepository<'a> {
    repository: Repository<'a>,
    options: Options,
    sound: SoundRecords,
}

/// A repository whose commit is signed, or that the caller takes as it is.
#[derive(Clone, Debug)]
pub struct SignedRepository<'a> {
    repository: Repository<'a>,
    options: Options,
    sound: SoundRecords,
    signature: SignatureProof,
}

/// The first stage: reads the archive, checks every hash, and reads the commit.
///
/// # Errors
/// If the archive breaks a rule or a bound, or its first root is not a sound commit of version 3.
pub fn parse<'a>(
    export: &'a [u8],
    options: &Options,
) -> Result<ParsedRepository<'a>, RepositoryRejection> {
    let mut sound = SoundRecords::new(export, options);
    let (checked, mut see) = (options.checked_archive(), |block: &_| sound.see(block));
    let archive = Archive::read_visiting(export, &checked, &mut see, &mut Err)
        .map_err(|error| in_archive(export, error))?;
    let repository = Repository::at_first_root(archive)?;
    check_commit(&repository)?;
    Ok(ParsedRepository { repository, options: *options, sound })
}

impl Options {
    fn checked_archive(&self) -> car::Options {
        car::Options { trust_hashes: false, ..self.archive }
    }
}

/// A fault of an archive, with the block that it is about.
#[cold]
pub(crate) fn in_archive(archive: &[u8], error: car::CarError) -> RepositoryRejection {
    let section = archive.get(error.offset as usize..).unwrap_or_default();
    let cid = match (error.fault, kernels::varint::read(section)) {
        (car::CarFault::HashMismatch, Ok((_, prefix))) => CidRef::from_prefix(&section[prefix..]),
        _ => None,
    };
    let rejection = RepositoryRejection::from(RepoError::from(error));
    rejection.at(error.offset).with_cid(cid.and_then(|(cid, _)| cid.to_cid()))
}

/// Checks the fields of a commit that its own reader leaves open.
pub(crate) fn check_commit(repository: &Repository<'_>) -> Result<(), RepositoryRejection> {
    let commit = repository.commit();
    let did = Did::parse(commit.did).err().map(RepositoryFault::Did);
    let rev = || Tid::parse(commit.rev).err().map(RepositoryFault::Rev);
    match did.or_else(rev) {
        Some(fault) => Err(RepositoryRejection::of(fault).with_cid(repository.root())),
        None => Ok(()),
    }
}

/// Checks whose commit it is and who signed it.
pub(crate) fn check_signature(
    repository: &Repository<'_>,
    did: Option<&str>,
    key: &PublicKey,
) -> Result<(), RepositoryRejection> {
    let commit = repository.commit();
    let refuse = |fault| Err(RepositoryRejection::of(fault).with_cid(repository.root()));
    if did.is_some_and(|did| did != commit.did) {
        return refuse(RepositoryFault::OtherAccount);
    }
    match key.verify_digest(&commit.signing_bytes().digest(), commit.sig) {
        Ok(()) => Ok(()),
        Err(fault) => refuse(RepositoryFault::Signature(fault)),
    }
}

impl<'a> ParsedRepository<'a> {
    /// The repository, of which nothing more is proved yet.
    pub fn repository(&self) -> &Repository<'a> {
        &self.repository
    }

    /// The second stage: the commit is of `did`, if one is asked for, and `key` signed it.
    ///
    /// # Errors
    /// If it is another account's, or the signature is not one of `key` by the strict rules.
    pub fn verify_signature(
        self,
        did: Option<&str>,
        key: &PublicKey,
    ) -> Result<SignedRepository<'a>, RepositoryRejection> {
        check_signature(&self.repository, did, key)?;
        let Self { repository, options, sound } = self;
        Ok(SignedRepository { repository, options, sound, signature: SignatureProof::Checked })
    }

    /// Leaves out the second stage: the repository may be anybody's, and its proof says so.
    pub fn without_signature(self) -> SignedRepository<'a> {
        let Self { repository, options, sound } = self;
        SignedRepository { repository, options, sound, signature: SignatureProof::NotChecked }
    }
}
