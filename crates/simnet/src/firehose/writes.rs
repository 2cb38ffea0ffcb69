//! The writes of a commit with a given task on a given repository.
//!
//! A record key that would change the height of the tree is skipped, because heights are calibrated.

use atproto::event::Action;
use atproto::syntax::Tid;

use super::plan::{Slot, Task};
use crate::random::Random;
use crate::record::{Collection, RecordPath};
use crate::repository::{RecordWrite, Repository};
use crate::time::later;
use crate::tree::key_height;

/// The writes of the commit in `slot`.
pub(super) fn writes(
    repository: &Repository,
    slot: &Slot,
    random: &mut Random,
) -> Vec<RecordWrite> {
    // A record key is a little older than the commit.
    let tid = repository.account().tid(slot.micros - random.between(100, 900));
    match slot.task {
        Task::Create(collection) => create(repository, &[collection], tid),
        Task::GatedPost => create(repository, &GATED_POST, tid),
        Task::Burst(count) => burst(repository, tid, count),
        Task::Update => vec![profile_update(repository)],
        Task::Delete => {
            let collection = *random.pick(&DELETED);
            let deletes = deletes(repository, collection, 1, random);
            // A small repository may have no record there that can be deleted.
            if deletes.is_empty() { create(repository, &[collection], tid) } else { deletes }
        }
        Task::Unlikes(count) => deletes(repository, Collection::Like, count, random),
    }
}

/// A record in every one of `collections` under one record key, `tid` or the next that fits.
fn create(repository: &Repository, collections: &[Collection], tid: Tid) -> Vec<RecordWrite> {
    let root_height = repository.tree().root_height();
    let fits = |write: &RecordWrite| {
        let key = write.path.to_key();
        key_height(&key) <= root_height && repository.tree().get(&key).is_none()
    };
    (0..)
        .map(|offset| {
            let path = |&collection| RecordPath { collection, tid: later(tid, offset) };
            collections
                .iter()
                .map(|c| RecordWrite { action: Action::Create, path: path(c) })
                .collect()
        })
        .find(|writes: &Vec<RecordWrite>| writes.iter().all(fits))
        .expect("three keys of four have height 0")
}

/// Alternating likes and follows, as applications create them from lists.
fn burst(repository: &Repository, last: Tid, count: usize) -> Vec<RecordWrite> {
    let mut tid = repository.account().tid(last.micros() - 4 * count as u64);
    let mut writes = Vec::new();
    for collection in [Collection::Like, Collection::Follow].into_iter().cycle().take(count) {
        let created = create(repository, &[collection], tid);
        tid = later(created[0].path.tid, 2);
        writes.extend(created);
    }
    writes
}

fn profile_update(repository: &Repository) -> RecordWrite {
    let first = &repository.tree().entries()[0].key;
    let path = repository.path(first).expect("a key of the tree");
    assert_eq!(path.collection, Collection::Profile, "the first key is the profile's");
    RecordWrite { action: Action::Update, path }
}

/// Deletes up to `count` of the newest records of `collection`.
fn deletes(
    repository: &Repository,
    collection: Collection,
    count: usize,
    random: &mut Random,
) -> Vec<RecordWrite> {
    let mut paths = newest(repository, collection);
    random.shuffle(&mut paths);
    paths.truncate(count);
    paths.into_iter().map(|path| RecordWrite { action: Action::Delete, path }).collect()
}

/// The newest records of `collection` that the height of the tree does not depend on.
fn newest(repository: &Repository, collection: Collection) -> Vec<RecordPath> {
    let tree = repository.tree();
    let start = tree.entries().partition_point(|e| &*e.key < collection.nsid());
    let (entries, heights) = (&tree.entries()[start..], &tree.heights()[start..]);
    let records = entries.iter().zip(heights).map_while(|(entry, height)| {
        let path = repository.path(&entry.key)?;
        (path.collection == collection).then_some((path, *height))
    });
    let deletable: Vec<RecordPath> =
        records.filter(|(_, height)| *height < tree.root_height()).map(|(path, _)| path).collect();
    deletable[deletable.len().saturating_sub(NEWEST_LEN)..].to_vec()
}

const GATED_POST: [Collection; 3] =
    [Collection::Post, Collection::Postgate, Collection::Threadgate];

/// The collections of deleted records, in proportion to their entries here.
const DELETED: [Collection; 6] = [
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Repost,
    Collection::Follow,
    Collection::Post,
];

/// The number of newest records that deletes are chosen from.
const NEWEST_LEN: usize = 20;
