//! What does an account write next?

use atproto::event::Action;

use crate::random::Random;
use crate::record::{Collection, RecordPath};
use crate::repository::{RecordWrite, Repository};
use crate::tid::Tid;
use crate::tree::Entry;

/// The writes of the commit at `micros`: mostly one, sometimes several.
pub(super) fn writes(
    repository: &Repository,
    micros: u64,
    random: &mut Random,
) -> Vec<RecordWrite> {
    let tid = repository.account().tid(micros - random.between(100, 900));
    let updates = update(repository, random);
    match random.below(100) {
        0..72 => vec![create(*random.pick(&CREATED), tid)],
        72..75 => GATED_POST.map(|collection| create(collection, tid)).into(),
        75..77 => {
            (0..random.between(2, 20)).map(|at| create(Collection::Like, tid.later(at))).collect()
        }
        77..82 => updates,
        // So that a repository does not grow for ever.
        _ => delete(repository, random).unwrap_or(updates),
    }
}

fn create(collection: Collection, tid: Tid) -> RecordWrite {
    RecordWrite { action: Action::Create, path: RecordPath { collection, tid } }
}

/// An update of the profile, or of any record.
fn update(repository: &Repository, random: &mut Random) -> Vec<RecordWrite> {
    let entries = repository.tree().entries();
    let entry = if random.chance(1, 2) { &entries[0] } else { random.pick(entries) };
    vec![RecordWrite { action: Action::Update, path: path(repository, entry) }]
}

/// The deletion of any record but the profile.
fn delete(repository: &Repository, random: &mut Random) -> Option<Vec<RecordWrite>> {
    let entries = &repository.tree().entries()[1..];
    let path = path(repository, (!entries.is_empty()).then(|| random.pick(entries))?);
    Some(vec![RecordWrite { action: Action::Delete, path }])
}

fn path(repository: &Repository, entry: &Entry) -> RecordPath {
    repository.path(&entry.key).expect("a key of the tree")
}

/// What is created, as often as it stands here.
const CREATED: [Collection; 12] = [
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Post,
    Collection::Post,
    Collection::Repost,
    Collection::Follow,
    Collection::Block,
    Collection::Document,
];

const GATED_POST: [Collection; 3] =
    [Collection::Post, Collection::Postgate, Collection::Threadgate];
