//! Why is there no run at all? A peer that fails is part of the results, not one of these.

use std::io;
use std::path::PathBuf;

use wireproof::atproto::corpus::CorpusError;
use wireproof::crypto::KeyError;
use wireproof::nostr::DecodeError;
use wireproof::verify::identity::AccountKeysError;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A peer was asked for that nobody knows.
    #[error("no peer is called {asked:?}; there are: {}", known.join(", "))]
    UnknownPeer {
        /// The name that was asked for.
        asked: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The corpus that was named is not what its task works on.
    #[error("{}: {fault}", path.display())]
    Corpus {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: CorpusFault,
    },
    /// A folder was named that has no corpus of a task in it.
    #[error("{}: no {} in this folder", dir.display(), names.join(" or "))]
    NoCorpus {
        /// The folder.
        dir: PathBuf,
        /// What the corpus may be called.
        names: &'static [&'static str],
    },
    /// A file was named, which is the corpus of one task, but the plan has several.
    #[error("{}: one file is the corpus of one task; say of which", .0.display())]
    OneFileForManyTasks(PathBuf),
    /// What lies beside a corpus does not describe it.
    #[error("{}: not the description of a corpus: {fault}", path.display())]
    Sidecar {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: serde_json::Error,
    },
    /// What lies beside a corpus does not tell the keys of its accounts.
    #[error("{}: {fault}", path.display())]
    Accounts {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: AccountKeysError,
    },
    /// What lies beside a corpus tells of other bytes.
    #[error("{}: describes another corpus than the one beside it; remove one of them", .0.display())]
    OtherCorpus(PathBuf),
    /// Nobody says whose repository a corpus is.
    #[error("{}: this must say whose repository it is: its did, and its signing_key as a did:key", .0.display())]
    NoOwner(PathBuf),
    /// A file or folder could not be read or written.
    #[error("{}: {fault}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        fault: io::Error,
    },
}

/// Why a file is not the corpus of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusFault {
    /// It is not exactly the frames that it states.
    #[error("not a file of frames: {0}")]
    Frames(#[from] CorpusError),
    /// It is not exactly the signed commits that it states.
    #[error("not a file of signed commits")]
    Commits,
    /// It is not exactly the records, the order and the lookups that it states.
    #[error("not a file of records to insert and look up")]
    Records,
    /// Nobody can have signed it.
    #[error("the signing_key beside it is none: {0}")]
    Key(#[from] KeyError),
    /// A line is no Nostr event.
    #[error("event {at}, counted from 0, is none: {fault}")]
    Event {
        /// Its place.
        at: usize,
        /// What is wrong with it.
        fault: DecodeError,
    },
    /// It is not text.
    #[error("not lines of UTF-8")]
    Lines,
}

impl BenchError {
    /// Puts the path to what the system says.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |fault| Self::Io { path, fault }
    }
}
