//! The order of rows and stages in reports.

use crate::{Row, Task};

/// Sorts rows by task and group; within a group equal work comes before other work, and the fastest first.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        let rank =
            |row: &Row| (position(&row.task, &Task::ALL.map(Task::name)), group_rank(&row.group()));
        let speed = |row: &Row| row.median().unwrap_or(0.0);
        let name = |row: &Row| (row.peer.clone(), row.variant.clone());
        rank(a)
            .cmp(&rank(b))
            .then(b.is_ranked().cmp(&a.is_ranked()))
            .then(speed(b).total_cmp(&speed(a)))
            .then_with(|| name(a).cmp(&name(b)))
    });
}

/// The rank of a group: groups on the first corpus before groups on the second.
fn group_rank(group: &str) -> (bool, usize, String) {
    let (group, corpus) = group.split_once('@').unwrap_or((group, ""));
    let (known, name) = position(group, &GROUPS);
    (!corpus.is_empty(), known, name + corpus)
}

/// The sorting key that puts known names in their order before the others in alphabetical order.
pub(super) fn position(name: &str, known: &[&str]) -> (usize, String) {
    let at = known.iter().position(|known| *known == name).unwrap_or(known.len());
    (at, name.to_owned())
}

/// Checked work first, then unchecked, then work that only some peers do. For signatures, the most work first;
/// for trees, building before lookups.
const GROUPS: [&str; 21] = [
    "verified",
    "unverified",
    "validate",
    "full",
    "crypto",
    "preparsed",
    "verify",
    "insert-root/ascending",
    "insert-root/ascending/builder",
    "insert-root/shuffled",
    "bulk",
    "lookup",
    "lookup/batch",
    "lookup/indexed",
    "lookup/indexed/changing",
    "mixed",
    "total",
    "total/load-car",
    "total/rebuild",
    "repo",
    "frames",
];

/// The stages of repositories, then batches, kinds, and classes of size and tags.
pub(super) const STAGES: [&str; 25] = [
    "parse",
    "signature",
    "walk",
    "rebuild",
    "1",
    "10",
    "100",
    "1000",
    "kind-0",
    "kind-1",
    "kind-3",
    "kind-4",
    "kind-7",
    "kind-10002",
    "kind-30023",
    "tiny",
    "small",
    "medium",
    "large",
    "huge",
    "none",
    "few",
    "moderate",
    "many",
    "massive",
];
