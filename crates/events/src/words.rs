//! The words of a line: its kind, its verdict, and its proved level.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A change of a repository.
    Commit,
    /// The state of a repository, without its changes.
    Sync,
    /// A changed handle or DID document.
    Identity,
    /// A changed status of an account.
    Account,
    /// A message of the host.
    Info,
    /// An error of the host, after which it ends the stream.
    Error,
    /// A message of a type that is not known.
    Unknown,
    /// Bytes that are no message.
    Undecodable,
    /// A part of a repository that was fetched.
    Resync,
    /// A status that the account's own server confirms.
    Status,
    /// The delivered history of an account may lack records.
    History,
    /// An operation of a commit or a repository.
    Operation,
}

impl Kind {
    /// The word in lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Sync => "sync",
            Self::Identity => "identity",
            Self::Account => "account",
            Self::Info => "info",
            Self::Error => "error",
            Self::Unknown => "unknown",
            Self::Undecodable => "undecodable",
            Self::Resync => "resync",
            Self::Status => "status",
            Self::History => "history",
            Self::Operation => "operation",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A verdict in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Signed by the key of its account, and proved as far as the run asks for.
    Verified,
    /// Breaks the rule that the code names.
    Refused,
    /// Old, or of an account that is not active.
    Ignored,
    /// The key of its account is not available.
    UnknownKey,
    /// Contains no proof.
    Unchecked,
    /// Verification is off, or the source has no proofs.
    NotAsked,
}

impl Verdict {
    /// The word in lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Refused => "refused",
            Self::Ignored => "ignored",
            Self::UnknownKey => "unknown-key",
            Self::Unchecked => "unchecked",
            Self::NotAsked => "not-asked",
        }
    }
}

/// How much a run proves of its events, if not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProvedLevel {
    /// The signatures of commits, and the hashes of records.
    Signature,
    /// Nothing.
    None,
}

impl ProvedLevel {
    /// The word in lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_the_type_and_in_json() {
        let words = ["verified", "refused", "ignored", "unknown-key", "unchecked", "not-asked"];
        for word in words {
            let read: Verdict = serde_json::from_str(&format!("{word:?}")).unwrap();
            assert_eq!(read.as_str(), word);
        }
        let kinds = "commit sync identity account info error unknown undecodable resync status history operation";
        for word in kinds.split(' ') {
            let read: Kind = serde_json::from_str(&format!("{word:?}")).unwrap();
            assert_eq!(read.to_string(), word);
        }
        assert!(serde_json::from_str::<Kind>("\"Commit\"").is_err());
    }
}
