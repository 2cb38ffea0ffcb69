//! A whole repository in one archive: the newest commit, the tree and all records of an account that has
//! written for years and deleted nothing.
//!
//! ```
//! use wireproof_simnet::repository_corpus::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec { records: 100, ..Spec::quick() });
//! assert_eq!(corpus.counts().records, 100);
//! ```

use codec::Cid;
use serde::{Deserialize, Serialize};

use crate::account::{Account, AccountHistory};
use crate::block::archive;
use crate::corpus;
use crate::random::{DEFAULT_SEED, Random, Seed};
use crate::repository::Repository;
use crate::time::START_MICROS;

/// The specification of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The number of records.
    pub records: usize,
    /// The order of the blocks in the archive.
    pub order: BlockOrder,
}

/// The order of the blocks of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockOrder {
    /// The commit, then the tree, every node before its records and children.
    Streamable,
    /// Shuffled: a reader has to keep blocks before it reads a link to them.
    Shuffled,
}

impl Default for Spec {
    /// 192,000 records in streamable order, some 70 MB.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, records: 192_000, order: BlockOrder::Streamable }
    }
}

impl Spec {
    /// A small repository for tests: 10,000 records.
    pub fn quick() -> Self {
        Self { records: 10_000, ..Self::default() }
    }
}

/// The description of an archive of one repository.
pub type Manifest = corpus::Manifest<Spec, RepositoryCounts, RepositoryDetails>;

/// The owner of a repository, and its newest commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryDetails {
    /// The DID of the account.
    pub did: String,
    /// The key that signed the commit, as a `did:key`.
    pub signing_key: String,
    /// The same key in the form of the account's DID document.
    #[serde(rename = "didDoc")]
    pub did_document: DidDocument,
    /// The root of the archive: the newest commit.
    pub commit: String,
    /// The root of the tree.
    pub data: String,
    /// The newest revision.
    pub rev: String,
}

/// A DID document reduced to the key that signs commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DidDocument {
    /// The DID.
    pub id: String,
    /// The keys.
    #[serde(rename = "verificationMethod")]
    pub verification_method: Vec<VerificationMethod>,
}

/// A key in a DID document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationMethod {
    /// The DID and a fragment, `#atproto` for the key that signs commits.
    pub id: String,
    /// The encoding of the key.
    #[serde(rename = "type")]
    pub kind: String,
    /// The DID of the owner.
    pub controller: String,
    /// The key.
    #[serde(rename = "publicKeyMultibase")]
    pub public_key_multibase: String,
}

impl DidDocument {
    /// The document of `account` with its signing key and nothing else.
    pub fn of(account: &Account) -> Self {
        let did = account.did().to_owned();
        let did_key = account.key().did_key();
        let multibase = did_key.strip_prefix("did:key:").expect("the prefix of a did:key");
        let method = VerificationMethod {
            id: format!("{did}#atproto"),
            kind: "Multikey".to_owned(),
            controller: did.clone(),
            public_key_multibase: multibase.to_owned(),
        };
        Self { id: did, verification_method: vec![method] }
    }
}

/// A generated repository.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    repository: Repository,
}

impl Corpus {
    /// Generates the repository of `spec`.
    ///
    /// # Panics
    /// If there are no records: every account has a profile.
    pub fn generate(spec: &Spec) -> Self {
        let seed = Seed::new(spec.seed, "repository");
        let account = Account::new(seed, AccountHistory::Full(spec.records), START_MICROS);
        Self { spec: spec.clone(), repository: account.open_repository() }
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The archive.
    pub fn to_file(&self) -> Vec<u8> {
        match self.spec.order {
            BlockOrder::Streamable => self.repository.export_car(),
            BlockOrder::Shuffled => {
                let seed = Seed::new(self.spec.seed, "repository blocks");
                shuffled_car(&self.repository, &mut seed.stream(0))
            }
        }
    }

    /// The description of `file`, the bytes of [`Corpus::to_file`].
    pub fn manifest(&self, file: &[u8]) -> Manifest {
        let account = self.repository.account();
        let details = RepositoryDetails {
            did: account.did().to_owned(),
            signing_key: account.key().did_key(),
            did_document: DidDocument::of(account),
            commit: self.repository.head().cid.to_string(),
            data: self.repository.tree().root().to_string(),
            rev: self.repository.rev().to_string(),
        };
        Manifest::new(self.spec.clone(), self.counts(), details, file)
    }

    /// The counts that a verifier finds.
    pub fn counts(&self) -> RepositoryCounts {
        let (mut blocks, mut block_bytes) = (0, 0);
        self.repository.for_each_block(&mut |_, data| {
            blocks += 1;
            block_bytes += data.len() as u64;
        });
        let tree = self.repository.tree();
        let node_bytes: u64 = tree.nodes().map(|node| node.data.len() as u64).sum();
        RepositoryCounts {
            repositories: 1,
            blocks,
            records: tree.entries().len() as u64,
            record_bytes: block_bytes - node_bytes - self.repository.head().data.len() as u64,
            valid: 1,
            root: tree.root().to_string(),
            rebuilt_root: tree.root().to_string(),
        }
    }
}

fn shuffled_car(repository: &Repository, random: &mut Random) -> Vec<u8> {
    let mut blocks: Vec<(Cid, Vec<u8>)> = Vec::new();
    repository.for_each_block(&mut |cid, data| blocks.push((*cid, data.to_vec())));
    random.shuffle(&mut blocks);
    archive(&[repository.head().cid], blocks.iter().map(|(cid, data)| (cid, &data[..])))
}

/// The counts that a verifier finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryCounts {
    /// Repositories.
    pub repositories: u64,
    /// Blocks: the commit, the nodes of the tree, the records.
    pub blocks: u64,
    /// Records.
    pub records: u64,
    /// Bytes of the records' blocks, without CIDs.
    pub record_bytes: u64,
    /// Valid signatures.
    pub valid: u64,
    /// The CID of the root of the tree, as text: the field `data` of the commit.
    pub root: String,
    /// The CID of the root of the tree rebuilt from the records: the same.
    pub rebuilt_root: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use codec::car;

    use super::*;
    use crate::tree::reference;

    static SMALL: LazyLock<Corpus> =
        LazyLock::new(|| Corpus::generate(&Spec { records: 1_000, ..Spec::quick() }));

    #[test]
    fn the_quick_repository_is_the_pinned_one() {
        let corpus = Corpus::generate(&Spec::quick());
        assert_eq!(corpus.manifest(&corpus.to_file()).sha256, QUICK_SHA256);
    }

    #[test]
    fn the_tree_equals_the_reference_and_every_key_has_its_record() {
        let (repository, counts) = (SMALL.repository(), SMALL.counts());
        let records: Vec<_> =
            repository.tree().entries().iter().map(|entry| (&*entry.key, entry.value)).collect();
        let built = reference::build(&records);
        assert_eq!((counts.records, &counts.root), (1_000, &built.root().to_string()));
        assert_eq!(counts.blocks, 1 + 1_000 + built.nodes().len() as u64);
        let file = SMALL.to_file();
        let blocks = car::read(&file, &car::Options::default()).unwrap().blocks;
        let found: BTreeSet<Cid> = blocks.iter().filter_map(|block| block.cid.to_cid()).collect();
        assert_eq!(blocks.len() as u64, counts.blocks);
        assert!(records.iter().all(|(_, cid)| found.contains(cid)));
        let of_records = blocks
            .iter()
            .filter(|block| records.iter().any(|(_, cid)| cid.as_cid_ref() == block.cid));
        let record_bytes: u64 = of_records.map(|block| block.data.len() as u64).sum();
        assert_eq!(record_bytes, counts.record_bytes);
    }

    #[test]
    fn a_shuffled_archive_has_the_same_blocks_in_another_order() {
        let spec = Spec { order: BlockOrder::Shuffled, ..SMALL.spec().clone() };
        let (streamable, shuffled) = (SMALL.to_file(), Corpus::generate(&spec).to_file());
        let cids = |file| {
            let car = car::read(file, &car::Options::default()).unwrap();
            car.blocks.iter().map(|block| block.cid.to_cid().unwrap()).collect::<Vec<_>>()
        };
        let (streamable, shuffled) = (cids(&streamable), cids(&shuffled));
        assert_ne!(streamable, shuffled);
        assert_eq!(BTreeSet::from_iter(streamable), BTreeSet::from_iter(shuffled));
    }

    #[test]
    fn the_manifest_states_the_account_and_its_key_as_a_did_document() {
        let file = SMALL.to_file();
        let json = serde_json::to_value(SMALL.manifest(&file)).unwrap();
        let did = json["did"].as_str().unwrap();
        assert_eq!(json["didDoc"]["id"], did);
        let method = &json["didDoc"]["verificationMethod"][0];
        assert_eq!((&method["type"], &method["controller"]), (&"Multikey".into(), &did.into()));
        let key = method["publicKeyMultibase"].as_str().unwrap();
        assert_eq!(json["signing_key"], format!("did:key:{key}"));
        assert_eq!(json["data"], json["counts"]["root"]);
    }

    /// The archive of [`Spec::quick`]. A change needs a recorded reason.
    const QUICK_SHA256: &str = "f98a1574f4c0f63313ff60d04ebae76e06736533533c40845f019c7694f89cdd";
}
