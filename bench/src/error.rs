//! Why is there no run at all? A peer that fails is part of the results, not one of these.

use std::io;
use std::path::PathBuf;

use wireproof::atproto::corpus::CorpusError;

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
    /// The corpus that was named is not a file of frames.
    #[error("{}: not a file of frames: {fault}", path.display())]
    Corpus {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: CorpusError,
    },
    /// A folder was named that has no file of frames in it.
    #[error("{}: no firehose-frames.bin or frames.bin in this folder", .0.display())]
    NoCorpus(PathBuf),
    /// What lies beside a corpus is not its counts.
    #[error("{}: not the counts of a corpus: {fault}", path.display())]
    Sidecar {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: serde_json::Error,
    },
    /// What lies beside a corpus tells of other bytes.
    #[error("{}: describes another corpus than the one beside it; remove one of them", .0.display())]
    OtherCorpus(PathBuf),
    /// A file or folder could not be read or written.
    #[error("{}: {fault}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        fault: io::Error,
    },
}

impl BenchError {
    /// Puts the path to what the system says.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |fault| Self::Io { path, fault }
    }
}
