//! The tasks: kinds of work with units that are the same for every peer.

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Decoding firehose frames into values: header, payload, CAR, every block.
    Decode,
    /// Verifying the signatures of commits.
    Sigs,
    /// Verifying the BIP-340 signatures of Nostr events.
    Schnorr,
    /// Inserting records into a Merkle search tree, and looking them up.
    Mst,
    /// Verifying a whole repository: every hash, the signature, the tree.
    Repo,
    /// Verifying commit frames: decoding, signature, operations inverted in the tree.
    Commit,
    /// Encoding Nostr events in a format.
    NostrSerialize,
    /// Decoding Nostr events from a format.
    NostrDeserialize,
    /// Decoding Nostr events and verifying id and signature.
    NostrValidated,
    /// Reading single fields of encoded events.
    NostrFields,
    /// Decoding events grouped by kind.
    NostrByKind,
    /// Decoding events grouped by size and by tags.
    NostrByCategory,
    /// Decoding batches of events.
    NostrBatch,
    /// Sizes of events in a format; not timed.
    NostrSize,
    /// Rejecting malformed repositories and frames; not timed.
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

    /// The tasks of a default run: their rows are quoted most, and together they take some minutes.
    pub const DEFAULT: [Self; 8] = [
        Self::Decode,
        Self::Sigs,
        Self::Schnorr,
        Self::Mst,
        Self::Repo,
        Self::Commit,
        Self::NostrValidated,
        Self::NostrSize,
    ];

    /// The tasks on Nostr events in their formats.
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

    /// The task with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// The name of a unit of work.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Decode | Self::Commit => "frame",
            Self::Sigs => "commit",
            Self::Mst => "record",
            Self::Repo => "repository",
            Self::Hostile => "case",
            _ => "event",
        }
    }

    /// Whether variants that differ after a `/` are different work, not the same work done in another way.
    pub fn has_distinct_variants(self) -> bool {
        matches!(self, Self::Mst | Self::Repo | Self::NostrFields | Self::Hostile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_names_the_tasks_of_a_default_run() {
        let tasks = Task::DEFAULT.map(|task| format!("`{}`", task.name())).join(", ");
        assert!(crate::METHOD.contains(&format!("| default | {tasks} |")), "{tasks}");
    }
}
