//! What lies beside a corpus? What is in it, and whose it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wireproof::verify::identity::AccountKeys;

use super::make;
use crate::counts::Counts;
use crate::{BenchError, Task};

/// The name of the file that says which key each account has.
pub const ACCOUNTS_FILE: &str = "accounts.json";

/// What a description says of a corpus: the file of the same name that ends in `.json`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Description {
    /// What a decoder, a verifier or a builder must find.
    counts: Option<Counts>,
    /// What a judge of its commits must find.
    verdicts: Option<Counts>,
    sha256: Option<String>,
    did: Option<String>,
    signing_key: Option<String>,
}

impl Description {
    /// The description of a corpus with this hash; an empty one if there is none.
    pub(super) fn of(corpus: &Path, sha256: &str) -> Result<Self, BenchError> {
        let path = path_of(corpus);
        let Ok(text) = fs::read(&path) else { return Ok(Self::default()) };
        let description: Self = parse(&path, &text)?;
        match &description.sha256 {
            Some(described) if described != sha256 => Err(BenchError::OtherCorpus(path)),
            _ => Ok(description),
        }
    }

    fn owner(&self, corpus: &Path) -> Result<Owner, BenchError> {
        match (self.did.clone(), self.signing_key.clone()) {
            (Some(did), Some(signing_key)) => Ok(Owner { did, signing_key }),
            _ => Err(BenchError::NoOwner(path_of(corpus))),
        }
    }

    /// What every peer must find, where it is said.
    pub(super) fn into_counts(self, task: Task) -> Option<Counts> {
        if task == Task::Commit { self.verdicts } else { self.counts }
    }
}

/// Where a corpus is described.
fn path_of(corpus: &Path) -> PathBuf {
    corpus.with_extension("json")
}

/// What a task is given beside its corpus.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Nothing,
    Owner(Owner),
    Accounts(Accounts),
}

/// Whose repository it is.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Owner {
    pub(crate) did: String,
    /// As a `did:key`.
    pub(crate) signing_key: String,
}

/// The key of each account, as a `did:key`.
pub(crate) type Accounts = BTreeMap<String, String>;

impl Given {
    /// Reads what lies beside a corpus and belongs to `task`.
    pub(super) fn beside(
        corpus: &Path,
        task: Task,
        description: &Description,
    ) -> Result<Self, BenchError> {
        Ok(match task {
            Task::Repo => Self::Owner(description.owner(corpus)?),
            Task::Commit => Self::Accounts(accounts(&corpus.with_file_name(ACCOUNTS_FILE))?),
            _ => Self::Nothing,
        })
    }

    /// The owner, where the task has one.
    pub(super) fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Owner(owner) => Some(owner),
            _ => None,
        }
    }

    /// The accounts, where the task has some.
    pub(super) fn accounts(&self) -> &Accounts {
        static NOBODY: Accounts = Accounts::new();
        match self {
            Self::Accounts(accounts) => accounts,
            _ => &NOBODY,
        }
    }

    /// What a runner loads: the corpus and, in a form that every runner reads, what belongs to it.
    pub(super) fn files(
        &self,
        corpus: PathBuf,
        work_dir: &Path,
    ) -> Result<Vec<PathBuf>, BenchError> {
        let beside = match self {
            Self::Nothing => return Ok(vec![corpus]),
            Self::Owner(_) => path_of(&corpus),
            Self::Accounts(accounts) => {
                let path = work_dir.join("corpora").join(ACCOUNTS_FILE);
                make::write_json(&path, accounts)?;
                path
            }
        };
        Ok(vec![corpus, beside])
    }
}

fn accounts(path: &Path) -> Result<Accounts, BenchError> {
    let text = fs::read(path).map_err(BenchError::io(path))?;
    let keys = AccountKeys::from_json(&text)
        .map_err(|fault| BenchError::Accounts { path: path.to_owned(), fault })?;
    Ok(keys.iter().map(|(did, key)| (did.to_string(), key.to_did_key())).collect())
}

fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, BenchError> {
    serde_json::from_slice(text)
        .map_err(|fault| BenchError::Sidecar { path: path.to_owned(), fault })
}
