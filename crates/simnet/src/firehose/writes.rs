//! Which writes make a commit of this kind, on this repository as it stands?
//!
//! A write that would change the height of the tree is passed over for the next: the calibration
//! says how high trees are.

use atproto::event::Action;

use super::plan::{Slot, Task};
use crate::random::Random;
use crate::record::{Collection, RecordPath};
use crate::repository::{RecordWrite, Repository};
use crate::tid::Tid;
use crate::tree::key_height;

/// The writes of the commit in `slot`.
pub(super) fn writes(
    repository: &Repository,
    slot: &Slot,
    random: &mut Random,
) -> Vec<RecordWrite> {
    // A record is named a little before it is committed.
    let tid = repository.account().tid(slot.micros - random.between(100, 900));
    match slot.task {
        Task::Create(collection) => create(repository, &[collection], tid),
        Task::GatedPost => create(repository, &GATED_POST, tid),
        Task::Burst(count) => burst(repository, tid, count),
        Task::Update => vec![update_of_profile(repository)],
        Task::Delete => {
            let collection = *random.pick(&DELETED);
            let deletes = deletes(repository, collection, 1, random);
            // A small repository may have nothing left there that it can spare.
            if deletes.is_empty() { create(repository, &[collection], tid) } else { deletes }
        }
        Task::Unlikes(count) => deletes(repository, Collection::Like, count, random),
    }
}

/// A record in each of `collections` under one record key, `tid` or the next that serves.
fn create(repository: &Repository, collections: &[Collection], tid: Tid) -> Vec<RecordWrite> {
    let root_height = repository.tree().root_height();
    let fits = |write: &RecordWrite| {
        let key = write.path.to_key();
        key_height(&key) <= root_height && repository.tree().get(&key).is_none()
    };
    (0..)
        .map(|later| {
            let path = |&collection| RecordPath { collection, tid: tid.later(later) };
            collections
                .iter()
                .map(|c| RecordWrite { action: Action::Create, path: path(c) })
                .collect()
        })
        .find(|writes: &Vec<RecordWrite>| writes.iter().all(fits))
        .expect("three keys of four have height 0")
}

/// Likes and follows one after the other, as an application makes them from lists.
fn burst(repository: &Repository, last: Tid, count: usize) -> Vec<RecordWrite> {
    let mut tid = repository.account().tid(last.micros() - 4 * count as u64);
    let mut writes = Vec::new();
    for collection in [Collection::Like, Collection::Follow].into_iter().cycle().take(count) {
        let created = create(repository, &[collection], tid);
        tid = created[0].path.tid.later(2);
        writes.extend(created);
    }
    writes
}

fn update_of_profile(repository: &Repository) -> RecordWrite {
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

/// The newest records of `collection` that are not needed to hold up the root.
fn newest(repository: &Repository, collection: Collection) -> Vec<RecordPath> {
    let tree = repository.tree();
    let start = tree.entries().partition_point(|e| &*e.key < collection.nsid());
    let (entries, heights) = (&tree.entries()[start..], &tree.heights()[start..]);
    let records = entries.iter().zip(heights).map_while(|(entry, height)| {
        let path = repository.path(&entry.key)?;
        (path.collection == collection).then_some((path, *height))
    });
    let spared: Vec<RecordPath> =
        records.filter(|(_, height)| *height < tree.root_height()).map(|(path, _)| path).collect();
    spared[spared.len().saturating_sub(NEWEST_LEN)..].to_vec()
}

const GATED_POST: [Collection; 3] =
    [Collection::Post, Collection::Postgate, Collection::Threadgate];

/// Where records are deleted, as often as they stand here.
const DELETED: [Collection; 6] = [
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Repost,
    Collection::Follow,
    Collection::Post,
];

/// Among how many of the newest records deletes are chosen.
const NEWEST_LEN: usize = 20;
