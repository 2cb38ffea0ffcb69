//! What does an account's repository hold that is out of step?
//!
//! An account is out of step when a valid event of it does not continue what was known: something in
//! between was missed. Then its repository is fetched from its own host, as a relay would only lead
//! there, and proved whole; what has come of the account meanwhile waits, in order and within bounds,
//! and goes on from there.
//!
//! So many are fetched at once, and so many from one host; an account has a few tries a minute, and
//! longer and longer rests when they fail. What waits for its turn, or on a host that does not answer,
//! waits in tasks of its own and holds up nobody else.
//!
//! Source: the sync specification, version 1.1, on recovery.

mod backoff;
mod error;
mod resyncer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempPath;
use verify::repository;
use verify::sync::Head;

use crate::http::Limits;
use crate::identity::Resolver;
use crate::xrpc;

pub use error::ResyncError;
pub(super) use resyncer::Resyncer;

/// How repositories are fetched anew.
#[derive(Clone, Debug)]
pub struct ResyncOptions {
    /// Who asks hosts.
    pub client: xrpc::Client,
    /// Who knows where an account is hosted, and its key.
    pub resolver: Resolver,
    /// Where archives are kept while they are needed. The system's folder for temporary files.
    pub folder: PathBuf,
    /// FlowLimits of an archive: 512 MiB within five minutes, a KiB a second and half a minute of silence.
    pub limits: Limits,
    /// What is asked of a repository.
    pub repository: repository::Options,
    /// How many repositories are fetched at once. 16.
    pub max_fetches: usize,
    /// How many of them from one host. Two.
    pub max_fetches_per_host: usize,
    /// How many accounts may be in line; others stay out of step until their next event. 4,096.
    pub max_queued: usize,
    /// How often it is tried before an account is given up for a while. Three times.
    pub attempts: u32,
    /// Whether the repository of an account is fetched too that was not known before. No.
    pub on_first_seen: bool,
    /// Accounts that were out of step when an earlier run ended: they are fetched at once, since nobody
    /// knows when they say something again. None.
    pub desynchronized: Vec<Box<str>>,
}

impl ResyncOptions {
    /// The defaults, with these two.
    pub fn new(client: xrpc::Client, resolver: Resolver) -> Self {
        let max_time = Duration::from_secs(300);
        Self {
            client,
            resolver,
            folder: std::env::temp_dir(),
            limits: Limits { max_bytes: 512 << 20, max_time, ..Limits::REPOSITORY },
            repository: repository::Options::default(),
            max_fetches: 16,
            max_fetches_per_host: 2,
            max_queued: 4096,
            attempts: 3,
            on_first_seen: false,
            desynchronized: Vec::new(),
        }
    }
}

/// A repository that was fetched anew, and proved whole.
#[derive(Debug)]
pub struct ResyncedRepo {
    /// The account.
    pub did: Box<str>,
    /// Its commit, from which the account goes on.
    pub head: Head,
    /// How many records it has.
    pub records: u64,
    /// How many bytes the archive has.
    pub bytes: u64,
    /// The host that gave it.
    pub host: Box<str>,
    path: TempPath,
}

impl ResyncedRepo {
    /// One of which nothing was proved.
    #[cfg(test)]
    pub(super) fn new(did: &str, head: Head, path: TempPath) -> Self {
        Self { did: did.into(), head, records: 0, bytes: 0, host: "pds.test".into(), path }
    }

    /// The archive, to be read with [`atproto::repo`]. It is removed when nobody holds this any longer.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What became of an attempt to mend an account.
pub(super) type ResyncResult = Result<Arc<ResyncedRepo>, ResyncError>;
