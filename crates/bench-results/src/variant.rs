//! The meaning of the parts of a variant's name: one at a time or many, memory, order, index, corpus, a forced
//! back end.
//!
//! `bench/METHOD.md`, "Names of rows", has the same table for readers.

use crate::Task;

/// The labels of the known parts of a variant of `task`, in the order of the name. A variant without a batch is
/// labelled `one at a time` where other rows of its task have batches.
pub(crate) fn labels(task: &str, variant: &str) -> Vec<String> {
    let mut labels: Vec<String> = parts(variant).filter_map(|part| label(task, part)).collect();
    if has_batches(task) && !is_batch(variant) {
        labels.insert(0, "one at a time".to_owned());
    }
    labels
}

/// The parts of a variant's name; a corpus begins with `@`.
pub(crate) fn parts(variant: &str) -> impl Iterator<Item = &str> {
    let (way, corpus) = match variant.find('@') {
        Some(at) => variant.split_at(at),
        None => (variant, ""),
    };
    way.split('/').chain([corpus]).filter(|part| !part.is_empty())
}

/// The label of a part of a variant's name; `None` if the part is the work itself.
pub(crate) fn label(task: &str, part: &str) -> Option<String> {
    if let Some(back_end) = part.strip_prefix(FORCED) {
        return Some(format!("SHA-256 forced to {back_end}"));
    }
    let label = known_label(task, part)?;
    let in_lanes = if part.starts_with(BATCH) && has_lanes(task) { LANES } else { "" };
    Some(format!("{label}{in_lanes}"))
}

/// The label of a variant's batches: how many units a call gets, and the memory that is kept. `None` for one unit
/// per call.
pub(crate) fn batch_label(task: &str, variant: &str) -> Option<&'static str> {
    parts(variant).find(|part| part.starts_with(BATCH)).and_then(|part| known_label(task, part))
}

fn known_label(task: &str, part: &str) -> Option<&'static str> {
    let of_task = LABELS.iter().find(|(of, name, _)| *of == task && *name == part);
    let of_any = || LABELS.iter().find(|(of, name, _)| of.is_empty() && *name == part);
    of_task.or_else(of_any).map(|(_, _, label)| *label)
}

/// Whether the work uses something that its caller makes before or keeps: cached keys, an index, a builder.
pub(crate) fn is_prepared(variant: &str) -> bool {
    parts(variant).any(|part| PREPARED.contains(&part))
}

/// What a prepared way of work uses, with the units per call if there are many; empty for a plain one.
pub(crate) fn prepared_label(task: &str, variant: &str) -> String {
    let is_of_label = |part: &&str| part.starts_with(BATCH) || PREPARED.contains(part);
    let labels = parts(variant).filter(is_of_label).filter_map(|part| known_label(task, part));
    if is_prepared(variant) { labels.collect::<Vec<_>>().join(", ") } else { String::new() }
}

/// The work of a variant of the group `group`, whether plain, in batches or prepared.
pub(crate) fn work(group: &str) -> String {
    let is_way = |part: &&str| part.starts_with(BATCH) || PREPARED.contains(part);
    let (corpora, ways): (Vec<&str>, Vec<&str>) =
        parts(group).partition(|part| part.starts_with('@'));
    let plain: Vec<&str> = ways.into_iter().take_while(|part| !is_way(part)).collect();
    plain.join("/") + &corpora.concat()
}

/// Whether a call gets many units.
pub(crate) fn is_batch(variant: &str) -> bool {
    parts(variant).any(|part| part.starts_with(BATCH))
}

/// Whether a back end is forced instead of the one that users get.
pub(crate) fn is_forced(variant: &str) -> bool {
    parts(variant).any(|part| part.starts_with(FORCED))
}

fn has_batches(task: &str) -> bool {
    use Task::{Commit, Decode, NostrValidated, Schnorr, Sigs};
    [Decode, Sigs, Schnorr, NostrValidated, Commit].iter().any(|it| it.name() == task)
}

/// Whether batches of signatures are verified, in lanes where the processor has them.
fn has_lanes(task: &str) -> bool {
    [Task::Sigs, Task::Schnorr, Task::NostrValidated].iter().any(|it| it.name() == task)
}

/// The beginning of the part that says that a call gets many units.
const BATCH: &str = "batch";

/// Parts that say that the work uses something that its caller makes before or keeps.
const PREPARED: [&str; 5] = ["cached", "batch-cached", "indexed", "changing", "builder"];

/// The beginning of the part that names a forced back end.
pub const FORCED: &str = "forced-";

/// A task, or none for all others; a part of a name; its label.
const LABELS: [(&str, &str, &str); 16] = [
    ("decode", "batch", "batch of 32 frames"),
    ("nostr-validated", "batch", "512 at a time"),
    ("", "batch", "256 at a time"),
    ("", "batch-cached", "256 at a time, keys cached"),
    ("", "cached", "keys cached"),
    ("", "arena-reuse", "memory kept"),
    ("", "alloc-per-frame", "new memory for each frame"),
    ("", "ascending", "in key order"),
    ("", "shuffled", "in any order"),
    ("", "builder", "appends buffered"),
    ("", "bulk", "from a list in key order"),
    ("", "indexed", "index built"),
    ("", "changing", "a record replaced every 64"),
    ("nostr-size", "@real", "real events"),
    ("", "@mixed", "keys of both curves, a tenth on P-256"),
    ("", "@many-accounts", "100,000 accounts, a tenth of that in quick runs, 2 % on P-256"),
];

/// The addition to the label of a batch of signatures.
const LANES: &str = ", in lanes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_how_many_at_a_time_in_which_memory_and_of_which_corpus() {
        let label = |task, variant| labels(task, variant).join(", ");
        assert_eq!(label("decode", "verified/arena-reuse"), "one at a time, memory kept");
        assert_eq!(label("decode", "verified/batch"), "batch of 32 frames");
        assert_eq!(
            label("decode", "verified/batch/forced-portable"),
            "batch of 32 frames, SHA-256 forced to portable"
        );
        assert!(label("sigs", "full/batch-cached@mixed").starts_with("256 at a time, keys cached"));
        assert!(label("sigs", "full@mixed").starts_with("one at a time, keys of both curves"));
        assert_eq!(label("mst", "insert-root/ascending/builder"), "in key order, appends buffered");
        assert_eq!(label("mst", "lookup"), "");
        assert_eq!(label("mst", "lookup/batch"), "256 at a time");
        assert!(label("schnorr", "verify/batch").ends_with(", in lanes"));
        assert_eq!(label("sigs", "full/cached"), "one at a time, keys cached");
    }

    #[test]
    fn the_label_of_a_batch_says_how_many_units_a_call_gets_and_no_more() {
        assert_eq!(
            batch_label("decode", "verified/batch/forced-portable"),
            Some("batch of 32 frames")
        );
        assert_eq!(
            batch_label("sigs", "full/batch-cached@mixed"),
            Some("256 at a time, keys cached")
        );
        assert_eq!(batch_label("nostr-validated", "json/batch"), Some("512 at a time"));
        assert_eq!(batch_label("sigs", "full@mixed"), None);
    }

    #[test]
    fn batches_and_forced_back_ends_are_told_by_a_whole_part_of_the_name() {
        assert!(is_batch("full/batch") && is_batch("full/batch-cached@mixed"));
        assert!(!is_batch("nostr-batch") && !is_batch("full@batch"));
        assert!(is_forced("verified/batch/forced-avx512-x16") && !is_forced("verified/batch"));
    }

    #[test]
    fn a_cache_an_index_and_a_builder_are_named_and_are_no_plain_way() {
        let ways = [
            ("sigs", "full/cached@mixed", "keys cached", "full@mixed"),
            ("sigs", "full/batch-cached", "256 at a time, keys cached", "full"),
            ("mst", "lookup/indexed", "index built", "lookup"),
            ("mst", "insert-root/ascending/builder", "appends buffered", "insert-root/ascending"),
        ];
        for (task, variant, label, plain) in ways {
            assert!(is_prepared(variant), "{variant}");
            assert_eq!(prepared_label(task, variant), label);
            assert_eq!(work(variant), plain);
        }
        for plain in ["full/batch", "verified/arena-reuse", "lookup", "bulk"] {
            assert!(!is_prepared(plain) && prepared_label("mst", plain).is_empty(), "{plain}");
        }
        assert_eq!(work("lookup/batch"), "lookup");
        assert_eq!(work("total/load-car"), "total/load-car");
    }

    #[test]
    fn every_label_is_in_the_method() {
        for (_, part, _) in LABELS {
            assert!(crate::METHOD.contains(&format!("`{part}`")), "{part}");
        }
    }
}
