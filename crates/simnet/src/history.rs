//! The records that an account has before the stream begins.
//!
//! An account writes at an even rate for three years, with a fixed share per collection. Records
//! are enumerated, not stored: record `i` of a collection has a TID that follows from the seed.
//!
//! A tree of height 8 has some 90,000 records, of which a commit shows nine nodes. [`thinned_records`]
//! therefore leaves out records that commits hardly show: a record `d` places from the nearer end of
//! its collection is kept if its height is at least log₄(d / [`DENSE_LEN`]), rounded up. A node of
//! layer `n` spans about 4ⁿ⁺¹ records, and within [`DENSE_LEN`]·4ⁿ records of either end of a
//! collection no key of that layer is missing. New records go to the ends of collections, so nearly
//! every node on their path has the entries it would have in the full tree. A few thousand records
//! remain for any height, and the tree over them is exact. [`all_records`] leaves out nothing.
//!
//! Above height 9 the history stops growing, and [`TALL_KEYS`] supply the height: trees that high are
//! thin at the top in the live network too.

use std::sync::Arc;

use atproto::syntax::Tid;

use crate::random::{Random, Seed, apportion};
use crate::record::{Collection, RecordPath};
use crate::time::DAY_MICROS;
use crate::tree::{Layer, key_heights};

/// A record that exists when the stream begins.
#[derive(Clone, Debug)]
pub(crate) struct InitialRecord {
    pub(crate) path: RecordPath,
    pub(crate) key: Arc<str>,
}

/// The records that an account with a tree of this height has at `now_micros`, thinned, sorted by key.
pub(crate) fn thinned_records(
    seed: &Seed,
    height: Layer,
    clock_id: u16,
    now_micros: u64,
) -> Vec<InitialRecord> {
    let mut random = seed.stream(LAYOUT_STREAM);
    let size_percent = *random.pick(&SIZE_PERCENT);
    let total = ((size_percent << (2 * u32::from(height))) / 100).clamp(1, MAX_HISTORY_LEN);
    let mut records = Vec::new();
    let mut highest = None;
    for (collection, share_per_mille) in SHARES {
        let count = (total * share_per_mille).div_ceil(1000);
        let history = History::new(*seed, collection, count, clock_id, now_micros);
        highest = highest.max(history.keep_into(height, &mut records));
    }
    if height >= LEAST_TALL {
        records.extend((LEAST_TALL..=height).map(|layer| tall_record(layer, &mut random)));
    } else if highest < Some(height) {
        let history = History::new(*seed, Collection::Like, total, clock_id, now_micros);
        records.push(history.search(height, &mut random));
    }
    records.push(profile(clock_id, now_micros));
    records.sort_by(|a, b| a.key.cmp(&b.key));
    records
}

/// The records of an account that has written `count` and deleted none, sorted by key.
///
/// # Panics
/// If `count` is 0: every account has a profile.
pub(crate) fn all_records(
    seed: &Seed,
    count: usize,
    clock_id: u16,
    now_micros: u64,
) -> Vec<InitialRecord> {
    let mut records = vec![profile(clock_id, now_micros)];
    let written = count.checked_sub(1).expect("a profile at least");
    for ((collection, _), count) in SHARES.iter().zip(apportion(&SHARES.map(|(_, w)| w), written)) {
        records.extend(written_records(seed, *collection, count, clock_id, now_micros));
    }
    records.sort_by(|a, b| a.key.cmp(&b.key));
    records
}

/// `count` records of a collection, in the order of their times.
pub(crate) fn written_records(
    seed: &Seed,
    collection: Collection,
    count: usize,
    clock_id: u16,
    now_micros: u64,
) -> Vec<InitialRecord> {
    let mut random = seed.stream(collection as u64);
    let history = History::new(*seed, collection, count as u64, clock_id, now_micros);
    let tids = (0..history.count).map(|index| history.tid(index, random.next_u64()));
    tids.map(|tid| history.record(tid)).collect()
}

/// The profile that every account has.
pub(crate) fn profile(clock_id: u16, now_micros: u64) -> InitialRecord {
    let tid = Tid::new(now_micros - LIFE_MICROS, clock_id);
    InitialRecord::new(RecordPath { collection: Collection::Profile, tid })
}

impl InitialRecord {
    pub(crate) fn new(path: RecordPath) -> Self {
        Self { path, key: path.to_key().into() }
    }
}

/// One of the known keys of this height.
pub(crate) fn tall_record(height: Layer, random: &mut Random) -> InitialRecord {
    let of_height = TALL_KEYS.into_iter().filter(|(other, ..)| *other == height);
    let (_, collection, rkey) = *random.pick(&of_height.collect::<Vec<_>>());
    let tid = Tid::parse(rkey).expect("a TID of the table");
    InitialRecord::new(RecordPath { collection, tid })
}

/// Everything an account wrote to one collection.
struct History {
    seed: Seed,
    collection: Collection,
    count: u64,
    start_micros: u64,
    step_micros: u64,
    clock_id: u16,
}

impl History {
    fn new(seed: Seed, collection: Collection, count: u64, clock_id: u16, now_micros: u64) -> Self {
        let start_micros = now_micros - LIFE_MICROS + 1_000_000;
        let step_micros = (LIFE_MICROS - 2_000_000) / count.max(1);
        Self { seed, collection, count, start_micros, step_micros, clock_id }
    }

    /// Appends the thinned records to `records`; returns the greatest height among them.
    fn keep_into(&self, root_height: Layer, records: &mut Vec<InitialRecord>) -> Option<Layer> {
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

    /// Draws records between the enumerated ones until one has exactly this height.
    fn search(&self, height: Layer, random: &mut Random) -> InitialRecord {
        let mut keys = Vec::new();
        loop {
            let tids: Vec<Tid> = (0..BATCH_LEN)
                .map(|_| Tid::new(self.start_micros + random.below(LIFE_MICROS / 2), self.clock_id))
                .collect();
            let heights = self.heights(&tids, &mut keys);
            if let Some(at) = heights.iter().position(|found| *found == height) {
                return self.record(tids[at]);
            }
        }
    }

    fn tid(&self, index: u64, random: u64) -> Tid {
        let jitter = (u128::from(random) * u128::from(self.step_micros)) >> 64;
        Tid::new(self.start_micros + index * self.step_micros + jitter as u64, self.clock_id)
    }

    fn record(&self, tid: Tid) -> InitialRecord {
        InitialRecord::new(RecordPath { collection: self.collection, tid })
    }

    /// The heights of the keys with these record keys; `keys` is a scratch buffer.
    fn heights(&self, tids: &[Tid], keys: &mut Vec<u8>) -> Vec<Layer> {
        let prefix = format!("{}/", self.collection.nsid());
        keys.clear();
        for tid in tids {
            keys.extend_from_slice(prefix.as_bytes());
            keys.extend_from_slice(&tid.to_bytes());
        }
        key_heights(&keys.chunks_exact(prefix.len() + Tid::LEN).collect::<Vec<_>>())
    }

    /// The least height at which the key at `index` is kept.
    fn least_height(&self, index: u64) -> Layer {
        let distance = index.min(self.count - 1 - index);
        match distance / DENSE_LEN {
            0 => 0,
            ratio => (ratio.ilog2() / 2 + 1) as Layer,
        }
    }
}

/// The shares of collections in the records of an account, per mille.
const SHARES: [(Collection, u64); 7] = [
    (Collection::Like, 480),
    (Collection::Post, 227),
    (Collection::Postgate, 21),
    (Collection::Repost, 60),
    (Collection::Threadgate, 10),
    (Collection::Block, 12),
    (Collection::Follow, 190),
];

/// Records at both ends of a collection that are all kept.
const DENSE_LEN: u64 = 24;

/// The time for which accounts have been writing: three years.
const LIFE_MICROS: u64 = 3 * 365 * DAY_MICROS;

/// Keys hashed in one batch.
const BATCH_LEN: usize = 1024;

/// Records an account has written, in percent of 4ʰ for a tree of height h: trees of very different
/// sizes have the same height. Together these give roots of two entries on average, as measured.
const SIZE_PERCENT: [u64; 5] = [10, 20, 40, 160, 480];

/// The maximum number of records enumerated for an account.
const MAX_HISTORY_LEN: u64 = 1 << 20;

/// The least height with known keys.
const LEAST_TALL: Layer = 10;

/// Keys of great height, found once by search: a key of height 12 takes about 22 million hashes.
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

/// The stream number for sizes and searches; collections use small numbers.
const LAYOUT_STREAM: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::key_height;

    #[test]
    fn the_tall_keys_have_the_heights_they_are_listed_with() {
        for (height, collection, rkey) in TALL_KEYS {
            let tid = Tid::parse(rkey).expect("a TID");
            assert_eq!(key_height(&RecordPath { collection, tid }.to_key()), height, "{rkey}");
        }
    }
}
