//! Which kinds of work can be measured?

/// A kind of work, with units that are the same for every peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Firehose frames into values: header, payload, CAR, every block.
    Decode,
    /// Signed commits: whose key is it, and is the signature the key's?
    Sigs,
    /// Nostr events: is the BIP-340 signature the author's?
    Schnorr,
    /// Records into a Merkle search tree, to its root, and lookups in it.
    Mst,
    /// A whole repository: every hash, the signature, the tree.
    Repo,
    /// Commit frames judged: decoded, signed, undone in the tree.
    Commit,
    /// Nostr events into the bytes of a format.
    NostrSerialize,
    /// Bytes of a format into Nostr events.
    NostrDeserialize,
    /// The same, each event's id and signature checked.
    NostrValidated,
    /// Single fields of events, from their bytes.
    NostrFields,
    /// Bytes into events, kind by kind.
    NostrByKind,
    /// The same, by size and by tags.
    NostrByCategory,
    /// Batches of events from their bytes.
    NostrBatch,
    /// How long events are in a format. No time is taken.
    NostrSize,
    /// Malformed repositories and frames: who refuses them? No time is taken.
    Hostile,
}

impl Task {
    /// All tasks, in the order of the report.
    pub const ALL: [Self; 15] = [
        Self::Decode,
        Self::Sigs,
        Self::Schnorr,
        Self::Mst,
        Self::Repo,
        Self::Commit,
        Self::NostrSerialize,
        Self::NostrDeserialize,
        Self::NostrValidated,
        Self::NostrFields,
        Self::NostrByKind,
        Self::NostrByCategory,
        Self::NostrBatch,
        Self::NostrSize,
        Self::Hostile,
    ];

    /// The tasks on Nostr events in every format.
    pub const NOSTR: [Self; 8] = [
        Self::NostrSerialize,
        Self::NostrDeserialize,
        Self::NostrValidated,
        Self::NostrFields,
        Self::NostrByKind,
        Self::NostrByCategory,
        Self::NostrBatch,
        Self::NostrSize,
    ];

    /// The name in requests, results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Sigs => "sigs",
            Self::Schnorr => "schnorr",
            Self::Mst => "mst",
            Self::Repo => "repo",
            Self::Commit => "commit",
            Self::NostrSerialize => "nostr-serialize",
            Self::NostrDeserialize => "nostr-deserialize",
            Self::NostrValidated => "nostr-validated",
            Self::NostrFields => "nostr-fields",
            Self::NostrByKind => "nostr-by-kind",
            Self::NostrByCategory => "nostr-by-category",
            Self::NostrBatch => "nostr-batch",
            Self::NostrSize => "nostr-size",
            Self::Hostile => "hostile",
        }
    }

    /// The task of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// What is counted a second, or judged.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Decode | Self::Commit => "frame",
            Self::Sigs => "commit",
            Self::Schnorr
            | Self::NostrSerialize
            | Self::NostrDeserialize
            | Self::NostrValidated
            | Self::NostrFields
            | Self::NostrByKind
            | Self::NostrByCategory
            | Self::NostrBatch
            | Self::NostrSize => "event",
            Self::Mst => "record",
            Self::Repo => "repository",
            Self::Hostile => "case",
        }
    }

    /// Whether a part of a variant's name behind a `/` says that it does other work, not the same work
    /// in another way.
    pub(crate) fn has_work_in_every_name(self) -> bool {
        matches!(self, Self::Mst | Self::Repo | Self::NostrFields | Self::Hostile)
    }
}
