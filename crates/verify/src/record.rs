//! Verifies a slice of a repository that proves the record at a path, or its absence.
//!
//! A slice, as `getRecord` returns it, is a CAR of the commit, the tree nodes on the search path of the
//! key, and the record. The commit is signed, it names the root, and every node names the next, so that
//! no node can be added or left out: a search that ends at an empty slot proves that there is no
//! record.
//!
//! The nodes on the search path must be canonical: order, prefixes, the layer of every key, one layer less
//! per step. Nothing is proved of the rest of the tree.
//!
//! ```
//! use wireproof::atproto::commit::UnsignedCommit;
//! use wireproof::codec::{Cid, car, cid::Codec};
//! use wireproof::crypto::{Curve, SecretKey};
//! use wireproof::verify::record;
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

use atproto::commit::Commit;
use atproto::mst::canonical;
use atproto::repo::{Archive, BlockTotals, Repository};
use atproto::syntax::RepoPathChecker;
use codec::{Cid, car};
use crypto::PublicKey;

use crate::repository::{
    RepositoryRejection, check_commit, check_path as check_key, check_signature, record_block,
};
use crate::{InvalidRecord, Verified};

/// Limits of a slice. Every rule is strict unless a field relaxes it, except the rules of the record, which a
/// field makes strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Limits of the archive. Hashes are always checked, whatever `trust_hashes` says here.
    pub archive: car::Options,
    /// Maximum record size in bytes; a longer record is invalid.
    pub max_record_bytes: usize,
    /// Rejects an [invalid record](InvalidRecord), which otherwise is proved and reported as invalid.
    pub strict_records: bool,
    /// Accepts a path that is not a collection and a record key.
    pub allow_any_key: bool,
}

impl Default for Options {
    /// Slices of up to 64 MiB, records of up to 1 MiB, and only record paths.
    fn default() -> Self {
        let mut archive = car::Options::default();
        archive.max_total_bytes = 64 << 20;
        Self { archive, max_record_bytes: 1 << 20, strict_records: false, allow_any_key: false }
    }
}

/// The record at a path of a repository, or its absence, as its account signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordProof<'a> {
    commit: Commit<'a>,
    root: Cid,
    record: Option<(Cid, &'a [u8])>,
    invalid: Option<InvalidRecord>,
    nodes: usize,
    extra: BlockTotals,
}

impl<'a> RecordProof<'a> {
    /// The record's CID and bytes, valid or not; `None` if the record is proved to be absent.
    pub fn record(&self) -> Option<(Cid, &'a [u8])> {
        self.record
    }

    /// The broken rule, if the record is present and invalid: never under [`Options::strict_records`].
    pub fn invalid_record(&self) -> Option<&InvalidRecord> {
        self.invalid.as_ref()
    }

    /// The signed commit, whose revision dates the proof.
    pub fn commit(&self) -> &Commit<'a> {
        &self.commit
    }

    /// The CID of the commit.
    pub fn root(&self) -> Cid {
        self.root
    }

    /// Number of tree nodes in the proof.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The blocks of the slice that the proof does not need, repeated ones counted once.
    pub fn extra(&self) -> BlockTotals {
        self.extra
    }
}

/// Verifies the record at `path` of a repository, or its absence, from a slice of the repository.
///
/// # Errors
/// If the slice is not an archive or a hash in it is wrong; if its first root is not a valid commit of
/// `did`, where one is given, signed by `key`; if a node on the search path is missing or not
/// canonical; if the record is missing, or, under [`Options::strict_records`], not a map, not canonical or too
/// long.
pub fn verify<'a>(
    slice: &'a [u8],
    path: &str,
    did: Option<&str>,
    key: &PublicKey,
    options: &Options,
) -> Result<Verified<RecordProof<'a>>, RepositoryRejection> {
    check_path(path, options)?;
    Slice::read(slice, did, key, options)?.prove(path)
}

/// A slice whose hashes and commit are verified, and which proves records at several paths, or [all of some collections](crate::collections).
#[derive(Debug)]
pub struct Slice<'a> {
    pub(crate) repository: Repository<'a>,
    pub(crate) blocks: BlockTotals,
    pub(crate) options: Options,
}

impl<'a> Slice<'a> {
    /// Reads a slice and verifies its hashes and its commit.
    ///
    /// # Errors
    /// As [`verify`], except the rules about a path.
    pub fn read(
        slice: &'a [u8],
        did: Option<&str>,
        key: &PublicKey,
        options: &Options,
    ) -> Result<Self, RepositoryRejection> {
        let repository = read(slice, options)?;
        check_signature(repository.root(), repository.commit(), did, key)?;
        let blocks = repository.archive().distinct();
        Ok(Self { repository, blocks, options: *options })
    }

    /// The signed commit.
    pub fn commit(&self) -> &Commit<'a> {
        self.repository.commit()
    }

    /// The CID of the commit.
    pub fn root(&self) -> Cid {
        self.repository.root()
    }

    /// Verifies the record at `path`, or its absence.
    ///
    /// # Errors
    /// As [`verify`], for the rules about a path.
    pub fn prove(&self, path: &str) -> Result<Verified<RecordProof<'a>>, RepositoryRejection> {
        check_path(path, &self.options)?;
        let archive = self.repository.archive();
        let found = canonical::search(self.commit().data, archive, path.as_bytes())
            .map_err(|error| RepositoryRejection::in_tree(error, archive))?;
        let record = match found.value {
            Some(value) => {
                let block = record_block(archive, value).map_err(|fault| fault.with_path(path))?;
                value.to_cid().map(|cid| (cid, block))
            }
            None => None,
        };
        let max_bytes = self.options.max_record_bytes;
        let invalid =
            record.and_then(|(cid, block)| InvalidRecord::find(path, cid, block, max_bytes));
        if let (true, Some(invalid), Some((_, block))) =
            (self.options.strict_records, &invalid, record)
        {
            return Err(RepositoryRejection::in_record(invalid.clone(), archive.offset_of(block)));
        }
        let mut needed = BlockTotals::of(self.repository.commit_block());
        found.nodes.iter().for_each(|(_, block)| needed += BlockTotals::of(block));
        let is_no_node = |cid: &Cid| found.nodes.iter().all(|(node, _)| node != cid);
        record
            .iter()
            .filter(|(cid, _)| is_no_node(cid))
            .for_each(|(_, block)| needed += BlockTotals::of(block));
        Ok(Verified::vouch(RecordProof {
            commit: *self.commit(),
            root: self.root(),
            record,
            invalid,
            nodes: found.nodes.len(),
            extra: self.blocks - needed,
        }))
    }
}

fn check_path(path: &str, options: &Options) -> Result<(), RepositoryRejection> {
    if options.allow_any_key {
        Ok(())
    } else {
        check_key(&mut RepoPathChecker::default(), path.as_bytes())
    }
}

fn read<'a>(slice: &'a [u8], options: &Options) -> Result<Repository<'a>, RepositoryRejection> {
    let mut checked = options.archive;
    checked.trust_hashes = false;
    let archive = Archive::read(slice, &checked)
        .map_err(|error| RepositoryRejection::in_archive(slice, error))?;
    let repository = Repository::at_first_root(archive)?;
    check_commit(repository.root(), repository.commit())?;
    Ok(repository)
}

#[cfg(test)]
mod tests {
    use atproto::mst::canonical;
    use codec::cid::Codec;

    use super::*;
    use crate::repository::tests::{DID, Parts, path, record, secret};

    /// The blocks that prove the record at `path`, or its absence, the commit first.
    fn slice(parts: &Parts, path: &str) -> Vec<(Cid, Vec<u8>)> {
        let export = parts.export();
        let repository = Repository::read(&export, &car::Options::default()).unwrap();
        let found =
            canonical::search(repository.commit().data, &repository, path.as_bytes()).unwrap();
        let mut blocks = vec![(repository.root(), repository.commit_block().to_vec())];
        blocks.extend(found.nodes.iter().map(|(cid, block)| (*cid, block.to_vec())));
        let record = found.value.and_then(|value| value.to_cid());
        blocks.extend(record.map(|cid| (cid, repository.block(&cid).unwrap().to_vec())));
        blocks
    }

    fn archive(blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
        let mut writer = car::Writer::new(Vec::new(), &[blocks[0].0]).unwrap();
        blocks.iter().for_each(|(cid, block)| writer.block(cid, block).unwrap());
        writer.into_inner()
    }

    fn check<'a>(
        slice: &'a [u8],
        path: &str,
    ) -> Result<Verified<RecordProof<'a>>, RepositoryRejection> {
        verify(slice, path, Some(DID), &secret().public_key(), &Options::default())
    }

    #[test]
    fn a_record_is_proved_by_the_nodes_on_its_search_path() {
        let parts = Parts::of(500);
        for number in [0, 1, 77, 499] {
            let blocks = slice(&parts, &path(number));
            let slice = archive(&blocks);
            let proof = check(&slice, &path(number)).unwrap();
            let expected = record(&format!("number {number}"));
            assert_eq!(proof.record(), Some((Cid::of(Codec::DagCbor, &expected), &expected[..])));
            assert_eq!((proof.nodes(), proof.extra().blocks), (blocks.len() - 2, 0));
        }
    }

    #[test]
    fn the_absence_of_a_record_is_proved_by_the_nodes_to_its_empty_slot() {
        let parts = Parts::of(500);
        for wanted in ["app.aaa.first/0", "app.test.record/0000000000100a", "app.zzz.last/9"] {
            let blocks = slice(&parts, wanted);
            let slice = archive(&blocks);
            let proof = check(&slice, wanted).unwrap();
            assert_eq!((proof.record(), proof.commit().did), (None, DID));
            assert!(proof.nodes() > 1);
        }
        let empty = archive(&slice(&Parts::of(0), "app.test.record/0"));
        assert_eq!(check(&empty, "app.test.record/0").unwrap().record(), None);
    }

    #[test]
    fn one_slice_proves_each_path_that_it_covers() {
        let parts = Parts::of(500);
        let export = parts.export();
        let (key, options) = (secret().public_key(), Options::default());
        let slice = Slice::read(&export, Some(DID), &key, &options).unwrap();
        for number in [0, 1, 77, 499] {
            let path = path(number);
            assert_eq!(*slice.prove(&path).unwrap(), *check(&export, &path).unwrap());
        }
        assert_eq!(slice.prove("app.test.record/other").unwrap().record(), None);
        assert_eq!(slice.prove("odd").unwrap_err().code(), "record/path");
        assert_eq!(slice.root(), check(&export, &path(0)).unwrap().root());
    }

    #[test]
    fn every_block_of_a_slice_is_needed() {
        let parts = Parts::of(500);
        for wanted in [path(123), "app.test.record/0000000000123a".to_owned()] {
            let blocks = slice(&parts, &wanted);
            for removed in 1..blocks.len() {
                let mut fewer = blocks.clone();
                let (cid, _) = fewer.remove(removed);
                let rejection = check(&archive(&fewer), &wanted).unwrap_err();
                let is_node = removed < blocks.len() - 1 || wanted.ends_with('a');
                let code = if is_node { "tree/missing-node" } else { "record/missing" };
                assert_eq!((rejection.code(), rejection.cid), (code, Some(cid)));
            }
        }
    }

    #[test]
    fn every_flipped_byte_is_rejected() {
        let mut slice = archive(&slice(&Parts::of(60), &path(33)));
        for at in 0..slice.len() {
            slice[at] ^= 0x10;
            assert!(check(&slice, &path(33)).is_err(), "byte {at}");
            slice[at] ^= 0x10;
        }
    }

    #[test]
    fn the_slice_of_one_path_does_not_prove_another() {
        let parts = Parts::of(500);
        let slice = archive(&slice(&parts, &path(5)));
        let rejection = check(&slice, &path(400)).unwrap_err();
        assert!(matches!(rejection.code(), "tree/missing-node" | "record/missing"));
    }

    #[test]
    fn blocks_that_the_proof_does_not_need_are_counted() {
        let parts = Parts::of(100);
        let export = parts.export();
        let proof = check(&export, &path(7)).unwrap();
        let total = parts.records.len() + parts.nodes().1.len() + 1;
        assert_eq!(proof.extra().blocks as usize, total - proof.nodes() - 2);
    }

    #[test]
    fn an_invalid_record_is_proved_and_reported_or_rejected_by_strict_options() {
        let mut parts = Parts::of(50);
        let (path, block) = ("app.test.record/odd", b"\xa2\x61b\x01\x61a\x02");
        let cid = parts.put(path, block.to_vec());
        let slice = archive(&slice(&parts, path));
        let proof = check(&slice, path).unwrap();
        assert_eq!(proof.record(), Some((cid, &block[..])));
        let invalid = proof.invalid_record().unwrap();
        assert_eq!((&*invalid.path, invalid.cid, invalid.error.code()), (path, cid, "record/cbor"));
        let options = Options { strict_records: true, ..Options::default() };
        let strict = verify(&slice, path, Some(DID), &secret().public_key(), &options);
        let rejection = strict.unwrap_err();
        assert_eq!((rejection.code(), rejection.cid), ("record/cbor", Some(cid)));
        assert_eq!(rejection.path.as_deref(), Some(path));
    }

    #[test]
    fn a_valid_record_is_not_reported_as_invalid() {
        let slice = archive(&slice(&Parts::of(50), &path(7)));
        assert_eq!(check(&slice, &path(7)).unwrap().invalid_record(), None);
    }

    #[test]
    fn a_key_that_is_not_a_record_path_is_rejected_unless_any_key_is_allowed() {
        let mut parts = Parts::of(5);
        parts.put("odd", record("odd"));
        let slice = archive(&slice(&parts, "odd"));
        assert_eq!(check(&slice, "odd").unwrap_err().code(), "record/path");
        let options = Options { allow_any_key: true, ..Options::default() };
        let proof = verify(&slice, "odd", None, &secret().public_key(), &options).unwrap();
        assert!(proof.record().is_some());
    }
}
