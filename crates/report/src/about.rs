//! Titles and descriptions of tasks and groups of rows.

use results::Task;

/// A title and a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
}

/// The title and description of a task.
pub(crate) fn task(name: &str) -> Option<About> {
    let (_, title, lead) = TASKS.into_iter().find(|(task, ..)| *task == name)?;
    Some(About { title, lead })
}

/// Whether the harness of this version knows the task, and so how its rows are ranked.
pub(crate) fn is_known(name: &str) -> bool {
    Task::from_name(name).is_some() || task(name).is_some()
}

/// The description of a group, where its name needs one.
pub(crate) fn group(task: &str, group: &str) -> Option<&'static str> {
    let known = GROUPS.into_iter().find(|(of, name, _)| *of == task && *name == group);
    known.map(|(_, _, words)| words)
}

const TASKS: [(&str, &str, &str); 15] = [
    (
        "decode",
        "Decoding the firehose",
        "Decode a frame into values: header, payload, CAR slice and every block.",
    ),
    (
        "sigs",
        "Signatures of commits",
        "Verify the signature of a commit with its account’s key, on secp256k1 or P-256.",
    ),
    (
        "schnorr",
        "Signatures of Nostr events",
        "Verify the BIP-340 signature of an event with its author’s key.",
    ),
    (
        "mst",
        "Merkle search trees",
        "Insert records into a tree and compute its root; look records up.",
    ),
    (
        "repo",
        "Whole repositories",
        "Verify the archive of a repository: every hash, the signature, the tree. Less time is better.",
    ),
    ("commit", "Verifying commits", "Verify a commit frame by every check that needs no network."),
    (
        "hostile",
        "Hostile input",
        "Malformed repositories and frames, each in a process of its own. Not timed: who rejects them?",
    ),
    ("nostr-serialize", "Writing Nostr events", "Encode an event in a format."),
    ("nostr-deserialize", "Reading Nostr events", "Decode an event from a format."),
    (
        "nostr-validated",
        "Reading and verifying Nostr events",
        "Decode an event from a format and verify its id and signature.",
    ),
    (
        "nostr-fields",
        "Some fields of Nostr events",
        "Read a few fields of an encoded event without decoding the rest.",
    ),
    ("nostr-by-kind", "Nostr events by kind", "Decode events of one kind."),
    (
        "nostr-by-category",
        "Nostr events by shape",
        "Decode events of one shape: tiny, long, or with many tags.",
    ),
    ("nostr-size", "Sizes of Nostr events", "Bytes per event in each format, bare and compressed."),
    ("nostr-batch", "Nostr events in batches", "Decode many events from one buffer."),
];

const GROUPS: [(&str, &str, &str); 20] = [
    ("decode", "verified", "every hash checked"),
    ("decode", "unverified", "hashes trusted"),
    ("decode", "validate", "checked, no values built"),
    ("decode", "hash-only", "hashes alone"),
    ("sigs", "full", "from the commit’s bytes"),
    ("sigs", "crypto", "unsigned bytes given"),
    ("sigs", "preparsed", "unsigned bytes and parsed key given"),
    ("sigs", "full@mixed", "both curves, from the commit’s bytes"),
    ("sigs", "crypto@mixed", "both curves, unsigned bytes given"),
    ("sigs", "preparsed@mixed", "both curves, parsed key given"),
    ("mst", "insert-root/ascending", "records in the order of keys"),
    (
        "mst",
        "insert-root/ascending/builder",
        "records in the order of keys, through an append buffer",
    ),
    ("mst", "insert-root/shuffled", "records in any order"),
    ("mst", "bulk", "all records at once"),
    ("mst", "lookup/batch", "256 keys at a time"),
    ("mst", "lookup/indexed", "in a hash index that each pass builds"),
    ("mst", "lookup/indexed/changing", "in a hash index, a record replaced every 64 lookups"),
    ("mst", "mixed", "inserts, updates, deletes and lookups interleaved"),
    ("repo", "total", "verified as it stands"),
    ("repo", "total/rebuild", "with the tree rebuilt"),
];
