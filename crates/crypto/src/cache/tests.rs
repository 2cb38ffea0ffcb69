use std::hash::BuildHasher;

use kernels::secp256k1::{Key, KeyTable};

use super::enlarged::{LARGE_USES, MEDIUM_USES};
use super::*;
use crate::{Curve, SecretKey};

fn key(number: u8) -> PublicKey {
    let curve = Curve::ALL[usize::from(number % 2)];
    SecretKey::from_bytes(curve, &[number + 1; 32]).unwrap().public_key()
}

fn cache_of(capacity: usize) -> KeyCache {
    KeyCache::new((capacity * KeyCache::ENTRY_BYTES).div_ceil(3) * 4, [7; 16])
}

fn has(cache: &mut KeyCache, number: u8) -> bool {
    cache.get_key(key(number).as_compressed()) == Some(&key(number))
}

#[test]
fn an_inserted_key_is_found_and_counted() {
    let mut cache = cache_of(4);
    assert!(cache.is_empty() && !has(&mut cache, 0));
    cache.insert_key(key(0));
    cache.insert_key(key(1));
    assert!(has(&mut cache, 0) && has(&mut cache, 1) && !has(&mut cache, 2));
    assert_eq!(cache.stats(), CacheStats { hits: 2, misses: 2, evictions: 0 });
    assert_eq!((cache.len(), cache.is_empty(), cache.capacity()), (2, false, 4));
}

#[test]
fn the_budget_is_never_exceeded_and_every_entry_can_be_found() {
    let mut cache = cache_of(5);
    for number in 0..40 {
        assert!(!has(&mut cache, number));
        cache.insert_key(key(number));
        assert!(has(&mut cache, number));
        assert_eq!(cache.len(), 5.min(usize::from(number) + 1));
        assert_eq!(cache.index.len(), cache.len());
    }
    assert_eq!(cache.stats().evictions, 35);
    for (key, at) in &cache.index {
        assert_eq!(&cache.entries[*at].key, key);
    }
}

#[test]
fn a_key_in_use_survives_a_flood_of_keys_that_appear_once() {
    let mut cache = cache_of(4);
    cache.insert_key(key(0));
    for other in 1..100 {
        assert!(has(&mut cache, 0), "after {other} other keys");
        cache.insert_key(key(other));
    }
}

#[test]
fn a_table_is_made_after_some_signatures_and_stays() {
    let (mut cache, key) = (cache_of(2), key(0));
    let compressed = key.as_compressed();
    for uses in 0..SMALL_USES + 2 {
        let expected = (uses >= SMALL_USES).then_some(0);
        assert_eq!(cache.find_table(compressed), expected, "after {uses} signatures");
        cache.record_valid(&[*compressed]);
    }
    let table = KeyTable::new(Key::Compressed(compressed.as_bytes())).unwrap();
    assert_eq!(cache.table(0), &table);
    assert_eq!(cache.get_key(compressed), None);
    cache.insert_key(key.clone());
    assert_eq!(cache.find_table(compressed), Some(0));
    let misses = u64::from(SMALL_USES) + 1;
    assert_eq!(cache.stats(), CacheStats { hits: 3, misses, evictions: 0 });
}

#[test]
fn a_key_that_is_evicted_before_its_table_is_made_stays_evicted() {
    let mut cache = cache_of(1);
    let [first, second] = [0, 2].map(|number| *key(number).as_compressed());
    let times = SMALL_USES as usize;
    // The first one is due twice, and evicted both times.
    let keys = [vec![first; times], vec![second], vec![first; times], vec![second; times]].concat();
    cache.record_valid(&keys);
    assert_eq!((cache.len(), cache.index.len()), (1, 1));
    assert_eq!(cache.find_table(&first), None);
    assert_eq!(cache.find_table(&second), Some(0));
    let table = KeyTable::new(Key::Compressed(second.as_bytes())).unwrap();
    assert_eq!(cache.table(0), &table);
}

#[test]
fn a_table_replaces_the_parsed_key() {
    let (mut cache, key) = (cache_of(2), key(0));
    cache.insert_key(key.clone());
    cache.record_valid(&[*key.as_compressed(); SMALL_USES as usize]);
    assert_eq!(cache.find_table(key.as_compressed()), Some(0));
    assert_eq!(cache.len(), 1);
}

#[test]
fn a_budget_below_one_key_caches_none() {
    let mut cache = KeyCache::new(KeyCache::ENTRY_BYTES - 1, [7; 16]);
    cache.insert_key(key(0));
    cache.record_valid(&[*key(0).as_compressed(); 3]);
    assert!(cache.is_empty() && !has(&mut cache, 0));
}

/// The size of the key's table, if it has one.
fn size_of_table(cache: &KeyCache, number: u8) -> Option<TableSize> {
    cache.table_size(key(number).as_compressed())
}

/// Records valid signatures of a key in lanes.
fn sign(cache: &mut KeyCache, number: u8, times: u32) {
    let key = *key(number).as_compressed();
    for _ in 0..times {
        match cache.find_table(&key) {
            Some(at) => cache.record_found([at].into_iter()),
            None => cache.record_valid(&[key]),
        }
    }
}

/// A cache for a hundred keys, and for larger tables of this size in bytes.
fn cache_with_room(bytes: usize) -> KeyCache {
    KeyCache { enlarged: Enlarged::new(bytes), ..cache_of(100) }
}

fn assert_enlarged_is_consistent(cache: &KeyCache) {
    let sizes = |at: &usize| cache.stored(*at).size();
    assert!(cache.enlarged.members.iter().all(|at| sizes(at) > TableSize::Small));
    let used: usize = cache.enlarged.members.iter().map(|at| sizes(at).bytes()).sum();
    assert_eq!(used, cache.enlarged.used_bytes);
    assert!(used <= cache.enlarged.budget_bytes);
    for (at, entry) in cache.entries.iter().enumerate() {
        let is_member = entry.enlarged.as_ref().map(|place| cache.enlarged.members[place.at]);
        assert!(is_member.is_none_or(|member| member == at));
        let is_large =
            matches!(&entry.state, EntryState::Table(table) if table.size() > TableSize::Small);
        assert_eq!(is_member.is_some(), is_large);
    }
}

#[test]
fn the_table_of_a_key_grows_with_its_valid_signatures() {
    let mut cache = cache_with_room(1 << 20);
    // One key per curve.
    for number in [0, 1] {
        let mut grown = Vec::new();
        for uses in 1..=LARGE_USES {
            sign(&mut cache, number, 1);
            let size = size_of_table(&cache, number);
            if grown.last().map(|(_, size)| *size) != Some(size) {
                grown.push((uses, size));
            }
            assert_enlarged_is_consistent(&cache);
        }
        let [small, medium, large] = TableSize::ALL.map(Some);
        assert_eq!(
            grown,
            [(1, None), (SMALL_USES, small), (MEDIUM_USES, medium), (LARGE_USES, large)]
        );
    }
}

#[test]
fn a_key_that_signs_alone_gets_a_larger_table_as_well() {
    let mut cache = cache_with_room(1 << 20);
    cache.insert_key(key(0));
    for _ in 1..MEDIUM_USES {
        assert_eq!(size_of_table(&cache, 0), None);
        cache.record_alone(key(0).as_compressed());
    }
    assert_eq!(size_of_table(&cache, 0), Some(TableSize::Medium));
}

#[test]
fn a_busy_key_takes_the_room_of_one_that_is_no_longer_used() {
    let mut cache = cache_with_room(TableSize::Medium.bytes());
    sign(&mut cache, 0, MEDIUM_USES);
    assert_eq!(size_of_table(&cache, 0), Some(TableSize::Medium));
    // At first its last use is not long ago.
    for number in [2, 4] {
        sign(&mut cache, number, MEDIUM_USES);
        assert_enlarged_is_consistent(&cache);
    }
    assert_eq!(size_of_table(&cache, 2), Some(TableSize::Small));
    assert_eq!(size_of_table(&cache, 4), Some(TableSize::Medium));
    assert_eq!(size_of_table(&cache, 0), Some(TableSize::Small));
}

#[test]
fn a_busy_key_takes_the_room_of_one_idle_key_and_passes_over_those_in_use() {
    let mut cache = cache_with_room(3 * TableSize::Medium.bytes());
    for number in [0, 2, 4] {
        sign(&mut cache, number, MEDIUM_USES);
    }
    // Longer than three tables may be unused.
    sign(&mut cache, 0, 100 - MEDIUM_USES);
    sign(&mut cache, 6, MEDIUM_USES);
    let sizes = [0, 2, 4, 6].map(|number| size_of_table(&cache, number));
    let [small, medium, _] = TableSize::ALL.map(Some);
    assert_eq!(sizes, [medium, small, medium, medium]);
    assert_enlarged_is_consistent(&cache);
}

#[test]
fn the_more_larger_tables_there_are_the_longer_each_may_be_unused() {
    let mut cache = cache_with_room(4 * TableSize::Medium.bytes());
    for number in [0, 2, 4, 6] {
        sign(&mut cache, number, MEDIUM_USES);
    }
    // With this key, there were 64 uses since the first: sixteen per table.
    sign(&mut cache, 8, MEDIUM_USES);
    assert_eq!(size_of_table(&cache, 8), Some(TableSize::Small));
    sign(&mut cache, 10, MEDIUM_USES);
    assert_eq!(size_of_table(&cache, 10), Some(TableSize::Medium));
    assert_eq!(size_of_table(&cache, 0), Some(TableSize::Small));
    assert_enlarged_is_consistent(&cache);
}

#[test]
fn a_table_in_use_keeps_its_room() {
    let mut cache = cache_with_room(TableSize::Medium.bytes());
    sign(&mut cache, 0, MEDIUM_USES);
    for number in (2..40).step_by(2) {
        sign(&mut cache, 0, 1);
        sign(&mut cache, number, MEDIUM_USES);
        assert_eq!(size_of_table(&cache, 0), Some(TableSize::Medium), "after key {number}");
        assert_enlarged_is_consistent(&cache);
    }
    // It needs more room than there is, and keeps its table.
    sign(&mut cache, 0, LARGE_USES);
    assert_eq!(size_of_table(&cache, 0), Some(TableSize::Medium));
    assert_enlarged_is_consistent(&cache);
}

#[test]
fn equally_busy_keys_do_not_take_the_room_of_each_other() {
    // Room for the medium tables of half of them.
    let mut cache = cache_with_room(8 * TableSize::Medium.bytes());
    let keys: Vec<u8> = (0..32).step_by(2).collect();
    let with_medium = |cache: &KeyCache| -> Vec<u8> {
        let has = |number: &u8| size_of_table(cache, *number) == Some(TableSize::Medium);
        keys.iter().copied().filter(has).collect()
    };
    let mut first = Vec::new();
    for uses in 1..=3 * LARGE_USES {
        keys.iter().for_each(|number| sign(&mut cache, *number, 1));
        if uses == MEDIUM_USES {
            first = with_medium(&cache);
            assert_eq!(first.len(), 8);
        }
    }
    assert_eq!(with_medium(&cache), first);
    assert_enlarged_is_consistent(&cache);
}

#[test]
fn an_evicted_key_gives_its_room_back() {
    let mut cache = KeyCache { enlarged: Enlarged::new(1 << 20), ..cache_of(2) };
    for number in (0..40).step_by(2) {
        sign(&mut cache, number, MEDIUM_USES);
        assert_enlarged_is_consistent(&cache);
        assert!(cache.enlarged.members.len() <= 2);
    }
}

#[test]
fn the_seed_is_not_printed() {
    assert!(!format!("{:?}", KeyCache::new(0, [77; 16])).contains("77"));
}

#[test]
fn hashes_depend_on_the_seed_which_is_not_printed() {
    let hash = |seed| SeededState::new([seed; 16]).hash_one("a key");
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
    assert_eq!(format!("{:?}", SeededState::new([77; 16])), "SeededState");
}
