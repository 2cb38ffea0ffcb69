//! An account with a repository and blobs: any repository and what its host sends for each blob, right or wrong, or a generated one
//! whose records name any number of blobs of one size.
//!
//! A generated blob is zeros and 32 bytes of its own, so that the hashes of large ones share the work of the zeros. It is made when
//! it is asked for.
//!
//! ```
//! use wireproof_simnet::blob_account::{BlobAccount, Spec};
//! let account = BlobAccount::generate(&Spec { blobs: 9, blob_len: 1_000, ..Spec::default() });
//! let cid = account.cids().next().unwrap();
//! assert_eq!(account.blob(cid).unwrap().len(), 1_000);
//! ```

use std::collections::HashMap;

use codec::car;
use codec::cid::{Cid, Codec};
use sha2::{Digest, Sha256};

use crate::account::{Account, AccountHistory};
use crate::block::{Block, BlockWriter, IN_MEMORY};
use crate::random::{DEFAULT_SEED, Seed};
use crate::record::{Collection, RecordPath};
use crate::repository;
use crate::time::{START_MICROS, datetime};
use crate::tree::{Tree, TreeEntry, TreeItem};

/// The specification of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The number of the account.
    pub account: u64,
    /// The number of blobs.
    pub blobs: u64,
    /// The size of a blob in bytes, at least 32.
    pub blob_len: usize,
    /// The number of blobs, the first ones, that the accounts of a seed share.
    pub shared: u64,
}

impl Default for Spec {
    /// 100 blobs of 1,000 bytes, none of them shared.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, account: 0, blobs: 100, blob_len: 1_000, shared: 0 }
    }
}

/// An account with its repository and its blobs.
#[derive(Debug)]
pub struct BlobAccount {
    did: String,
    /// The key that signs its commit, as a `did:key`.
    signing_key: String,
    archive: Vec<u8>,
    blobs: Blobs,
}

#[derive(Debug)]
enum Blobs {
    /// The same number of zeros, and then these bytes.
    Generated { zeros: usize, tails: HashMap<Cid, [u8; TAIL_LEN]> },
    /// What the host sends.
    Sent(HashMap<Cid, Vec<u8>>),
}

impl BlobAccount {
    /// An account with this repository, signed by this `did:key`, whose host sends these bytes for these CIDs, and has no other blob.
    pub fn new(
        did: String,
        signing_key: String,
        archive: Vec<u8>,
        sent: HashMap<Cid, Vec<u8>>,
    ) -> Self {
        Self { did, signing_key, archive, blobs: Blobs::Sent(sent) }
    }

    /// The account of this specification.
    ///
    /// # Panics
    /// If blobs have fewer than 32 bytes.
    pub fn generate(spec: &Spec) -> Self {
        let seed = Seed::new(spec.seed, &format!("account {} with blobs", spec.account));
        let account = Account::new(seed, AccountHistory::Full(1), START_MICROS);
        let zeros = spec.blob_len.checked_sub(TAIL_LEN).expect("room for the bytes of a blob");
        let mut start = Sha256::new();
        (0..zeros).step_by(ZEROS.len()).for_each(|at| {
            start.update(&ZEROS[..ZEROS.len().min(zeros - at)]);
        });
        let mut shared = Seed::new(spec.seed, "shared blobs").stream(BLOBS_STREAM);
        let mut own = seed.stream(BLOBS_STREAM);
        let named: Vec<(Cid, [u8; TAIL_LEN])> = (0..spec.blobs)
            .map(|number| {
                let tail = if number < spec.shared { &mut shared } else { &mut own }.bytes32();
                let digest: [u8; 32] = start.clone().chain_update(tail).finalize().into();
                (Cid::from_digest(Codec::Raw, &digest), tail)
            })
            .collect();
        let archive = archive(&account, &named, spec.blob_len);
        Self {
            did: account.did().to_owned(),
            signing_key: account.key().did_key(),
            archive,
            blobs: Blobs::Generated { zeros, tails: named.into_iter().collect() },
        }
    }

    /// The DID.
    pub fn did(&self) -> &str {
        &self.did
    }

    /// The key that signs its commit, as a `did:key`.
    pub fn signing_key(&self) -> &str {
        &self.signing_key
    }

    /// The whole repository.
    pub fn archive(&self) -> &[u8] {
        &self.archive
    }

    /// The CIDs of its blobs.
    pub fn cids(&self) -> impl Iterator<Item = &Cid> {
        let (generated, sent) = match &self.blobs {
            Blobs::Generated { tails, .. } => (Some(tails.keys()), None),
            Blobs::Sent(sent) => (None, Some(sent.keys())),
        };
        generated.into_iter().flatten().chain(sent.into_iter().flatten())
    }

    /// What its host sends for a blob.
    pub fn blob(&self, cid: &Cid) -> Option<Vec<u8>> {
        match &self.blobs {
            Blobs::Generated { zeros, tails } => {
                let mut content = vec![0; *zeros];
                content.extend_from_slice(tails.get(cid)?);
                Some(content)
            }
            Blobs::Sent(sent) => sent.get(cid).cloned(),
        }
    }
}

/// The archive of a repository with posts that name these blobs, four a post.
fn archive(account: &Account, named: &[(Cid, [u8; TAIL_LEN])], blob_len: usize) -> Vec<u8> {
    let posts = named.chunks(BLOBS_PER_POST).enumerate().map(|(number, blobs)| {
        let tid = account.tid(START_MICROS - 1_000_000 * (number as u64 + 1));
        let path = RecordPath { collection: Collection::Post, tid };
        (path.to_key(), post(path, blobs, blob_len))
    });
    archive_of_records(account, posts.collect())
}

/// The archive of a repository with these records, by path, of an account at the start of the stream.
pub fn archive_of_records(account: &Account, mut records: Vec<(String, Block)>) -> Vec<u8> {
    records.sort_by(|(one, _), (other, _)| one.cmp(other));
    let entry =
        |(key, record): &(String, Block)| TreeEntry { key: (**key).into(), value: record.cid };
    let tree = Tree::new(records.iter().map(entry).collect());
    let rev = account.tid(START_MICROS);
    let head = repository::sign(account.did(), account.key(), rev, tree.root());
    let records: HashMap<&Cid, &Block> =
        records.iter().map(|(_, record)| (&record.cid, record)).collect();
    let mut car = car::Writer::new(Vec::new(), &[head.cid]).expect(IN_MEMORY);
    car.block(&head.cid, &head.data).expect(IN_MEMORY);
    tree.walk(&mut |item| match item {
        TreeItem::Node(node) => car.block(&node.cid, &node.data).expect(IN_MEMORY),
        TreeItem::Record(entry) => {
            car.block(&entry.value, &records[&entry.value].data).expect(IN_MEMORY);
        }
    });
    car.into_inner()
}

fn post(path: RecordPath, blobs: &[(Cid, [u8; TAIL_LEN])], blob_len: usize) -> Block {
    let mut out = BlockWriter::new();
    out.map(4).text("text").text("").text("$type").text(path.collection.nsid());
    out.text("embed").map(2).text("$type").text("app.bsky.embed.images");
    out.text("images").array(blobs.len());
    for (cid, _) in blobs {
        out.map(2).text("alt").text("").text("image");
        out.map(4).text("ref").link(cid.as_cid_ref()).text("size").integer(blob_len as i64);
        out.text("$type").text("blob").text("mimeType").text("image/jpeg");
    }
    out.text("createdAt").text(&datetime(path.tid.micros()));
    out.into_block()
}

/// Bytes in which blobs differ.
const TAIL_LEN: usize = 32;

/// Blobs that a post names.
const BLOBS_PER_POST: usize = 4;

/// The beginning of every blob, a part at a time.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The stream number for blobs; the identity, collections and TIDs use others.
const BLOBS_STREAM: u64 = 1 << 37;

#[cfg(test)]
mod tests {
    use atproto::blob::blobs_of_record;

    use super::*;

    #[test]
    fn every_blob_that_the_records_name_has_the_bytes_of_its_cid() {
        let spec = Spec { blobs: 10, blob_len: 100_001, ..Spec::default() };
        let account = BlobAccount::generate(&spec);
        let car = car::read(account.archive(), &car::Options::default()).unwrap();
        let records = car.blocks.iter().filter_map(|block| blobs_of_record(block.data).ok());
        let named: Vec<Cid> = records.flatten().map(|blob| blob.cid).collect();
        assert_eq!(named.len(), 10);
        for cid in named {
            let content = account.blob(&cid).unwrap();
            assert_eq!((content.len(), Cid::of(Codec::Raw, &content)), (100_001, cid));
        }
    }

    #[test]
    fn accounts_have_the_blobs_in_common_that_they_share() {
        for shared in [0, 3] {
            let spec = Spec { blobs: 10, shared, ..Spec::default() };
            let [one, other] =
                [0, 1].map(|account| BlobAccount::generate(&Spec { account, ..spec }));
            assert_ne!(one.did(), other.did());
            let common = one.cids().filter(|cid| other.blob(cid).is_some()).count();
            assert_eq!(common as u64, shared);
        }
    }
}
