//! The changes of an event to the records that consumers have of its account.

use kernels::sha256::Digest;

/// The changes of an event to the records that consumers have of its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordEffects {
    pub(crate) source: Source,
    /// The paths of the records that change, with their new hashes.
    pub(crate) changes: Vec<(Box<str>, Option<Hash>)>,
}

/// The origin of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Commit,
    Repository { is_whole: bool, is_last: bool },
    Deletion,
}

/// The start of the hash of a record.
pub(crate) type Hash = [u8; 16];

impl RecordEffects {
    /// The effects of a commit. They are remembered from the first history of the account on, or from
    /// [`Outbox::await_histories`](crate::Outbox::await_histories).
    pub fn of_commit() -> Self {
        Self { source: Source::Commit, changes: Vec::new() }
    }

    /// The effects of a part of a repository: of the whole, or of its difference to the records before.
    pub fn of_repository(is_whole: bool) -> Self {
        let source = Source::Repository { is_whole, is_last: false };
        Self { source, changes: Vec::new() }
    }

    /// The effects of a deletion of the account that its own server has confirmed: consumers delete all of its records, so
    /// that they have none of them, and its next repository is delivered as a whole.
    pub fn of_deletion() -> Self {
        Self { source: Source::Deletion, changes: Vec::new() }
    }

    /// Marks the last part of a repository: consumers have all of it then.
    pub fn complete(&mut self) {
        if let Source::Repository { is_last, .. } = &mut self.source {
            *is_last = true;
        }
    }

    /// Adds a record that is created or updated, with the hash in its CID.
    pub fn put(&mut self, path: &str, hash: &Digest) {
        self.changes.push((path.into(), Some(start_of(hash))));
    }

    /// Adds a record that is deleted.
    pub fn delete(&mut self, path: &str) {
        self.changes.push((path.into(), None));
    }
}

pub(crate) fn start_of(hash: &Digest) -> Hash {
    hash.first_chunk().copied().expect("a hash has 32 bytes")
}
