//! Does this slice of a repository prove what stands at a path: this record, or none?
//!
//! A slice, as `getRecord` answers it, is a CAR of the commit, the nodes of the tree on the way to the
//! path, and the record. The commit is signed, the commit names the root, and each node names the
//! next, so that nothing can be put in or left out on the way: where the way ends at an empty slot,
//! there is no record.
//!
//! What the nodes on the way show of the tree must be canonical: order, prefixes, the layer of each
//! key, one layer less with each step. Of the rest of the tree nothing is said.
//!
//! ```
//! use atproto::commit::UnsignedCommit;
//! use codec::{Cid, car, cid::Codec};
//! use crypto::{Curve, SecretKey};
//! use wireproof_verify::record;
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
//! let slice = writer.into_inner();
//!
//! let path = "app.bsky.actor.profile/self";
//! let options = record::Options::default();
//! let proof = record::verify(&slice, path, Some(did), &key.public_key(), &options)?;
//! assert_eq!(proof.record(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod tests;

use atproto::commit::Commit;
use atproto::mst::canonical;
use atproto::repo::{Archive, BlockTotals, Repository};
use codec::{Cid, car};
use crypto::PublicKey;

use crate::Verified;
use crate::repository::{
    Paths, RepositoryRejection, check_commit, check_record, check_signature, in_archive, in_tree,
    record_block,
};

/// What is asked of a slice. Everything is strict unless a field says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bounds of the slice. Hashes are always checked, whatever is said here.
    pub archive: car::Options,
    /// The longest record, in bytes.
    pub max_record_bytes: usize,
    /// Lets the path be other than a collection and a record key.
    pub allow_any_key: bool,
}

impl Default for Options {
    /// Slices of up to 64 MiB, records of up to 1 MiB, and only paths.
    fn default() -> Self {
        let archive = car::Options { max_total_bytes: 64 << 20, ..car::Options::default() };
        Self { archive, max_record_bytes: 1 << 20, allow_any_key: false }
    }
}

/// What stands at a path of a repository, as its account signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordProof<'a> {
    commit: Commit<'a>,
    root: Cid,
    record: Option<(Cid, &'a [u8])>,
    nodes: usize,
    extra: BlockTotals,
}

impl<'a> RecordProof<'a> {
    /// The record with its name; `None` if it is proved that there is none.
    pub fn record(&self) -> Option<(Cid, &'a [u8])> {
        self.record
    }

    /// The commit that was signed: it says when this was so.
    pub fn commit(&self) -> &Commit<'a> {
        &self.commit
    }

    /// The CID of the commit.
    pub fn root(&self) -> Cid {
        self.root
    }

    /// How many nodes of the tree the proof took.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The blocks of the slice that the proof did not take, repeated ones not counted again.
    pub fn extra(&self) -> BlockTotals {
        self.extra
    }
}

/// Proves which record stands at `path` of a repository, or that there is none, from a slice of it.
///
/// # Errors
/// If the slice is no archive or a hash in it is wrong; if its first root is not a sound commit of
/// `did`, where that is asked for, signed by `key`; if a node on the way to `path` is missing, or
/// shows that the tree is not canonical; if the record is missing, no map, not canonical or too long.
pub fn verify<'a>(
    slice: &'a [u8],
    path: &str,
    did: Option<&str>,
    key: &PublicKey,
    options: &Options,
) -> Result<Verified<RecordProof<'a>>, RepositoryRejection> {
    if !options.allow_any_key {
        Paths::default().check(path.as_bytes())?;
    }
    let repository = read(slice, options)?;
    check_signature(&repository, did, key)?;
    let archive = repository.archive();
    let found = canonical::search(repository.commit().data, archive, path.as_bytes())
        .map_err(|error| in_tree(error, archive))?;
    let record = match found.value {
        Some(value) => {
            let block = record_block(archive, value).map_err(|fault| fault.with_path(path))?;
            check_record(block, archive.offset_of(block), options.max_record_bytes)
                .map_err(|fault| fault.with_cid(value.to_cid()).with_path(path))?;
            value.to_cid().map(|cid| (cid, block))
        }
        None => None,
    };
    let mut needed = BlockTotals::of(repository.commit_block());
    found.nodes.iter().for_each(|(_, block)| needed += BlockTotals::of(block));
    let is_apart = |cid: &Cid| found.nodes.iter().all(|(node, _)| node != cid);
    record
        .iter()
        .filter(|(cid, _)| is_apart(cid))
        .for_each(|(_, block)| needed += BlockTotals::of(block));
    Ok(Verified::vouch(RecordProof {
        commit: *repository.commit(),
        root: repository.root(),
        record,
        nodes: found.nodes.len(),
        extra: archive.distinct() - needed,
    }))
}

fn read<'a>(slice: &'a [u8], options: &Options) -> Result<Repository<'a>, RepositoryRejection> {
    let checked = car::Options { trust_hashes: false, ..options.archive };
    let archive = Archive::read(slice, &checked).map_err(|error| in_archive(slice, error))?;
    let repository = Repository::at_first_root(archive)?;
    check_commit(&repository)?;
    Ok(repository)
}
