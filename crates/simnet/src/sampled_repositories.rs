//! Repositories of many sizes and shapes, made one at a time, to compare the cost of one collection with the cost of the whole.
//!
//! The wanted collection has one record in 200. Sizes follow a lognormal distribution around 2,400 records, which make 1 MB of an archive;
//! a few repositories have 100 MB and more. One in seventeen has a shape that is hard for a part: [`Shape`].
//!
//! ```
//! use wireproof_simnet::sampled_repositories::{SampledRepository, Spec};
//! let repository = SampledRepository::generate(&Spec { most_records: 5_000, ..Spec::default() }, 3);
//! assert_eq!(repository.export_car().len() as u64, repository.archive_bytes());
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use atproto::syntax::Tid;
use codec::car;
use codec::cid::{Cid, Codec};
use kernels::sha256;

use crate::account::{Account, AccountHistory};
use crate::block::{Block, IN_MEMORY, archive};
use crate::history::{self, InitialRecord};
use crate::random::{DEFAULT_SEED, Random, Seed, apportion};
use crate::record::{Collection, RecordPath};
use crate::repository;
use crate::time::{DAY_MICROS, START_MICROS};
use crate::tree::{Layer, Tree, TreeEntry, TreeItem, key_height};

/// The specification of the repositories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The most records of a repository.
    pub most_records: usize,
}

impl Default for Spec {
    /// At most 2¹⁹ records, some 220 MB.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, most_records: 1 << 19 }
    }
}

/// The collection with one record in 200.
pub const WANTED: Collection = Collection::Threadgate;

/// The shape of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// Collections in their usual shares.
    Usual,
    /// At most twelve records, one of them wanted.
    Tiny,
    /// The wanted collection alone.
    OneCollection,
    /// No record of the wanted collection.
    WithoutCollection,
    /// Every second record of the wanted collection is high in the tree, so that there are as many nodes as possible between them.
    Scattered,
    /// Few records below a root of a layer that only repositories of millions have.
    Tall,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 6] = [
        Self::Usual,
        Self::Tiny,
        Self::OneCollection,
        Self::WithoutCollection,
        Self::Scattered,
        Self::Tall,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual shares of collections",
            Self::Tiny => "at most 12 records",
            Self::OneCollection => "the collection alone",
            Self::WithoutCollection => "without the collection",
            Self::Scattered => "most nodes per record",
            Self::Tall => "few records, high root",
        }
    }

    /// The shape of a repository: each but the first is of one in a hundred, tiny ones of two.
    fn of(random: &mut Random) -> Self {
        match random.below(100) {
            0 | 1 => Self::Tiny,
            2 => Self::OneCollection,
            3 => Self::WithoutCollection,
            4 => Self::Scattered,
            5 => Self::Tall,
            _ => Self::Usual,
        }
    }
}

/// A repository.
#[derive(Debug)]
pub struct SampledRepository {
    shape: Shape,
    account: Account,
    tree: Tree,
    head: Block,
    nodes: HashMap<Cid, Arc<Block>>,
    paths: HashMap<Cid, RecordPath>,
    archive_bytes: u64,
}

impl SampledRepository {
    /// The repository of this number.
    pub fn generate(spec: &Spec, number: u64) -> Self {
        let seed = Seed::new(spec.seed, &format!("sampled repository {number}"));
        let mut random = seed.stream(SHAPE_STREAM);
        let shape = Shape::of(&mut random);
        let account = Account::new(seed, AccountHistory::Full(1), START_MICROS);
        let count = realistic_size(&mut random).min(spec.most_records.max(1));
        let records = Layout { seed, account: &account, random }.records(shape, count);
        Self::of_records(shape, account, records)
    }

    fn of_records(shape: Shape, account: Account, records: Vec<InitialRecord>) -> Self {
        let mut entries = Vec::with_capacity(records.len());
        let mut paths = HashMap::with_capacity(records.len());
        let mut archive_bytes = 0;
        for batch in records.chunks(RECORD_BATCH_LEN) {
            let blocks: Vec<_> =
                batch.iter().map(|record| account.write_record(record.path, 0)).collect();
            let data: Vec<&[u8]> = blocks.iter().map(|block| block.data.as_slice()).collect();
            for ((record, digest), data) in batch.iter().zip(sha256::digest_many(&data)).zip(data) {
                let value = Cid::from_digest(Codec::DagCbor, &digest);
                archive_bytes += section_len(data.len());
                paths.insert(value, record.path);
                entries.push(TreeEntry { key: record.key.clone(), value });
            }
        }
        let tree = Tree::new(entries);
        let rev = account.tid(START_MICROS);
        let head = repository::sign(account.did(), account.key(), rev, tree.root());
        let nodes: HashMap<Cid, Arc<Block>> =
            tree.nodes().map(|node| (node.cid, node.clone())).collect();
        archive_bytes += nodes.values().map(|node| section_len(node.data.len())).sum::<u64>();
        archive_bytes += archive(&[head.cid], [(&head.cid, &head.data[..])]).len() as u64;
        Self { shape, account, tree, head, nodes, paths, archive_bytes }
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The newest commit.
    pub fn head(&self) -> &Block {
        &self.head
    }

    /// The newest revision.
    pub fn rev(&self) -> Tid {
        self.account.tid(START_MICROS)
    }

    /// The tree of its records.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Number of records of the wanted collection.
    pub fn wanted_records(&self) -> usize {
        let prefix = format!("{}/", WANTED.nsid());
        self.tree.entries().iter().filter(|entry| entry.key.starts_with(&prefix)).count()
    }

    /// The size of the whole archive in bytes.
    pub fn archive_bytes(&self) -> u64 {
        self.archive_bytes
    }

    /// A block.
    pub fn block(&self, cid: &Cid) -> Option<Vec<u8>> {
        if *cid == self.head.cid {
            return Some(self.head.data.clone());
        }
        let node = self.nodes.get(cid).map(|node| node.data.clone());
        node.or_else(|| Some(self.account.write_record(*self.paths.get(cid)?, 0).data))
    }

    /// An archive that proves the record at `key`, or its absence.
    pub fn record_proof(&self, key: &str) -> Vec<u8> {
        let record = self.tree.get(key).and_then(|cid| Some((cid, self.block(&cid)?)));
        repository::record_proof(&self.head, &self.tree, key, record)
    }

    /// The whole archive, in streamable order.
    pub fn export_car(&self) -> Vec<u8> {
        let mut car = car::Writer::new(Vec::new(), &[self.head.cid]).expect(IN_MEMORY);
        car.block(&self.head.cid, &self.head.data).expect(IN_MEMORY);
        self.tree.walk(&mut |item| match item {
            TreeItem::Node(node) => car.block(&node.cid, &node.data).expect(IN_MEMORY),
            TreeItem::Record(entry) => {
                let data = self.block(&entry.value).expect("a record of the tree");
                car.block(&entry.value, &data).expect(IN_MEMORY);
            }
        });
        car.into_inner()
    }
}

/// Bytes of a block in an archive: its length as a varint, its CID, its data.
fn section_len(data_len: usize) -> u64 {
    let len = Cid::LEN + data_len;
    let varint_len = (usize::BITS - len.leading_zeros()).div_ceil(7);
    len as u64 + u64::from(varint_len)
}

/// The choice of the records of an account.
struct Layout<'a> {
    seed: Seed,
    account: &'a Account,
    random: Random,
}

impl Layout<'_> {
    /// The records, sorted by key.
    fn records(mut self, shape: Shape, count: usize) -> Vec<InitialRecord> {
        let wanted =
            (count + self.random.below(RECORDS_PER_WANTED) as usize) / RECORDS_PER_WANTED as usize;
        let mut records = match shape {
            Shape::Usual => self.with_wanted(count, wanted),
            Shape::Tiny => {
                let count = self.random.between(1, 12) as usize;
                self.with_wanted(count, 1)
            }
            Shape::OneCollection => self.written(WANTED, count),
            Shape::WithoutCollection => self.with_wanted(count, 0),
            Shape::Scattered => {
                let mut records = self.with_wanted(count, 0);
                records.extend(self.scattered(wanted.max(1)));
                records
            }
            Shape::Tall => {
                let (count, height) =
                    (self.random.between(10, 300) as usize, self.random.between(10, 12) as Layer);
                let mut records = self.with_wanted(count, 1 + count / 50);
                records.push(history::tall_record(height, &mut self.random));
                records
            }
        };
        records.sort_by(|one, other| one.key.cmp(&other.key));
        records.dedup_by(|one, other| one.key == other.key);
        records
    }

    /// The profile, and other records, of which this number are of the wanted collection.
    fn with_wanted(&self, count: usize, wanted: usize) -> Vec<InitialRecord> {
        let mut records = vec![history::profile(self.clock_id(), START_MICROS)];
        let others = count.saturating_sub(1 + wanted);
        for ((collection, _), count) in
            SHARES.iter().zip(apportion(&SHARES.map(|(_, w)| w), others))
        {
            records.extend(self.written(*collection, count));
        }
        records.extend(self.written(WANTED, wanted));
        records
    }

    fn written(&self, collection: Collection, count: usize) -> Vec<InitialRecord> {
        history::written_records(&self.seed, collection, count, self.clock_id(), START_MICROS)
    }

    /// Records of the wanted collection, every second of which is in layer 2 or above and the others in layer 0.
    fn scattered(&mut self, count: usize) -> Vec<InitialRecord> {
        let mut micros = START_MICROS - 900 * DAY_MICROS;
        let mut next = |is_high: bool| loop {
            micros += 1 + self.random.below(1_000_000);
            let tid = self.account.tid(micros);
            let record = InitialRecord::new(RecordPath { collection: WANTED, tid });
            match key_height(&record.key) {
                0 if !is_high => return record,
                2.. if is_high => return record,
                _ => {}
            }
        };
        (0..count).map(|at| next(at % 2 == 1)).collect()
    }

    fn clock_id(&self) -> u16 {
        self.account.tid(START_MICROS).clock_id()
    }
}

/// A number of records: an octave by the weights of [`OCTAVES`], and any number in it.
fn realistic_size(random: &mut Random) -> usize {
    let mut left = random.below(OCTAVES.iter().sum());
    let octave = OCTAVES.iter().position(|weight| match left.checked_sub(*weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    let octave = octave.expect("a number below the sum of all weights");
    random.between(1 << octave, (2 << octave) - 1) as usize
}

/// Of 10,000 repositories, the ones with 2ⁿ to 2ⁿ⁺¹ − 1 records, for every n from 0 on: the octaves of a lognormal distribution with a
/// median of 2,400 records and a σ of 1.5.
const OCTAVES: [u64; 19] =
    [0, 0, 1, 3, 16, 58, 175, 425, 837, 1335, 1728, 1813, 1542, 1064, 595, 270, 99, 30, 9];

/// The shares of the other collections, per mille.
const SHARES: [(Collection, u64); 6] = [
    (Collection::Like, 482),
    (Collection::Post, 228),
    (Collection::Postgate, 21),
    (Collection::Repost, 60),
    (Collection::Block, 12),
    (Collection::Follow, 197),
];

/// Records of a repository for each wanted one.
const RECORDS_PER_WANTED: u64 = 200;

/// Records that are hashed in one batch.
const RECORD_BATCH_LEN: usize = 256;

/// The stream number for shapes and sizes; the identity, collections and TIDs use others.
const SHAPE_STREAM: u64 = 1 << 34;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: u64) -> impl Iterator<Item = SampledRepository> {
        let spec = Spec { most_records: 600, ..Spec::default() };
        (0..count).map(move |number| SampledRepository::generate(&spec, number))
    }

    #[test]
    fn the_size_of_every_shape_is_the_length_of_its_archive() {
        let mut seen = std::collections::BTreeSet::new();
        for repository in sample(500) {
            let archive = repository.export_car();
            assert_eq!(archive.len() as u64, repository.archive_bytes());
            let blocks = car::read(&archive, &car::Options::default()).unwrap().blocks;
            assert_eq!(
                blocks.len(),
                1 + repository.nodes.len() + repository.tree.entries().len(),
                "no block is there twice"
            );
            seen.insert(repository.shape());
        }
        assert_eq!(seen.len(), Shape::ALL.len(), "{seen:?}");
    }

    #[test]
    fn shapes_have_the_records_and_nodes_that_they_are_named_for() {
        for repository in sample(500) {
            let (records, wanted) = (repository.tree.entries().len(), repository.wanted_records());
            match repository.shape() {
                Shape::Usual => {
                    assert!(wanted.abs_diff(records / 200) <= 1, "{wanted} of {records}")
                }
                Shape::Tiny => assert!(records <= 12 && wanted == 1),
                Shape::OneCollection => assert_eq!(records, wanted),
                Shape::WithoutCollection => assert_eq!(wanted, 0),
                Shape::Scattered => assert!(wanted >= 1),
                Shape::Tall => assert!(records <= 302 && repository.tree.root_height() >= 10),
            }
        }
    }

    #[test]
    fn half_of_the_repositories_have_a_megabyte_and_a_few_a_hundred() {
        let mut random = Seed::new(7, "sizes").stream(0);
        let mut sizes: Vec<usize> = (0..20_000).map(|_| realistic_size(&mut random)).collect();
        sizes.sort_unstable();
        assert!((2_200..2_600).contains(&sizes[10_000]), "{}", sizes[10_000]);
        assert!((10..60).contains(&sizes.iter().filter(|size| **size > 238_000).count()));
    }
}
