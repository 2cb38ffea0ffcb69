//! The verdict on an account of an archive.

use serde::Serialize;

/// The verdict on an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AccountVerdict {
    /// The account.
    pub did: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The code of the broken rule, or the class of the failure; `None` for a proved account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why the account is not proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether another attempt may succeed.
    #[serde(skip)]
    pub is_temporary: bool,
    /// The host that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The revision of the signed commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// The latest revision in the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_rev: Option<String>,
    /// Number of records in the archive.
    pub record_count: u64,
    /// Number of tree nodes that were fetched to find the differences.
    pub fetched_node_count: u64,
    /// The differences.
    #[serde(flatten)]
    pub differences: Differences,
}

impl AccountVerdict {
    /// Makes the verdict one that a proof is refused.
    pub(crate) fn refuse(&mut self, code: &str, message: &str) {
        self.verdict = Verdict::Unproved;
        (self.code, self.message) = (Some(code.to_owned()), Some(message.to_owned()));
    }
}

/// The kind of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// The records are the ones that the account has signed.
    Proved,
    /// The records differ, and the signed commit is later than the archive.
    Newer,
    /// The records differ from a commit that is not later than the archive.
    Wrong,
    /// The account is not served: it is deactivated, deleted or taken down.
    Inactive,
    /// The account could not be checked.
    Unproved,
}

/// The paths of records that differ: all are counted, and the first ones are named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Differences {
    /// Records that the archive has and the signed tree has not.
    #[serde(skip_serializing_if = "Paths::is_empty")]
    pub unsigned: Paths,
    /// Records whose bytes are not the signed ones.
    #[serde(skip_serializing_if = "Paths::is_empty")]
    pub altered: Paths,
    /// Signed records that the archive has not.
    #[serde(skip_serializing_if = "Paths::is_empty")]
    pub missing: Paths,
}

impl Differences {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.unsigned.is_empty() && self.altered.is_empty() && self.missing.is_empty()
    }

    /// The code of the first kind of differences.
    pub fn code(&self) -> Option<&'static str> {
        let kinds = [
            (&self.unsigned, "jetstream/unsigned-record"),
            (&self.altered, "jetstream/altered-record"),
            (&self.missing, "jetstream/missing-record"),
        ];
        kinds.into_iter().find(|(paths, _)| !paths.is_empty()).map(|(_, code)| code)
    }
}

/// Paths of records, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Paths {
    /// Number of records.
    pub count: u64,
    /// The first paths, at most 100.
    pub paths: Vec<String>,
}

impl Paths {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn push(&mut self, path: &str) {
        self.count += 1;
        if self.paths.len() < MAX_PATHS {
            self.paths.push(path.to_owned());
        }
    }
}

const MAX_PATHS: usize = 100;
