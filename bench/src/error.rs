//! Errors that prevent a run. A peer that fails is part of the results, not an error.

use std::io;
use std::path::PathBuf;

use atproto::corpus::CorpusError;
use crypto::KeyError;
use nostr::DecodeError;
use simnet::corpus::FileError;
use verify::identity::AccountKeysError;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A peer does not exist.
    #[error("unknown peer {requested:?}; known peers: {}", known.join(", "))]
    UnknownPeer {
        /// The requested name.
        requested: String,
        /// The names of all peers.
        known: Vec<String>,
    },
    /// A corpus is not a valid input of its task.
    #[error("{}: {fault}", path.display())]
    Corpus {
        /// The file.
        path: PathBuf,
        /// The fault.
        fault: CorpusFault,
    },
    /// A corpus folder lacks the corpus of a task.
    #[error("{}: no {} in this folder", dir.display(), names.join(" or "))]
    NoCorpus {
        /// The folder.
        dir: PathBuf,
        /// The names that the corpus may have.
        names: &'static [&'static str],
    },
    /// One corpus file was given for several tasks.
    #[error("{}: one file is the corpus of one task; name the task", .0.display())]
    OneFileForManyTasks(PathBuf),
    /// The sidecar file of a corpus does not describe it.
    #[error("{}: not the description of a corpus: {fault}", path.display())]
    Sidecar {
        /// The file.
        path: PathBuf,
        /// The fault.
        fault: serde_json::Error,
    },
    /// The accounts file of a corpus has no keys.
    #[error("{}: {fault}", path.display())]
    Accounts {
        /// The file.
        path: PathBuf,
        /// The fault.
        fault: AccountKeysError,
    },
    /// The sidecar file describes a corpus with another hash.
    #[error("{}: describes another corpus than the one beside it; remove one of them", .0.display())]
    OtherCorpus(PathBuf),
    /// The sidecar file of a repository lacks its owner.
    #[error("{}: the owner is missing: add its did, and its signing_key as a did:key", .0.display())]
    NoOwner(PathBuf),
    /// Rust peers of a profile for tests would be measured.
    #[error(
        "Rust peers with the profile {0} are not what their users build: unset WIREPROOF_RUST_PROFILE or add --quick"
    )]
    RustProfile(String),
    /// A file or folder could not be read or written.
    #[error("{}: {fault}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        fault: io::Error,
    },
}

/// Why a file is not the corpus of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusFault {
    /// Its content is not exactly the stated number of frames.
    #[error("not a file of frames: {0}")]
    Frames(#[from] CorpusError),
    /// Its content is not exactly the stated number of signed commits.
    #[error("not a file of signed commits")]
    Commits,
    /// Its content is not exactly the stated records, order and lookups.
    #[error("not a file of records to insert and look up")]
    Records,
    /// The owner's key is not a key.
    #[error("the signing_key in the sidecar file is not a key: {0}")]
    Key(#[from] KeyError),
    /// A line is not a Nostr event.
    #[error("event {at}, counted from 0, is invalid: {fault}")]
    Event {
        /// The index of the event.
        at: usize,
        /// The fault.
        fault: DecodeError,
    },
    /// It is not text.
    #[error("not lines of UTF-8")]
    Lines,
}

impl From<FileError> for BenchError {
    fn from(FileError { path, error: fault }: FileError) -> Self {
        Self::Io { path, fault }
    }
}

impl BenchError {
    /// Makes a function that adds `path` to the system's error.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |fault| Self::Io { path, fault }
    }
}
