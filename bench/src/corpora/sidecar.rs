//! The files that accompany a corpus: its description, its owner and the keys of its accounts.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use protocol::{Accounts, Counts, Owner};
use serde::Deserialize;
use verify::identity::AccountKeys;

use crate::{BenchError, Task};

/// The name of the file with the keys of the accounts.
pub const ACCOUNTS_FILE: &str = "accounts.json";

/// The description of a corpus: the file of the same name that ends in `.json`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Description {
    /// The counts of decoding, verifying or building.
    counts: Option<Counts>,
    /// The counts of the task `commit`.
    verdicts: Option<Counts>,
    sha256: Option<String>,
    did: Option<String>,
    signing_key: Option<String>,
}

impl Description {
    /// The description of a corpus with this hash; an empty one if there is no such file.
    pub(super) fn of(corpus: &Path, sha256: &str) -> Result<Self, BenchError> {
        let path = path_of(corpus);
        let Ok(text) = fs::read(&path) else { return Ok(Self::default()) };
        let description: Self = serde_json::from_slice(&text)
            .map_err(|fault| BenchError::Sidecar { path: path.clone(), fault })?;
        match &description.sha256 {
            Some(described) if described != sha256 => Err(BenchError::OtherCorpus(path)),
            _ => Ok(description),
        }
    }

    fn owner(&self, corpus: &Path) -> Result<Owner, BenchError> {
        match (self.did.clone(), self.signing_key.clone()) {
            (Some(did), Some(signing_key)) => Ok(Owner { did, signing_key, now: None }),
            _ => Err(BenchError::NoOwner(path_of(corpus))),
        }
    }

    /// The reference counts for `task`, if the description has them.
    pub(super) fn into_counts(self, task: Task) -> Option<Counts> {
        if task == Task::Commit { self.verdicts } else { self.counts }
    }
}

fn path_of(corpus: &Path) -> PathBuf {
    corpus.with_extension("json")
}

/// The inputs of a task in addition to its corpus.
#[derive(Clone, Debug)]
pub(super) enum Sidecar {
    None,
    Owner(Owner),
    Accounts(Accounts),
}

impl Sidecar {
    /// Reads the sidecar of a corpus for `task`.
    pub(super) fn read(
        corpus: &Path,
        task: Task,
        description: &Description,
    ) -> Result<Self, BenchError> {
        Ok(match task {
            Task::Repo => Self::Owner(description.owner(corpus)?),
            Task::Commit => Self::Accounts(accounts(&corpus.with_file_name(ACCOUNTS_FILE))?),
            _ => Self::None,
        })
    }

    /// The files that a runner loads: the corpus, and the sidecar in a form that every runner reads.
    pub(super) fn files(
        &self,
        corpus: PathBuf,
        work_dir: &Path,
    ) -> Result<Vec<PathBuf>, BenchError> {
        let sidecar = match self {
            Self::None => return Ok(vec![corpus]),
            Self::Owner(_) => path_of(&corpus),
            Self::Accounts(accounts) => {
                let name = corpus.with_extension(ACCOUNTS_FILE);
                let name = name.file_name().unwrap_or(OsStr::new(ACCOUNTS_FILE));
                let path = work_dir.join("corpora").join(name);
                simnet::corpus::write_json(&path, accounts)?;
                path
            }
        };
        Ok(vec![corpus, sidecar])
    }
}

fn accounts(path: &Path) -> Result<Accounts, BenchError> {
    let text = fs::read(path).map_err(BenchError::io(path))?;
    let keys = AccountKeys::from_json(&text)
        .map_err(|fault| BenchError::Accounts { path: path.to_owned(), fault })?;
    Ok(keys.iter().map(|(did, key)| (did.to_string(), key.to_did_key())).collect())
}
