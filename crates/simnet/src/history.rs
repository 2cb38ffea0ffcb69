//! Which records does an account have before the stream begins?
//!
//! An account writes at an even pace for years; each collection has its share. What it wrote is
//! enumerated rather than kept: record `i` of a collection has a TID that follows from the seed.
//!
//! A tree of height 12 has some 20 million records, and its commits show a dozen nodes of them. So
//! accounts here have deleted most of what they wrote, in a way that the commits do not show: a
//! record `d` places from the nearer end of its collection is kept if its height is at least
//! log₄(d / [`DENSE_LEN`]). A node of layer `n` reaches about 4ⁿ⁺¹ records from where it is looked
//! at, and up to [`DENSE_LEN`]·4ⁿ records from either end of a collection no key of that layer is
//! missing. New records go to the ends of collections, and so every node on their way has the
//! entries that it would have in the full tree. What remains is a few thousand records for any
//! height, and the tree over them is exact.

use std::sync::Arc;

use crate::random::Seed;
use crate::record::{Collection, RecordPath};
use crate::tid::Tid;
use crate::tree::{Layer, key_heights};

/// A record that is there when the stream begins.
#[derive(Clone, Debug)]
pub(crate) struct OldRecord {
    pub(crate) path: RecordPath,
    pub(crate) key: Arc<str>,
}

/// The records that an account of this height has at `now_micros`, sorted by key.
pub(crate) fn records(seed: &Seed, height: Layer, clock: u64, now_micros: u64) -> Vec<OldRecord> {
    let mut records = Vec::new();
    let mut highest = None;
    for (collection, share) in SHARES {
        let history = History::new(*seed, collection, share, height, clock, now_micros);
        highest = highest.max(history.keep_into(height, &mut records));
    }
    if highest < Some(height) {
        let history = History::new(*seed, Collection::Like, 1000, height, clock, now_micros);
        records.push(history.search(height));
    }
    let profile = RecordPath {
        collection: Collection::Profile,
        tid: Tid::new(now_micros - LIFE_MICROS, clock),
    };
    records.push(OldRecord { path: profile, key: profile.to_key().into() });
    records.sort_by(|a, b| a.key.cmp(&b.key));
    records
}

/// What an account ever wrote to one collection.
struct History {
    seed: Seed,
    collection: Collection,
    count: u64,
    start_micros: u64,
    step_micros: u64,
    clock: u64,
}

impl History {
    fn new(
        seed: Seed,
        collection: Collection,
        share_per_mille: u64,
        height: Layer,
        clock: u64,
        now_micros: u64,
    ) -> Self {
        let count = (records_of_height(height) * share_per_mille).div_ceil(1000);
        let start_micros = now_micros - LIFE_MICROS + 1_000_000;
        let step_micros = (LIFE_MICROS - 2_000_000) / count;
        Self { seed, collection, count, start_micros, step_micros, clock }
    }

    /// Appends what was kept to `records`; gives the greatest height among it.
    fn keep_into(&self, root_height: Layer, records: &mut Vec<OldRecord>) -> Option<Layer> {
        let mut highest = None;
        let mut random = self.seed.stream(self.collection as u64);
        let mut keys = Vec::new();
        for first in (0..self.count).step_by(BATCH_LEN) {
            let batch = first..self.count.min(first + BATCH_LEN as u64);
            let tids: Vec<Tid> = batch.map(|index| self.tid(index, random.next_u64())).collect();
            let heights = self.heights(&tids, &mut keys);
            for (at, (tid, height)) in tids.iter().zip(heights).enumerate() {
                if height <= root_height && height >= self.least_height(first + at as u64) {
                    records.push(self.record(*tid));
                    highest = highest.max(Some(height));
                }
            }
        }
        highest
    }

    /// The first record of exactly this height among ones that fall between the usual ones.
    fn search(&self, height: Layer) -> OldRecord {
        let mut random = self.seed.stream(SEARCH_STREAM);
        let mut keys = Vec::new();
        loop {
            let tids: Vec<Tid> = (0..BATCH_LEN)
                .map(|_| Tid::new(self.start_micros + random.below(LIFE_MICROS / 2), self.clock))
                .collect();
            let heights = self.heights(&tids, &mut keys);
            if let Some(at) = heights.iter().position(|found| *found == height) {
                return self.record(tids[at]);
            }
        }
    }

    fn tid(&self, index: u64, random: u64) -> Tid {
        let jitter = random % self.step_micros;
        Tid::new(self.start_micros + index * self.step_micros + jitter, self.clock)
    }

    fn record(&self, tid: Tid) -> OldRecord {
        let path = RecordPath { collection: self.collection, tid };
        OldRecord { path, key: path.to_key().into() }
    }

    /// The heights of the keys with these record keys; `keys` is scratch.
    fn heights(&self, tids: &[Tid], keys: &mut Vec<u8>) -> Vec<Layer> {
        let prefix = format!("{}/", self.collection.nsid());
        keys.clear();
        for tid in tids {
            keys.extend_from_slice(prefix.as_bytes());
            keys.extend_from_slice(&tid.to_bytes());
        }
        key_heights(&keys.chunks_exact(prefix.len() + Tid::LEN).collect::<Vec<_>>())
    }

    /// The least height of a key at `index` that is kept.
    fn least_height(&self, index: u64) -> Layer {
        let distance = index.min(self.count - 1 - index);
        match distance / DENSE_LEN {
            0 => 0,
            ratio => (ratio.ilog2() / 2 + 1) as Layer,
        }
    }
}

/// How many records most trees of this height have: 1.4 · 4ʰ.
fn records_of_height(height: Layer) -> u64 {
    (14 << (2 * u32::from(height))) / 10
}

/// The share of each collection in what accounts have, per mille.
const SHARES: [(Collection, u64); 7] = [
    (Collection::Like, 480),
    (Collection::Post, 227),
    (Collection::Postgate, 21),
    (Collection::Repost, 60),
    (Collection::Threadgate, 10),
    (Collection::Block, 12),
    (Collection::Follow, 190),
];

/// From each end of a collection, so many records are all kept.
const DENSE_LEN: u64 = 24;

/// For how long accounts have been writing: three years.
const LIFE_MICROS: u64 = 3 * 365 * 86_400_000_000;

/// Keys hashed together.
const BATCH_LEN: usize = 1024;

/// The stream number for keys that are searched for their height; collections use small ones.
const SEARCH_STREAM: u64 = 1 << 32;
