//! The names of the checks of the tasks, with their letters in the tables.

/// A check's letter and its name in `describe`.
pub type Check = (char, &'static str);

/// The checks of a strict decoder of frames and blocks, the hash first.
pub const DECODE: [Check; 11] = [
    ('H', "cid-sha256"),
    ('O', "key-order"),
    ('D', "duplicate-keys"),
    ('M', "minimal-heads"),
    ('U', "utf8"),
    ('I', "indefinite-lengths"),
    ('F', "float-canonical"),
    ('T', "only-tag-42"),
    ('L', "link-shape"),
    ('E', "trailing-bytes"),
    ('B', "depth-bound"),
];

/// The checks of the task `sigs`.
pub const SIGNATURES: [Check; 3] = [('S', "low-s"), ('C', "strict-cbor"), ('R', "raw-bytes")];

/// The checks of the task `repo` in addition to the decoder's.
pub const REPOSITORY: [Check; 9] = [
    ('s', "low-s"),
    ('o', "mst-order"),
    ('l', "mst-layer"),
    ('p', "mst-prefix"),
    ('e', "mst-shape"),
    ('1', "mst-once"),
    ('c', "complete"),
    ('r', "record-path"),
    ('v', "record-cbor"),
];

/// The checks of the task `commit` in addition to the decoder's and the repository checks.
pub const COMMIT: [Check; 5] = [
    ('f', "event-fields"),
    ('u', "op-records"),
    ('i', "inversion"),
    ('h', "chain"),
    ('t', "clock"),
];

/// The checks of a strict decoder of Nostr events.
pub const EVENT: [Check; 7] = [
    ('U', "utf8"),
    ('E', "trailing-bytes"),
    ('X', "hex-lower"),
    ('K', "kind-range"),
    ('D', "duplicate-fields"),
    ('M', "minimal-heads"),
    ('L', "limits"),
];

/// The checks of the task `nostr-validated` in addition to the decoder's.
pub const VALIDATED: [Check; 2] = [('i', "id"), ('s', "signature")];

/// The checks that distinguish the rows of a task; empty where every peer must make the same checks.
pub fn of_task(task: &str) -> Vec<Check> {
    match task {
        "decode" => DECODE.to_vec(),
        "sigs" => SIGNATURES.to_vec(),
        "repo" => [&DECODE[..], &REPOSITORY].concat(),
        "commit" => [&DECODE[..], &REPOSITORY, &COMMIT].concat(),
        "nostr-deserialize" | "nostr-by-kind" | "nostr-by-category" | "nostr-batch" => {
            EVENT.to_vec()
        }
        "nostr-validated" => [&EVENT[..], &VALIDATED].concat(),
        _ => Vec::new(),
    }
}

/// The names of some checks.
pub fn names(checks: &[Check]) -> Vec<&'static str> {
    checks.iter().map(|(_, name)| *name).collect()
}
