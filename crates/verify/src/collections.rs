//! Verifies a slice of a repository that proves all records of some collections.
//!
//! The slice is a CAR of the commit, the tree nodes that can have keys of the collections, and their records. The commit is signed, it
//! names the root, and every node names the next, so that no record of the collections can be added or left out. The nodes must be
//! canonical. Nothing is proved of other collections.
//!
//! ```
//! use wireproof::atproto::commit::UnsignedCommit;
//! use wireproof::codec::{Cid, car, cid::Codec};
//! use wireproof::crypto::{Curve, SecretKey};
//! use wireproof::verify::{collections, record};
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
//! let wanted = ["app.bsky.feed.post".parse()?, "com.example.*".parse()?];
//! let options = record::Options::default();
//! let proof = collections::verify(&slice, &wanted, Some(did), &key.public_key(), &options)?;
//! assert_eq!(proof.records().len(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeSet;

use atproto::commit::Commit;
use atproto::mst::canonical::{KeyRanges, search_ranges};
use atproto::repo::BlockTotals;
use atproto::syntax::{CollectionPatternBuf, RepoPathChecker};
use codec::Cid;
use crypto::PublicKey;

use crate::record::{Options, Slice};
use crate::repository::{RepositoryRejection, check_path, record_block};
use crate::{InvalidRecord, InvalidRecords, Verified};

/// All records of some collections of a repository, as its account signed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionsProof<'a> {
    commit: Commit<'a>,
    root: Cid,
    records: Vec<ProvedRecord<'a>>,
    commit_block: &'a [u8],
    nodes: Vec<(Cid, &'a [u8])>,
    extra: BlockTotals,
}

/// A record of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProvedRecord<'a> {
    /// The path.
    pub path: String,
    /// The CID.
    pub cid: Cid,
    /// The bytes, valid or not.
    pub bytes: &'a [u8],
    /// The broken rule, if the record is invalid: never under [`Options::strict_records`].
    pub invalid: Option<InvalidRecord>,
}

impl<'a> CollectionsProof<'a> {
    /// The records, in the order of their paths. The collections have no others.
    pub fn records(&self) -> &[ProvedRecord<'a>] {
        &self.records
    }

    /// The invalid records among them: never any under [`Options::strict_records`].
    pub fn invalid_records(&self) -> InvalidRecords {
        let mut invalid = self.records.iter().filter_map(|record| record.invalid.as_ref());
        let first = invalid.next().cloned();
        InvalidRecords { records: u64::from(first.is_some()) + invalid.count() as u64, first }
    }

    /// The signed commit, whose revision dates the proof.
    pub fn commit(&self) -> &Commit<'a> {
        &self.commit
    }

    /// The CID of the commit.
    pub fn root(&self) -> Cid {
        self.root
    }

    /// The bytes of the commit.
    pub fn commit_block(&self) -> &'a [u8] {
        self.commit_block
    }

    /// The tree nodes of the proof and their bytes, a node before its children.
    pub fn nodes(&self) -> &[(Cid, &'a [u8])] {
        &self.nodes
    }

    /// The blocks of the slice that the proof does not need, repeated ones counted once.
    pub fn extra(&self) -> BlockTotals {
        self.extra
    }
}

/// Verifies all records of `collections` from a slice of a repository. Unlike the proof of one record, it refuses keys that are no record
/// paths, whatever [`Options::allow_any_key`] says.
///
/// # Errors
/// If the slice is not an archive or a hash in it is wrong; if its first root is not a valid commit of `did`, where one is given, signed
/// by `key`; if a node that can have keys of the collections is missing or not canonical; if a key is no record path; if a record is
/// missing, or, under [`Options::strict_records`], not a map, not canonical or too long.
pub fn verify<'a>(
    slice: &'a [u8],
    collections: &[CollectionPatternBuf],
    did: Option<&str>,
    key: &PublicKey,
    options: &Options,
) -> Result<Verified<CollectionsProof<'a>>, RepositoryRejection> {
    Slice::read(slice, did, key, options)?.prove_collections(collections)
}

impl<'a> Slice<'a> {
    /// Verifies all records of `collections`.
    ///
    /// # Errors
    /// As [`verify`], for the rules about nodes and records.
    pub fn prove_collections(
        &self,
        collections: &[CollectionPatternBuf],
    ) -> Result<Verified<CollectionsProof<'a>>, RepositoryRejection> {
        let archive = self.repository.archive();
        let ranges = KeyRanges::of_collections(collections);
        // The blocks of the slice are the limit: every node is one of them.
        let found = search_ranges(self.commit().data, archive, ranges, u64::MAX)
            .map_err(|error| RepositoryRejection::in_tree(error, archive))?;
        let mut paths = RepoPathChecker::default();
        let mut needed = NeededBlocks::default();
        needed.add(self.root(), self.repository.commit_block());
        found.nodes.iter().for_each(|(cid, block)| needed.add(*cid, block));
        let mut records = Vec::with_capacity(found.records.len());
        for (key, value) in &found.records {
            check_path(&mut paths, key)?;
            let path = String::from_utf8_lossy(key).into_owned();
            let block = record_block(archive, value.as_cid_ref())
                .map_err(|fault| fault.with_path(&path))?;
            let cid = value.to_cid().expect("`record_block` takes no other");
            needed.add(cid, block);
            records.push(self.proved(path, cid, block)?);
        }
        Ok(Verified::vouch(CollectionsProof {
            commit: *self.commit(),
            root: self.root(),
            records,
            commit_block: self.repository.commit_block(),
            nodes: found.nodes,
            extra: self.blocks - needed.totals,
        }))
    }

    /// A record with the verdict on its bytes.
    fn proved(
        &self,
        path: String,
        cid: Cid,
        bytes: &'a [u8],
    ) -> Result<ProvedRecord<'a>, RepositoryRejection> {
        let invalid = InvalidRecord::find(&path, cid, bytes, self.options.max_record_bytes);
        match invalid {
            Some(invalid) if self.options.strict_records => {
                let offset = self.repository.archive().offset_of(bytes);
                Err(RepositoryRejection::in_record(invalid, offset))
            }
            invalid => Ok(ProvedRecord { path, cid, bytes, invalid }),
        }
    }
}

/// The blocks that a proof needs, repeated ones counted once.
#[derive(Default)]
struct NeededBlocks {
    cids: BTreeSet<Cid>,
    totals: BlockTotals,
}

impl NeededBlocks {
    fn add(&mut self, cid: Cid, block: &[u8]) {
        if self.cids.insert(cid) {
            self.totals += BlockTotals::of(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use atproto::repo::Repository;
    use codec::car;
    use codec::cid::Codec;

    use super::*;
    use crate::repository::tests::{DID, Parts, path, record, secret};

    /// A repository with records of three collections around `app.test.record`.
    fn parts() -> Parts {
        let mut parts = Parts::of(300);
        for number in 0..20 {
            parts.put(&format!("app.test.other/{number}"), record(&format!("other {number}")));
            parts
                .put(&format!("app.test.recorder/{number}"), record(&format!("recorder {number}")));
        }
        parts
    }

    /// The blocks that prove these collections, the commit first.
    fn slice(parts: &Parts, collections: &[&str]) -> Vec<(Cid, Vec<u8>)> {
        let export = parts.export();
        let repository = Repository::read(&export, &car::Options::default()).unwrap();
        let ranges = KeyRanges::of_collections(&patterns(collections));
        let found = search_ranges(repository.commit().data, &repository, ranges, 1000).unwrap();
        let mut blocks = vec![(repository.root(), repository.commit_block().to_vec())];
        blocks.extend(found.nodes.iter().map(|(cid, block)| (*cid, block.to_vec())));
        for value in found.records.values() {
            let cid = value.to_cid().unwrap();
            blocks.push((cid, repository.block(&cid).unwrap().to_vec()));
        }
        blocks
    }

    fn archive(blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
        let mut writer = car::Writer::new(Vec::new(), &[blocks[0].0]).unwrap();
        blocks.iter().for_each(|(cid, block)| writer.block(cid, block).unwrap());
        writer.into_inner()
    }

    fn check<'a>(
        slice: &'a [u8],
        collections: &[&str],
    ) -> Result<Verified<CollectionsProof<'a>>, RepositoryRejection> {
        let key = secret().public_key();
        verify(slice, &patterns(collections), Some(DID), &key, &Options::default())
    }

    fn patterns(names: &[&str]) -> Vec<CollectionPatternBuf> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn all_records_of_the_collections_are_proved_and_no_others() {
        let parts = parts();
        for collections in [
            &["app.test.record"][..],
            &["app.test.other", "app.test.recorder"],
            &["app.test.other", "app.test.record", "app.test.recorder"],
            &["app.test.missing"],
        ] {
            let blocks = slice(&parts, collections);
            let archive = archive(&blocks);
            let proof = check(&archive, collections).unwrap();
            let is_wanted = |path: &&String| {
                collections.iter().any(|collection| path.starts_with(&format!("{collection}/")))
            };
            let paths = parts.records.iter().map(|(path, ..)| path);
            let mut wanted: Vec<&String> = paths.filter(is_wanted).collect();
            wanted.sort();
            let proved = proof.records();
            assert_eq!(proved.iter().map(|record| &record.path).collect::<Vec<_>>(), wanted);
            assert!(proved.iter().all(|record| {
                record.cid == Cid::of(Codec::DagCbor, record.bytes) && record.invalid.is_none()
            }));
            assert_eq!((proof.extra().blocks, proof.commit().did), (0, DID));
            assert_eq!(proof.nodes().len() + proved.len() + 1, blocks.len());
        }
    }

    #[test]
    fn every_block_of_a_slice_is_needed() {
        let blocks = slice(&parts(), &["app.test.other"]);
        for removed in 1..blocks.len() {
            let mut fewer = blocks.clone();
            let (cid, _) = fewer.remove(removed);
            let rejection = check(&archive(&fewer), &["app.test.other"]).unwrap_err();
            let is_node = removed < blocks.len() - 20;
            let code = if is_node { "tree/missing-node" } else { "record/missing" };
            assert_eq!((rejection.code(), rejection.cid), (code, Some(cid)));
        }
    }

    #[test]
    fn every_flipped_byte_is_rejected() {
        let mut slice = archive(&slice(&parts(), &["app.test.recorder"]));
        for at in 0..slice.len() {
            slice[at] ^= 0x10;
            assert!(check(&slice, &["app.test.recorder"]).is_err(), "byte {at}");
            slice[at] ^= 0x10;
        }
    }

    #[test]
    fn the_slice_of_one_collection_does_not_prove_another() {
        let slice = archive(&slice(&parts(), &["app.test.other"]));
        let rejection = check(&slice, &["app.test.record"]).unwrap_err();
        assert!(matches!(rejection.code(), "tree/missing-node" | "record/missing"));
    }

    #[test]
    fn a_whole_repository_proves_every_collection_and_its_other_blocks_are_counted() {
        let parts = parts();
        let export = parts.export();
        let proof = check(&export, &["app.test.other"]).unwrap();
        let total = parts.records.len() + parts.nodes().1.len() + 1;
        assert_eq!(proof.extra().blocks as usize, total - proof.nodes().len() - 20 - 1);
    }

    #[test]
    fn an_invalid_record_is_reported_or_rejected_by_strict_options() {
        let (mut parts, block) = (parts(), b"\xa2\x61b\x01\x61a\x02");
        parts.put("app.test.other/odd", block.to_vec());
        let slice = archive(&slice(&parts, &["app.test.other"]));
        let proof = check(&slice, &["app.test.other"]).unwrap();
        let invalid: Vec<_> =
            proof.records().iter().filter_map(|record| record.invalid.as_ref()).collect();
        assert_eq!(invalid.len(), 1);
        assert_eq!(
            (&*invalid[0].path, invalid[0].error.code()),
            ("app.test.other/odd", "record/cbor")
        );
        let options = Options { strict_records: true, ..Options::default() };
        let key = secret().public_key();
        let wanted = patterns(&["app.test.other"]);
        let rejection = verify(&slice, &wanted, None, &key, &options).unwrap_err();
        assert_eq!(rejection.code(), "record/cbor");
    }

    #[test]
    fn a_key_that_is_no_record_path_is_rejected() {
        let mut parts = parts();
        parts.put("app.test.other/a/b", record("odd"));
        let slice = archive(&slice(&parts, &["app.test.other"]));
        let rejection = check(&slice, &["app.test.other"]).unwrap_err();
        assert_eq!(rejection.code(), "record/path");
        assert!(check(&parts.export(), &["app.test.record"]).is_ok());
        let other = crypto::SecretKey::from_bytes(crypto::Curve::K256, &[9; 32]).unwrap();
        let wanted = patterns(&["app.test.other"]);
        let wrong = verify(&slice, &wanted, None, &other.public_key(), &Options::default());
        assert_eq!(wrong.unwrap_err().code(), "signature/wrong");
        assert!(path(0).starts_with("app.test.record/"));
    }
}
