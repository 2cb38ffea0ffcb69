//! Which records does an account have before the stream begins?
//!
//! An account writes at an even pace for years; each collection has its share. What it wrote is
//! enumerated rather than kept: record `i` of a collection has a TID that follows from the seed.
//!
//! A tree of height 8 has some 90,000 records, and its commits show nine nodes of them. So accounts
//! here have deleted most of what they wrote, in a way that the commits hardly show: a record `d`
//! places from the nearer end of its collection is kept if its height is at least
//! log₄(d / [`DENSE_LEN`]), rounded up. A node of layer `n` reaches about 4ⁿ⁺¹ records from where it
//! is looked at, and up to [`DENSE_LEN`]·4ⁿ records from either end of a collection no key of that
//! layer is missing. New records go to the ends of collections, and so nearly every node on their
//! way has the entries that it would have in the full tree. What remains is a few thousand records
//! for any height, and the tree over them is exact.
//!
//! A repository that is read as a whole, and not by its commits, has nothing deleted from it:
//! [`all_records`].
//!
//! Above height 9 the history stops growing, and [`TALL_KEYS`] lend the height: such trees are the
//! lucky ones, thin at the top, in the live network too.

use std::sync::Arc;

use crate::random::{Random, Seed, shares};
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
    let mut random = seed.stream(LAYOUT_STREAM);
    let wealth_percent = *random.pick(&WEALTH_PERCENT);
    let total = ((wealth_percent << (2 * u32::from(height))) / 100).clamp(1, MAX_HISTORY_LEN);
    let mut records = Vec::new();
    let mut highest = None;
    for (collection, share_per_mille) in SHARES {
        let count = (total * share_per_mille).div_ceil(1000);
        let history = History::new(*seed, collection, count, clock, now_micros);
        highest = highest.max(history.keep_into(height, &mut records));
    }
    if height >= LEAST_TALL {
        records.extend((LEAST_TALL..=height).map(|layer| tall_record(layer, &mut random)));
    } else if highest < Some(height) {
        let history = History::new(*seed, Collection::Like, total, clock, now_micros);
        records.push(history.search(height, &mut random));
    }
    records.push(profile(clock, now_micros));
    records.sort_by(|a, b| a.key.cmp(&b.key));
    records
}

/// The records of an account that has written `count` and deleted none, sorted by key.
///
/// # Panics
/// If there are to be none: a profile there is.
pub(crate) fn all_records(
    seed: &Seed,
    count: usize,
    clock: u64,
    now_micros: u64,
) -> Vec<OldRecord> {
    let mut records = vec![profile(clock, now_micros)];
    let written = count.checked_sub(1).expect("a profile at least");
    for ((collection, _), count) in SHARES.iter().zip(shares(&SHARES.map(|(_, w)| w), written)) {
        let mut random = seed.stream(*collection as u64);
        let history = History::new(*seed, *collection, count as u64, clock, now_micros);
        let tids = (0..history.count).map(|index| history.tid(index, random.next_u64()));
        records.extend(tids.map(|tid| history.record(tid)));
    }
    records.sort_by(|a, b| a.key.cmp(&b.key));
    records
}

/// The record that every account has.
fn profile(clock: u64, now_micros: u64) -> OldRecord {
    let tid = Tid::new(now_micros - LIFE_MICROS, clock);
    OldRecord::new(RecordPath { collection: Collection::Profile, tid })
}

impl OldRecord {
    fn new(path: RecordPath) -> Self {
        Self { path, key: path.to_key().into() }
    }
}

/// One of the known records of this height.
fn tall_record(height: Layer, random: &mut Random) -> OldRecord {
    let of_height = TALL_KEYS.into_iter().filter(|(other, ..)| *other == height);
    let (_, collection, rkey) = *random.pick(&of_height.collect::<Vec<_>>());
    let tid = Tid::parse(rkey).expect("the table holds TIDs");
    OldRecord::new(RecordPath { collection, tid })
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
    fn new(seed: Seed, collection: Collection, count: u64, clock: u64, now_micros: u64) -> Self {
        let start_micros = now_micros - LIFE_MICROS + 1_000_000;
        let step_micros = (LIFE_MICROS - 2_000_000) / count.max(1);
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
    fn search(&self, height: Layer, random: &mut Random) -> OldRecord {
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
        let jitter = (u128::from(random) * u128::from(self.step_micros)) >> 64;
        Tid::new(self.start_micros + index * self.step_micros + jitter as u64, self.clock)
    }

    fn record(&self, tid: Tid) -> OldRecord {
        OldRecord::new(RecordPath { collection: self.collection, tid })
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

/// How many records an account has written, in percent of 4ʰ for a tree of height h: a tree has
/// one height for a wide range of sizes. Together these give roots of two entries, as measured.
const WEALTH_PERCENT: [u64; 5] = [10, 20, 40, 160, 480];

/// The most records that are enumerated for an account.
const MAX_HISTORY_LEN: u64 = 1 << 20;

/// The least height that has known keys.
const LEAST_TALL: Layer = 10;

/// Keys of great height. One of height 12 is found by hashing 22 million; these were, once.
const TALL_KEYS: [(Layer, Collection, &str); 12] = [
    (10, Collection::Like, "3kis23cshgh2d"),
    (10, Collection::Like, "3lms7uin24f24"),
    (10, Collection::Follow, "3keyxwbfehx2t"),
    (10, Collection::Follow, "3mkw3fotvma2x"),
    (11, Collection::Like, "3kixmksjfzx2v"),
    (11, Collection::Like, "3lehsn6sxx52s"),
    (11, Collection::Follow, "3klzbexbcho2s"),
    (11, Collection::Follow, "3m54os62gxy2m"),
    (12, Collection::Like, "3ljy3vnpibn2f"),
    (12, Collection::Like, "3lxjfawcowm2q"),
    (12, Collection::Follow, "3kb6rf4pau523"),
    (12, Collection::Follow, "3lfwovjap632y"),
];

/// The stream number for how much there is and what is searched for; collections use small ones.
const LAYOUT_STREAM: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::key_height;

    #[test]
    fn the_tall_keys_are_as_tall_as_they_claim() {
        for (height, collection, rkey) in TALL_KEYS {
            let tid = Tid::parse(rkey).expect("a TID");
            assert_eq!(key_height(&RecordPath { collection, tid }.to_key()), height, "{rkey}");
        }
    }
}
