//! The repository, and what is in its archive.

use codec::Cid;
use codec::car;
use serde::{Deserialize, Serialize};

use crate::account::{Account, AccountHistory};
use crate::random::{Random, Seed};
use crate::repository::Repository;

/// What repository to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything follows from this number.
    pub seed: u64,
    /// How many records it has.
    pub records: usize,
    /// In which order its blocks stand in the archive.
    pub order: BlockOrder,
}

/// An order of the blocks of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrder {
    /// The commit, then the tree, each node before its records and children.
    Streamable,
    /// None: a reader has to keep what it cannot place yet.
    Shuffled,
}

impl Default for Spec {
    /// 192,000 records in streamable order, some 70 MB.
    fn default() -> Self {
        Self { seed: 4_621_332_152, records: 192_000, order: BlockOrder::Streamable }
    }
}

impl Spec {
    /// A repository for tests: 10,000 records.
    pub fn quick() -> Self {
        Self { records: 10_000, ..Self::default() }
    }
}

/// A generated repository.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    repository: Repository,
}

impl Corpus {
    /// Makes the repository of `spec`.
    ///
    /// # Panics
    /// If it is to have no records: a profile there is.
    pub fn generate(spec: &Spec) -> Self {
        let seed = Seed::new(spec.seed, "repository");
        let account = Account::new(seed, AccountHistory::Full(spec.records), JOINED_MICROS);
        Self { spec: spec.clone(), repository: account.open_repository() }
    }

    /// What was asked for.
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

    /// What a verifier must find in the archive.
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
    let mut car = car::Writer::new(Vec::new(), &[repository.head().cid]).expect(MEMORY);
    blocks.iter().for_each(|(cid, data)| car.block(cid, data).expect(MEMORY));
    car.into_inner()
}

/// What is in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryCounts {
    /// Repositories.
    pub repositories: u64,
    /// Blocks: the commit, the nodes of the tree, the records.
    pub blocks: u64,
    /// Records.
    pub records: u64,
    /// Bytes of the records' blocks, CIDs not counted.
    pub record_bytes: u64,
    /// Signatures that are right.
    pub valid: u64,
    /// The CID of the tree's root, as text: what the commit calls `data`.
    pub root: String,
    /// The same: what a tree that is built anew from the records must have.
    pub rebuilt_root: String,
}

/// Until when the account has written: 2026-07-01T00:00:00Z.
const JOINED_MICROS: u64 = 1_782_864_000_000_000;

/// Why writing an archive cannot fail here.
const MEMORY: &str = "writing to memory does not fail";
