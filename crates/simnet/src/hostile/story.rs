//! How does a story go wrong? One valid commit, and the next one, spoiled.

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, Exhibit, Rule};
use super::forge::author::Write;
use super::forge::event::Draft;
use super::forge::tree::Leaf;
use super::scene::{RECORDS, Scene};

/// The second commit, spoiled by `change`.
pub(super) fn spoiled(
    scene: &Scene,
    name: &str,
    code: &'static str,
    rule: Rule,
    change: impl FnOnce(&mut Draft),
) -> Case {
    let [one, mut two] = scene.two_commits();
    change(&mut two);
    story(scene, name, code, rule, &[one.to_frame(), two.to_frame()])
}

/// A commit that does `writes` after the first, spoiled by `change`.
pub(super) fn spoiled_writes(
    scene: &Scene,
    name: &str,
    code: &'static str,
    rule: Rule,
    writes: &[Write<'_>],
    change: impl FnOnce(&mut Draft),
) -> Case {
    let mut author = scene.author();
    let one = author.commit(&[Write::Create(&scene.unseen(0))]);
    let mut two = author.commit(writes);
    change(&mut two);
    story(scene, name, code, rule, &[one.to_frame(), two.to_frame()])
}

pub(super) fn story(
    scene: &Scene,
    name: &str,
    code: &'static str,
    rule: Rule,
    frames: &[Vec<u8>],
) -> Case {
    Exhibit::frames(scene.account(), name, frames).refused(code, rule)
}

/// The likes that the account of [`Scene::author`] has.
pub(super) fn seen(scene: &Scene) -> Vec<Leaf> {
    scene.some_leaves(RECORDS)
}

pub(super) fn nobodys() -> Cid {
    Cid::of(Codec::DagCbor, b"nobody has this block")
}
